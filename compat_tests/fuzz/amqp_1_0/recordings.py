"""What valid clients of AMQP 1.0 send, from the protocol header to the last octet: what the fuzzer mutates.

Each recording is a list of pieces: a protocol header or one frame each.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from uuid import UUID

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, WINDOW, attach, filters, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, PROTOCOL_HEADER, SASL, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Array,
    Byte,
    Char,
    Decimal64,
    Described,
    Float,
    Milliseconds,
    Symbol,
    UByte,
    UInt,
    ULong,
    encode_value,
)

Recording: TypeAlias = "list[bytes]"
_PAIR: dict[str, Any] = {"name": "pair", "snd_settle_mode": 1, "properties": {Symbol("paired"): True}}
_RICH: dict[Any, Any] = {
    "text": "\xfc",
    "octets": b"\xff\0",
    "truth": True,
    "number": -1,
    "byte": Byte(-1),
    "float": Float(1.5),
    "uuid": UUID(int=7),
    "nothing": None,
    "time": Milliseconds(1_700_000_000_000),
    "char": Char("x"),
    "decimal": Decimal64(bytes(8)),
}
_ANNOTATIONS: dict[Any, Any] = {
    Symbol("x-list"): [1, "two", [3.0, {"four": UInt(4)}]],
    Symbol("x-array"): Array([Symbol("a"), Symbol("b")], Symbol),
    Symbol("x-cc"): ["q", "other"],
}
_PROPERTIES = c.Properties(
    message_id=UUID(int=1),
    correlation_id=b"c",
    to="/queues/q",
    subject="s",
    reply_to="/queues/q",
    content_type=Symbol("text/plain"),
    creation_time=Milliseconds(1_700_000_000_000),
    group_id="g",
    user_id=b"guest",
)


def performative(body: c.Composite, payload: bytes = b"", channel: int = 0) -> bytes:
    return frame(SASL if body.NAME.startswith("sasl") else AMQP, channel, body.encode() + payload)


def opening(channel: int = 0, **fields: Any) -> Recording:
    """From the header to a session."""
    return [
        SASL_HEADER,
        performative(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest")),
        PROTOCOL_HEADER,
        performative(c.Open(**{"container_id": "c", "hostname": "vhost:/", **fields})),
        begin(channel),
    ]


def begin(channel: int) -> bytes:
    said = c.Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW)
    return performative(said, channel=channel)


class Talk:
    """Counts the transfers of a session, and the requests to the management node."""

    def __init__(self, **fields: Any) -> None:
        self.pieces = opening(**fields)
        self.transfers = 0

    def say(self, *bodies: c.Composite) -> None:
        self.pieces += [performative(each) for each in bodies]

    def transfer(self, handle: int, *parts: bytes, settled: bool = False) -> None:
        """One message, in as many transfers as there are parts."""
        number = self.transfers
        self.transfers += 1
        for part in parts[:-1]:
            said = c.Transfer(
                handle=handle, delivery_id=number, delivery_tag=b"t", settled=settled, more=True
            )
            self.pieces.append(performative(said, part))
        said = c.Transfer(handle=handle, delivery_id=number, delivery_tag=b"t", settled=settled)
        self.pieces.append(performative(said, parts[-1]))

    def flow(self, handle: int | None, credit: int | None = None, **fields: Any) -> None:
        said = {"incoming_window": WINDOW, "next_outgoing_id": 0, "outgoing_window": WINDOW}
        self.say(c.Flow(**{**said, "handle": handle, "link_credit": credit, **fields}))

    def managed(self) -> None:
        """Attach the pair of links of the management node, with handles 100 and 101."""
        self.say(attach(SENDER, "/management", 100, **_PAIR), attach(RECEIVER, "/management", 101, **_PAIR))
        self.flow(101, 100)

    def request(self, method: str, path: str, body: Any = None) -> None:
        properties = c.Properties(message_id=ULong(1), subject=method, to=path, reply_to="$me")
        self.transfer(100, properties.encode() + section(0x77, body), settled=True)

    def declare(self, name: str, kind: str = "classic", **arguments: Any) -> None:
        said = {"x-queue-type": kind, **{key.replace("_", "-"): each for key, each in arguments.items()}}
        self.request("PUT", f"/queues/{name}", {"durable": True, "arguments": said})


def _messages() -> Recording:
    talk = Talk()
    talk.managed()
    talk.declare("q")
    talk.declare("other", "quorum", x_delivery_limit=3)
    talk.say(attach(SENDER, "/queues/q", 0), attach(SENDER, None, 1), attach(SENDER, "/queues/other", 2))
    talk.transfer(0, message(b"plain"))
    rich = message(
        header=c.Header(durable=True, priority=UByte(3), ttl=UInt(60_000)),
        annotations=_ANNOTATIONS,
        properties=_PROPERTIES,
        application=_RICH,
        footer={Symbol("x-end"): 1},
    )
    talk.transfer(0, rich)
    talk.transfer(1, rich, settled=True)
    talk.transfer(2, message(None) + section(0x76, [1, "two"]))
    talk.transfer(2, message({"a": ["b"]}))
    talk.say(attach(RECEIVER, "/queues/q", 3), attach(RECEIVER, "/queues/other", 4))
    talk.flow(3, 10, echo=True)
    talk.flow(4, 10)
    settled = {"role": RECEIVER, "settled": True}
    talk.say(
        c.Disposition(first=1, state=c.Released(), **settled),
        c.Disposition(first=2, last=9, state=c.Modified(delivery_failed=True), **settled),
        c.Disposition(first=10, last=12, state=c.Rejected(), role=RECEIVER),
        c.Detach(handle=3, closed=True),
        c.Detach(handle=0, closed=False),
        c.End(),
    )
    return talk.pieces


def _topology() -> Recording:
    talk = Talk(properties={Symbol("product"): "p", Symbol("x"): [_RICH]})
    talk.managed()
    talk.declare("a%2Fb", x_max_length=1, x_dead_letter_exchange="x")
    talk.request("PUT", "/exchanges/x", {"type": "headers", "arguments": {}})
    to_queue = {"source": "x", "destination_queue": "a/b", "binding_key": "k"}
    talk.request("POST", "/bindings", {**to_queue, "arguments": {"x-match": "any", "number": 1}})
    talk.request("GET", "/bindings?src=x&dstq=a%2Fb&key=k")
    talk.request("GET", "/queues/a%2Fb")
    talk.say(attach(SENDER, "/exchanges/x/k", 1))
    talk.transfer(1, message(application={"number": 1}), settled=True)
    talk.transfer(1, message(application={"number": 2}), settled=True)
    talk.request("DELETE", "/queues/a%2Fb/messages")
    talk.request("DELETE", "/bindings/src=x;dstq=a%2Fb;key=k;args=")
    talk.request("DELETE", "/exchanges/x")
    talk.request("DELETE", "/queues/a%2Fb")
    return talk.pieces


def _streams() -> Recording:
    talk = Talk()
    talk.managed()
    talk.declare("s", "stream")
    talk.say(attach(SENDER, "/queues/s", 0))
    for number in range(4):
        talk.transfer(0, message(application={"n": number, "s": "abc"}), settled=True)
    wanted: list[dict[Any, Any]] = [
        {},
        {Symbol("sql-filter"): Described(Symbol("amqp:sql-filter"), "n > 1 AND s LIKE 'a_%' OR n IN (0)")},
        {Symbol("x"): Described(ULong(0x174), {"n": 3, "s": "&p:a"})},
    ]
    for handle, each in enumerate(wanted, 1):
        said = {"filter": {**filters(offset_spec="first"), **each}}
        talk.say(attach(RECEIVER, "/queues/s", handle, terminus=said, snd_settle_mode=1))
        talk.flow(handle, 2)
        talk.flow(handle, 9, drain=True)
    return talk.pieces


def _parts() -> Recording:
    """Long messages to and from a client of small frames, in two sessions."""
    talk = Talk(max_frame_size=UInt(512), channel_max=5, idle_time_out=UInt(200_000))
    talk.managed()
    talk.declare("long")
    talk.say(attach(SENDER, "/queues/long", 0, snd_settle_mode=0))
    octets = message(b"x" * 1500)
    talk.transfer(0, octets[:500], octets[500:1000], b"", octets[1000:])
    talk.pieces += [begin(1), performative(attach(RECEIVER, "/queues/long", 9), channel=1)]
    flow = c.Flow(incoming_window=2, next_outgoing_id=0, outgoing_window=9, handle=9, link_credit=9)
    more = c.Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9)
    talk.pieces += [performative(flow, channel=1), performative(more, channel=1)]
    talk.pieces += [performative(c.End(), channel=1)]
    talk.transfer(0, octets[:500], octets[500:])
    talk.say(c.Close())
    return talk.pieces


RECORDINGS: tuple[Recording, ...] = (_messages(), _topology(), _streams(), _parts())


def before() -> dict[str, bytes]:
    """What a client has said, by the point it has come to."""
    said = opening()
    attached = [*said, performative(attach(SENDER, None, 0)), performative(attach(RECEIVER, "/queues/q", 1))]
    part = c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    return {
        "half a header": SASL_HEADER[:5],
        "header": SASL_HEADER,
        "sasl-init": b"".join(said[:2]),
        "second header": b"".join(said[:3]),
        "open": b"".join(said[:4]),
        "session": b"".join(said),
        "transfer": b"".join([*attached, performative(part, message()[:4])]),
    }


FIELDS: tuple[bytes, ...] = tuple(
    encode_value(each)
    for each in (
        *(None, True, False, UInt(0), UInt(1), UInt(0xFFFFFFFF), ULong(1), UByte(2), -1, 1.5, "a", ""),
        *("/queues/q", "/exchanges/amq.topic/k", b"", b"t", Symbol("x"), [], {}, ["a"], {Symbol("x"): 1}),
        *(Array([Symbol("a")], Symbol), Described(ULong(0x30), []), Described(Symbol("x"), "y")),
    )
) + tuple(
    each.encode()
    for each in (c.Source(address="/queues/q"), c.Target(address="/queues/q"), c.Released(), c.Modified())
)
"""Values of fields."""
