"""Fast mode: a session that starts faster with the user's cache.

Java reads and verifies thousands of Spark's classes at every start. An archive has them in Java's memory
format. A session in another process creates it (`training`), in about 15 seconds and 170 MB. It fits Java
only with the same paths, so the cache also has the Spark home that the archive is for.

The cache has one folder for each pair of an installed PySpark and a Java.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.session.errors import FastModeUnavailable

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation

_PATIENCE = 180.0
"""The limit for the creation of an archive, in seconds. It takes about 15."""

_FAILURE_COUNTS = 3600.0
"""Seconds after which a failed creation is tried again: the machine may have been busy."""

_KEEP = 30 * 24 * 3600.0
"""The lifetime of an unused folder, in seconds."""


@dataclass(frozen=True)
class Fast:
    """The parts of fast mode: a Spark home, and the archive for Java."""

    home: Path
    archive: Path

    @property
    def java_options(self) -> str:
        """Options for Java, which silently ignores an archive that does not fit."""
        return f"-XX:SharedArchiveFile={self.archive} -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def prepare(installation: Installation) -> Fast:
    """Find the parts of fast mode in the cache, and create missing ones.

    Raises:
        FastModeUnavailable: fast mode is not possible; the text has the reason.
    """
    if not installation.own_home:
        raise FastModeUnavailable("SPARK_HOME is set, and fast mode needs the Spark of the pyspark package")
    try:
        folder = cache_folder(installation)
        folder.mkdir(parents=True, exist_ok=True)
        fast = Fast(folder / "home", folder / "classes.jsa")
        _make_home(installation, fast.home)
        _make_archive(fast)
        folder.joinpath("used").touch()
    except OSError as error:
        raise FastModeUnavailable(f"the cache cannot be used: {error}") from error
    return fast


def cache_folder(installation: Installation) -> Path:
    """The folder of this installation, which depends on version, path and time of the installation."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base if base and os.path.isabs(base) else Path.home() / ".cache", "fakeamqp", "spark")
    java = installation.java.resolve()
    facts = [
        installation.home,
        installation.home.joinpath("jars").stat().st_mtime_ns,
        java,
        java.stat().st_mtime_ns,
    ]
    digest = hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()[:12]
    spark = ".".join(map(str, installation.spark))
    return root / f"spark-{spark}-java-{installation.java_version}-{digest}"


def _make_home(installation: Installation, home: Path) -> None:
    if home.is_dir():
        return
    making = Path(tempfile.mkdtemp(prefix="home-", dir=home.parent))
    try:
        installation.link_home(making)
        making.chmod(0o755)
        os.rename(making, home)
    except OSError:
        if not home.is_dir():  # Otherwise another process has created it meanwhile.
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _make_archive(fast: Fast) -> None:
    """Create a missing archive. Only one process does it, and others wait.

    A failed creation is not repeated for an hour: a file next to the archive contains the reason.
    """
    folder = fast.archive.parent
    failure = folder / "failed"
    if fast.archive.exists():
        return
    with folder.joinpath("lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # The end of a process releases its lock.
        if fast.archive.exists():
            return
        if failure.exists() and abs(time.time() - failure.stat().st_mtime) < _FAILURE_COUNTS:
            raise FastModeUnavailable(f"{failure.read_text('utf-8')} (delete {folder} to try again)")
        try:
            _train(fast)
        except FastModeUnavailable as error:
            failure.write_text(str(error), "utf-8")
            raise
        failure.unlink(missing_ok=True)
    _delete_unused(folder)


def _train(fast: Fast) -> None:
    """Let another process create the archive."""
    unfinished = fast.archive.with_name(f"classes.{os.getpid()}")
    command = [sys.executable, "-m", "fakeamqp.spark.session.training", str(unfinished)]
    try:
        status, said = _run(command, {**os.environ, "SPARK_HOME": str(fast.home)})
        if status or not unfinished.exists():
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {status}"
            raise FastModeUnavailable(f"Java wrote no class-data archive: {reason}")
        os.replace(unfinished, fast.archive)
    except subprocess.TimeoutExpired as error:
        raise FastModeUnavailable(f"writing a class-data archive took longer than {_PATIENCE:g} s") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """The exit code and the output of a program, which has no input.

    If it takes too long, the processes that it has started, such as Java, end with it.
    """
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
    return running.returncode, said


def _delete_unused(folder: Path) -> None:
    """Delete the other folders of the cache that were not used for a month."""
    for other in folder.parent.iterdir():
        try:
            unused = time.time() - other.joinpath("used").stat().st_mtime > _KEEP
        except OSError:
            continue  # A folder that another process is creating.
        if unused and other != folder:
            shutil.rmtree(other, ignore_errors=True)
