"""Faults that hold somebody back: alarms and channel.flow those who publish, starvation those who consume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle, Handles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp.faults.line import FaultPort, Host
    from fakeamqp.faults.rule import Connection
    from fakeamqp.faults.tap import FaultTap

__all__ = ["Alarm", "Flow", "Starvation"]

_LONGEST = 255


class Alarm(Handle):
    """A resource runs short: who publishes is told `connection.blocked`, and read from no further.

    While several last, the reason is that of the latest; publishers go on when the last one ends.

    Raises:
        FaultError: no frame can carry the reason.
    """

    def __init__(self, host: Host, reason: str, others: Handles) -> None:
        super().__init__(host)
        if not isinstance(reason, str) or not 0 < len(reason.encode("utf-8", "replace")) <= _LONGEST:
            raise FaultError(f"the reason of an alarm is a str of 1 to {_LONGEST} bytes, not {reason!r}")
        self._host = host
        self._others = others
        self.reason = reason

    def sound(self) -> None:
        """Begin."""
        self._count_hit()
        self._host.block(self.reason)

    @property
    def sentence(self) -> str:
        """See `Handle`."""
        return f"publishers are held back, since the broker is {self.reason}"

    def _withdraw(self) -> None:
        lasting = [each for each in self._others.in_force if isinstance(each, Alarm) and each is not self]
        self._host.block(lasting[-1].reason if lasting else None)


class Flow(Handle):
    """channel.flow was sent on some channels."""

    def __init__(self, host: Host, channels: Sequence[tuple[FaultPort, int]], active: bool) -> None:
        super().__init__(host)
        self._channels = channels
        self._active = active

    def tell(self, active: bool) -> None:
        """Send it where the channel is still open."""
        for line, number in self._channels:
            if line.channel_open(number):
                self._count_hit()
                line.set_flow(number, active)

    @property
    def sentence(self) -> str:
        """See `Handle`."""
        done = "go on" if self._active else "stop"
        many = "" if len(self._channels) == 1 else "s"
        return f"clients are told to {done} publishing on {len(self._channels)} channel{many}"

    def _withdraw(self) -> None:
        self.tell(not self._active)


class Starvation(Handle):
    """Credit that clients of 0-10 give to subscriptions counts for nothing, until this ends.

    It is about the subscriptions there are, and those that come while it lasts; each is a hit.
    """

    def __init__(
        self, tap: FaultTap, queue: str | None, destination: str | None, connection: Connection | None
    ) -> None:
        super().__init__(tap.host)
        for name, value in (("queue", queue), ("destination", destination)):
            if value is not None and not isinstance(value, str):
                raise FaultError(f"the {name} that is starved is named by a str, not {value!r}")
        self._tap = tap
        self._queue = queue
        self._destination = destination
        self._connection = connection

    def begin(self) -> None:
        """Starve those that there are."""
        for line in self._tap.lines():
            if self._connection is None or self._connection.is_line(line):
                self._count_hit(line.starve(self, self._queue, self._destination, True))

    def came(self, queue: str, destination: str, connection: str) -> None:
        """A subscription has come."""
        if self._queue not in (None, queue) or self._destination not in (None, destination):
            return
        for line in self._tap.lines():
            if line.name == connection and (self._connection is None or self._connection.is_line(line)):
                self._count_hit(line.starve(self, queue, destination, True))

    @property
    def sentence(self) -> str:
        """See `Handle`."""
        words = ["subscriptions"]
        if self._destination is not None:
            words.append(f"with destination {self._destination!r}")
        if self._queue is not None:
            words.append(f"to queue {self._queue!r}")
        if self._connection is not None:
            words.append(f"on connection {self._connection.said!r}")
        return f"credit of {' '.join(words)} counts for nothing"

    def _withdraw(self) -> None:
        self._tap.unwatch(self)
        for line in self._tap.lines():
            line.starve(self, self._queue, self._destination, False)
        self._tap.settle()
