"""Whole frames of AMQP 1.0 that say strange things: any performative, with fields at their limits."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from compat_tests.fuzz.amqp_1_0.recordings import Talk, performative
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, attach, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UByte, UInt, ULong

_NUMBERS = (0, 1, 2, 3, 4, 100, 101, 255, 256, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
_ADDRESSES = (
    *("/queues/plain", "/queues/stream", "/queues/quorum", "/queues/none", "/queues/", "/queues/%ff"),
    *("/exchanges/amq.topic/k", "/exchanges/amq.headers", "/exchanges/none/k", "/exchanges//k"),
    *("/management", "plain", "", "/", None, 7),
)
_DEEP: Any = []
for _ in range(90):
    _DEEP = [_DEEP]
_MAPS: tuple[Any, ...] = (
    None,
    {},
    {Symbol("paired"): True},
    {Symbol("rabbitmq:priority"): 2**31, Symbol("rabbitmq:consumer-timeout"): UInt(0)},
    {"text": _DEEP},
)
_FILTERS: tuple[Any, ...] = (
    None,
    {},
    {"text": 1},
    {Symbol("sql-filter"): Described(Symbol("amqp:sql-filter"), "n * 1.0E300 * 1.0E300 > 0 OR s LIKE '%_%'")},
    {Symbol("sql-filter"): Described(ULong(0x120), "NOT " * 199 + "n")},
    {Symbol("x"): Described(ULong(0x174), {"n": 1})},
    {Symbol("rabbitmq:stream-offset-spec"): Described(Symbol("rabbitmq:stream-offset-spec"), "first")},
    {Symbol("rabbitmq:stream-offset-spec"): Described(Symbol("rabbitmq:stream-offset-spec"), ULong(2**63))},
)
_PAYLOADS = (
    *(b"", message(), message(b"x" * 2000), message(None), message({"a": _DEEP}), b"\0\x53\x75\xa0\xff"),
    message(application={"n": 1, "s": "a"}),
    message(annotations={Symbol("x-cc"): ["plain", "quorum"], Symbol("x-deep"): _DEEP}),
    message(annotations={Symbol("x-opt-deaths"): [{}], Symbol("x-death"): 1, Symbol("x-stream-offset"): "a"}),
    message(header=c.Header(ttl=UInt(0)), properties=c.Properties(to="/queues/plain", user_id=b"guest")),
    message(properties=c.Properties(to="/exchanges/amq.headers", creation_time=None, subject="x" * 300)),
)
_REQUESTS = [
    c.Properties(message_id=each, subject=method, to=path, reply_to="$me").encode() + section(0x77, body)
    for each, method, path, body in (
        (None, "GET", "/queues/plain", None),
        (ULong(0), "PUT", "/queues/new", {"arguments": {"x-queue-type": "stream"}}),
        ("x", "PUT", "/queues/new", {"arguments": {"x-max-length": "a"}}),
        (b"x", "DELETE", "/queues/plain/messages", None),
        (b"x", "DELETE", "/queues/stream", None),
        (b"x", "PUT", "/auth/tokens", b"token"),
        (b"x", "POST", "/bindings", {"source": 1, "destination_queue": [], "binding_key": None}),
        (b"x", "GET", "/bindings?src=&dstq=%&key", None),
        (b"x", "PUT", "/exchanges/x", {"type": 7, "arguments": [1]}),
        (b"x", "PUT", "/queues/new", ["not", "a", "map"]),
    )
]
_STATES = (
    *(None, c.Accepted(), c.Rejected(error=c.Error(condition=Symbol("x"))), c.Released()),
    c.Modified(delivery_failed=True, message_annotations={Symbol("x-a"): _DEEP}),
    c.Modified(undeliverable_here=True),
    Described(Symbol("nope"), []),
    Described(ULong(0x23), [UInt(1), ULong(1)]),
)


def _numbers() -> st.SearchStrategy[Any]:
    return st.sampled_from((*_NUMBERS[:7] * 3, *_NUMBERS)).map(UInt)


@st.composite
def _attaches(draw: st.DrawFn) -> c.Attach:
    role = draw(st.sampled_from((SENDER, RECEIVER)))
    terminus: dict[str, Any] = {"dynamic": draw(st.sampled_from((None, None, None, True)))}
    if role is RECEIVER:
        terminus["filter"] = draw(st.sampled_from(_FILTERS))
    return attach(
        role,
        draw(st.sampled_from(_ADDRESSES)),
        draw(_numbers()),
        name=draw(st.sampled_from(("one", "pair", "", "x" * 5000))),
        terminus=terminus,
        snd_settle_mode=draw(st.sampled_from((None, *map(UByte, range(3))))),
        properties=draw(st.sampled_from(_MAPS)),
        max_message_size=draw(st.sampled_from((None, ULong(0), ULong(20)))),
        unsettled=draw(st.sampled_from((None, None, None, {b"t": None}))),
    )


def _transfers() -> st.SearchStrategy[bytes]:
    fields = {
        "handle": st.sampled_from((0, 0, 1, 3, 100, 100, 7)).map(UInt),
        "delivery_id": st.none() | _numbers(),
        "delivery_tag": st.sampled_from((None, b"", b"t", b"t" * 300)),
        "settled": st.sampled_from((None, True, True, False)),
        "more": st.sampled_from((None, None, False, True)),
        "aborted": st.sampled_from((None, None, True)),
    }
    bodies = st.builds(c.Transfer, **fields)
    return st.builds(performative, bodies, st.sampled_from([*_PAYLOADS, *_REQUESTS]))


def _others() -> st.SearchStrategy[c.Composite]:
    numbers, maybe, flags = _numbers(), st.none() | _numbers(), st.none() | st.booleans()
    flows = st.builds(
        c.Flow,
        next_incoming_id=maybe,
        incoming_window=numbers,
        next_outgoing_id=numbers,
        outgoing_window=numbers,
        handle=maybe,
        delivery_count=maybe,
        link_credit=maybe,
        drain=flags,
        echo=flags,
        properties=st.sampled_from(_MAPS),
    )
    settles = st.builds(
        c.Disposition,
        role=st.sampled_from((True, True, False)),
        first=numbers,
        last=maybe,
        settled=flags,
        state=st.sampled_from(_STATES),
    )
    detaches = st.builds(c.Detach, handle=numbers, closed=flags)
    begins = st.builds(c.Begin, next_outgoing_id=numbers, incoming_window=numbers, outgoing_window=numbers)
    return flows | settles | detaches | begins | st.just(c.End()) | st.just(c.Close())


def programs() -> st.SearchStrategy[list[bytes]]:
    """What a client does after `prepared`."""
    channels = st.sampled_from((0, 0, 0, 1))
    frames = st.builds(performative, _attaches() | _others(), st.just(b""), channels)
    return st.lists(frames | _transfers(), min_size=1, max_size=12)


def prepared(*, strict: bool) -> bytes:
    """An open connection with a session, queues that are not empty, links in both directions."""
    talk = Talk()
    talk.managed()
    talk.declare("plain", x_max_length=5, x_dead_letter_exchange="amq.fanout")
    for kind in ("stream", "quorum"):
        talk.declare(kind, kind)
    talk.say(attach(SENDER, "/queues/plain", 0), attach(SENDER, None, 1))
    for address in ("/queues/plain", "/queues/stream", "/queues/quorum"):
        octets = message(properties=c.Properties(to=address), application={"n": 1})
        talk.transfer(1, octets)
        talk.transfer(1, octets, settled=True)
    talk.say(attach(RECEIVER, "/queues/plain", 2), attach(RECEIVER, "/queues/stream", 3))
    talk.flow(2, 1)
    talk.flow(3, 5)
    return b"".join(talk.pieces)
