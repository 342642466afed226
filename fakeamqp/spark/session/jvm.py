"""The Java process of a session. PySpark keeps it until Python exits; `end` ends it with the session."""

from __future__ import annotations

import subprocess
from typing import Any

patience: float = 10.0
"""Seconds to wait for Java to exit; it deletes its folders then."""


def is_running() -> bool:
    """True if this process has a Java process, with or without a session."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def end() -> None:
    """End the Java process, so that the next session starts one with its own options."""
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
