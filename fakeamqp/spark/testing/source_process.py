"""Finds the processes of a query's sources among the children of Java."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.testing.errors import CrashNotPossible

if TYPE_CHECKING:
    from pathlib import Path

_MODULE = "python_streaming_source_runner"


def kill_sources(session: Any, spools: Path) -> None:
    """Kill the process of the only source, or those of all sources with a spool in this folder.

    Raises:
        CrashNotPossible: the processes cannot be determined.
    """
    running = _of_sources(session)
    found = running if len(running) == 1 else _that_have_open(running, spools)
    if not found:
        raise CrashNotPossible(
            f"{len(running) or 'no'} processes may be the source of this query; wait until it has begun "
            "its first batch, and let one query without a spool run at a time"
        )
    for process in found:
        os.kill(process, signal.SIGKILL)


def _of_sources(session: Any) -> set[int]:
    children = session.sparkContext._jvm.java.lang.ProcessHandle.current().children().toList()
    return {int(child.pid()) for child in children if _MODULE in str(child.info().commandLine().orElse(""))}


def _that_have_open(processes: set[int], folder: Path) -> set[int]:
    # As a source has the lock of its spool. None of them where the system does not tell.
    if not os.path.isdir("/proc/self/fd"):
        return set()
    inside = f"{folder.resolve()}{os.sep}"
    return {process for process in processes if any(path.startswith(inside) for path in _open_files(process))}


def _open_files(process: int) -> list[str]:
    found = []
    try:
        for name in os.listdir(f"/proc/{process}/fd"):
            found.append(os.readlink(f"/proc/{process}/fd/{name}"))
    except OSError:
        pass  # It has ended meanwhile, or one of its files is closed.
    return found
