"""A prefetch window that consumers share: messages, bytes, and bytes per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.credit import Credit
from fakeamqp.model.rate import Rate

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.timers import Timers

__all__ = ["Window"]


class Window:
    """The prefetch window of class file or stream, for one channel or session, or for a whole connection.

    Args:
        timers: on the broker's clock.
        class_name: the class of the consumers, for descriptions.
    """

    __slots__ = ("credit", "rate")

    def __init__(self, timers: Timers, class_name: str) -> None:
        self.credit: Credit = Credit()
        self.rate: Rate = Rate(timers, f"{class_name} consumers continue at the requested rate")

    def resize(self, *, count: int, size: int, rate: int = 0) -> None:
        """Set new limits, which include unsettled deliveries; 0 means no limit. The caller calls `resume`.

        Args:
            count: messages.
            size: bytes of their bodies.
            rate: bytes of their bodies per second.
        """
        self.credit.resize(count, size)
        self.rate.set(rate)

    def take(self, message: Message) -> None:
        """Count a sent message that no queue counts."""
        self.credit.take(message)
        self.rate.take(message)

    def resume(self) -> None:
        """Resume the waiting consumers, as far as the limits allow."""
        self.credit.resume()
        self.rate.resume()
