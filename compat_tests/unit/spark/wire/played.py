"""A connection that a test plays: it answers at once, and what the broker sends comes in turns.

```python
connection = Connection()
connection.ready = [3, 0]        # What passive declarations count, the last one for ever.
connection.turns = [lambda: connection.deliver(b"1", b"2"), None]
```

Time is that of the connection: a turn in which nothing happens takes as long as it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare, QueueDeclareOk
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.spark.errors import ChannelClosed, ConnectionLost

NO_PROPERTIES = b"\x00\x00"


class Channel:
    """A channel that notes what it is asked for, as `(number of the channel, method, ...)`."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self.is_open = True
        self.lost: str | None = None
        self.closed: tuple[int, str] | None = None
        self.receive: Callable[..., None] = lambda *_: None
        self.tag = 0

    def check(self) -> None:
        if self.lost is not None:
            if self.closed is not None:
                raise ChannelClosed(self.lost, *self.closed)
            raise ConnectionLost(self.lost)
        self.connection.check()

    def wait_for(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        self.connection.wait_for(done, timeout, what, self.check)

    def call(self, method: Any, meanwhile: Callable[[], object] = lambda: None) -> Any:
        (answer,) = self.call_all([method], meanwhile)
        return answer

    def call_all(self, methods: Iterable[Any], meanwhile: Callable[[], object] = lambda: None) -> list[Any]:
        self.check()
        answers = [self._answer(method) for method in methods]
        meanwhile()
        self.check()
        return answers

    def qos(self, count: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.check()
        self._note("qos", count)
        self.connection.answering()
        meanwhile()
        self.check()

    def count(self, queue: str) -> Any:
        return self.call(QueueDeclare(queue=queue, passive=True))

    def settle(self, queue: str) -> int:
        self.count(queue)
        return int(self.count(queue).message_count)

    def consume(self, queue: str, receive: Callable[..., None], arguments: Any = None) -> str:
        self.check()
        self._note("consume", queue, *([arguments] if arguments else []))
        if queue in self.connection.refuses:
            raise self._close(self.connection.refuses[queue])
        self.receive = receive
        return f"{queue} {self.number}"

    def cancel(self, tag: str) -> None:
        self.check()
        self._note("cancel", tag)

    def discard(self) -> None:
        self._note("discard")
        self.receive = lambda *_: None

    def ack(self, tag: int, multiple: bool = False) -> None:
        self._note("ack", tag, *(["multiple"] * multiple))

    def nack(self, tag: int, multiple: bool = False, requeue: bool = True) -> None:
        self._note("nack", tag, *(["multiple"] * multiple), *(["requeue"] * requeue))

    def close(self) -> None:
        self._note("close")
        self.is_open = False

    def _answer(self, method: Any) -> Any:
        if not isinstance(method, QueueDeclare):
            self._note(method.NAME)
            return None
        self._note("count" if method.passive else method.NAME, method.queue)
        ready = self.connection.ready
        count = ready.pop(0) if len(ready) > 1 else ready[0]
        if isinstance(count, Exception):
            raise count
        if callable(count):
            count = count()
        return QueueDeclareOk(
            queue=method.queue, message_count=count, consumer_count=self.connection.consumers
        )

    def _close(self, refusal: ChannelClosed) -> ChannelClosed:
        self.is_open = False
        self.lost, self.closed = str(refusal), (refusal.reply_code, refusal.reply_text)
        return refusal

    def _note(self, *call: object) -> None:
        self.connection.calls.append((self.number, *call))


class Connection:
    """A connection, also in place of the module `time`.

    Attributes:
        refuses: the refusals of consumers, by queue.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.received_at = 7
        self.product = "RabbitMQ"
        self.broker_version = 4, 3
        self.lost: str | None = None
        self.calls: list[tuple[Any, ...]] = []
        self.channels: list[Channel] = []
        self.ready: list[Any] = [0]
        self.consumers = 1
        self.turns: list[Callable[[], object] | None] = []
        self.pauses: list[float] = []
        self.refuses: dict[str, ChannelClosed] = {}
        self.leases: set[str] = set()
        self.answering: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.calls.append(("sleep", seconds))
        self.now += seconds

    def turn(self, timeout: float) -> None:
        self.pauses.append(timeout)
        happens = self.turns.pop(0) if self.turns else None
        if happens is None:
            self.now += timeout
        else:
            happens()

    def check(self) -> None:
        if self.lost is not None:
            raise ConnectionLost(self.lost)

    def channel(self) -> Channel:
        self.check()
        self.channels.append(Channel(self, len(self.channels) + 1))
        return self.channels[-1]

    def wait_for(
        self, done: Callable[[], bool], timeout: float, what: str, check: Callable[[], None] | None = None
    ) -> None:
        deadline = self.now + timeout
        while not done():
            (check or self.check)()
            if self.now >= deadline:
                raise ConnectionLost(f"the broker did not {what} within {timeout:g} s")
            self.turn(deadline - self.now)

    def deliver(
        self,
        *bodies: bytes,
        properties: bytes | dict[str, Any] = NO_PROPERTIES,
        redelivered: bool = False,
        channel: int = -1,
    ) -> None:
        """Deliver messages on the last channel, or another one."""
        to = self.channels[channel]
        octets = properties if isinstance(properties, bytes) else encoded(**properties)
        for body in bodies:
            to.tag += 1
            to.receive(to.tag, redelivered, b"\x00\x01q", octets, body)


class Attempts(Connection):
    """A connection that is opened again and again: each time it raises an error, or has turns."""

    attempts: list[Any]

    def __call__(self, options: Any) -> Attempts:
        self.options = options
        return self

    def __enter__(self) -> Attempts:
        self.lost = None
        attempt = self.attempts.pop(0)
        if isinstance(attempt, Exception):
            raise attempt
        self.turns = list(attempt)
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append((0, "closed"))


def encoded(**properties: Any) -> bytes:
    """A property list."""
    return BasicProperties(**properties).encode()


def refusal(code: int, text: str) -> ChannelClosed:
    """What a channel raises that the broker closes."""
    return ChannelClosed(f"the broker closed the channel: {code} {text}", code, text)
