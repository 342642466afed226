"""One client of a replay: sends the recorded frames, and collects and compares the replies."""

from __future__ import annotations

import contextlib
import ssl
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from socket import socket as Socket
from typing import Any, ClassVar, Protocol, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp
from fakeamqp.protocols.amqp_0_9_1.dialect import DIALECT
from fakeamqp.replay.target import ReplayLogin, wrong_login
from fakeamqp.trace.truncation import Truncated, full_size

OrderKey: TypeAlias = "tuple[object, ...]"
"""Replies with the same key are in order: answers on a channel, deliveries to a consumer, one confirm."""

_UNSOLICITED = (
    m.BasicReturn,
    m.BasicCancel,
    m.ChannelFlow,
    m.ConnectionBlocked,
    m.ConnectionUnblocked,
)
_GENERATED = "amq."
"""The prefix of names that a broker generates."""
_IGNORED = {
    m.ConnectionStart: ("server_properties", "mechanisms", "locales"),
    m.BasicDeliver: ("delivery_tag",),
    m.BasicGetOk: ("delivery_tag",),
}
"""Fields that describe the broker, or that are compared elsewhere."""


@dataclass
class RecordedReply:
    """A method from the broker, with its content if it has one."""

    channel: int
    order_key: OrderKey
    method: Any
    text: str
    properties: BasicProperties | None = None
    body: list[bytes] = field(default_factory=list)
    """The payloads of the body frames; long ones may be truncated."""

    @property
    def body_size(self) -> int:
        return sum(map(full_size, self.body))

    def __str__(self) -> str:
        return f"channel {self.channel}: {self.text}"


class Names:
    """Names that the recorded broker generated, and the names of the broker under test in their places."""

    def __init__(self) -> None:
        self._replayed: dict[str, str] = {}

    def learn(self, recorded: object, replayed: object) -> None:
        """Remember two names from the same place of two replies, if both are generated."""
        if not isinstance(recorded, str) or not isinstance(replayed, str) or recorded == replayed:
            return
        if recorded.startswith(_GENERATED) and replayed.startswith(_GENERATED):
            self._replayed.setdefault(recorded, replayed)

    def of(self, value: Any) -> Any:
        """The value with each recorded name replaced by the replayed one."""
        if isinstance(value, str):
            if value in self._replayed:
                return self._replayed[value]
            if _GENERATED in value:
                for recorded, replayed in self._replayed.items():
                    value = value.replace(recorded, replayed)
            return value
        if isinstance(value, Timestamp):
            return value
        if isinstance(value, Mapping):
            return {name: self.of(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return value


class ReplyAssembler:
    """Assembles replies from the frames that the broker sent on one connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unfinished: dict[int, tuple[RecordedReply, int]] = {}
        self._confirmed: dict[int, tuple[int, set[int]]] = defaultdict(lambda: (0, set()))

    def read(self, octets: bytes) -> Iterator[RecordedReply]:
        """Add bytes as they come. Yields the replies that they complete."""
        self._buffer += octets
        while len(self._buffer) >= FRAME_OVERHEAD:
            frame_type, channel, size = FRAME_HEADER.unpack_from(self._buffer)
            end = FRAME_HEADER.size + size
            if len(self._buffer) <= end:
                return
            payload = bytes(self._buffer[FRAME_HEADER.size : end])
            del self._buffer[: end + 1]
            yield from self.feed(frame_type, channel, payload)

    def feed(self, frame_type: int, channel: int, payload: bytes) -> Iterator[RecordedReply]:
        """Add a frame. Yields the replies that it completes."""
        if frame_type == FRAME_METHOD:
            method = DIALECT.decode_method(payload)
            text = DIALECT.describe(frame_type, payload)
            if isinstance(method, (m.BasicAck, m.BasicNack)):
                yield from self._confirms(channel, method)
                return
            if isinstance(method, m.ChannelOpenOk):
                self._confirmed.pop(channel, None)
            reply = RecordedReply(channel, _order_key(method), method, text)
            if method is not None and method.HAS_CONTENT:
                self._unfinished[channel] = (reply, -1)
            else:
                yield reply
        elif frame_type in (FRAME_CONTENT_HEADER, FRAME_BODY) and channel in self._unfinished:
            reply, missing = self._unfinished.pop(channel)
            if frame_type == FRAME_BODY:
                reply.body.append(payload)
                missing -= full_size(payload)
            else:
                header = DIALECT.decode_header(payload)
                missing = int.from_bytes(payload[4:12], "big")
                reply.properties = None if header is None else header[1]
                reply.text += f", {DIALECT.describe(frame_type, payload)}"
            if missing > 0:
                self._unfinished[channel] = (reply, missing)
            else:
                yield reply
        elif frame_type in (FRAME_CONTENT_HEADER, FRAME_BODY):
            yield RecordedReply(
                channel, ("answer",), None, f"{DIALECT.frame_name(frame_type, payload)} out of place"
            )

    def _confirms(self, channel: int, method: m.BasicAck | m.BasicNack) -> Iterator[RecordedReply]:
        """One reply for each publish, because the number of confirms in one method varies."""
        below, beyond = self._confirmed[channel]
        last = method.delivery_tag
        tags = range(below + 1, last + 1) if method.multiple else (last,)
        word = "confirmed" if isinstance(method, m.BasicAck) else "refused (basic.nack)"
        for tag in tags:
            if tag in beyond:
                continue
            beyond.add(tag)
            alone = type(method)(delivery_tag=tag)
            yield RecordedReply(channel, ("confirm", tag), alone, f"publish {tag} is {word}")
        while below + 1 in beyond:
            below += 1
            beyond.discard(below)
        self._confirmed[channel] = (below, beyond)


def _order_key(method: Method | None) -> OrderKey:
    if isinstance(method, m.BasicDeliver):
        return "delivery", method.consumer_tag
    if isinstance(method, _UNSOLICITED):
        return (method.NAME,)
    return ("answer",)


def same(recorded: RecordedReply, replayed: RecordedReply, names: Names) -> bool:
    """True if two replies are equal, except for values that differ between any two brokers."""
    one, other = recorded.method, replayed.method
    if type(one) is not type(other) or one is None or other is None:
        return False
    _learn(recorded, replayed, names)
    ignored = _IGNORED.get(type(one), ())
    for name, _ in one.LAYOUT:
        if name not in ignored and names.of(getattr(one, name)) != getattr(other, name):
            return False
    return _same_properties(recorded, replayed, names) and _same_body(recorded, replayed)


def _learn(recorded: RecordedReply, replayed: RecordedReply, names: Names) -> None:
    for name in ("queue", "consumer_tag"):
        if isinstance(recorded.method, (m.QueueDeclareOk, m.BasicConsumeOk)) and hasattr(
            recorded.method, name
        ):
            names.learn(getattr(recorded.method, name), getattr(replayed.method, name))
    if recorded.properties is not None and replayed.properties is not None:
        # Direct reply-to: the broker replaces the name of the pseudo-queue by a generated one.
        names.learn(recorded.properties.reply_to, replayed.properties.reply_to)


def _same_properties(recorded: RecordedReply, replayed: RecordedReply, names: Names) -> bool:
    one, other = recorded.properties, replayed.properties
    if one is None or other is None:
        return one is other
    return all(
        _without_instants(names.of(getattr(one, name))) == _without_instants(getattr(other, name))
        for name, _ in one.LAYOUT
    )


def _without_instants(value: Any) -> Any:
    """The value without the instants that brokers write into headers."""
    if isinstance(value, Timestamp):
        return "some time"
    if isinstance(value, dict):
        return {name: _without_instants(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_instants(item) for item in value]
    return value


def _same_body(recorded: RecordedReply, replayed: RecordedReply) -> bool:
    if recorded.body_size != replayed.body_size:
        return False
    if not any(isinstance(part, Truncated) for part in recorded.body):
        return b"".join(recorded.body) == b"".join(replayed.body)
    # The replay published a truncated body with zeros at its end, so only the beginning is compared.
    beginning = bytes(recorded.body[0])
    return b"".join(replayed.body).startswith(beginning)


_NAMES = ("queue", "exchange", "source", "destination", "routing_key", "consumer_tag", "arguments")
"""Fields that may have a name that the broker generated."""
_SETTLING = (m.BasicAck, m.BasicNack, m.BasicReject)
_MOST = 1024 * 1024


class Assembler(Protocol):
    """Assembles replies from the frames that the broker sent on one connection."""

    def read(self, octets: bytes) -> Iterator[RecordedReply]:
        """Add bytes as they come. Yields the replies that they complete."""

    def feed(self, kind: int, channel: int, payload: bytes) -> Iterator[RecordedReply]:
        """Add a frame. Yields the replies that it completes."""


class BasePeer:
    """A connection to the broker under test, and the replies that arrived on it.

    It closes the socket. If the recorded login was `refused`, this one must be refused as well.
    """

    CLOSES: ClassVar[tuple[type[Any], ...]]
    """The methods with which a broker closes a channel or the connection."""

    def __init__(
        self, socket: Socket, login: ReplayLogin, names: Names, header: bytes, *, refused: bool = False
    ) -> None:
        self.socket = socket
        self.closed: bool = False
        self.arrived: dict[tuple[int, OrderKey], deque[RecordedReply]] = defaultdict(deque)
        self.recorded: Assembler = self.new_assembler()
        """That of the recording."""
        self._login = login
        self._refused = refused
        self._names = names
        self._assembler = self.new_assembler()
        self.prepare()
        self.send_bytes(header)

    # --- what each protocol has -------------------------------------------------------------------------

    def new_assembler(self) -> Assembler:
        """For one connection."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make what the protocol remembers."""

    def scope(self, kind: int, channel: int, payload: bytes) -> int:
        """The number of the channel for replies to a frame; 0 for the connection."""
        return channel

    def skips(self, kind: int, payload: bytes) -> bool:
        """True for frames that are not sent: heartbeats."""
        raise NotImplementedError

    def filled(self, kind: int, payload: Truncated) -> bytes | None:
        """What to send in the place of a frame that the recording has in part; None if that cannot be."""
        raise NotImplementedError

    def learn(self, recorded: RecordedReply, replayed: RecordedReply) -> None:
        """Remember the numbers that stand for one another."""
        raise NotImplementedError

    def same(self, recorded: RecordedReply, replayed: RecordedReply) -> bool:
        """True if two replies are equal, except for values that differ between any two brokers."""
        raise NotImplementedError

    def send(self, kind: int, channel: int, payload: bytes) -> None:
        """Send a recorded frame, with the names and numbers of this broker."""
        raise NotImplementedError

    # --- bytes ------------------------------------------------------------------------------------------

    def send_bytes(self, octets: bytes) -> None:
        """Send bytes. A closed connection is not an error here; `receive` detects it."""
        with contextlib.suppress(OSError):
            self.socket.sendall(octets)

    def receive(self) -> None:
        """Read what has arrived. Call it when the socket is readable."""
        try:
            octets = self.socket.recv(_MOST)
            self.closed = not octets
            # A selector does not see bytes that TLS has already read.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                octets += self.socket.recv(_MOST)
        except OSError:
            octets = b""
            self.closed = True
        for reply in self._assembler.read(octets):
            self.arrive(reply)

    def arrive(self, reply: RecordedReply) -> None:
        """Keep a reply until it is compared."""
        self.arrived[reply.channel, reply.order_key].append(reply)

    def close(self) -> None:
        self.closed = True
        self.socket.close()


class Peer(BasePeer):
    """A connection of 0-9-1 to the broker under test."""

    CLOSES: ClassVar[tuple[type[Any], ...]] = (m.ConnectionClose, m.ChannelClose)

    def new_assembler(self) -> ReplyAssembler:
        return ReplyAssembler()

    def prepare(self) -> None:
        self.tags: dict[tuple[int, int], int] = {}
        """Delivery tags by channel and recorded tag."""
        self._tune: m.ConnectionTune | None = None

    def skips(self, kind: int, payload: bytes) -> bool:
        return kind == FRAME_HEARTBEAT

    def filled(self, kind: int, payload: Truncated) -> bytes | None:
        return payload + bytes(payload.size - len(payload)) if kind == FRAME_BODY else None

    def learn(self, recorded: RecordedReply, replayed: RecordedReply) -> None:
        deliveries = (m.BasicDeliver, m.BasicGetOk)
        if isinstance(recorded.method, deliveries) and isinstance(replayed.method, deliveries):
            tag = recorded.method.delivery_tag
            self.tags[recorded.channel, tag] = replayed.method.delivery_tag

    def same(self, recorded: RecordedReply, replayed: RecordedReply) -> bool:
        return same(recorded, replayed, self._names)

    def arrive(self, reply: RecordedReply) -> None:
        if isinstance(reply.method, m.ConnectionTune):
            self._tune = reply.method
        super().arrive(reply)

    def send(self, frame_type: int, channel: int, payload: bytes) -> None:
        if frame_type == FRAME_METHOD:
            method = DIALECT.decode_method(payload)
            changes = {} if method is None else self._changes(channel, method)
            if method is not None and changes:
                for name, value in changes.items():
                    setattr(method, name, value)
                payload = method.encode()
        elif frame_type == FRAME_CONTENT_HEADER:
            payload = self._header(payload)
        self.send_bytes(frame(frame_type, channel, payload))

    def _changes(self, channel: int, method: Method) -> dict[str, Any]:
        if isinstance(method, m.ConnectionStartOk):
            if self._refused:
                return {"response": wrong_login(method.mechanism, method.response)}
            if self._login.user is None or method.mechanism in self._login.keeps:
                return {}
            response = f"\0{self._login.user}\0{self._login.password}".encode()
            return {"mechanism": "PLAIN", "response": response}
        if isinstance(method, m.ConnectionTuneOk):
            return self._tuned(method)
        if isinstance(method, m.ConnectionOpen) and self._login.virtual_host is not None:
            return {"virtual_host": self._login.virtual_host}
        changes: dict[str, Any] = {}
        if isinstance(method, _SETTLING):
            changes["delivery_tag"] = self.tags.get((channel, method.delivery_tag), method.delivery_tag)
        for name in _NAMES:
            if hasattr(method, name):
                changes[name] = self._names.of(getattr(method, name))
        # Without a change the method keeps its recorded bytes.
        return {name: value for name, value in changes.items() if getattr(method, name) != value}

    def _tuned(self, asked: m.ConnectionTuneOk) -> dict[str, Any]:
        """Limits that this broker offers, and no heartbeats, because the replay sends none."""
        tune = self._tune or m.ConnectionTune()
        limits = {"channel_max": tune.channel_max, "frame_max": tune.frame_max}
        changes: dict[str, Any] = {"heartbeat": 0}
        for name, limit in limits.items():
            value = getattr(asked, name)
            changes[name] = min(value or limit, limit) if limit else value
        return changes

    def _header(self, payload: bytes) -> bytes:
        header = DIALECT.decode_header(payload)
        if header is None or header[1].reply_to is None:
            return payload
        properties = header[1]
        reply_to, properties.reply_to = properties.reply_to, self._names.of(properties.reply_to)
        if reply_to != properties.reply_to:
            payload = payload[: CONTENT_HEADER.size] + properties.encode()
        return payload
