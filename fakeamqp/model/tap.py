"""The one place where everything that happens can be seen, and bent.

Whoever watches (trace) or interferes (faults) implements `Tap` and is installed as `BrokerState.tap`.
With nobody there the cost is one attribute test at each point.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Tap", "Tapped"]


class Tapped(Protocol):
    """A connection whose frames pass the tap."""

    name: str

    @property
    def line(self) -> object:
        """What can be learnt of the connection and done to it, in terms of its dialect."""


class Tap(Protocol):
    """Sees frames in both directions, what happens to connections, and what happens in the model."""

    confirms_singly: bool
    """Whether every publish is to be confirmed by a frame of its own."""

    def received(self, connection: Tapped, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """One whole frame has come. True: the tap keeps it, and the connection goes on without it."""

    def sending(self, connection: Tapped, octets: bytes) -> bytes:
        """Whole frames are about to be sent; returns what is to be sent in their place."""

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection was opened, closed, blocked, ..."""

    def model(self, event: str, **facts: object) -> None:
        """A message was routed, expired, dead-lettered, dropped, ..."""
