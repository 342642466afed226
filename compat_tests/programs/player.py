"""Does the operations of a program on a broker without sockets, and reads what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

__all__ = ["Player"]


class Player:
    """One client of a broker, and what it has to remember to do what a program says."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = server.client(
            channels=0, client_properties={"capabilities": {"consumer_cancel_notify": True}}
        )
        self.open: set[int] = set()
        self.held: dict[int, set[int]] = {}
        """Delivery tags by channel."""
        self.consumers: dict[str, tuple[int, bool]] = {}
        """The channel of each consumer, and whether what it is sent needs no settlement."""
        self.published = 0
        self.seen: Seen = {}

    def perform(self, operation: p.Operation) -> Seen:
        """Do an operation and say what came of it."""
        self.seen = {}
        method: Callable[[Any], None] = getattr(self, f"_{type(operation).__name__}")
        method(operation)
        self.server.advance(0)  # What is due by now happens now, as in a broker with a loop.
        self._read()
        return self.seen

    # --- out ----------------------------------------------------------------------------------------

    def _channel(self, number: int) -> int:
        if number not in self.open:
            self.client.open_channel(number)
            if number == p.CONFIRMS:
                self.client.call(m.ConfirmSelect(), m.ConfirmSelectOk, number)
            self.open.add(number)
            self.held[number] = set()
        return number

    def _send(self, channel: int, method: Method) -> None:
        self.client.send(method, self._channel(channel))
        self._read()

    def _Declare(self, operation: p.Declare) -> None:
        arguments = dict(operation.arguments)
        self._send(p.ADMIN, m.QueueDeclare(queue=operation.queue, durable=True, arguments=arguments))

    def _Count(self, operation: p.Count) -> None:
        self._send(p.ADMIN, m.QueueDeclare(queue=operation.queue, passive=True))

    def _DeclareExchange(self, operation: p.DeclareExchange) -> None:
        self._send(p.ADMIN, m.ExchangeDeclare(exchange=operation.exchange, type=operation.type, durable=True))

    def _Bind(self, operation: p.Bind) -> None:
        method = m.QueueBind(
            queue=operation.queue, exchange=operation.exchange, routing_key=operation.routing_key
        )
        self._send(p.ADMIN, method)

    def _Purge(self, operation: p.Purge) -> None:
        self._send(p.ADMIN, m.QueuePurge(queue=operation.queue))

    def _Delete(self, operation: p.Delete) -> None:
        method = m.QueueDelete(
            queue=operation.queue, if_unused=operation.if_unused, if_empty=operation.if_empty
        )
        self._send(p.ADMIN, method)

    def _Publish(self, operation: p.Publish) -> None:
        self.published += 1
        properties: dict[str, Any] = {}
        if operation.priority is not None:
            properties["priority"] = operation.priority
        if operation.expiration is not None:
            properties["expiration"] = str(operation.expiration)
        self.client.publish(
            p.body_of(self.published, operation.size),
            exchange=operation.exchange,
            routing_key=operation.routing_key,
            channel=self._channel(p.CONFIRMS if operation.confirm else p.ADMIN),
            mandatory=operation.mandatory,
            **properties,
        )

    def _Get(self, operation: p.Get) -> None:
        self.client.send(
            m.BasicGet(queue=operation.queue, no_ack=operation.no_ack), self._channel(operation.channel)
        )
        self._read(no_ack=operation.no_ack)

    def _Consume(self, operation: p.Consume) -> None:
        if operation.tag in self.consumers:
            return
        self._send(operation.channel, m.BasicQos(prefetch_count=operation.prefetch))
        self.consumers[operation.tag] = (operation.channel, operation.no_ack)
        method = m.BasicConsume(
            queue=operation.queue,
            consumer_tag=operation.tag,
            no_ack=operation.no_ack,
            arguments={"x-priority": operation.priority} if operation.priority else {},
        )
        self._send(operation.channel, method)

    def _Cancel(self, operation: p.Cancel) -> None:
        if operation.tag in self.consumers:
            self._send(self.consumers[operation.tag][0], m.BasicCancel(consumer_tag=operation.tag))

    def _CloseChannel(self, operation: p.CloseChannel) -> None:
        self._send(operation.channel, m.ChannelClose(reply_code=200))
        self._forget(operation.channel)

    def _settled(self, operation: p.Settlement | p.Reject) -> int | None:
        """The tag to settle, no longer held, and all up to it where that is asked for."""
        held = self.held[self._channel(operation.channel)]
        if operation.pick is None:
            return p.UNKNOWN_TAG
        if not held:
            return None
        tags = sorted(held)
        tag = tags[operation.pick % len(tags)]
        held -= {each for each in held if each == tag or (operation.multiple and each < tag)}
        return tag

    def _Ack(self, operation: p.Ack) -> None:
        tag = self._settled(operation)
        if tag is not None:
            self._send(operation.channel, m.BasicAck(delivery_tag=tag, multiple=operation.multiple))

    def _Nack(self, operation: p.Nack) -> None:
        tag = self._settled(operation)
        if tag is not None:
            method = m.BasicNack(delivery_tag=tag, multiple=operation.multiple, requeue=operation.requeue)
            self._send(operation.channel, method)

    def _Reject(self, operation: p.Reject) -> None:
        tag = self._settled(operation)
        if tag is not None:
            self._send(operation.channel, m.BasicReject(delivery_tag=tag, requeue=operation.requeue))

    def _Recover(self, operation: p.Recover) -> None:
        self.held[self._channel(operation.channel)].clear()
        self._send(operation.channel, m.BasicRecover(requeue=True))

    def _Advance(self, operation: p.Advance) -> None:
        self.server.advance(operation.seconds)

    # --- in -----------------------------------------------------------------------------------------

    def _forget(self, channel: int) -> None:
        """A channel has closed."""
        self.open.discard(channel)
        self.held.pop(channel, None)
        for tag in [tag for tag, (number, _) in self.consumers.items() if number == channel]:
            del self.consumers[tag]

    def _read(self, *, no_ack: bool = False) -> None:
        while self.client.inbox:
            frame = self.client.inbox[0]
            assert frame.method is not None
            for event in self._event(frame.channel, frame.method, no_ack):
                self.seen.setdefault(frame.channel, []).append(event)

    def _event(self, channel: int, method: Method, no_ack: bool) -> list[Event]:
        if isinstance(method, (m.BasicDeliver, m.BasicGetOk, m.BasicReturn)):
            return [self._content(channel, method, no_ack)]
        self.client.take_frame()
        if isinstance(method, (m.BasicAck, m.BasicNack)):
            # RabbitMQ sets `multiple` in every nack; each publish is confirmed before the next.
            return [Confirmed(method.delivery_tag, isinstance(method, m.BasicAck))]
        if isinstance(method, m.BasicCancel):
            del self.consumers[method.consumer_tag]
            return [Cancelled(method.consumer_tag)]
        if isinstance(method, m.BasicCancelOk):
            del self.consumers[method.consumer_tag]
        if isinstance(method, m.ChannelClose):
            self.client.send(m.ChannelCloseOk(), channel)
            self._forget(channel)
            return [Closed(method.reply_code)]
        assert not isinstance(method, m.ConnectionClose), f"the connection is closed: {method}"
        messages = getattr(method, "message_count", None)
        return [Ok(method.NAME, messages, getattr(method, "consumer_count", None))]

    def _content(self, channel: int, method: Method, no_ack: bool) -> Event:
        came = self.client.expect_content(type(method), channel)
        if isinstance(method, m.BasicReturn):
            return Returned(method.reply_code, came.body)
        assert isinstance(method, (m.BasicDeliver, m.BasicGetOk))
        content = _content(method, came.properties, came.body)
        tag = method.delivery_tag
        if isinstance(method, m.BasicDeliver):
            no_ack = self.consumers[method.consumer_tag][1]
        if not no_ack:
            self.held[channel].add(tag)
        if isinstance(method, m.BasicDeliver):
            return Delivered(method.consumer_tag, tag, content)
        return Got(tag, method.message_count, content)


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
