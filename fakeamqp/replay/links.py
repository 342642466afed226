"""One client of AMQP 1.0 in a replay: see `peer`.

Its replies are the frames of the broker, but flows: these depend on the moment. A delivery is one reply, and
so is the outcome of each message. Answers of a session have the number of its channel and one, those of the
connection 0. Ids of deliveries, and the numbers that a broker begins with, are translated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, HEADER_SIZE
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Milliseconds, Symbol, UInt, read_value
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT
from fakeamqp.protocols.amqp_1_0.dialect.frames import decode
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.replay.peer import BasePeer, Names, RecordedReply
from fakeamqp.replay.target import wrong_login
from fakeamqp.trace.truncation import Truncated

_MASK = 0xFFFFFFFF
_MOST_IDS = 100_000
"""How many ids of one disposition count."""
_OF_CONNECTION = (c.Open, c.Close, c.SaslMechanisms, c.SaslOutcome, c.SaslChallenge)
_IGNORED = {
    c.Open: ("container_id", "properties", "idle_time_out"),
    c.SaslMechanisms: ("sasl_server_mechanisms",),
    c.Transfer: ("delivery_id", "delivery_tag"),
}
"""Fields that describe the broker, or are translated."""


@dataclass
class RecordedFrame(RecordedReply):
    """A frame of the broker, or a delivery with its message in `body`."""

    def __str__(self) -> str:
        return f"session {self.channel - 1}: {self.text}" if self.channel else f"connection: {self.text}"


class FrameAssembler:
    """Makes replies of the frames that the broker sent on one connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self._unfinished: dict[tuple[int, int], RecordedFrame] = {}

    def read(self, octets: bytes) -> Iterator[RecordedReply]:
        """Add bytes as they come. Yields the replies that they complete."""
        self._buffer += octets
        while len(self._buffer) >= HEADER_SIZE:
            size = DIALECT.length(self._buffer[:HEADER_SIZE])
            if len(self._buffer) < size:
                return
            [(kind, channel, payload, _)] = DIALECT.cut(self._buffer[:size])
            self._buffer = self._buffer[size:]
            yield from self.feed(kind, channel, payload)

    def feed(self, kind: int, channel: int, payload: bytes) -> Iterator[RecordedReply]:
        """Add a frame. Yields the replies that it completes."""
        body = DIALECT.method(kind, payload)
        text = DIALECT.describe(kind, payload)
        if body is None or isinstance(body, c.Flow):
            return
        if isinstance(body, _OF_CONNECTION):
            yield RecordedFrame(0, ("answer",), body, text)
        elif isinstance(body, c.Transfer):
            yield from self._delivery(channel, body, kind, payload, text)
        elif isinstance(body, c.Disposition):
            word = "outcome" if body.role else "settled"
            last = body.first if body.last is None else body.last
            for number in range(body.first, min(last, body.first + _MOST_IDS) + 1):
                alone = c.Disposition(role=body.role, settled=body.settled, state=body.state, first=UInt(0))
                said = f"{word} of {number}: {text}"
                yield RecordedFrame(channel + 1, (word, number), alone, said)
        else:
            yield RecordedFrame(channel + 1, ("answer",), body, text)

    def _delivery(
        self, channel: int, body: c.Transfer, kind: int, payload: bytes, text: str
    ) -> Iterator[RecordedReply]:
        key = channel, int(body.handle)
        reply = self._unfinished.pop(key, None)
        if reply is None:
            reply = RecordedFrame(channel + 1, ("delivery", key[1]), body, text)
        rest = _read(kind, payload)[1]
        if isinstance(payload, Truncated):
            rest = Truncated.of(rest, payload.size - len(payload) + len(rest))
        reply.body.append(rest)
        if body.more:
            self._unfinished[key] = reply
        else:
            yield reply


class LinkPeer(BasePeer):
    """A connection of 1.0 to the broker under test."""

    CLOSES: ClassVar[tuple[type[Any], ...]] = (c.Close, c.End)

    def new_assembler(self) -> FrameAssembler:
        return FrameAssembler()

    def prepare(self) -> None:
        self._filled = False
        """Whether a part of a message was sent as zeros."""
        self._ids: dict[tuple[int, int], int] = {}
        """Scope and recorded id of a delivery -> the id here."""
        self._shifts: dict[Any, int] = defaultdict(int)
        """Scope, or scope and handle -> how far the numbers of this broker are ahead of the recorded ones."""

    def scope(self, kind: int, channel: int, payload: bytes) -> int:
        return 0 if DIALECT.ordering_key(kind, channel, payload) < 0 else channel + 1

    def skips(self, kind: int, payload: bytes) -> bool:
        return DIALECT.frame(kind, 0, payload) == EMPTY_FRAME

    def filled(self, kind: int, payload: Truncated) -> bytes | None:
        if DIALECT.frame_name(kind, payload) != "transfer":
            return None
        self._filled = True
        return DIALECT.filled(kind, payload)[0]

    def learn(self, recorded: RecordedReply, replayed: RecordedReply) -> None:
        one, other, scope = recorded.method, replayed.method, recorded.channel
        if type(one) is not type(other):
            return
        if isinstance(one, c.Transfer) and one.delivery_id is not None and other.delivery_id is not None:
            self._ids[scope, int(one.delivery_id)] = int(other.delivery_id)
        elif isinstance(one, c.Begin):
            self._shifts[scope] = other.next_outgoing_id - one.next_outgoing_id
        elif isinstance(one, c.Attach) and one.initial_delivery_count is not None:
            count = other.initial_delivery_count or 0
            self._shifts[scope, int(one.handle)] = count - one.initial_delivery_count

    def same(self, recorded: RecordedReply, replayed: RecordedReply) -> bool:
        one, other = recorded.method, replayed.method
        if type(one) is not type(other) or one is None:
            return False
        if isinstance(one, c.Attach):
            for name in ("source", "target"):
                places = [c.composite_or_value(getattr(each, name)) for each in (one, other)]
                self._names.learn(*(getattr(place, "address", None) for place in places))
        names = [
            field.attribute for field in one.FIELDS if field.attribute not in _IGNORED.get(type(one), ())
        ]
        if any(_plain(getattr(one, name), self._names) != _plain(getattr(other, name)) for name in names):
            return False
        mine, its = (b"".join(each.body) for each in (recorded, replayed))
        if any(isinstance(part, Truncated) for part in recorded.body):
            mine, its = bytes(recorded.body[0]), its[: len(recorded.body[0])]
        if mine == its or _sections(mine, self._names) == _sections(its):
            return True
        # The replay has sent zeros for what the recording does not have.
        zeros = self._filled and len(mine) == len(its)
        return zeros and all(one == other or not other for one, other in zip(mine, its, strict=True))

    def send(self, kind: int, channel: int, payload: bytes) -> None:
        read, rest = _read(kind, payload)
        changed = [] if read is None else self._changed(channel + 1, read)
        if not changed or changed == [read]:  # Without a change a frame keeps its recorded bytes.
            self.send_bytes(DIALECT.frame(kind, channel, payload))
            return
        for body in changed:
            self.send_bytes(DIALECT.frame(kind, channel, body.encode() + rest))

    def _changed(self, scope: int, body: Any) -> list[Any]:
        if isinstance(body, c.SaslInit):
            return [self._login_of(body)]
        if isinstance(body, c.Open) and self._login.virtual_host is not None:
            return [c.Open(**{**vars(body), "hostname": f"vhost:{self._login.virtual_host}"})]
        if isinstance(body, c.Flow):
            values = dict(vars(body))
            shifts = {"next_incoming_id": self._shifts[scope], "delivery_count": 0}
            if body.handle is not None:
                shifts["delivery_count"] = self._shifts[scope, int(body.handle)]
            for name, shift in shifts.items():
                if values[name] is not None:
                    values[name] = UInt((values[name] + shift) & _MASK)
            return [c.Flow(**values)]
        if isinstance(body, c.Disposition) and body.role:
            return self._settling(scope, body)
        if isinstance(body, c.Attach):
            values = dict(vars(body))
            for name in ("source", "target"):
                place = c.composite_or_value(values[name])
                address = getattr(place, "address", None)
                if address is not None and self._names.of(address) != address:
                    values[name] = type(place)(**{**vars(place), "address": self._names.of(address)})
            return [c.Attach(**values)]
        return [body]

    def _settling(self, scope: int, body: c.Disposition) -> list[c.Disposition]:
        """Dispositions for the ids of this broker; the same where these are those of the recording."""
        last = body.first if body.last is None else body.last
        ids = [
            self._ids.get((scope, each), each)
            for each in range(body.first, min(last, body.first + _MOST_IDS) + 1)
        ]
        if ids[0] == body.first and ids[-1] == last:
            return [body]
        values = {**vars(body), "last": None}
        return [c.Disposition(**{**values, "first": UInt(each)}) for each in ids]

    def _login_of(self, body: c.SaslInit) -> c.SaslInit:
        response = body.initial_response or b""
        if self._refused:
            return c.SaslInit(
                **{**vars(body), "initial_response": wrong_login(str(body.mechanism), response)}
            )
        if self._login.user is None or body.mechanism in self._login.keeps:
            return body
        response = f"\0{self._login.user}\0{self._login.password}".encode()
        return c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=response, hostname=body.hostname)


def _read(kind: int, payload: bytes) -> tuple[Any, bytes]:
    """The performative and what follows it; None for a frame without one."""
    return decode(kind, payload) or (None, b"")


def _plain(value: Any, names: Names | None = None) -> Any:
    """A value as one that can be compared: without instants, and with the names of this broker."""
    if isinstance(value, Milliseconds):
        return "some time"
    if isinstance(value, Described):
        composite = c.composite_or_value(value)
        if not isinstance(composite, c.Composite):
            return str(value.descriptor), _plain(value.value, names)
        value = composite
    if isinstance(value, c.Composite):
        # What is absent means the default.
        said = {field.attribute: value.or_default(field.attribute) for field in value.FIELDS}
        return value.NAME, {name: _plain(each, names) for name, each in said.items()}
    if isinstance(value, dict):
        return {name: _plain(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, names) for each in value]
    return value if names is None else names.of(value)


def _sections(octets: bytes, names: Names | None = None) -> list[Any]:
    """The sections of a message, to be compared; its bytes where they cannot be read."""
    found = []
    offset = 0
    try:
        while offset < len(octets):
            value, offset = read_value(octets, offset)
            found.append(_plain(value, names))
    except WireError:
        return [octets]
    return found
