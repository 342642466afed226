"""Traces to try the views on: any there could be, and one of a broker with clients."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_lines import (
    LoadedDelay,
    LoadedMessage,
    LoadedObject,
    LoadedOutcome,
    LoadedPublisher,
)
from fakeamqp.trace.truncation import Truncated

__all__ = ["EVENTS", "FRAMES", "same"]

_TEXT = st.text(max_size=8)
# Names from the wire may hold any bytes.
_NAME = st.binary(max_size=8).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
_FIELD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | _NAME
    | st.binary(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False).map(Decimal)
    | st.integers(0, 2**40).map(Timestamp),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_TEXT | st.sampled_from(["base64", "message", "table"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_METHOD = st.sampled_from(
    [
        m.BasicPublish(exchange="e", routing_key="k"),
        m.QueueDeclare(queue="q", arguments={"x-max-length": 1}),
        m.BasicDeliver(consumer_tag="t", delivery_tag=7, redelivered=True, exchange="e", routing_key="k"),
        m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"),
        m.ChannelCloseOk(),
    ]
).map(lambda method: method.encode())
_HEADER = st.builds(
    lambda size, message_id: (
        CONTENT_HEADER.pack(60, 0, size) + BasicProperties(message_id=message_id).encode()
    ),
    st.integers(0, 2**64 - 1),
    st.none() | _TEXT,
)
_OCTETS = st.binary(max_size=32)
_CUT = st.builds(Truncated.of, _OCTETS, st.integers(33, 100_000))
_WHERE = st.sampled_from(
    [("127.0.0.1:50000 -> 127.0.0.1:5672", "c1"), ("[::1]:7 -> [::1]:5672", "c2"), ("x", "c3")]
)
_TIME = st.floats(0, 1e6)


def _frame(time: float, where: Any, direction: Any, channel: int, kind: Any) -> FrameEvent:
    frame_type, payload = kind
    return FrameEvent(time, *where, direction, frame_type, channel, payload)


FRAMES = st.builds(
    _frame,
    _TIME,
    _WHERE,
    st.sampled_from(["received", "sent"]),
    st.integers(0, 65535),
    st.tuples(st.just(1), _METHOD)
    | st.tuples(st.just(2), _HEADER)
    | st.tuples(st.sampled_from([1, 2, 3, 4, 8]), _OCTETS | _CUT),
)
_MESSAGE = st.builds(
    LoadedMessage,
    _NAME,
    _NAME,
    _OCTETS | st.text(min_size=1, max_size=4).map(lambda text: Truncated.of(text.encode(), 5000)),
    st.none() | st.builds(LoadedPublisher, _TEXT),
    st.builds(
        BasicProperties, message_id=st.none() | _NAME, headers=st.none() | st.dictionaries(_TEXT, _FIELD)
    ),
    st.integers(0, 9),
)
_OUTCOME = st.builds(
    LoadedOutcome,
    _NAME,
    st.lists(_NAME, max_size=2).map(tuple),
    st.lists(_NAME, max_size=2).map(tuple),
    st.booleans(),
    st.lists(st.builds(LoadedDelay, _NAME, st.floats(0, 9)), max_size=1).map(tuple),
)
_FACTS = st.dictionaries(
    st.sampled_from(["queue", "reason", "message", "outcome", "exchange", "virtual_host", "n"]),
    _FIELD | _MESSAGE | _OUTCOME | st.builds(LoadedObject, _NAME),
    max_size=4,
)
EVENTS = st.lists(
    FRAMES
    | st.builds(
        lambda time, where, event, detail: ConnectionEvent(time, *where, event, detail),
        _TIME,
        _WHERE,
        st.sampled_from(["connected", "opened", "closed", "fault"]),
        _NAME,
    )
    | st.builds(
        ModelEvent,
        _TIME,
        st.none() | _TEXT,
        _TEXT,
        st.sampled_from(["published", "dropped", "delay over", "odd"]),
        _FACTS,
    ),
    max_size=6,
)


def same(one: Event, other: Event) -> bool:
    """Whether two events are equal, sizes of what was cut included."""
    sizes = (
        (one.size, other.size) if isinstance(one, FrameEvent) and isinstance(other, FrameEvent) else (0, 0)
    )
    return one == other and sizes[0] == sizes[1]
