"""The folders in which the sources of a job under test keep their spools: one for each of its reads."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from fakeamqp.spark.options import values
from fakeamqp.spark.queue.folder import FolderLock


class Spools:
    """The spools of the jobs of a test, one after the other.

    A job that reads another queue than the job before continues with the same spool and the same checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of_job: dict[str, Path] = {}
        self._known: dict[str, Path] = {}

    def folder_for(self, queues: str) -> Path:
        """The folder for a read of these queues, the same one after every restart.

        The first queue in alphabetical order decides: the list of shards may change between two runs.
        """
        try:
            first = min(values.ranged_names(queues))
        except ValueError:
            first = queues  # The source says what is wrong.
        if first not in self._of_job:
            # A queue's name may be too long for a file, and may have characters that no file has.
            readable = re.sub(r"[^A-Za-z0-9.-]", "_", first)[:40]
            name = f"{readable}-{hashlib.sha256(first.encode()).hexdigest()[:8]}"
            # The spool of the job before may have the name of this queue, and be in use for another one.
            named = self._folder / name, self._folder / f"{name}-2"
            before = *self._known.values(), *named
            candidates = self._known.get(first, before[0]), *named
            taken = self._of_job.values()
            self._of_job[first] = next(folder for folder in candidates if folder not in taken)
            self._known[first] = self._of_job[first]
        return self._of_job[first]

    def job_begins(self) -> None:
        """Note that the reads since the last call belong to one job."""
        self._of_job.clear()

    def wait_for_sources(self) -> None:
        """Wait until no source writes to the spools.

        Spark does not wait for the process of a source, which stores what it has received.

        Raises:
            SpoolError: a source does not end within ten seconds.
        """
        for folder in self._folder.glob("*/"):
            FolderLock(folder).release()
