"""What faults may learn of a connection of 0-9 and do to it: see `amqp_0_9_x.line`."""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x import line

__all__ = ["Line"]


class Line(line.Line):
    """One connection as fault rules see it. Nothing is confirmed to publishers of 0-9."""

    __slots__ = ()

    dialect = "0-9"

    def take_unsecured(self, number: int, frames: bytes) -> None:
        """Go on with a publish that a crash will take away: nobody was told that it is safe."""
        self.take(frames)

    def take_copy(self, number: int, frames: bytes) -> None:
        """Go on with one more copy of a publish."""
        self.take(frames)

    def confirm_now(self) -> None:
        """Confirm nothing."""

    def next_publish(self, number: int) -> int | None:
        """Publishes have no numbers."""
        return None

    def skip_publish(self, number: int, accepted: bool | None) -> None:
        """A publish that never comes leaves no gap."""

    def confirm_singly(self, number: int) -> None:
        """Confirm nothing."""
