"""Plays scenarios on a personality and on a node, and compares the transcripts."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from compat_tests.differential.amqp_1_0.scenarios import ALONE, SCENARIOS, Play
from compat_tests.differential.amqp_1_0.stages import Stage
from compat_tests.differential.rabbitmq_node import RabbitMQNode

Scenarios: TypeAlias = "Mapping[str, Callable[[Play], None]]"
LOOKS = ((1.0, 12), (3.0, 4), (6.0, 1))
"""The patience of each look at a scenario, and how many are played at once: those that differ again."""


class Compared(NamedTuple):
    """The transcripts of one scenario."""

    fake: list[str]
    node: list[str]

    @property
    def differs(self) -> bool:
        # One that fails on both sides says nothing.
        return self.fake != self.node or any(line.startswith("failed") for line in self.fake)


def play(name: str, stage: Stage, reads: dict[int, list[int]], scenarios: Scenarios = SCENARIOS) -> list[str]:
    """The transcript of a scenario; how it failed, if it did."""
    played = Play(stage, name, reads)
    try:
        scenarios[name](played)
    except Exception:
        played.lines.append("failed: " + traceback.format_exc().splitlines()[-1])
    try:
        played.end()
    except Exception:
        played.lines.append("failed at the end")
    return played.lines


def on_fake(name: str, personality: str) -> list[str]:
    """The transcript of a scenario on a personality."""
    return play(name, Stage.of_personality(personality), {})


def on_node(name: str, port: int) -> list[str]:
    """The transcript of a scenario on a node."""
    return play(name, Stage.of_node(port), {})


def compare(
    names: Iterable[str],
    personality: str,
    port: int,
    node: RabbitMQNode | None = None,
    looks: Iterable[tuple[float, int]] = LOOKS,
    *,
    scenarios: Scenarios = SCENARIOS,
) -> dict[str, Compared]:
    """Play scenarios on a new broker each and on one node: several at once, again where they differ.

    Those of operators are left out without the `node` itself.
    """
    chosen = [name for name in names if node is not None or name not in ALONE]
    found: dict[str, Compared] = {}

    def one(name: str, patience: float) -> Compared:
        reads: dict[int, list[int]] = {}
        fake = play(name, Stage.of_personality(personality), reads, scenarios)
        return Compared(fake, play(name, Stage.of_node(port, node, patience), reads, scenarios))

    for patience, at_once in looks:
        together = [name for name in chosen if name not in ALONE]
        with ThreadPoolExecutor(at_once) as pool:
            results = pool.map(lambda name, patience=patience: one(name, patience), together)
            found.update(zip(together, results, strict=True))
        found.update((name, one(name, patience)) for name in chosen if name in ALONE)
        chosen = [name for name in chosen if found[name].differs]
    return found
