"""A limit over time: so many bytes per second, on the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.credit import Limit

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.timers import Timer, Timers

__all__ = ["Rate"]


class Rate(Limit):
    """Sends no more bytes of message bodies than in the time that has passed (stream.qos/consume-rate).

    A message goes out whole, and the next one when the time is over that this one takes at the rate that was
    asked for; so the first one waits for nothing, and the instants are the same every time. Who sends a
    message calls `take`, queues do not.

    Args:
        timers: on the broker's clock.
        label: what it holds back, in words.
    """

    __slots__ = ("_label", "_timer", "_timers", "bytes_per_second")

    def __init__(self, timers: Timers, label: str) -> None:
        super().__init__()
        self.bytes_per_second = 0
        """0 means no limit."""
        self._timers = timers
        self._label = label
        self._timer: Timer | None = None

    def set(self, bytes_per_second: int) -> None:
        """Set another rate, which counts for what is sent from now on; who waited goes on at once.

        The caller calls `resume`.
        """
        self.bytes_per_second = bytes_per_second
        self.stop()

    def take(self, message: Message) -> None:
        """A message is sent: nothing else is until its time is over."""
        if self.bytes_per_second and message.body:
            self.stop()
            due = self._timers.clock.now() + len(message.body) / self.bytes_per_second
            self._timer = self._timers.call_at(due, self._go_on, self._label)
            self.open = False

    def _go_on(self) -> None:
        self._timer = None
        self.open = True
        self.resume()

    def stop(self) -> None:
        """Hold nothing back any more."""
        self.open = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
