"""Crashes of a query with the effects of `kill -9`, without ending the Java process that all tests share.

**Between sink and commit log.** Spark writes `offsets/<n>` to the checkpoint before it runs batch n, and
`commits/<n>` when its rows are in the sink. It fails if the second file exists already, and a batch without
it runs again. So `commits/<n>` is created in advance, as a link to `offsets/<n>`. The link is broken when a
query starts and looks for the last committed batch, and valid when the batch is finished. So this needs no
exact timing.

**The process of the source.** Every query with a Python source has a process for it, a child of Java, which
runs the consumer of a queue. It is killed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.testing.errors import CrashNotPossible, NotACrash

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.spark.testing.stream import AmqpStream

_MARK = "CONCURRENT_STREAM_LOG_UPDATE"
"""The error class of Spark for a log entry that exists already."""

_SOURCE = "python_streaming_source_runner"
"""The module of PySpark that the process of a source runs."""


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

    def see(self, error: Exception) -> None:
        """Note the error of the query if this crash to come has caused it, and remove its link."""
        if self.error is None and _MARK in str(error):
            self.error = error
            self.undo()

    def undo(self) -> None:
        """Remove the link from the checkpoint."""
        if self._link is not None and self._link.is_symlink():
            self._link.unlink()


def last_committed(checkpoint: Path) -> int:
    """The number of the last batch that Spark has committed, or -1."""
    # Links are planned crashes.
    entries = checkpoint.joinpath("commits").glob("*")
    return max(
        (int(each.name) for each in entries if each.name.isdecimal() and not each.is_symlink()), default=-1
    )


def block_commit(checkpoint: Path, running: bool) -> Path:
    """Block the commit of the next batch. Returns the link to delete afterwards.

    Raises:
        CrashNotPossible: a batch is unfinished and no query is running: Spark would take the link for its
            commit.
    """
    while True:
        batch = last_committed(checkpoint) + 1
        if not running and checkpoint.joinpath("offsets", str(batch)).exists():
            raise CrashNotPossible(
                f"batch {batch} has crashed before and was not run again yet: restart() first, then crash()"
            )
        link = checkpoint / "commits" / str(batch)
        link.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # Spark was faster: block the next batch.
            os.symlink(os.path.join("..", "offsets", str(batch)), link)
            return link


def kill_sources(session: Any, spools: Path) -> None:
    """Kill the process of the only source, or those of all sources that have a spool in this folder open.

    Raises:
        CrashNotPossible: the processes cannot be determined.
    """
    children = session.sparkContext._jvm.java.lang.ProcessHandle.current().children().toList()
    running = {
        int(child.pid()) for child in children if _SOURCE in str(child.info().commandLine().orElse(""))
    }
    inside = f"{spools.resolve()}{os.sep}"
    found = running if len(running) == 1 else {each for each in running if _has_open(each, inside)}
    if not found:
        raise CrashNotPossible(
            f"{len(running) or 'no'} processes may be the source of this query; wait until it has begun "
            "its first batch, and let one query without a spool run at a time"
        )
    for process in found:
        os.kill(process, signal.SIGKILL)


def _has_open(process: int, inside: str) -> bool:
    """Whether a process has a file in a folder open, such as the lock of a spool. False outside Linux."""
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):  # The file is closed, or the process has ended.
            if os.readlink(link).startswith(inside):
                return True
    return False
