"""Scenarios of property filters on streams, and of those that are not in force."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from compat_tests.differential.amqp_1_0.scenarios.play import QUEUES, Play, each, filled, scenario
from compat_tests.differential.amqp_1_0.scenarios.tables import described, published, table
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message
from fakeamqp.protocols.amqp_1_0.codec.composites import Properties
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Described,
    Float,
    Int,
    Milliseconds,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)

_UUID = UUID("550e8400-e29b-41d4-a716-446655440000")
PROPERTIES = "amqp:properties-filter"
APPLICATION = "amqp:application-properties-filter"
_TEXTS: dict[str, Any] = {
    "message_id": "one-abc",
    "user_id": b"guest",
    "to": "one-abc",
    "subject": "one-abc",
    "reply_to": "one-abc",
    "correlation_id": "one-abc",
    "content_type": Symbol("one-abc"),
    "content_encoding": Symbol("one-abc"),
    "absolute_expiry_time": Milliseconds(9_000_000_000_000),
    "creation_time": Milliseconds(5),
    "group_id": "one-abc",
    "group_sequence": UInt(5),
    "reply_to_group_id": "one-abc",
}
"""A value for each field."""
_FIELDS: dict[str, dict[str, Any]] = {
    "none": {},
    "texts": _TEXTS,
    "number": {"message_id": ULong(5), "correlation_id": ULong(5)},
    "uuid": {"message_id": _UUID, "correlation_id": _UUID},
    "binary": {"message_id": b"one-abc", "correlation_id": b"one-abc"},
    "and": {name: "&abc" for name, value in _TEXTS.items() if type(value) is str},
    "empty": {name: "" for name, value in _TEXTS.items() if type(value) is str},
    "umlaut": {name: "\xe4bc" for name, value in _TEXTS.items() if type(value) is str},
}
_REFERENCES: dict[str, Any] = {
    "text": "one-abc",
    "other": "abc",
    "symbol": Symbol("one-abc"),
    "binary": b"one-abc",
    "guest": b"guest",
    "prefix": "&p:one",
    "suffix": "&s:abc",
    "suffix-bc": "&s:bc",
    "prefix-umlaut": "&p:\xe4",
    "all": "&p:",
    "all-ends": "&s:",
    "long": "&p:one-abcdef",
    "literal": "&&abc",
    "unknown": "&abc",
    "empty": "",
    "symbol-prefix": Symbol("&p:one"),
    "number": ULong(5),
    "uint": UInt(5),
    "long-number": 5,
    "double": 5.0,
    "time": Milliseconds(5),
    "expiry": Milliseconds(9_000_000_000_000),
    "uuid": _UUID,
    "null": None,
    "true": True,
}


def _messages() -> list[bytes]:
    return [
        message(name.encode(), properties=Properties(**fields)) if fields else message(name.encode())
        for name, fields in _FIELDS.items()
    ]


def _field(name: str, value: Any) -> dict[Any, Any]:
    return described(PROPERTIES, {Symbol(name.replace("_", "-")): value})


@each(
    ids=("message_id", "correlation_id"),
    texts=("to", "subject", "reply_to", "group_id", "reply_to_group_id"),
    others=(
        "user_id",
        "content_type",
        "content_encoding",
        "absolute_expiry_time",
        "creation_time",
        "group_sequence",
    ),
)
def property_filters(play: Play, fields: tuple[str, ...]) -> None:
    """Each field with each type of value."""
    cases = {
        f"{field} {name}": _field(field, value) for field in fields for name, value in _REFERENCES.items()
    }
    table(play, published(play, _messages()), cases)


VALUES: dict[str, Any] = {
    "text": "one-abc",
    "and": "&abc",
    "symbol": Symbol("one-abc"),
    "binary": b"one-abc",
    "ubyte": UByte(5),
    "ushort": UShort(5),
    "uint": UInt(5),
    "ulong": ULong(5),
    "byte": Byte(5),
    "short": Short(5),
    "int": Int(5),
    "long": 5,
    "float": Float(5),
    "double": 5.0,
    "half": 0.5,
    "true": True,
    "false": False,
    "char": Char("5"),
    "time": Milliseconds(5),
    "uuid": _UUID,
    "null": None,
    "one": 1,
    "decimal": Decimal32(b"\0\0\0\5"),
}


@scenario
def application_property_filters(play: Play) -> None:
    """An application property of each type, with a reference of each type."""
    messages = [message(name.encode(), application={"k": value}) for name, value in VALUES.items()]
    references = {
        **{name: value for name, value in VALUES.items() if name != "decimal"},  # 4.0.5 cannot read it here.
        **{
            name: _REFERENCES[name]
            for name in ("prefix", "suffix", "all", "all-ends", "unknown", "literal", "symbol-prefix")
        },
        "uuid-octets": _UUID.bytes,
        "code": 53,
        "list": ["one-abc"],
        "map": {"a": "one-abc"},
        "array": Array([5], int),
    }
    cases = {name: described(APPLICATION, {"k": value}) for name, value in references.items()}
    table(play, published(play, [message(b"absent"), *messages]), cases)


def _many(count: int) -> dict[Any, Any]:
    return {f"k{each}": "v" for each in range(count)}


COMBINED: dict[str, dict[Any, Any]] = {
    "two keys": described(APPLICATION, {"k": "a", "l": "b"}),
    "null and value": described(APPLICATION, {"k": None, "l": "b"}),
    "absent and null": described(APPLICATION, {"z": None}),
    "symbol as key": described(APPLICATION, {Symbol("k"): "a"}),
    "number as key": described(APPLICATION, {UInt(1): "a"}),
    "text as field": described(PROPERTIES, {"subject": "a"}),
    "no such field": described(PROPERTIES, {Symbol("nope"): "a"}),
    "underscore": described(PROPERTIES, {Symbol("message_id"): "a"}),
    "one bad of two": described(PROPERTIES, {Symbol("subject"): "a", Symbol("user-id"): "a"}),
    "sixteen": described(APPLICATION, _many(16)),
    "seventeen": described(APPLICATION, _many(17)),
    "empty": described(APPLICATION, {}),
    "empty properties": described(PROPERTIES, {}),
    "no map": described(APPLICATION, "k"),
    "list": described(APPLICATION, ["k", "a"]),
    "code of properties": {Symbol("x"): Described(ULong(0x173), {Symbol("subject"): "a"})},
    "code of application": {Symbol("x"): Described(ULong(0x174), {"k": "a"})},
    "code with domain": {Symbol("x"): Described(ULong(0x00000000_00000175), {"k": "a"})},
    "code as uint": {Symbol("x"): Described(UInt(0x174), {"k": "a"})},
    "name as text": {Symbol("x"): Described("amqp:application-properties-filter", {"k": "a"})},
    "not described": {Symbol(APPLICATION): {"k": "a"}},
    "unknown": described("nope", {"k": "a"}),
    "any name": described(APPLICATION, {"k": "a"}, key="whatever"),
    "both": {
        **described(PROPERTIES, {Symbol("subject"): "a"}),
        **described(APPLICATION, {"k": "a"}),
    },
    "both apart": {
        **described(PROPERTIES, {Symbol("subject"): "b"}),
        **described(APPLICATION, {"k": "a"}),
    },
    "two of a section": {
        **described(APPLICATION, {"k": "a"}, key="first"),
        **described(APPLICATION, {"k": "b"}, key="second"),
    },
    "two, one bad": {
        **described(APPLICATION, {"k": "a"}, key="first"),
        **described(APPLICATION, {"k": "&b"}, key="second"),
    },
    "with stream-filter": {
        **described("rabbitmq:stream-filter", "v"),
        **described("rabbitmq:stream-match-unfiltered", True),
        **described(APPLICATION, {"k": "a"}),
    },
    "offset of a wrong type": described("rabbitmq:stream-offset-spec", True, key="x"),
    "offset below 0": described("rabbitmq:stream-offset-spec", -1, key="x"),
    "filter of a wrong type": described("rabbitmq:stream-filter", UInt(1)),
    "match of a wrong type": described("rabbitmq:stream-match-unfiltered", UInt(1)),
    "selector": described("apache.org:selector-filter:string", "k = 'a'", key="jms-selector"),
    "unknown of streams": described("rabbitmq:stream-nope", "a"),
}


@scenario
def combined_property_filters(play: Play) -> None:
    messages = [
        message(b"0"),
        message(b"1", properties=Properties(subject="a"), application={"k": "a", "l": "b"}),
        message(b"2", properties=Properties(subject="b"), application={"k": "a"}),
        message(b"3", application={"k": "b", "l": "b", "k1": "v"}),
        message(b"4", application=_many(17)),
        message(b"5", annotations={Symbol("x-stream-filter-value"): "v"}, application={"k": "a"}),
        message(b"6", annotations={Symbol("x-stream-filter-value"): "w"}, application={"k": "a"}),
    ]
    table(play, published(play, messages), COMBINED)


@scenario
def filter_with_text_as_name(play: Play) -> None:
    """The names of filters are symbols."""
    queue, peer = filled(play, "stream", 1)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": {"x": Described(Symbol(APPLICATION), {"k": "a"})}})
    peer.flow(1, link_credit=10)
    peer.note()


@each(**QUEUES)
def filters_of_other_queues(play: Play, kind: str) -> None:
    """A queue that is no stream says that a filter is in force, and does not filter."""
    queue, peer = filled(play, kind, 1)
    said = {
        **described("rabbitmq:stream-match-unfiltered", True),
        **described(APPLICATION, {"k": "a"}),
        **described("nope", 1),
    }
    peer.attach(RECEIVER, queue, 1, terminus={"filter": said})
    peer.flow(1, link_credit=10)
    peer.note()
    peer.attach(RECEIVER, queue, 2, terminus={"filter": described("rabbitmq:stream-offset-spec", "first")})
    peer.note()


@each(sender=SENDER, receiver=RECEIVER)
def offered_capabilities(play: Play, role: bool) -> None:
    """What links from and to each type of queue offer."""
    peer = play.peer().session()
    for handle, kind in enumerate(("classic", "quorum", "stream")):
        peer.attach(role, play.declare(kind, kind), handle)
        peer.note(kind)
    exchange = play.exchange("fanout")
    if role == SENDER:
        peer.attach(role, f"/exchanges/{exchange}", 5)
        peer.attach(role, None, 6)
        peer.note()
