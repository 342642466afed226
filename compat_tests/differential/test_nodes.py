"""Nodes that are unpacked from Debian's archive leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat_tests.differential.comparison import SERIES, Series, SideBySide
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available

SCRIPT = """
import os, sys
from compat_tests.differential.rabbitmq_node import RabbitMQNode

node = RabbitMQNode("4.3")
node.start()
print(node.name, flush=True)
sys.stdin.read()
"""


def processes(name: str) -> list[str]:
    """The ids of all processes that belong to a node, by their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # Where it has just ended.
            if f"RABBITMQ_NODENAME={name}".encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


def mounts() -> list[str]:
    """What is mounted in unpacked roots, as this process sees it."""
    return re.findall(r"\S+/rabbitmq-forky/\S+", Path("/proc/self/mounts").read_text())


def gone(name: str) -> bool:
    """Wait until no process of a node is left."""
    deadline = time.monotonic() + 30
    while processes(name):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def unpacked() -> None:
    reason = available("4.3")
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.usefixtures("unpacked")
def test_a_node_that_stops_leaves_no_process_and_no_mount() -> None:
    with RabbitMQNode("4.3") as node:
        assert len(processes(node.name)) > 2
        assert mounts() == []
        folder = node._folder
    assert not processes(node.name)
    assert folder is not None
    assert not folder.exists()
    assert mounts() == []


@pytest.mark.usefixtures("unpacked")
def test_a_node_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # Its folder stays.
    ) as starter:
        assert starter.stdout is not None
        name = starter.stdout.readline().strip()
        try:
            assert len(processes(name)) > 2
        finally:
            starter.kill()
    assert gone(name), processes(name)


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
def test_node_has_version_of_requested_series(series: Series, beside: SideBySide) -> None:
    assert beside.node.version.startswith(f"{series.name}.")
    assert f'"{beside.node.version}"' in beside.node.control("eval", "rabbit_misc:version().")


@pytest.mark.parametrize(
    ("version", "taken"), [(None, "_distribution_port"), ("4.3", "port")], ids=["distribution", "listener"]
)
def test_node_starts_on_other_port_when_its_port_is_in_use(version: str | None, taken: str) -> None:
    reason = available(version)
    if reason is not None:
        pytest.skip(reason)
    node = RabbitMQNode(version)
    port = getattr(node, taken)
    with socket.create_server(("127.0.0.1", port)), node:
        assert getattr(node, taken) != port
        assert node.pid is not None
