"""The fault port of 0-10 connections: commands have ids in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.faults.fault_port import FaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

__all__ = ["CommandFaultPort"]


class CommandFaultPort(FaultPort, Protocol):
    """The fault port of one 0-10 connection. A channel is open while a session is attached to it.

    A command that a fault takes from the client is counted as received. A command that does not reach the
    client is not counted there, so the next one that does is announced by session.command-point.
    """

    def session_name(self, number: int) -> str | None:
        """The name of the session on a channel, as text."""

    # --- received commands ------------------------------------------------------------------------------

    def drop_command(self, number: int, frames: bytes) -> None:
        """Count a dropped command; it is neither executed nor completed."""

    def nack_transfer(self, number: int, frames: bytes) -> None:
        """Count a refused message.transfer, and tell its publisher.

        The answer is message.reject where the personality answers publishers and the accept-mode asks for it;
        otherwise an exception, which ends the session.
        """

    def exception(self, number: int, frames: bytes, code: int, text: str, field_index: int | None) -> None:
        """Count a command, and answer it with execution.exception, which ends the session."""

    def held_messages(self, number: int, transfers: SequenceSet) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each of these transfers that the client holds."""

    # --- sent commands ----------------------------------------------------------------------------------

    def withhold_command(self, number: int) -> int | None:
        """Withhold the command that is being sent; returns its id, or None without a session."""

    def next_command_id(self, number: int) -> int:
        """The id for one more command to the client; the client's completion of it has no effect."""

    def with_command_point(self, number: int, command_id: int, frames: bytes) -> bytes:
        """The frames of a command, behind a session.command-point if the client expects another id."""
