"""The one place where everything that happens can be seen.

Whoever watches (trace) or interferes (faults) implements `Tap` and is installed as `BrokerState.tap`.
With nobody there the cost is one attribute test at each point.
"""

from __future__ import annotations

from typing import Literal, Protocol

__all__ = ["Direction", "Tap"]

Direction = Literal["received", "sent"]


class Tap(Protocol):
    """Sees frames in both directions, what happens to connections, and what happens in the model."""

    def frame(
        self, connection: str, direction: Direction, frame_type: int, channel: int, payload: bytes
    ) -> None:
        """One whole frame; `connection` is the connection's name."""

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection was opened, closed, blocked, ..."""

    def model(self, event: str, **facts: object) -> None:
        """A message was routed, expired, dead-lettered, dropped, ..."""
