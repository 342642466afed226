"""Faults of flow control: alarms and channel.flow stop publishers, starvation stops consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp.faults.connection_selector import ConnectionSelector
    from fakeamqp.faults.context import BrokerContext
    from fakeamqp.faults.fault_port import FaultPort
    from fakeamqp.faults.tap import FaultTap

__all__ = ["Alarm", "Flow", "Starvation"]

_LONGEST = 255


class Alarm(Handle):
    """A resource alarm: publishers get connection.blocked, and the broker stops reading from them.

    While several alarms last, that of the broker's memory limit included, the reason names the resources of
    all, "low on disk & memory", as RabbitMQ does (measured), or is that of the latest where a test gave a
    reason of another form. A publisher that is blocked already is not told again. Publishers continue when
    the last alarm ends.

    Raises:
        FaultError: the reason does not fit a short string.
    """

    _context: BrokerContext

    def __init__(self, context: BrokerContext, reason: str) -> None:
        super().__init__(context)
        if not isinstance(reason, str) or not 0 < len(reason.encode("utf-8", "replace")) <= _LONGEST:
            raise FaultError(f"the reason of an alarm is a str of 1 to {_LONGEST} bytes, not {reason!r}")
        self._source = f"fault {id(self)}"
        self.reason = reason

    def begin(self) -> None:
        """Block publishers."""
        self._count_hit()
        self.resume()

    def resume(self) -> None:
        """Block publishers again: the broker has restarted."""
        self._context.block(self._source, self.reason)

    @property
    def sentence(self) -> str:
        return f"publishers are blocked, because the broker is {self.reason}"

    def _withdraw(self) -> None:
        self._context.block(self._source, None)


class Flow(Handle):
    """channel.flow, sent on some channels."""

    def __init__(
        self, context: BrokerContext, channels: Sequence[tuple[FaultPort, int]], active: bool
    ) -> None:
        super().__init__(context)
        self._channels = channels
        self._active = active

    def send(self, active: bool) -> None:
        """Send channel.flow on those of the channels that are open."""
        for port, number in self._channels:
            if port.channel_open(number):
                self._count_hit()
                port.set_flow(number, active)

    @property
    def sentence(self) -> str:
        done = "continue" if self._active else "stop"
        many = "" if len(self._channels) == 1 else "s"
        return f"clients are told to {done} publishing on {len(self._channels)} channel{many}"

    def _withdraw(self) -> None:
        self.send(not self._active)


class Starvation(Handle):
    """The credit of 0-10 subscriptions is ignored until this is removed.

    It concerns present subscriptions and those made while it lasts. Each one is a hit.
    """

    def __init__(
        self, tap: FaultTap, queue: str | None, destination: str | None, connection: ConnectionSelector | None
    ) -> None:
        super().__init__(tap.context)
        for name, value in (("queue", queue), ("destination", destination)):
            if value is not None and not isinstance(value, str):
                raise FaultError(f"starve() takes {name} as a str, not {value!r}")
        self._tap = tap
        self._queue = queue
        self._destination = destination
        self._connection = connection

    def begin(self) -> None:
        """Starve the present subscriptions."""
        for port in self._tap.ports():
            if self._connection is None or self._connection.selects(port):
                self._count_hit(port.starve(self, self._queue, self._destination, True))

    def subscribed(self, queue: str, destination: str, connection: str) -> None:
        """Starve a new subscription, if this concerns it."""
        if self._queue not in (None, queue) or self._destination not in (None, destination):
            return
        for port in self._tap.ports():
            if port.name == connection and (self._connection is None or self._connection.selects(port)):
                self._count_hit(port.starve(self, queue, destination, True))

    @property
    def sentence(self) -> str:
        words = ["subscriptions"]
        if self._destination is not None:
            words.append(f"with destination {self._destination!r}")
        if self._queue is not None:
            words.append(f"to queue {self._queue!r}")
        if self._connection is not None:
            words.append(f"on connection {self._connection.said!r}")
        return f"credit of {' '.join(words)} is ignored"

    def _withdraw(self) -> None:
        self._tap.unwatch(self)
        for port in self._tap.ports():
            port.starve(self, self._queue, self._destination, False)
        self._tap.settle()
