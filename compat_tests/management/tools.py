"""Where the tools that speak to RabbitMQ's HTTP API are on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from compat_tests.differential import installations

__all__ = ["rabbitmqadmin_ng", "rabbitmqadmins"]

_INSTALLED = Path("/usr/lib/rabbitmq/lib")
_PLUGIN = "plugins/rabbitmq_management-*/priv/www/cli/rabbitmqadmin"


def _roots() -> list[Path]:
    """The folders of RabbitMQ: the installed one, and those of nodes that were unpacked."""
    found = [Path("/")]
    for version in ("4.0", "4.3"):
        try:
            root = installations.find(version).root
        except installations.Unavailable:
            continue
        if root is not None:
            found.append(Path(root))
    return found


def rabbitmqadmins() -> list[list[str]]:
    """Command lines of the tool in Python, of each version that is there; Debian ships it until 4.0."""
    commands = {}
    for root in _roots():
        for script in (root / _INSTALLED.relative_to("/")).glob(f"rabbitmq_server-*/{_PLUGIN}"):
            commands[script.parents[4].name] = [sys.executable, os.fspath(script)]
    return [commands[name] for name in sorted(commands)]


def rabbitmqadmin_ng() -> list[str] | None:
    """The command line of the tool in Rust, which came with 4.x; None if it is not there.

    The one of an unpacked node runs with the libraries of that node.
    """
    for root in _roots()[1:]:
        program = root / "usr/bin/rabbitmqadmin"
        loader = root / "usr/lib64/ld-linux-x86-64.so.2"
        if program.is_file() and loader.is_file() and program.read_bytes()[:4] == b"\x7fELF":
            libraries = root / "usr/lib/x86_64-linux-gnu"
            return [os.fspath(loader), "--library-path", os.fspath(libraries), os.fspath(program)]
    installed = shutil.which("rabbitmqadmin-ng")
    return None if installed is None else [installed]
