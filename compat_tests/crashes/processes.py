"""Runs the pipeline, and kills it as a power cut would: all of its processes at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from compat_tests.crashes.extent import AT_LENGTH

if TYPE_CHECKING:
    from compat_tests.crashes.lanes import Lane

__all__ = ["Incarnation", "PipelineError"]

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
"""Seconds after which something that has to happen is given up.

A session takes 10 on a free machine. One with a cluster takes 90 beside four busy processes (measured).
"""
_BETWEEN_LOOKS = threading.Event()
SOURCE = "python_streaming_source_runner"
"""What the command line of the process says in which a query's source lives."""
EXECUTOR = "CoarseGrainedExecutorBackend"
"""What that of an executor says, where executors are processes."""


class PipelineError(Exception):
    """The pipeline ended, or did not do what it should. The text holds its output."""


class Incarnation:
    """One life of the pipeline. What is left of it at the end of the block is killed.

    Args:
        folder: where its output goes.
        lanes: the queries that it runs.
        to_the_end: whether it ends when it has read what is there, or goes on until it is killed.
        master: Spark's master; one with executors has no fast mode.
    """

    def __init__(
        self, folder: Path, lanes: Sequence[Lane], *, to_the_end: bool = False, master: str = "local[2]"
    ) -> None:
        number = len(list(folder.glob("job-*.json")))
        job = folder / f"job-{number}.json"
        what = {
            "to_the_end": to_the_end,
            "fast": not AT_LENGTH and master.startswith("local["),
            "master": master,
            "lanes": [lane.job() for lane in lanes],
        }
        job.write_text(json.dumps(what))
        self.output = folder / f"output-{number}"
        with self.output.open("wb") as output:
            # A session of its own: Spark's workers make process groups, but stay in the session.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "compat_tests.crashes.pipeline", str(job)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def wait_until(self, happened: Callable[[], object], what: str) -> None:
        """Wait for an effect.

        Raises:
            PipelineError: if the pipeline ends before, or it does not come.
        """
        deadline = time.monotonic() + PATIENCE
        while not happened():
            code = self._process.poll()
            if code is not None and not happened():
                raise PipelineError(f"the pipeline ended with {code} before {what}:\n{self.said()}")
            if time.monotonic() > deadline:
                raise PipelineError(f"not within {PATIENCE:g} s: {what}:\n{self.said()}")
            _BETWEEN_LOOKS.wait(0.005)

    def publish_when_it_consumes(self, lanes: Sequence[Lane], counts: Mapping[str, int]) -> None:
        """Publish to each lane. Before PySpark 4.2, the first batch has everything that is there before."""
        self.wait_until(lambda: all(lane.consumers() for lane in lanes), "it consumes")
        for lane in lanes:
            lane.publish(counts[lane.name])

    def wait(self) -> int:
        """Wait for its end, and return its code."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise PipelineError(f"it did not end within {PATIENCE:g} s:\n{self.said()}") from None

    def finish(self) -> None:
        """Wait for its end, which has to be a good one."""
        code = self.wait()
        if code != 0:
            raise PipelineError(f"the pipeline ended with {code}:\n{self.said()}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End all of its processes. None sees another one end: they are stopped first."""
        stopped: set[int] = set()
        while processes := self._processes() - stopped:
            for process in processes:
                _signal(process, signal.SIGSTOP)
            stopped |= processes
        for process in stopped:
            _signal(process, number)
            _signal(process, signal.SIGCONT)
        self.wait_for_all()

    def terminate(self) -> None:
        """Send SIGTERM to the first of its processes, as a service manager does."""
        self._process.terminate()

    def kill_sources(self) -> None:
        """Kill the processes in which the sources of its queries live."""
        sources = [pid for pid, _, command in _listed(self._process.pid) if SOURCE in command]
        if not sources:
            raise PipelineError(f"there is no process whose command line says {SOURCE}")
        for process in sources:
            _signal(process, signal.SIGKILL)

    def kill_executor(self, draw: Random) -> None:
        """Kill one of its executors, with the processes of its Python workers. Spark starts another one."""
        executors = [pid for pid, _, command in _listed(self._process.pid) if EXECUTOR in command]
        if not executors:
            raise PipelineError(f"there is no process whose command line says {EXECUTOR}")
        family = {draw.choice(executors)}
        for process in family:
            _signal(process, signal.SIGSTOP)
        while more := {pid for pid, parent in _parents() if parent in family} - family:
            for process in more:
                _signal(process, signal.SIGSTOP)
            family |= more
        for process in family:
            _signal(process, signal.SIGKILL)

    def wait_for_all(self) -> None:
        """Wait until all of its processes have ended."""
        deadline = time.monotonic() + PATIENCE
        while self._processes():
            if time.monotonic() > deadline:
                raise PipelineError(f"processes are left over: {self._processes()}")
            _BETWEEN_LOOKS.wait(0.005)
        self._process.wait()

    def said(self) -> str:
        """The beginning and the end of its output: why, and what came of it."""
        text = self.output.read_text(errors="replace")
        return text if len(text) < 8000 else f"{text[:4000]}\n...\n{text[-4000:]}"

    def _processes(self) -> set[int]:
        return {pid for pid, state, _ in _listed(self._process.pid) if not state.startswith("Z")}


def _parents() -> list[tuple[int, int]]:
    """Process id and that of the parent, of all processes."""
    lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    return [(int(pid), int(parent)) for pid, parent in map(str.split, lines.stdout.splitlines())]


def _listed(session: int) -> list[tuple[int, str, str]]:
    """Process id, state and command line of the processes of a session."""
    lines = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = []
    for line in lines:
        pid, state, *command = line.split(None, 2)
        try:
            if os.getsid(int(pid)) == session:
                found.append((int(pid), state, " ".join(command)))
        except OSError:
            continue
    return found


def _signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
