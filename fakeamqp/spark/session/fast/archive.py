"""The class-data archive: a session in another process uses the features that tests use, and creates it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fakeamqp.spark.session.errors import FastModeUnavailable
from fakeamqp.spark.session.fast.cache import forget_the_unused, note_use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATIENCE = 180.0
"""The limit for the creation, in seconds. It takes about 15."""

_FAILURE_COUNTS = 3600.0
"""Seconds after which a failed creation is tried again: the machine may have been busy."""


def the_archive(home: Path, folder: Path) -> Path:
    """The archive in the cache, created if it is missing.

    Only one process creates it, and other processes wait. A failed creation is not repeated for an hour: a
    file next to the archive contains the reason.

    Raises:
        FastModeUnavailable: the archive cannot be created.
        OSError: the cache cannot be written.
    """
    archive, failure = folder / "classes.jsa", folder / "failed"
    if not archive.exists():
        with _alone(folder):
            if not archive.exists():
                if _is_recent(failure):
                    raise FastModeUnavailable(f"{failure.read_text('utf-8')} (delete {folder} to try again)")
                try:
                    _make(archive, home)
                except FastModeUnavailable as error:
                    failure.write_text(str(error), "utf-8")
                    raise
                failure.unlink(missing_ok=True)
                forget_the_unused(folder)
    note_use(folder)
    return archive


def _make(archive: Path, home: Path) -> None:
    unfinished = archive.with_name(f"classes.{os.getpid()}")
    environment = {**os.environ, "SPARK_HOME": str(home)}
    try:
        command = [sys.executable, "-m", "fakeamqp.spark.session.fast.training", str(unfinished)]
        done = _run(command, environment)
        if done.returncode or not unfinished.exists():
            raise FastModeUnavailable(f"Java wrote no class-data archive: {_last_words(done)}")
        os.replace(unfinished, archive)
    except subprocess.TimeoutExpired as error:
        raise FastModeUnavailable(f"writing a class-data archive took longer than {_PATIENCE:g} s") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program without input. If it takes too long, the Java that it has started ends with it."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=_PATIENCE)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, running.returncode, said)


def _is_recent(failure: Path) -> bool:
    try:
        return abs(time.time() - failure.stat().st_mtime) < _FAILURE_COUNTS
    except FileNotFoundError:
        return False


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {done.returncode}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes. The end of a process releases its lock."""
    with folder.joinpath("lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
