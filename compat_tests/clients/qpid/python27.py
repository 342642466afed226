"""Finds a Python 2.7 and keeps the client's packages for it in a cache folder.

Three environment variables say where things are on machines that are unlike others:
`FAKEAMQP_PYTHON27` names the interpreter, `FAKEAMQP_QPID` a folder with what would be in the cache (for
machines without network), `XDG_CACHE_HOME` the folder that the cache is in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["Python27", "Unavailable", "client"]

CLIENT = "qpid-python==1.36.0.post1"
TOOLS = "qpid-tools==1.36.0.post1"

SECONDS = 180
"""How long one step of the installation may take."""

WHAT_TO_INSTALL = (
    "needs Python 2.7 with pip, for Apache's client of AMQP 0-10: `pyenv install 2.7.18`, or an interpreter "
    "named in FAKEAMQP_PYTHON27"
)


class Unavailable(Exception):
    """The client cannot run here; the text says what to install."""


@dataclass(frozen=True)
class Python27:
    """An interpreter and where it finds the client.

    `packages` goes onto its path, `examples` holds the scripts of the client's source distribution.
    """

    interpreter: str
    packages: Path
    examples: Path

    def command(self, *arguments: str) -> list[str]:
        """A command line that runs a script."""
        return [self.interpreter, *arguments]

    def environment(self) -> dict[str, str]:
        """What such a process is started with: nothing that is meant for this Python."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["PYTHONPATH"] = str(self.packages)
        environment["COLUMNS"] = "400"  # The suite's runner breaks longer lines.
        return environment

    def run(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )


@lru_cache(maxsize=1)
def client() -> Python27:
    """The client, installed where it was not yet.

    Raises:
        Unavailable: there is no Python 2.7, or nothing to install from.
    """
    interpreter = _interpreter()
    given = os.environ.get("FAKEAMQP_QPID")
    folder = Path(given) if given else _cache() / "qpid-python-1.36.0.post1"
    if not folder.is_dir():
        if given:
            raise Unavailable(f"FAKEAMQP_QPID names no folder: {given}")
        _install(interpreter, folder)
    return Python27(interpreter, folder / "packages", folder / "examples")


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "fakeamqp"


def _interpreter() -> str:
    for candidate in _candidates():
        asked = "import sys, pip; sys.stdout.write('%d.%d' % sys.version_info[:2])"
        try:
            answer = subprocess.run(
                [candidate, "-c", asked], capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except OSError:
            continue
        if answer.returncode == 0 and answer.stdout == "2.7":
            return candidate
    raise Unavailable(WHAT_TO_INSTALL)


def _candidates() -> list[str]:
    named = os.environ.get("FAKEAMQP_PYTHON27")
    if named:
        return [named]
    found = shutil.which("python2.7")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(pyenv.glob("versions/2.7*/bin/python2.7"), reverse=True)
    return [*([found] if found else []), *map(str, installed)]


def _install(interpreter: str, folder: Path) -> None:
    """Make the folder in one go, so that processes that do so at the same time do not meet in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".installing-") as made:
        ready = Path(made, "ready")
        packages, download = ready / "packages", Path(made, "download")
        packages.mkdir(parents=True)
        pip = [interpreter, "-m", "pip", "--disable-pip-version-check"]
        # Its examples are in the source distribution only.
        _step([*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(download), CLIENT])
        (archive,) = download.iterdir()
        with tarfile.open(archive) as source:
            source.extractall(download)
        (unpacked,) = (each for each in download.iterdir() if each.is_dir())
        (unpacked / "examples" / "api").rename(ready / "examples")
        _step([*pip, "install", "--no-deps", "--target", str(packages), str(archive), TOOLS])
        # The client stores what it makes of its XML; processes that start together must not all try.
        _step([interpreter, "-c", f"import sys; sys.path.insert(0, {str(packages)!r}); import qpid.ops"])
        try:
            ready.rename(folder)
        except OSError:
            if not folder.is_dir():  # Else another process was quicker.
                raise


def _step(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
    )
    if done.returncode != 0:
        tail = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Unavailable(f"could not install {CLIENT} for Python 2.7: {' '.join(tail)}")
