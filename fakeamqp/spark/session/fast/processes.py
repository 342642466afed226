"""Runs a program together with the processes that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["run_group"]


def run_group(
    command: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process group of its own, without input, and return its exit code and its output.

    If it takes too long, or the wait is interrupted, the whole group is killed: the Java that a session
    starts would go on otherwise.

    Raises:
        subprocess.TimeoutExpired: it took longer than `timeout` seconds.
    """
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as running:
        try:
            out, error = running.communicate(timeout=timeout)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, running.returncode, out, error)
