"""Plays a scenario on a personality, or on a node."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from compat_tests.differential.amqp_1_0.peers import FakeTransport, NodeTransport
from compat_tests.differential.amqp_1_0.scenarios import SCENARIOS, Play
from compat_tests.scripted.amqp_1_0 import Server


def on_fake(name: str, personality: str) -> list[str]:
    server = Server(personality)
    return play(name, lambda: FakeTransport(server))


def on_node(name: str, port: int) -> list[str]:
    return play(name, lambda: NodeTransport(port))


def play(name: str, connect: Callable[[], Any]) -> list[str]:
    """The transcript of a scenario; how it failed, if it did."""
    stage = Play(connect, name)
    try:
        SCENARIOS[name](stage)
    except Exception:
        stage.lines.append("failed: " + traceback.format_exc().splitlines()[-1])
    try:
        stage.end()
    except Exception:
        stage.lines.append("failed at the end")
    return stage.lines
