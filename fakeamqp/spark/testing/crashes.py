"""Crashes of a query with the effects of `kill -9`, without ending the Java process that all tests share.

**Between sink and commit log.** Spark fails if the commit of a batch exists already, after the rows are in
the sink. So the file `commits/<n>` is created in advance, as a link to `offsets/<n>`. Spark writes
`offsets/<n>` when it begins the batch. The link is broken when a query starts and looks for the last
committed batch, and valid when the batch is finished. So this needs no exact timing.

**The process of the source.** Every query with a Python source has a process for it, a child of Java, which
runs the consumer of a queue. It is killed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fakeamqp.spark.testing.errors import CrashNotPossible, NotACrash

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.spark.testing.checkpoint import Checkpoint
    from fakeamqp.spark.testing.stream import AmqpStream

_MARK = "CONCURRENT_STREAM_LOG_UPDATE"
"""The error class of Spark for a log entry that exists already."""


class Crash:
    """A planned or past crash. As a context manager it waits for the crash at the end of the block.

    Attributes:
        how: `commit` or `source`.
        error: the error of the query; None before the crash.
    """

    def __init__(self, stream: AmqpStream, how: str, link: Path | None = None) -> None:
        self.how = how
        self.error: Exception | None = None
        self._stream = stream
        self._link = link

    def __repr__(self) -> str:
        return f"<Crash {self.how}: {'to come' if self.error is None else 'happened'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self.wait()
            return False
        return error is self.error  # `run_available` inside the block has raised it.

    def wait(self, timeout: float = 60) -> Exception:
        """Wait until the crash has happened, and return the error of the query.

        Raises:
            NotACrash: the query fails for another reason, or ends without the crash.
            QueryTimeout: it does not happen within `timeout` seconds.
        """
        if self.error is None:
            self._stream.wait_failed(timeout)
        if self.error is None:
            raise NotACrash(f"the query failed, but not by the crash: {self._stream.error}")
        return self.error

    def happened(self, error: Exception) -> None:
        """Note that the query has failed because of the link in its checkpoint, and remove the link."""
        self.error = error
        self.undo()

    def undo(self) -> None:
        """Remove the link from the checkpoint."""
        if self._link is not None and self._link.is_symlink():
            self._link.unlink()


def block_commit(checkpoint: Checkpoint, running: bool) -> Path:
    """Block the commit of the next batch. Returns the links to delete afterwards.

    Raises:
        CrashNotPossible: a batch is unfinished and no query is running: Spark would take the link for its
            commit.
    """
    while True:
        batch = checkpoint.committed + 1
        if checkpoint.offset(batch).exists() and not running:
            raise CrashNotPossible(
                f"batch {batch} has crashed before and was not run again yet: restart() first, then crash()"
            )
        link = checkpoint.commit(batch)
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.symlink(os.path.join("..", "offsets", str(batch)), link)
        except FileExistsError:
            continue  # Spark was faster: block the next batch.
        return link


def is_of_commit(error: Exception) -> bool:
    """True if the error was caused by the blocked commit."""
    return _MARK in str(error)
