"""Where a RabbitMQ comes from: the package installed on this machine, or one of Debian's archive.

A package of the archive is unpacked into a root of its own (with mmdebstrap, once: ten seconds and 240 MB),
in the cache of the user: `~/.cache/fakeamqp/rabbitmq-SUITE`, or in the folder that FAKEAMQP_RABBITMQ_CACHE
names. Its programs run there under chroot, in namespaces of their own: what they mount ends with them, and
all processes of a node end with the first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "SUITES",
    "Installation",
    "Unavailable",
    "find",
    "obstacle",
]

SUITES = {"3.10": "bookworm", "4.0": "trixie", "4.3": "forky"}
"""The release of Debian that has a series, or had it when it was measured: forky still moves on."""

# Beside the node what its scripts call.
_PACKAGES = (
    "rabbitmq-server",
    "base-files",
    "bash",
    "coreutils",
    "dash",
    "findutils",
    "grep",
    "hostname",
    "mawk",
    "procps",
    "sed",
    "util-linux",
)
_PROGRAMS = ("unshare", "mmdebstrap")
_UNPACKING = 600.0
_COMPLETE = ".unpacked"
_NODE = "node"
"""The folder of a root where a program finds the folder of its node."""

# The arguments: the root, the folder of the node, and the command. The first process of the node's namespaces
# waits for the end of its input, so that all of them end with the process that holds the other end.
_SERVE = """
trap 'exit 1' USR1
mount --bind "$2" "$1/node" && mount -t proc proc "$1/proc" || exit 1
root=$1; shift 2
{ chroot "$root" "$@"; kill -USR1 1; } &
read _
"""
_CALL = """
mount --bind "$2" "$1/node" || exit 1
root=$1; shift 2
exec chroot "$root" "$@"
"""


class Unavailable(Exception):
    """There is no RabbitMQ of this series; the text says why."""


@dataclass(frozen=True)
class Installation:
    """One RabbitMQ. `root` is None where it is installed on this machine itself."""

    home: Path
    """The folder with `sbin` and `plugins`, as it is seen from outside."""
    root: Path | None = None

    @property
    def version(self) -> str:
        """Such as ``3.10.8``."""
        packed = next((self.home / "plugins").glob("rabbit-*"))
        return packed.name.removeprefix("rabbit-").removesuffix(".ez")

    @property
    def series(self) -> str:
        """Such as ``3.10``."""
        return ".".join(self.version.split(".")[:2])

    def seen(self, folder: Path) -> Path:
        """Where the programs find the folder of their node."""
        return folder if self.root is None else Path("/", _NODE)

    def server(self, folder: Path) -> list[str]:
        """The command that runs a node in the foreground.

        That of an unpacked one ends with all it has started when its standard input is closed.
        """
        if self.root is None:
            return [str(self.home / "sbin" / "rabbitmq-server")]
        namespaces = ("--mount", "--pid", "--fork", "--kill-child")
        return self._inside(_SERVE, namespaces, folder, "rabbitmq-server")

    def control(self, folder: Path) -> list[str]:
        """The command ``rabbitmqctl``."""
        if self.root is None:
            return [str(self.home / "sbin" / "rabbitmqctl")]
        return self._inside(_CALL, ("--mount",), folder, "rabbitmqctl")

    def _inside(self, script: str, namespaces: tuple[str, ...], folder: Path, program: str) -> list[str]:
        unshare = shutil.which("unshare")
        assert unshare is not None
        assert self.root is not None
        # The scripts of /usr/sbin change to the system's own account; these do not.
        command = "/" + str((self.home / "sbin" / program).relative_to(self.root))
        shell = ("sh", "-c", script, "sh", str(self.root), str(folder))
        return [unshare, *namespaces, "--", *shell, command]


def find(series: str | None = None) -> Installation:
    """RabbitMQ of a series such as ``4.3``, unpacked if need be; without a series the installed one.

    Raises:
        Unavailable: it is not installed, and cannot be had from the archive.
    """
    found = _found(series)
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def obstacle(series: str | None = None) -> str | None:
    """Why there is no RabbitMQ of a series on this machine, or None where there is one."""
    found = _found(series)
    return found if isinstance(found, str) else None


@cache
def _found(series: str | None) -> Installation | str:
    """An installation, or why there is none: neither is looked for twice."""
    if os.name != "posix":
        return "RabbitMQ nodes are started on POSIX systems only"
    installed = next(_installed(), None)
    missing = _missing_erlang()
    if installed is not None and series in (None, installed.series) and not missing:
        return installed
    if series is None:
        return "rabbitmq-server is not installed" if installed is None else missing
    try:
        return _from_the_archive(series)
    except Unavailable as reason:
        return str(reason)


# --- installed ---------------------------------------------------------------------------------------------


def _installed() -> Iterator[Installation]:
    """The installations of this machine.

    The scripts in ``/usr/sbin`` change to the system's own account and folders, so the real ones are used.
    """
    candidates = [Path(os.environ["RABBITMQ_HOME"])] if os.environ.get("RABBITMQ_HOME") else []
    found = shutil.which("rabbitmq-server")
    if found:
        candidates.append(Path(found).resolve().parent.parent)
    for pattern in ("/usr/lib/rabbitmq/lib/rabbitmq_server-*", "/opt/homebrew/opt/rabbitmq", "/opt/rabbitmq"):
        parent, _, name = pattern.rpartition("/")
        candidates.extend(sorted(Path(parent).glob(name), reverse=True))
    yield from (Installation(each) for each in candidates if _is_home(each))


def _is_home(folder: Path) -> bool:
    return (folder / "sbin" / "rabbitmq-server").is_file() and any((folder / "plugins").glob("rabbit-*"))


def _missing_erlang() -> str:
    if shutil.which("erl") is None:
        return "Erlang is not installed"
    if epmd() is None:
        return "Erlang's epmd is not installed"
    return ""


def epmd() -> str | None:
    """Erlang's port mapper of this machine."""
    found = shutil.which("epmd")
    if found:
        return found
    beside_erlang = sorted(Path("/usr/lib/erlang").glob("erts-*/bin/epmd"), reverse=True)
    return str(beside_erlang[0]) if beside_erlang else None


# --- unpacked ----------------------------------------------------------------------------------------------


def _from_the_archive(series: str) -> Installation:
    suite = SUITES.get(series) or _moved_to(series)
    if suite is None:
        known = ", ".join(f"{each} ({name})" for each, name in SUITES.items())
        raise Unavailable(f"no release of Debian is known to have RabbitMQ {series}; known are {known}")
    wanted = f"RabbitMQ {series} of Debian {suite}"
    if not sys.platform.startswith("linux"):
        raise Unavailable(f"{wanted} runs on Linux only")
    if os.geteuid() != 0:
        raise Unavailable(f"{wanted} is unpacked and run by root only")
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            raise Unavailable(f"{wanted} needs {program}, which is not installed")
    if refusal := _failed(["unshare", "--mount", "--pid", "--fork", "true"]):
        raise Unavailable(f"{wanted} needs namespaces of its own, which are not to be had here: {refusal}")
    unpacked = _unpacked(suite, wanted)
    if unpacked.series != series:
        raise Unavailable(
            f"Debian {suite} has RabbitMQ {unpacked.version}: it has moved on from {series}. "
            "Measure the new series, and name it in SUITES"
        )
    return unpacked


def _moved_to(series: str) -> str | None:
    """The release of Debian that has moved on to a series, if its package has been unpacked."""
    for suite in SUITES.values():
        root = _cache() / f"rabbitmq-{suite}"
        if (root / _COMPLETE).exists() and _in_root(root).series == series:
            return suite
    return None


def _in_root(root: Path) -> Installation:
    [home] = (root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
    return Installation(home, root)


def _failed(command: list[str], timeout: float | None = None) -> str:
    """What a command said last, where it failed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing within {timeout:g} s"
    lines = done.stdout.decode(errors="replace").split("\n")
    said = [line for line in lines if line.strip()]
    return "" if done.returncode == 0 else " / ".join(said[-3:]) or f"code {done.returncode}"


def _cache() -> Path:
    named = os.environ.get("FAKEAMQP_RABBITMQ_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "fakeamqp")


def _unpacked(suite: str, wanted: str) -> Installation:
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / f"rabbitmq-{suite}"
    # Several processes of the tests may want it at once.
    with (folder / f"rabbitmq-{suite}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / _COMPLETE).exists():
            _unpack(suite, root, wanted)
    return _in_root(root)


def _unpack(suite: str, root: Path, wanted: str) -> None:
    shutil.rmtree(root, ignore_errors=True)
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=extract",
        "--mode=root",
        f"--include={','.join(_PACKAGES)}",
        # Copies of the archive that no longer change are as good.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        '--aptopt=Acquire::Retries "2"',
        '--aptopt=Acquire::http::Timeout "30"',
        suite,
        str(root),
    ]
    if refusal := _failed(command, _UNPACKING):
        shutil.rmtree(root, ignore_errors=True)
        raise Unavailable(f"{wanted} cannot be had from the archive: {refusal}")
    # What the scripts of the packages would do, as far as a node needs it: these have not run.
    for name in ("bin", "sbin", "lib", "lib64"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    if not (root / "usr/bin/sh").exists():
        (root / "usr/bin/sh").symlink_to("dash")
    for name in ("proc", "dev", "tmp", "root", _NODE):
        (root / name).mkdir(exist_ok=True)
    for name, text in (
        ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
        ("passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("group", "root:x:0:\n"),
    ):
        (root / "etc" / name).write_text(text)
    for name, minor in (("null", 3), ("random", 8), ("urandom", 9)):
        device = root / "dev" / name
        if not device.exists():
            os.mknod(device, 0o020666, os.makedev(1, minor))
            device.chmod(0o666)
    (root / _COMPLETE).touch()
