"""How much is sent in advance to consumers that share it: messages, bytes, and bytes per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.credit import Credit
from fakeamqp.model.rate import Rate

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.timers import Timers

__all__ = ["Window"]


class Window:
    """A window of class file or stream, of one session or channel or of a whole connection.

    Args:
        timers: on the broker's clock.
        class_name: of the consumers, for people.
    """

    __slots__ = ("credit", "rate")

    def __init__(self, timers: Timers, class_name: str) -> None:
        self.credit = Credit()
        self.rate = Rate(timers, f"{class_name} consumers go on at the rate they asked for")

    def resize(self, *, count: int, size: int, rate: int = 0) -> None:
        """Set other limits, 0 for none; what was sent already counts. The caller calls `resume`.

        Args:
            count: messages.
            size: bytes of their bodies.
            rate: bytes of their bodies per second.
        """
        self.credit.resize(count, size)
        self.rate.set(rate)

    def take(self, message: Message) -> None:
        """A message is sent that no queue keeps count of."""
        self.credit.take(message)
        self.rate.take(message)

    def resume(self) -> None:
        """Let whoever waited go on, as far as it may."""
        self.credit.resume()
        self.rate.resume()
