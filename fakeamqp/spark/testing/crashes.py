"""Crashes of a query: what `kill -9` would leave behind, without the end of the Java that all tests share.

**Between sink and commit log.** Spark refuses to note a batch as finished if that note is there already, and
fails then, with the rows in the sink. So the note `commits/<n>` is put there in advance, as a link to
`offsets/<n>`: Spark writes that when it begins the batch, so the link leads nowhere when a query starts and
looks for the last batch that was finished, and leads somewhere when the batch is. No time has to be hit.

**The source's process.** Every query with a Python source has a process for it, a child of Java, which is
where the consumer of a queue lives. It is killed.
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

__all__ = ["Crash", "block_commit", "is_of_commit"]

_MARK = "CONCURRENT_STREAM_LOG_UPDATE"
"""What Spark calls it when a note is there already."""


class Crash:
    """A crash that is going to happen, or has. As a context manager it waits for it at the end of the block.

    Attributes:
        how: `commit` or `source`.
        error: what the query failed with; None until it did.
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
        return error is self.error  # `run_available` inside the block has run into it.

    def wait(self, timeout: float = 60) -> Exception:
        """Wait until it has happened, and return what the query failed with.

        Raises:
            NotACrash: if the query fails of something else, or ends without it.
            QueryTimeout: if it does not happen within `timeout` seconds.
        """
        if self.error is None:
            self._stream.wait_failed(timeout)
        if self.error is None:
            raise NotACrash(f"the query failed, but not by the crash: {self._stream.error}")
        return self.error

    def happened(self, error: Exception) -> None:
        """The query has failed with it. What was put into the checkpoint is taken out again."""
        self.error = error
        self.undo()

    def undo(self) -> None:
        """Leave the checkpoint as Spark made it."""
        if self._link is not None and self._link.is_symlink():
            self._link.unlink()


def block_commit(checkpoint: Checkpoint, running: bool) -> Path:
    """Let the next batch that is going to be finished fail to be noted; returns what has to be deleted after.

    Raises:
        CrashNotPossible: if a batch is unfinished that no running query is at: Spark would take the link for
            its commit.
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
            continue  # Spark was quicker: then it is the next.
        return link


def is_of_commit(error: Exception) -> bool:
    """Whether a query failed with it because its commit was blocked."""
    return _MARK in str(error)
