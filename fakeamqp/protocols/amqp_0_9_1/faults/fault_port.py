"""The fault port of 0-9-1 connections: deliveries have tags, publishes are confirmed by their numbers."""

from __future__ import annotations

from typing import Any, Protocol

from fakeamqp.faults.fault_port import FaultPort

__all__ = ["ConfirmingFaultPort"]


class ConfirmingFaultPort(FaultPort, Protocol):
    """The fault port of one 0-9-1 connection.

    `drop_publish`, `nack_publish` and `return_publish` count a publish that the channel does not receive.
    They have no effect on channels without confirms.
    """

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        """Process a publish that is lost if the broker crashes before it is confirmed."""

    def held_messages(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each delivery that a settlement by delivery tag concerns."""

    def duplicate_tag(self, number: int) -> int:
        """A new delivery tag for a duplicate of a delivery; settling it has no effect."""

    def next_publish(self, number: int) -> int | None:
        """The delivery tag that will confirm the channel's next publish; None without confirms."""

    def drop_publish(self, number: int) -> None:
        """Count a dropped publish; it is never confirmed."""

    def nack_publish(self, number: int) -> None:
        """Count a refused publish, and send basic.nack for it."""

    def return_publish(self, number: int) -> None:
        """Count a returned publish, and confirm it."""

    def confirm_singly(self, number: int) -> None:
        """Send one confirm per publish on this channel from now on."""
