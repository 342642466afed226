"""What every client does in every test: connect, declare, publish, consume, perhaps wait, close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["BODIES", "LATE", "QUEUE", "SCENARIOS", "Scenario", "Stage"]

QUEUE = "orders"
BODIES = ("one", "two", "three")
LATE = "late"
"""The message that comes while the consumer waits, after the fault."""


@dataclass(frozen=True)
class Scenario:
    """What is special about the way through.

    Args:
        name: for the table.
        words: what it is good for.
        together: publish everything before the first confirm is waited for, where the client can.
        waits: a consumer that has got everything goes on waiting, until `Stage.over`.
        heartbeat: seconds, 0 for none.
        patience: how many times the usual patience the wait may last.
    """

    name: str
    words: str
    together: bool = False
    waits: bool = False
    heartbeat: int = 0
    patience: float = 1


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("work", "publishes three messages one by one, each confirmed, and consumes them"),
        Scenario("together", "publishes all three before it waits for confirms, where it can", together=True),
        Scenario("wait", "works, then its consumer waits for one more message, which comes late", waits=True),
        Scenario("heartbeats", "the same with heartbeats of one second", waits=True, heartbeat=1, patience=7),
    )
}


class Stage(Protocol):
    """What a driver is told, and whom it asks."""

    host: str
    port: int
    scenario: Scenario
    patience: float
    """Seconds that a step may take before the driver gives up on it."""

    def reached(self, moment: str) -> None:
        """The client is "connected", has "declared", "published", is "consuming", "waiting"."""

    def over(self) -> bool:
        """Whether there is nothing more to wait for. To be asked again and again while the client waits."""

    def wait_for_change(self, seconds: float) -> None:
        """Wait until the answer may be another, at most so long. For clients that have nothing else to do."""
