"""Environment variables, time zone and signal handlers of the process: set for a session, then restored."""

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


@contextmanager
def process_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables during the block; a variable whose value is None is removed.

    Spark also adds a folder to `sys.path`, handles SIGINT, and sets variables for its workers. The end of the
    block reverts these changes, too. The time zone of the process follows TZ.
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
    """Restore the variables that this module and Spark have changed, and no others."""
    for name in (*changes, *_SET_BY_SPARK):
        if name in variables:
            os.environ[name] = variables[name]
        else:
            os.environ.pop(name, None)


def _follow_time_zone() -> None:
    if hasattr(time, "tzset"):
        time.tzset()


def _is_of_spark(entry: str) -> bool:
    """True for the folder in which Spark shares files: `<local dir>/spark-<uuid>/userFiles-<uuid>`."""
    return "userFiles-" in entry


def _interrupt_handler() -> Any:
    if threading.current_thread() is not threading.main_thread():
        return None  # Only the main thread may set it, so Spark has not changed it.
    return signal.getsignal(signal.SIGINT)
