"""The process that Spark gives to the source of a streaming query, and how it ends.

Spark ends it with SIGTERM and never calls `stop`. So the signal is made into an exception, which PySpark's
loop lets out by way of `stop`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["exit_on_sigterm"]


def exit_on_sigterm() -> Callable[[], None]:
    """Have the process end in an orderly way when Spark ends the query.

    Nothing happens outside of a main thread, or where somebody has a handler of their own.

    Returns:
        what puts things back as they were.
    """
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return _nothing

    def leave(number: int, _frame: FrameType | None) -> None:
        # A second one follows at once; this one's work has to be done all the same.
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)

    def restore() -> None:
        if signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    return restore


def _nothing() -> None:
    """There is nothing to put back."""
