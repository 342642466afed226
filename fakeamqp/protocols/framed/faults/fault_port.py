"""The fault port of 0-9-x connections: deliveries have tags, and messages are held by tag."""

from __future__ import annotations

from typing import Any, Protocol

from fakeamqp.faults.fault_port import FaultPort

__all__ = ["FramedFaultPort"]


class FramedFaultPort(FaultPort, Protocol):
    """The fault port of one connection of 0-9-1, 0-9 or 0-8."""

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        """Process a publish that is lost if the broker crashes before it is confirmed."""

    def held_messages(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each delivery that a settlement by delivery tag concerns."""

    def duplicate_tag(self, number: int) -> int:
        """A new delivery tag for a duplicate of a delivery; settling it has no effect."""
