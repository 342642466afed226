"""A connection that a test plays: it answers at once, and what the broker sends comes in turns.

```python
link = Link()
link.ready = [3, 0]              # What passive declarations count, the last one for ever.
link.turns = [lambda: link.deliver(b"1", b"2"), None]
```

Time is that of the link: a turn in which nothing happens takes as long as it may.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pika

from fakeamqp.spark.errors import ConnectionLost

NO_PROPERTIES = b"\x00\x00"


class Channel:
    """A channel that notes what it is asked for, as `(method, ...)` with the number of the channel."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.channel_number = number
        self.is_open, self.is_closed = True, False
        self.connection = SimpleNamespace(is_open=True)
        self.receive: Callable[..., None] = lambda *_: None
        self.tag = 0
        self.cancelled: Callable[[object], None] = lambda _: None

    def add_on_cancel_callback(self, callback: Callable[[object], None]) -> None:
        self.cancelled = callback

    def queue_declare(self, queue: str, *, callback: Any = None, **more: Any) -> None:
        self._note("queue_declare", queue, *more)
        count = self._link.ready[0]
        if len(self._link.ready) > 1:
            self._link.ready.pop(0)
        if isinstance(count, Exception):
            raise count
        if callable(count):
            count = count()
        method = SimpleNamespace(queue=queue, message_count=count, consumer_count=self._link.consumers)
        callback(SimpleNamespace(method=method))

    def basic_qos(self, *, prefetch_count: int, callback: Any) -> None:
        self._note("basic_qos", prefetch_count)
        self._link.answering()
        callback(None)

    def basic_cancel(self, tag: str, *, callback: Any) -> None:
        self._note("basic_cancel", tag)
        callback(None)

    def basic_ack(self, tag: int, multiple: bool = False) -> None:
        self._note("basic_ack", tag, *(["multiple"] * multiple))

    def basic_nack(self, tag: int, multiple: bool = False, requeue: bool = False) -> None:
        self._note("basic_nack", tag, *(["multiple"] * multiple), *(["requeue"] * requeue))

    def _note(self, *call: object) -> None:
        self._link.calls.append((self.channel_number, *call))


class Link:
    """A connection, also in place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.received_at = 7
        self.broker_version = 4, 3
        self.lost: str | None = None
        self.calls: list[tuple[Any, ...]] = []
        self.channels: list[Channel] = []
        self.ready: list[Any] = [0]
        self.consumers = 1
        self.turns: list[Callable[[], object] | None] = []
        self.pauses: list[float] = []
        self.refuses: dict[str, str] = {}
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

    def call(self, method: Callable[..., Any], *args: Any, **arguments: Any) -> Any:
        self.check()
        answers: list[Any] = []
        method(*args, callback=answers.append, **arguments)
        self.check()
        return answers[0]

    def wait_for(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = self.now + timeout
        while not done():
            self.check()
            if self.now >= deadline:
                raise ConnectionLost(f"the broker did not {what} within {timeout:g} s")
            self.turn(deadline - self.now)

    def consume(
        self, channel: Channel, queue: str, receive: Callable[..., None], arguments: Any = None
    ) -> str:
        self.calls.append((channel.channel_number, "consume", queue, *([arguments] if arguments else [])))
        if queue in self.refuses:
            raise ConnectionLost(self.refuses[queue])
        channel.receive = receive
        return f"{queue} {channel.channel_number}"

    def redirect(self, channel: Channel, tag: str, receive: Callable[..., None]) -> None:
        self.calls.append((channel.channel_number, "redirect", tag))
        channel.receive = receive

    def discard(self, channel: Channel) -> None:
        self.calls.append((channel.channel_number, "discard"))
        channel.receive = lambda *_: None

    def close_channel(self, channel: Channel) -> None:
        self.calls.append((channel.channel_number, "close"))
        channel.is_open, channel.is_closed = False, True

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


class Attempts(Link):
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
    return b"".join(pika.BasicProperties(**properties).encode())
