"""A rate limit in bytes per second, on the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.credit import Limit

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.timers import Timer, Timers

__all__ = ["Rate"]


class Rate(Limit):
    """Limits the bytes of message bodies that are sent per second (stream.qos/consume-rate).

    A message is sent whole. The next one is sent after the time that this one takes at the rate; so the first
    message is sent at once, and the instants are deterministic. The sender of a message calls `take`; queues
    do not.

    Args:
        timers: on the broker's clock.
        label: describes what the limit holds back.
    """

    __slots__ = ("_label", "_timer", "_timers", "bytes_per_second")

    def __init__(self, timers: Timers, label: str) -> None:
        super().__init__()
        self.bytes_per_second: int = 0
        """0 means no limit."""
        self._timers = timers
        self._label = label
        self._timer: Timer | None = None

    def set(self, bytes_per_second: int) -> None:
        """Set a new rate for the messages sent from now on. Waiting consumers need not wait any more.

        The caller calls `resume`.
        """
        self.bytes_per_second = bytes_per_second
        self.stop()

    def take(self, message: Message) -> None:
        """A message is sent: block until the time that it takes at the rate is over."""
        if self.bytes_per_second and message.body:
            self.stop()
            due = self._timers.clock.now() + len(message.body) / self.bytes_per_second
            self._timer = self._timers.call_at(due, self._go_on, self._label)
            self.open = False

    def _go_on(self) -> None:
        self._timer = None
        self._open()
        self.resume()

    def _open(self) -> None:
        if not self.open:
            self.open: bool = True
            self._opened()

    def stop(self) -> None:
        """Cancel the current wait."""
        self._open()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
