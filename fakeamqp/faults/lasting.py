"""Faults that last until they are removed: alarms and channel.flow, starvation, redirection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from fakeamqp.faults.executor import FaultExecutor
    from fakeamqp.faults.matching import ConnectionSelector
    from fakeamqp.faults.port import BrokerContext, FaultPort

_LONGEST = 255


class LastingFault(Handle):
    """A fault that begins at once, and lasts until it is removed."""

    def begin(self) -> None:
        """Have it happen; called inside the engine."""
        raise NotImplementedError

    def start(self, handles: list[Handle]) -> Self:
        """Begin, as one of the broker's faults."""
        with self._context:
            handles.append(self)
            self.begin()
        return self


class Alarm(LastingFault):
    """A resource alarm: publishers get connection.blocked, and the broker stops reading from them.

    While several alarms last, that of the broker's memory limit included, the reason names the resources of
    all, "low on disk & memory", as RabbitMQ does (measured), or is that of the latest where a test gave a
    reason of another form. A publisher that is blocked already is not told again. Publishers continue when
    the last alarm ends.

    Raises:
        FaultError: the reason does not fit a short string.
    """

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


class Flow(LastingFault):
    """channel.flow, sent on some channels."""

    def __init__(
        self, context: BrokerContext, channels: Sequence[tuple[FaultPort, int]], active: bool
    ) -> None:
        super().__init__(context)
        self._channels = channels
        self._active = active

    def begin(self) -> None:
        """Send channel.flow."""
        self.send(self._active)

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


class Starvation(LastingFault):
    """The credit of 0-10 subscriptions is ignored until this is removed.

    It concerns present subscriptions and those made while it lasts. Each one is a hit.
    """

    def __init__(
        self,
        executor: FaultExecutor,
        queue: str | None,
        destination: str | None,
        connection: ConnectionSelector | None,
    ) -> None:
        super().__init__(executor.context)
        for name, value in (("queue", queue), ("destination", destination)):
            if value is not None and not isinstance(value, str):
                raise FaultError(f"starve() takes {name} as a str, not {value!r}")
        self._executor = executor
        self._queue = queue
        self._destination = destination
        self._connection = connection

    def begin(self) -> None:
        """Starve the present subscriptions, and those to come."""
        self._executor.listen(self.subscribed)
        for port in self._executor.ports():
            if self._connection is None or self._connection.selects(port):
                self._count_hit(port.starve(self, self._queue, self._destination, True))

    def subscribed(self, queue: str, destination: str, connection: str) -> None:
        """Starve a new subscription, if this concerns it."""
        if self._queue not in (None, queue) or self._destination not in (None, destination):
            return
        for port in self._executor.ports():
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
        self._executor.subscription_listeners.remove(self.subscribed)
        for port in self._executor.ports():
            port.starve(self, self._queue, self._destination, False)
        self._executor.settle()


class Redirection(LastingFault):
    """Redirects clients that open a connection, if their protocol has connection.redirect.

    Clients that insist are served here. While several redirections last, the latest counts. Each redirected
    client is a hit.

    Raises:
        FaultError: the name of a broker does not fit a short string.
    """

    def __init__(
        self, context: BrokerContext, target: str, known_hosts: Iterable[str], others: list[Handle]
    ) -> None:
        super().__init__(context)
        self.target = target
        self.known_hosts: tuple[str, ...] = (
            (known_hosts,) if isinstance(known_hosts, str) else tuple(known_hosts)
        )
        for name in (target, *self.known_hosts):
            if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST:
                raise FaultError(f'a broker is named by a str such as "other.example:5672", not {name!r}')
        self._others = others

    def begin(self) -> None:
        self._context.redirect(self.target, self.known_hosts, self._count_hit)

    @property
    def sentence(self) -> str:
        return f"clients that open a connection are redirected to {self.target}"

    def _withdraw(self) -> None:
        others = [each for each in self._others if isinstance(each, Redirection) and not each.removed]
        if others:  # This one is not in force any more.
            others[-1].begin()
        else:
            self._context.redirect(None)
