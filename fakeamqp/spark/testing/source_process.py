"""Finds the processes of a query's sources among the children of Java."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.testing.errors import CrashNotPossible

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["kill_source", "kill_sources"]

_MODULE = "python_streaming_source_runner"


def kill_source(session: Any, spool: Path) -> None:
    """Kill the process of the only source, or those of all sources with a spool in this folder.

    Raises:
        CrashNotPossible: the process cannot be determined.
    """
    processes = _of_sources(session)
    if len(processes) == 1:
        os.kill(processes.pop(), signal.SIGKILL)
    elif not kill_sources(session, spool):
        raise CrashNotPossible(
            f"{len(processes) or 'no'} processes may be the source of this query; wait until it has begun "
            "its first batch, and let one query without a spool run at a time"
        )


def kill_sources(session: Any, spool: Path) -> int:
    """Kill the processes of all sources with a spool in this folder, and return their number."""
    found = _that_have_open(_of_sources(session), spool)
    for process in found:
        os.kill(process, signal.SIGKILL)
    return len(found)


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
