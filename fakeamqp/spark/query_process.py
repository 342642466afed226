"""The process of the source of a streaming query: its parent, and its end.

Spark ends it with SIGTERM and never calls `stop`. So the signal is made into an exception, which PySpark's
loop lets out by way of `stop`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

_MASTER = re.compile(rb"\0(?:--master\0|spark\.master=)([^\0]*)")
_LOCAL = re.compile(rb"local(\[.*\])?")


def runs_tasks_here() -> bool:
    """True if the master is `local`: tasks are processes of this machine.

    Spark does not tell a source. The parent of its process is the driver's JVM, whose command line has the
    master. If it has none, or cannot be read (outside Linux), the answer is False.
    """
    try:
        command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    except OSError:
        return False
    masters = _MASTER.findall(command)
    return bool(masters) and _LOCAL.fullmatch(masters[-1]) is not None


def exit_on_sigterm() -> Callable[[], None]:
    """End the process in an orderly way when Spark ends the query.

    This has no effect outside the main thread, or if there is another handler.

    Returns:
        what puts things back as they were.
    """
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return _nothing

    def leave(number: int, _frame: FrameType | None) -> None:
        # A second signal follows at once, and must not interrupt the work of the first.
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)

    def restore() -> None:
        if signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    return restore


def _nothing() -> None:
    """The handler is not restored."""
