"""Does the operations of a program on a broker, and reads what comes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from compat_tests.programs import program as p
from compat_tests.programs.events import (
    Cancelled,
    Closed,
    Confirmed,
    Content,
    Death,
    Delivered,
    Event,
    Got,
    Ok,
    Place,
    Returned,
    Seen,
)
from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["Performer", "Player"]

_METHODS = {each.NAME: each for each in m.METHODS.values()}


class _Consumer(NamedTuple):
    channel: int
    queue: str
    no_ack: bool


class Performer(ABC):
    """One client of a broker, and what it has to remember to do what a program says."""

    all_durable: ClassVar[bool]
    """Queues and exchanges are durable although nothing asks for it."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.held: dict[int, set[int]] = {}
        """Delivery tags by channel."""
        self.consumers: dict[str, _Consumer] = {}
        self.published = 0
        self.no_ack = False
        """Whether what basic.get brings needs no settlement."""

    # --- what a client of some kind does --------------------------------------------------------------

    @abstractmethod
    def call(self, channel: int, method: str, **arguments: Any) -> None:
        """Call a method; what comes of it is not told."""

    @abstractmethod
    def ask(self, channel: int, method: str, **arguments: Any) -> None:
        """Call a method, and tell what comes of it."""

    @abstractmethod
    def settle(self, channel: int, method: str, **arguments: Any) -> None:
        """Send a method that has no answer."""

    @abstractmethod
    def publish(self, channel: int, body: bytes, properties: dict[str, Any], **arguments: Any) -> None:
        """Publish; on channel `CONFIRMS` until it is confirmed."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass."""

    def named(self, name: str) -> str:
        """The name of a queue or an exchange on the broker."""
        return name

    # --- operations -----------------------------------------------------------------------------------

    def do(self, operation: p.Operation) -> None:
        method: Callable[[Any], None] = getattr(self, f"_{type(operation).__name__}")
        method(operation)

    def _channel(self, number: int) -> int:
        if number not in self.open:
            self.call(number, "channel.open")
            if number == p.CONFIRMS:
                self.call(number, "confirm.select")
            self.open.add(number)
            self.held[number] = set()
        return number

    def _ask(self, channel: int, method: str, **arguments: Any) -> None:
        for name in ("queue", "exchange", "routing_key"):
            if name in arguments:
                arguments[name] = self.named(arguments[name])
        self.ask(self._channel(channel), method, **arguments)

    def _Declare(self, operation: p.Declare) -> None:
        arguments = dict(operation.arguments)
        for name in ("x-dead-letter-exchange", "x-dead-letter-routing-key"):
            if arguments.get(name):
                arguments[name] = self.named(arguments[name])
        durable = self.all_durable or "x-queue-type" in arguments
        self._ask(p.ADMIN, "queue.declare", queue=operation.queue, durable=durable, arguments=arguments)

    def _Count(self, operation: p.Count) -> None:
        self._ask(p.ADMIN, "queue.declare", queue=operation.queue, passive=True)

    def _DeclareExchange(self, operation: p.DeclareExchange) -> None:
        self._ask(
            p.ADMIN,
            "exchange.declare",
            exchange=operation.exchange,
            type=operation.type,
            durable=self.all_durable,
        )

    def _Bind(self, operation: p.Bind) -> None:
        place = {"exchange": operation.exchange, "routing_key": operation.routing_key}
        self._ask(p.ADMIN, "queue.bind", queue=operation.queue, **place)

    def _Purge(self, operation: p.Purge) -> None:
        self._ask(p.ADMIN, "queue.purge", queue=operation.queue)

    def _Delete(self, operation: p.Delete) -> None:
        conditions = {"if_unused": operation.if_unused, "if_empty": operation.if_empty}
        self._ask(p.ADMIN, "queue.delete", queue=operation.queue, **conditions)

    def _Publish(self, operation: p.Publish) -> None:
        self.published += 1
        properties: dict[str, Any] = {}
        if operation.priority is not None:
            properties["priority"] = operation.priority
        if operation.expiration is not None:
            properties["expiration"] = str(operation.expiration)
        self.publish(
            self._channel(p.CONFIRMS if operation.confirm else p.ADMIN),
            p.body_of(self.published, operation.size),
            properties,
            exchange=self.named(operation.exchange) if operation.exchange else "",
            routing_key=self.named(operation.routing_key),
            mandatory=operation.mandatory,
        )

    def _Get(self, operation: p.Get) -> None:
        self.no_ack = operation.no_ack
        self._ask(operation.channel, "basic.get", queue=operation.queue, no_ack=operation.no_ack)

    def _Consume(self, operation: p.Consume) -> None:
        if operation.tag in self.consumers:
            return
        self._ask(operation.channel, "basic.qos", prefetch_count=operation.prefetch)
        self.consumers[operation.tag] = _Consumer(operation.channel, operation.queue, operation.no_ack)
        self._ask(
            operation.channel,
            "basic.consume",
            queue=operation.queue,
            consumer_tag=operation.tag,
            no_ack=operation.no_ack,
            arguments={"x-priority": operation.priority} if operation.priority else {},
        )

    def _Cancel(self, operation: p.Cancel) -> None:
        if operation.tag in self.consumers:
            self._ask(self.consumers[operation.tag].channel, "basic.cancel", consumer_tag=operation.tag)

    def _CloseChannel(self, operation: p.CloseChannel) -> None:
        self._ask(operation.channel, "channel.close", reply_code=200)
        self.forget(operation.channel)

    def _settle(self, operation: p.Settlement | p.Reject, method: str, **arguments: Any) -> None:
        """Settle what the operation picks, no longer held, and all up to it where that is asked for."""
        held = self.held[self._channel(operation.channel)]
        tag = p.UNKNOWN_TAG
        if operation.pick is not None:
            if not held:
                return
            tags = sorted(held)
            tag = tags[operation.pick % len(tags)]
            held -= {each for each in held if each == tag or (operation.multiple and each < tag)}
        self.settle(operation.channel, method, delivery_tag=tag, **arguments)

    def _Ack(self, operation: p.Ack) -> None:
        self._settle(operation, "basic.ack", multiple=operation.multiple)

    def _Nack(self, operation: p.Nack) -> None:
        self._settle(operation, "basic.nack", multiple=operation.multiple, requeue=operation.requeue)

    def _Reject(self, operation: p.Reject) -> None:
        self._settle(operation, "basic.reject", requeue=operation.requeue)

    def _Recover(self, operation: p.Recover) -> None:
        self.held[self._channel(operation.channel)].clear()
        self._ask(operation.channel, "basic.recover", requeue=True)

    def _Advance(self, operation: p.Advance) -> None:
        self.advance(operation.seconds)

    # --- what comes -----------------------------------------------------------------------------------

    def received(self, channel: int, tag: int, consumer: str | None = None) -> None:
        """A message has come, to a consumer or to basic.get."""
        if not (self.no_ack if consumer is None else self.consumers[consumer].no_ack):
            self.held[channel].add(tag)

    def forget(self, channel: int) -> None:
        """A channel has closed."""
        self.open.discard(channel)
        self.held.pop(channel, None)
        for tag in [tag for tag, consumer in self.consumers.items() if consumer.channel == channel]:
            del self.consumers[tag]


class Player(Performer):
    """A client of a broker without sockets, which tells events as the reference foretells them."""

    all_durable = True

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.client = server.client(
            channels=0, client_properties={"capabilities": {"consumer_cancel_notify": True}}
        )
        self.seen: Seen = {}

    def perform(self, operation: p.Operation) -> Seen:
        """Do an operation and say what came of it."""
        self.seen = {}
        self.do(operation)
        self.server.advance(0)  # What is due by now happens now, as in a broker with a loop.
        self._read()
        return self.seen

    def call(self, channel: int, method: str, **arguments: Any) -> None:
        self.client.call(_METHODS[method](**arguments), _METHODS[f"{method}-ok"], channel)

    def ask(self, channel: int, method: str, **arguments: Any) -> None:
        self.client.send(_METHODS[method](**arguments), channel)
        self._read()

    settle = ask

    def publish(self, channel: int, body: bytes, properties: dict[str, Any], **arguments: Any) -> None:
        self.client.publish(body, channel=channel, **arguments, **properties)

    def advance(self, seconds: float) -> None:
        self.server.advance(seconds)

    def _read(self) -> None:
        while self.client.inbox:
            frame = self.client.inbox[0]
            assert frame.method is not None
            self.seen.setdefault(frame.channel, []).append(self._event(frame.channel, frame.method))

    def _event(self, channel: int, method: Method) -> Event:
        if isinstance(method, (m.BasicDeliver, m.BasicGetOk, m.BasicReturn)):
            return self._content(channel, method)
        self.client.take_frame()
        if isinstance(method, (m.BasicAck, m.BasicNack)):
            # RabbitMQ sets `multiple` in every nack; each publish is confirmed before the next.
            return Confirmed(method.delivery_tag, isinstance(method, m.BasicAck))
        if isinstance(method, m.BasicCancel):
            del self.consumers[method.consumer_tag]
            return Cancelled(method.consumer_tag)
        if isinstance(method, m.BasicCancelOk):
            del self.consumers[method.consumer_tag]
        if isinstance(method, m.ChannelClose):
            self.client.send(m.ChannelCloseOk(), channel)
            self.forget(channel)
            return Closed(method.reply_code)
        assert not isinstance(method, m.ConnectionClose), f"the connection is closed: {method}"
        messages = getattr(method, "message_count", None)
        return Ok(method.NAME, messages, getattr(method, "consumer_count", None))

    def _content(self, channel: int, method: m.BasicDeliver | m.BasicGetOk | m.BasicReturn) -> Event:
        came = self.client.expect_content(type(method), channel)
        if isinstance(method, m.BasicReturn):
            return Returned(method.reply_code, came.body)
        content = _content(method, came.properties, came.body)
        if isinstance(method, m.BasicGetOk):
            self.received(channel, method.delivery_tag)
            return Got(method.delivery_tag, method.message_count, content)
        self.received(channel, method.delivery_tag, method.consumer_tag)
        return Delivered(method.consumer_tag, method.delivery_tag, content)


def _content(method: m.BasicDeliver | m.BasicGetOk, properties: BasicProperties, body: bytes) -> Content:
    headers: dict[str, Any] = dict(properties.headers or {})
    content = Content(
        body,
        bool(method.redelivered),
        method.exchange,
        method.routing_key,
        properties.priority,
        properties.expiration,
        tuple(_death(entry) for entry in headers.pop("x-death", ())),
        _place("first", headers),
        _place("last", headers),
        headers.pop("x-delivery-count", None),
    )
    assert not headers, f"nobody has asked for these headers: {headers}"
    return content


def _death(entry: dict[str, Any]) -> Death:
    death = Death(
        entry.pop("queue"),
        entry.pop("reason"),
        entry.pop("exchange"),
        tuple(entry.pop("routing-keys")),
        entry.pop("count"),
        int(entry.pop("time")),
        entry.pop("original-expiration", None),
    )
    assert not entry, f"an entry of x-death has more: {entry}"
    return death


def _place(which: str, headers: dict[str, Any]) -> Place | None:
    values = [headers.pop(f"x-{which}-death-{what}", None) for what in ("queue", "reason", "exchange")]
    if None in values:
        assert values == [None] * 3
        return None
    return Place(*values)
