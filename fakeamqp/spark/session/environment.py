"""The process around a session: its variables, time zone and signal handlers, and that it gets them back."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["process_environment"]


@contextmanager
def process_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of this process, or take them away where the value is None, for the length of the block.

    Spark itself changes more: it puts a folder on `sys.path`, takes SIGINT, and sets variables for its
    workers. That is undone, too. The time zone of the process follows TZ.
    """
    variables, path, handler = dict(os.environ), list(sys.path), _interrupt_handler()
    try:
        for name, value in changes.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _follow_time_zone()
        yield
    finally:
        _restore(variables, changes)
        _follow_time_zone()
        sys.path[:] = [entry for entry in sys.path if entry in path or not _is_of_spark(entry)]
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


_SET_BY_SPARK = (
    "PYTHONHASHSEED",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_ENV_LOADED",
    "SPARK_HOME",
)


def _restore(variables: dict[str, str], changes: Mapping[str, str | None]) -> None:
    """Put back what we and Spark have changed. Others may have changed more meanwhile: that is theirs."""
    for name in (*changes, *_SET_BY_SPARK):
        if name in variables:
            os.environ[name] = variables[name]
        else:
            os.environ.pop(name, None)


def _follow_time_zone() -> None:
    if hasattr(time, "tzset"):
        time.tzset()


def _is_of_spark(entry: str) -> bool:
    """Whether it is the folder that Spark shares files in: `<local dir>/spark-<uuid>/userFiles-<uuid>`."""
    return "userFiles-" in entry


def _interrupt_handler() -> Any:
    if threading.current_thread() is not threading.main_thread():
        return None  # Only the main thread may set it, so Spark has left it alone.
    return signal.getsignal(signal.SIGINT)
