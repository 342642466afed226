"""The folders in which the sources of a job under test keep their spools: one for each of its reads."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from fakeamqp.spark import values
from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.spool.lock import FolderLock
from fakeamqp.spark.testing.source_process import kill_sources

__all__ = ["folder_for", "wait_for_sources"]


def folder_for(queues: str, inside: Path) -> Path:
    """The folder for a read of these queues, the same one after every restart.

    The first queue in alphabetical order decides: the list of shards may change between two runs of a query.
    """
    first = min(_names(queues))
    # A queue's name may be too long for a file, and may have characters that no file has.
    readable = re.sub(r"[^A-Za-z0-9.-]", "_", first)[:40]
    return inside / f"{readable}-{hashlib.sha256(first.encode()).hexdigest()[:8]}"


def wait_for_sources(session: Any, inside: Path, failed: bool) -> None:
    """Wait until no source writes to the spools. Sources that a failed query has left behind are killed.

    Raises:
        SpoolError: a source of a query that has not failed does not end within ten seconds.
    """
    for folder in inside.glob("*/"):
        try:
            # Spark does not wait for the process of a source, which stores what it has received.
            FolderLock(folder).release()
        except SpoolError:
            if not failed:
                raise
            # Spark stops no source if the query fails while its sources prepare for `availableNow`.
            kill_sources(session, folder)


def _names(queues: str) -> tuple[str, ...]:
    try:
        return values.ranged_names(queues)
    except ValueError:
        return (queues,)  # The source says what is wrong.
