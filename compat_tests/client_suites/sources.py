"""Keeps the source of each suite, and a virtual environment to run it in, in the cache of the user.

They are in `~/.cache/fakeamqp/client-suites`, or in the folder that FAKEAMQP_CLIENT_SUITES names. Sources
come from PyPI, npm, Debian's archive or GitHub, the client and what else its suite needs from PyPI. A suite
with `services` gets certificates of its own: those in its repository expire.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compat_tests.client_suites.suites import Suite

__all__ = ["Source", "Unavailable", "package_of_npm", "repository", "source"]

_POOL = "http://deb.debian.org/debian/pool/main/"
_SECONDS = 300
_COMPLETE = ".complete"
_PIP = ("--quiet", "--disable-pip-version-check")


class Unavailable(Exception):
    """A suite cannot be had; the text says why."""


@dataclass(frozen=True)
class Source:
    """The unpacked source of a suite, and the Python or Node.js that runs it."""

    root: Path
    interpreter: Path

    @property
    def certificates(self) -> Path:
        """The folder with the certificates of a suite with `services`."""
        return self.root / ".ci" / "certs"


def source(suite: Suite) -> Source:
    """The source of a suite, fetched where it was not yet.

    Raises:
        Unavailable: this Python cannot run it, or there is nothing to fetch it from.
    """
    if obstacle := suite.obstacle():
        raise Unavailable(obstacle)
    folder = _cache() / f"{suite.folder}-py{sys.version_info[0]}.{sys.version_info[1]}"
    interpreter = Path(shutil.which("node") or "node") if suite.npm else folder / "venv" / "bin" / "python"
    found = Source(folder / "source", interpreter)
    # What a suite is made of may change with its row.
    wanted = "\n".join([*suite.all_requirements(), suite.debian or suite.origin, *(suite.git or ())])
    complete = folder / _COMPLETE
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.is_file() or complete.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _fetch(suite, found.root)
            if suite.services:
                _certify(found.certificates)
            if not suite.npm:
                _install(suite, folder / "venv", found.interpreter)
            complete.write_text(wanted)
    return found


def repository(address: str, tag: str) -> Path:
    """A tag of a repository, fetched where it was not yet; `Unavailable` where it cannot be had."""

    def clone(folder: Path) -> None:
        quiet = ("-c", "advice.detachedHead=false", "clone", "--quiet")
        _run(["git", *quiet, "--depth", "1", "--branch", tag, address, str(folder)], address)

    return _kept(f"{address.rpartition('/')[2]}-{tag}", clone)


def package_of_npm(name: str, version: str) -> Path:
    """The folder `node_modules` with a package of npm and what it needs; `Unavailable` without npm."""
    if shutil.which("npm") is None:
        raise Unavailable(f"{name} needs npm")

    def install(folder: Path) -> None:
        quiet = ("--no-fund", "--no-audit", "--silent")
        _run(["npm", "install", *quiet, "--prefix", str(folder), f"{name}@{version}"], "npm")

    return _kept(f"{name}-{version}", install) / "node_modules"


def _kept(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, which `make` makes once."""
    folder = _cache() / name
    complete = folder.parent / f"{name}{_COMPLETE}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            complete.touch()
    return folder


def _cache() -> Path:
    if named := os.environ.get("FAKEAMQP_CLIENT_SUITES"):
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "fakeamqp" / "client-suites"


def _fetch(suite: Suite, root: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        download = Path(made)
        if suite.git is not None:
            _from_git(suite, root)
            return
        if suite.debian is not None:
            _from_debian(suite, download / "source.tar.gz")
        elif suite.npm:
            wanted = f"{suite.package}@{suite.version}"
            _from_registry(suite, ["npm", "pack", "--silent", "--pack-destination", made, wanted])
        else:
            wanted = f"{suite.package}=={suite.version}"
            arguments = ["download", "--no-deps", "--no-binary", suite.package, "--dest", made, wanted]
            _from_registry(suite, [sys.executable, "-m", "pip", *_PIP, *arguments])
        (archive,) = download.iterdir()
        unpacked = download / "unpacked"
        with tarfile.open(archive) as packed:
            if hasattr(tarfile, "data_filter"):
                packed.extractall(unpacked, filter="data")
            else:
                packed.extractall(unpacked)
        (top,) = unpacked.iterdir()
        shutil.move(top, root)


def _from_git(suite: Suite, root: Path) -> None:
    assert suite.git is not None
    shutil.copytree(repository(*suite.git), root)


def _certify(folder: Path) -> None:
    """Write certificates of a server and a client by an authority of their own, by the names of the suite."""
    import trustme

    authority = trustme.CA()
    folder.mkdir(parents=True, exist_ok=True)
    authority.cert_pem.write_to_path(folder / "ca_certificate.pem")
    for name, issued in (
        ("server", authority.issue_cert("localhost", "127.0.0.1")),
        ("client", authority.issue_cert(common_name="localhost")),
    ):
        (folder / f"{name}_localhost_certificate.pem").write_bytes(
            b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        )
        issued.private_key_pem.write_to_path(folder / f"{name}_localhost_key.pem")


def _from_debian(suite: Suite, archive: Path) -> None:
    assert suite.debian is not None
    address = f"{_POOL}{suite.debian[0]}/{suite.debian}"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, archive.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:
        raise Unavailable(f"the suite of {suite} cannot be had from {address}: {error}") from None


def _install(suite: Suite, folder: Path, interpreter: Path) -> None:
    venv.create(folder, symlinks=True, with_pip=False)
    pip = [sys.executable, "-m", "pip", *_PIP, "--python", str(interpreter)]
    _from_registry(suite, [*pip, "install", "--no-compile", *suite.all_requirements()])


def _from_registry(suite: Suite, command: Sequence[str]) -> None:
    _run(command, suite.origin, f"the suite of {suite}")


def _run(command: Sequence[str], origin: str, what: str = "it") -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} could not be had from {origin} in {_SECONDS} s") from None
    if done.returncode != 0:
        marks = ("ERROR", "fatal")
        why = [line for line in done.stderr.splitlines() if line.startswith(marks)] or [done.stderr]
        raise Unavailable(f"{what} cannot be had from {origin}: {why[-1].strip()}")
