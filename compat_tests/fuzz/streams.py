"""What valid clients send, from the protocol header to the last octet: the raw material of the fuzzer.

Each recording is a list of pieces, the header first and then one frame each, so that mutations can act on
frames as well as on bytes. Everything a client would learn from the broker (delivery tags, say) is
known beforehand, because a broker that starts afresh numbers from one. There is a second set of them for
the documents' own grammar of tables, which has neither byte arrays nor names with hyphens and dots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["RECORDINGS", "SPEC_RECORDINGS", "Client", "Recording", "recordings"]

CAPABILITIES = {
    "capabilities": {
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "basic.nack": True,
        "publisher_confirms": True,
        "authentication_failure_close": True,
    }
}
RICH_HEADERS: dict[str, Any] = {
    "text": "ü",
    "octets": b"\xff\x00",
    "x-hyphen": "h",
    "truth": True,
    "number": -1,
    "long": 2**40,
    "float": 1.5,
    "decimal": Decimal("1.25"),
    "time": datetime(2024, 1, 1, tzinfo=timezone.utc),
    "nothing": None,
    "array": [1, "two", [3.0, {"four": 4}]],
    "table": {"inner": {"innermost": []}},
}


_legal_name = re.compile(r"[A-Za-z$#][A-Za-z0-9_$#]*").fullmatch


class Client:
    """Writes what a client sends. `strict` leaves out of tables what the documents' grammar does not have."""

    header = PROTOCOL_HEADER

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def frame(self, channel: int, method: Method) -> bytes:
        """A method frame."""
        return method_frame(channel, self.payload(channel, method))

    def payload(self, channel: int, method: Method) -> bytes:
        """The bytes of a method, wherever they go."""
        if self.strict:
            for name, kind in method.LAYOUT:
                if kind == "table":
                    setattr(method, name, _published(getattr(method, name)))
        return method.encode()

    def handshake(
        self, *, heartbeat: int = 0, frame_max: int = 131072, properties: dict[str, Any] = CAPABILITIES
    ) -> list[bytes]:
        """From the header to an open connection."""
        start_ok = m.ConnectionStartOk(
            client_properties=properties, mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"
        )
        tune_ok = m.ConnectionTuneOk(channel_max=2047, frame_max=frame_max, heartbeat=heartbeat)
        return [
            self.header,
            self.frame(0, start_ok),
            self.frame(0, tune_ok),
            self.frame(0, m.ConnectionOpen(virtual_host="/")),
        ]

    def open(self, *channels: int) -> list[bytes]:
        """Open channels."""
        return [self.frame(channel, m.ChannelOpen()) for channel in channels]

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"body",
        *,
        channel: int = 1,
        mandatory: bool = False,
        frame_size: int = 100_000,
        **properties: Any,
    ) -> list[bytes]:
        """The frames of one publish."""
        if self.strict and "headers" in properties:
            properties["headers"] = _published(properties["headers"])
        method = m.BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
        octets = BasicProperties(**properties).encode()
        return [self.frame(channel, method), *content_frames(channel, 60, octets, body, frame_size)]

    def send(self, *pieces: Method | list[bytes] | bytes, channel: int = 1) -> list[bytes]:
        """Frames of methods on one channel, with contents between them."""
        frames: list[bytes] = []
        for piece in pieces:
            if isinstance(piece, Method):
                frames.append(self.frame(channel, piece))
            elif isinstance(piece, bytes):
                frames.append(piece)
            else:
                frames += piece
        return frames


def _published(table: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a table under the published grammar."""
    return {
        name: _published(value) if isinstance(value, Mapping) else value
        for name, value in table.items()
        if _legal_name(name) and not isinstance(value, bytes)
    }


def _basics(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.QueueDeclare(queue="plain"),
            client.publish("", "plain", b"one"),
            client.publish("", "plain", b""),
            client.publish("", "plain", b"three", delivery_mode=2, content_type="text/plain"),
            m.BasicGet(queue="plain"),
            m.BasicAck(delivery_tag=1),
            m.BasicGet(queue="plain", no_ack=True),
            m.BasicGet(queue="plain"),
            m.BasicReject(delivery_tag=3, requeue=True),
            HEARTBEAT_FRAME,
            m.QueuePurge(queue="plain"),
            m.QueueDelete(queue="plain", if_empty=True),
            m.ChannelClose(reply_code=200, reply_text="bye"),
        ),
        client.frame(0, m.ConnectionClose(reply_code=200, reply_text="bye")),
    ]


def _topology(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1),
        *client.send(
            m.ExchangeDeclare(exchange="lost", type="fanout", auto_delete=True),
            m.ExchangeDeclare(exchange="topics", type="topic", arguments={"alternate-exchange": "lost"}),
            m.ExchangeDeclare(exchange="heads", type="headers", durable=True),
            m.ExchangeDeclare(exchange="inner", type="direct", internal=True),
            m.ExchangeDeclare(exchange="topics", passive=True),
            m.ExchangeBind(destination="inner", source="topics", routing_key="in.#"),
            m.QueueDeclare(queue="a", exclusive=True),
            m.QueueDeclare(queue="b", auto_delete=True, arguments={"x-max-length": 2}),
            m.QueueDeclare(queue="a", passive=True),
            m.QueueBind(queue="a", exchange="topics", routing_key="*.b.#"),
            m.QueueBind(queue="b", exchange="inner", routing_key="in.deep"),
            m.QueueBind(queue="b", exchange="lost"),
            m.QueueBind(queue="a", exchange="heads", arguments={"x-match": "any", "number": -1, "z": "y"}),
            client.publish("topics", "a.b.c.d"),
            client.publish("topics", "in.deep"),
            client.publish("topics", "nowhere"),
            client.publish("heads", "", headers=RICH_HEADERS),
            m.QueueUnbind(queue="a", exchange="topics", routing_key="*.b.#"),
            m.ExchangeUnbind(destination="inner", source="topics", routing_key="in.#"),
            m.QueueDelete(queue="b"),
            m.ExchangeDelete(exchange="topics", if_unused=True),
            m.ExchangeDelete(exchange="heads"),
        ),
    ]


def _consumers(client: Client) -> list[bytes]:
    return [
        *client.handshake(heartbeat=60),
        *client.open(1, 2, 3),
        *client.send(
            m.QueueDeclare(queue="work", auto_delete=True),
            m.BasicQos(prefetch_count=2),
            m.BasicConsume(queue="work", consumer_tag="one"),
            m.BasicQos(prefetch_count=3, global_=True),
            m.BasicConsume(queue="work", consumer_tag="two", arguments={"x-priority": 5}),
        ),
        *client.send(m.BasicConsume(queue="work", consumer_tag="three", no_ack=True), channel=2),
        *client.send(
            m.QueueDeclare(queue="mine", exclusive=True),
            m.BasicConsume(queue="mine", exclusive=True, no_local=True, no_wait=True),
            channel=3,
        ),
        *[octets for _ in range(6) for octets in client.publish("", "work", b"task", channel=3)],
        *client.publish("", "mine", channel=2),
        *client.send(
            m.BasicAck(delivery_tag=2, multiple=True),
            m.BasicNack(delivery_tag=3, requeue=True),
            m.BasicRecover(requeue=True),
            m.BasicCancel(consumer_tag="two"),
            m.BasicNack(delivery_tag=0, multiple=True),
            m.BasicCancel(consumer_tag="one", no_wait=True),
            m.ChannelFlow(active=True),
        ),
        *client.send(m.ChannelClose(reply_code=200), channel=2),
        *client.open(2),
        *client.send(m.BasicConsume(queue="mine", consumer_tag="again"), channel=2),
    ]


def _confirms(client: Client) -> list[bytes]:
    everything = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "headers": RICH_HEADERS,
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 1_700_000_000,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
        "cluster_id": "x",
    }
    return [
        *client.handshake(),
        *client.open(1),
        *client.send(
            m.ConfirmSelect(),
            m.QueueDeclare(queue="durable", durable=True),
            m.QueueDeclare(queue="full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}),
            client.publish("", "durable", **everything),
            client.publish("", "nowhere", mandatory=True),
            client.publish("", "full"),
            client.publish("", "full"),
            client.publish("amq.fanout", "", headers={"CC": ["durable"], "BCC": ["full"]}),
            client.publish("", "x", headers={"CC": ["durable", "full"], "BCC": ["durable"]}),
            m.BasicConsume(queue="durable", consumer_tag="d"),
            m.BasicAck(delivery_tag=0, multiple=True),
        ),
    ]


def _transactions(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.TxSelect(),
            m.QueueDeclare(queue="tx"),
            client.publish("", "tx"),
            client.publish("", "nowhere", mandatory=True),
            m.TxCommit(),
            client.publish("", "tx", b"dropped"),
            m.TxRollback(),
            m.BasicGet(queue="tx"),
            m.BasicAck(delivery_tag=1),
            m.TxRollback(),
            m.BasicReject(delivery_tag=1),
            m.TxCommit(),
            client.publish("", "tx", b"never committed"),
        ),
        *client.send(m.ConfirmSelect(), m.TxSelect(), channel=2),
    ]


def _deaths(client: Client) -> list[bytes]:
    def dead(**more: Any) -> dict[str, Any]:
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", **more}

    return [
        *client.handshake(),
        *client.open(1),
        *client.send(
            m.QueueDeclare(queue="dead", arguments={"x-max-priority": 4}),
            m.QueueDeclare(queue="short", arguments=dead(**{"x-max-length": 1})),
            m.QueueDeclare(queue="brief", arguments=dead(**{"x-message-ttl": 5, "x-expires": 50_000})),
            m.QueueDeclare(queue="small", arguments=dead(**{"x-max-length-bytes": 9})),
            m.QueueDeclare(queue="lone", arguments={"x-single-active-consumer": True}),
            client.publish("", "short", b"1", priority=4),
            client.publish("", "short", b"2"),
            client.publish(
                "", "brief", b"3", headers={"x-death": [{"queue": "brief", "count": 2}], "h": RICH_HEADERS}
            ),
            client.publish("", "brief", b"4", expiration="1"),
            client.publish("", "small", b"5" * 10),
            client.publish("", "lone", expiration="0"),
            m.BasicQos(prefetch_count=1),
            m.BasicConsume(queue="lone", consumer_tag="first"),
            m.BasicConsume(queue="lone", consumer_tag="second"),
            m.BasicConsume(queue="lone", consumer_tag="third"),
            client.publish("", "lone"),
            client.publish("", "lone"),
            client.publish("", "lone"),
            m.BasicGet(queue="short"),
            m.BasicReject(delivery_tag=2),
            m.BasicGet(queue="dead"),
            m.BasicNack(delivery_tag=3, requeue=True),
            m.BasicCancel(consumer_tag="first"),
        ),
    ]


def _requests(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="replies", no_ack=True),
            m.QueueDeclare(queue="rpc"),
            client.publish("", "rpc", b"question", reply_to="amq.rabbitmq.reply-to", correlation_id="1"),
            m.QueueDeclare(queue="amq.rabbitmq.reply-to", passive=True),
        ),
        *client.send(m.BasicGet(queue="rpc", no_ack=True), channel=2),
        *client.send(m.BasicCancel(consumer_tag="replies")),
        *client.send(client.publish("", "rpc", b"late", reply_to="amq.rabbitmq.reply-to")),
    ]


def _large(client: Client) -> list[bytes]:
    return [
        *client.handshake(frame_max=8192, properties={"product": "a client", "table": RICH_HEADERS}),
        *client.open(1, 2047),
        *client.send(
            m.QueueDeclare(),
            m.QueueBind(exchange="amq.direct", routing_key="here"),
            m.BasicConsume(no_ack=True),
            client.publish(
                "amq.direct", "here", bytes(range(256)) * 40, frame_size=3000, headers=RICH_HEADERS
            ),
            client.publish("amq.direct", "here", b"octet by octet", frame_size=1),
        ),
        *client.send(client.publish("amq.direct", "here", b"x" * 3000, frame_size=1000), channel=2047)[:-1],
        client.frame(0, m.ConnectionUpdateSecret(new_secret=b"guest", reason="again")),
    ]


_MAKERS = (
    _basics,
    _topology,
    _consumers,
    _confirms,
    _transactions,
    _deaths,
    _requests,
    _large,
)
Recording: TypeAlias = "tuple[bytes, ...]"
RECORDINGS: tuple[Recording, ...] = tuple(tuple(make(Client())) for make in _MAKERS)
SPEC_RECORDINGS: tuple[Recording, ...] = tuple(tuple(make(Client(strict=True))) for make in _MAKERS)


def recordings(personality: str) -> tuple[Recording, ...]:
    """The streams that a client of this personality sends."""
    return SPEC_RECORDINGS if personality == "spec" else RECORDINGS
