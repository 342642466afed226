"""What a session changes in this process, and its Java process: both end with the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

patience: float = 10.0
"""Seconds to wait for Java to exit; it deletes its folders then."""

_SET_BY_SPARK = (
    "PYTHONHASHSEED",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_ENV_LOADED",
    "SPARK_HOME",
)


@contextmanager
def process_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables during the block; a variable whose value is None is removed.

    Spark also adds a folder to `sys.path`, handles SIGINT, and sets variables for its workers. The end of the
    block reverts these changes, too, and no others. The time zone of the process follows TZ.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()  # Others cannot set a handler.
    handler = signal.getsignal(signal.SIGINT) if in_main_thread else None
    path = list(sys.path)
    before = {name: os.environ.get(name) for name in (*changes, *_SET_BY_SPARK)}
    try:
        _set(changes)
        yield
    finally:
        _set(before)
        # Spark shares files in `<local dir>/spark-<uuid>/userFiles-<uuid>`.
        sys.path[:] = [entry for entry in sys.path if entry in path or "userFiles-" not in entry]
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if hasattr(time, "tzset"):
        time.tzset()


def java_is_running() -> bool:
    """True if this process has a Java process, with or without a session."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def end_java() -> None:
    """End the Java process, so that the next session starts one with its own options.

    PySpark would keep it until Python exits.
    """
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    gateway.shutdown()
    if process is None:
        return
    if process.stdin is not None:
        process.stdin.close()  # Java exits at the end of its input.
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
