"""The fault port of 0-9-1 connections: publishes are counted and confirmed by their numbers."""

from __future__ import annotations

from typing import Protocol

from fakeamqp.protocols.framed.faults.fault_port import FramedFaultPort

__all__ = ["ConfirmingFaultPort"]


class ConfirmingFaultPort(FramedFaultPort, Protocol):
    """The fault port of one 0-9-1 connection.

    `drop_publish`, `nack_publish` and `return_publish` count a publish that the channel does not receive.
    They have no effect on channels without confirms.
    """

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
