"""Matrices of conversions: values of each type in each place, through each type of queue, to both protocols.

A scenario tells each message by the name of its value; what differs is told by name too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from compat_tests.differential.amqp_1_0.passing import Route
from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, Play, each, scenario
from compat_tests.differential.codec import Tagged
from compat_tests.scripted.amqp_1_0 import message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Milliseconds,
    Symbol,
    UInt,
    encode_symbol,
    encode_value,
)

# --- 1.0 to both ------------------------------------------------------------------------------------------


def _array(code: int, *items: bytes, width: int = 1) -> bytes:
    body = bytes((code,)) + b"".join(items)
    if width == 1:
        return bytes((0xE0, len(body) + 1, len(items))) + body
    return struct.pack(">BII", 0xF0, len(body) + 4, len(items)) + body


def _list(*items: bytes) -> bytes:
    body = b"".join(items)
    return struct.pack(">BII", 0xD0, len(body) + 4, len(items)) + body


def _map(*items: bytes) -> bytes:
    body = b"".join(items)
    return struct.pack(">BII", 0xD1, len(body) + 4, len(items)) + body


SCALARS: dict[str, bytes] = {
    "null": b"\x40",
    "true": b"\x41",
    "false": b"\x42",
    "boolean-true": b"\x56\1",
    "boolean-false": b"\x56\0",
    "ubyte": b"\x50\xff",
    "ushort": b"\x60\xff\xfe",
    "uint": b"\x70\xff\xff\xff\xfd",
    "uint-wide": b"\x70\0\0\0\1",
    "uint-small": b"\x52\xff",
    "uint-zero": b"\x43",
    "ulong": b"\x80\0\0\1\0\0\0\0\0",
    "ulong-largest": b"\x80" + b"\xff" * 8,
    "ulong-wide": b"\x80\0\0\0\0\0\0\0\1",
    "ulong-small": b"\x53\xff",
    "ulong-zero": b"\x44",
    "byte": b"\x51\x80",
    "short": b"\x61\x80\0",
    "int": b"\x71\x80\0\0\0",
    "int-wide": b"\x71\0\0\0\1",
    "int-small": b"\x54\xff",
    "long": b"\x81\x80\0\0\0\0\0\0\0",
    "long-wide": b"\x81\0\0\0\0\0\0\0\1",
    "long-small": b"\x55\xff",
    "float": b"\x72" + struct.pack(">f", 1.5),
    "double": b"\x82" + struct.pack(">d", -2.5),
    "decimal32": b"\x74\x22\x50\0\1",
    "decimal64": b"\x84\x22\x50\0\0\0\0\0\1",
    "decimal128": b"\x94\x22\x50" + b"\0" * 13 + b"\1",
    "char": b"\x73\0\0\0c",
    "char-wide": b"\x73\0\1\xf6\0",
    "timestamp": b"\x83\0\0\1\x80\0\0\0\1",
    "timestamp-zero": b"\x83" + b"\0" * 8,
    "timestamp-negative": b"\x83" + b"\xff" * 8,
    "uuid": b"\x98" + bytes(range(16)),
    "binary": b"\xa0\3\0\xff\1",
    "binary-text": b"\xa0\3abc",
    "binary-wide": b"\xb0\0\0\0\3abc",
    "binary-empty": b"\xa0\0",
    "string": b"\xa1\5h\xc3\xa9y!",
    "string-wide": b"\xb1\0\0\0\3abc",
    "string-empty": b"\xa1\0",
    "string-nul": b"\xa1\3a\0b",
    "string-256": b"\xb1\0\0\1\0" + b"x" * 256,
    "string-4097": b"\xb1\0\0\x10\1" + b"x" * 4097,
    "symbol": b"\xa3\3abc",
    "symbol-wide": b"\xb3\0\0\0\3abc",
    "symbol-empty": b"\xa3\0",
    "symbol-256": b"\xb3\0\0\1\0" + b"x" * 256,
}
COMPOUNDS: dict[str, bytes] = {
    "list-empty": b"\x45",
    "list-small": b"\xc0\5\2\x50\1\xa1\0",
    "list-wide": _list(b"\x55\1", b"\x41", b"\x40"),
    "list-nested": _list(_list(b"\x52\1"), _map(b"\xa1\1k", b"\x45")),
    "list-uuid": _list(SCALARS["uuid"]),
    "list-char": _list(SCALARS["char"]),
    "list-decimal": _list(SCALARS["decimal32"], b"\x41"),
    "list-list-decimal": _list(_list(SCALARS["decimal32"])),
    "map-empty": b"\xc1\1\0",
    "map-small": b"\xc1\6\2\xa1\1k\x50\1",
    "map-wide": _map(b"\xa1\1k", b"\x55\1"),
    "map-symbols": _map(b"\xa3\1k", b"\xa3\1v"),
    "map-numbers": _map(b"\x52\1", b"\xa1\1v"),
    "map-decimal": _map(b"\xa1\1k", SCALARS["decimal64"], b"\xa1\1l", b"\x41"),
    "map-uuid": _map(b"\xa1\1k", SCALARS["uuid"]),
    "map-nested": _map(b"\xa1\1k", _map(b"\xa1\1l", _list(b"\x54\5"))),
    "array-empty": _array(0xA1),
    "array-ubyte": _array(0x50, b"\1", b"\2"),
    "array-ushort": _array(0x60, b"\0\1"),
    "array-uint": _array(0x70, b"\0\0\0\1", b"\0\0\1\0"),
    "array-uint-small": _array(0x52, b"\1"),
    "array-ulong": _array(0x80, b"\0" * 7 + b"\1"),
    "array-ulong-small": _array(0x53, b"\1"),
    "array-byte": _array(0x51, b"\xff"),
    "array-short": _array(0x61, b"\xff\xff"),
    "array-int": _array(0x71, b"\0\0\0\1"),
    "array-int-small": _array(0x54, b"\1"),
    "array-long": _array(0x81, b"\0" * 7 + b"\1"),
    "array-long-small": _array(0x55, b"\1"),
    "array-boolean": _array(0x56, b"\1", b"\0"),
    "array-float": _array(0x72, struct.pack(">f", 1.5)),
    "array-double": _array(0x82, struct.pack(">d", 1.5)),
    "array-char": _array(0x73, b"\0\0\0c"),
    "array-timestamp": _array(0x83, b"\0" * 6 + b"\x10\0"),
    "array-uuid": _array(0x98, bytes(range(16))),
    "array-binary": _array(0xA0, b"\1\xff"),
    "array-binary-wide": _array(0xB0, b"\0\0\0\1a"),
    "array-string": _array(0xA1, b"\1a", b"\1b"),
    "array-string-wide": _array(0xB1, b"\0\0\0\1a"),
    "array-symbol": _array(0xA3, b"\1a", b"\1b"),
    "array-symbol-wide": _array(0xB3, b"\0\0\0\1a"),
    "array-large": _array(0x50, b"\1", width=4),
    "array-list": _array(0xC0, b"\3\1\x50\1"),
    "array-map": _array(0xC1, b"\6\2\xa1\1k\x50\1"),
    "array-array": _array(0xE0, b"\3\1\x50\1"),
    "array-null": _array(0x40),
    "described": b"\0\xa3\1d\x50\1",
    "described-ulong": b"\0\x80\0\0\0\1\0\0\0\1\xa1\1v",
}
VALUES = {**SCALARS, **COMPOUNDS}


def _section(code: int, value: bytes) -> bytes:
    return b"\0\x53" + bytes((code,)) + value


def _annotation(value: bytes) -> bytes:
    return _section(0x72, _map(encode_symbol("x-v"), value)) + message()


def _application_property(value: bytes) -> bytes:
    return _section(0x74, _map(b"\xa1\1v", value)) + message()


def _body(value: bytes) -> bytes:
    return _section(0x77, value)


def _sequence(value: bytes) -> bytes:
    return _section(0x76, _list(value, value)) + _section(0x76, b"\x45")


def _footer(value: bytes) -> bytes:
    return message() + _section(0x78, _map(encode_symbol("x-f"), value))


def _properties_field(place: int) -> Callable[[bytes], bytes]:
    def made(value: bytes) -> bytes:
        return _section(0x73, _list(*[b"\x40"] * place, value)) + message()

    return made


PLACES: dict[str, Callable[[bytes], bytes]] = {
    "annotation": _annotation,
    "application": _application_property,
    "value": _body,
    "sequence": _sequence,
    "footer": _footer,
    **{
        f"property_{field.attribute}": _properties_field(place)
        for place, field in enumerate(c.Properties.FIELDS)
        if field.attribute != "user_id"
    },
}


@each(**{f"{place}_{kind}": (kind, place) for kind in KINDS for place in PLACES})
def converted(play: Play, value: tuple[str, str]) -> None:
    kind, place = value
    route = Route(play, kind)
    # Values in lists that a field of properties does not take are all refused alike.
    values = SCALARS if place.startswith("property_") else VALUES
    route.publish({name: PLACES[place](octets) for name, octets in values.items()})
    route.read()


def _properties(**fields: Any) -> bytes:
    return message(properties=c.Properties(**fields))


MESSAGES: dict[str, bytes] = {
    "plain": message(),
    "empty": message(b""),
    "two-data": section(0x75, b"one") + section(0x75, b"two"),
    "three-data": section(0x75, b"1") + section(0x75, b"") + section(0x75, b"3"),
    "two-data-footer": section(0x75, b"one") + section(0x75, b"two") + section(0x78, {Symbol("x"): 1}),
    "data-wide": b"\0\x53\x75\xb0\0\0\0\3abc",
    "data-descriptor-wide": b"\0\x80" + b"\0" * 7 + b"\x75\xa0\3abc",
    "data-descriptor-symbol": b"\0\xa3\x10amqp:data:binary\xa0\3abc",
    "value-data": section(0x75, b"a") + section(0x77, "b"),
    "two-values": section(0x77, "a") + section(0x77, "b"),
    "two-sequences": section(0x76, [1]) + section(0x76, [2]),
    "data-text": section(0x75, "text"),
    "value-footer": message("v", footer={Symbol("x-f"): 1}),
    "header-empty": message(header=c.Header()),
    "header-durable": message(header=c.Header(durable=True)),
    "header-transient": message(header=c.Header(durable=False)),
    "header-priority": message(header=c.Header(priority=9)),
    "header-priority-255": message(header=c.Header(priority=255)),
    "header-priority-zero": message(header=c.Header(priority=0)),
    "header-ttl": message(header=c.Header(ttl=1_000_000)),
    "header-ttl-largest": message(header=c.Header(ttl=4294967295)),
    "header-counted": message(header=c.Header(first_acquirer=True, delivery_count=7)),
    "header-all": message(header=c.Header(durable=True, priority=1, ttl=99_999, delivery_count=2)),
    "header-empty-list": _section(0x70, b"\x45") + message(),
    "delivery-annotations": message(delivery_annotations={Symbol("x-d"): 1}),
    "no-properties": _section(0x73, b"\x45") + message(),
    "no-application": _section(0x74, b"\xc1\1\0") + message(),
    "no-annotations": _section(0x72, b"\xc1\1\0") + message(),
    "no-footer": message() + _section(0x78, b"\xc1\1\0"),
    "all-properties": _properties(
        message_id="m",
        user_id=b"guest",
        to="/queues/t",
        subject="s",
        reply_to="/queues/r%20x",
        correlation_id=UUID(int=5),
        content_type=Symbol("a/b"),
        content_encoding=Symbol("e"),
        absolute_expiry_time=Milliseconds(1000),
        creation_time=Milliseconds(2999),
        group_id="g",
        group_sequence=3,
        reply_to_group_id="rg",
    ),
    **{
        f"reply-to-{index}": _properties(reply_to=text)
        for index, text in enumerate(
            (
                "q",
                "/queues/",
                "/queues/a/b",
                "/queues/%41",
                "/queues/%zz",
                "/exchanges/x/k",
                "/queue/q",
                "x" * 256,
            )
        )
    },
    "group-256": _properties(group_id="g" * 256),
    "group-nul": _properties(group_id="g\0"),
    "content-type-256": _properties(content_type=Symbol("c" * 256)),
    "content-encoding-256": _properties(content_encoding=Symbol("c" * 256)),
    "message-id-256": _properties(message_id="m" * 256),
    "both-ids-binary": _properties(message_id=b"\1", correlation_id=b"\2"),
    "correlation-256": _properties(correlation_id="m" * 256, message_id="m"),
    "both-ids-256": _properties(correlation_id="c" * 256, message_id="m" * 256),
    "creation-negative": _properties(creation_time=Milliseconds(-1)),
    "creation-large": _properties(creation_time=Milliseconds(1 << 62)),
    "application-several": message(application={"b": True, "a": 1, "c": UInt(2), "x-a": "own"}),
    "application-long-key": message(application={"k" * 255: 1, "k" * 256: 2}),
    "application-empty-key": message(application={"": 1}),
    "application-twice": _section(0x74, _map(b"\xa1\1a", b"\x41", b"\xa1\1a", b"\x42")) + message(),
    "application-symbol-key": _section(0x74, _map(b"\xa3\1a", b"\x41")) + message(),
    "application-number-key": _section(0x74, _map(b"\x52\1", b"\x41")) + message(),
    "application-cc": message(application={"CC": "a", "BCC": "b", "x-death": "c"}),
    "annotations-several": message(annotations={Symbol("x-b"): 1, Symbol("x-a"): 2, Symbol("x-opt-c"): 3}),
    "annotations-own": message(
        annotations={
            Symbol("x-exchange"): "e",
            Symbol("x-routing-key"): "k",
            Symbol("x-basic-type"): "t",
            Symbol("x-basic-app-id"): "a",
            Symbol("x-z"): 1,
        }
    ),
    "annotations-basic": message(
        annotations={
            Symbol("x-basic-delivery-mode"): 2,
            Symbol("x-basic-priority"): 3,
            Symbol("x-basic-expiration"): "99999",
        }
    ),
    "annotations-cc": message(annotations={Symbol("x-cc"): ["z", "y"]}),
    "annotations-long-key": message(annotations={Symbol("x-" + "k" * 253): 1, Symbol("x-" + "k" * 254): 2}),
    "annotations-deaths": message(annotations={Symbol("x-opt-deaths"): "none", Symbol("x-death"): "none"}),
    "annotations-counts": message(
        annotations={
            Symbol("x-delivery-count"): 5,
            Symbol("x-acquired-count"): 6,
            Symbol("x-stream-offset"): 7,
        }
    ),
    "annotations-type-map": message(annotations={Symbol("x-basic-type"): {"a": 1}}),
    "annotations-type-long": message(annotations={Symbol("x-basic-type"): "t" * 256}),
    "annotations-received": message(annotations={Symbol("x-opt-rabbitmq-received-time"): Milliseconds(5)}),
    "annotations-bare-x": message(annotations={Symbol("x-"): 1}),
    "properties-twice": _properties(subject="a") + _properties(subject="b"),
    "sections-reversed": message(application={"a": 1}, properties=c.Properties(subject="s")),
    "header-last": message(properties=c.Properties(subject="s"), header=c.Header(priority=4)),
    "annotations-behind": message(properties=c.Properties(subject="s"), annotations={Symbol("x-a"): 1}),
    "properties-behind-body": message() + message(None, properties=c.Properties(subject="s")),
    "trailing": message() + b"\0",
    "cut": message(b"abcdef")[:-2],
    "cut-annotations": message(annotations={Symbol("x-a"): "abcdef"})[:10],
    "properties-too-many": _section(0x73, _list(*[b"\x40"] * 14)) + message(),
    "properties-map": _section(0x73, _map()) + message(),
    "header-too-many": _section(0x70, _list(*[b"\x40"] * 6)) + message(),
    "header-wrong": _section(0x70, _list(b"\xa1\1x")) + message(),
    "application-list": _section(0x74, _list()) + message(),
    "annotations-list": _section(0x72, _list()) + message(),
    "unknown-section": _section(0x79, b"\x40") + message(),
    "not-described": b"\x40" + message(),
    "utf-8": _section(0x77, b"\xa1\2\xff\xfe"),
    "utf-8-application": _section(0x74, _map(b"\xa1\1a", b"\xa1\2\xff\xfe")) + message(),
    "utf-8-subject": _section(0x73, _list(*[b"\x40"] * 3, b"\xa1\2\xff\xfe")) + message(),
    "utf-8-annotation": _section(0x72, _map(b"\xa3\3x-a", b"\xa1\2\xff\xfe")) + message(),
    "utf-8-message-id": _section(0x73, _list(b"\xa1\2\xff\xfe")) + message(),
    "user-id-other-type": _section(0x73, _list(b"\x40", b"\xa1\5guest")) + message(),
}


BEHIND = ("properties-twice", "application-list", "annotations-behind")
"""What RabbitMQ 4.0 takes, and does not read to the end."""


@each(**KINDS)
def messages(play: Play, kind: str) -> None:
    route = Route(play, kind)
    # Streams keep the header, whatever it holds.
    odd = (*BEHIND, "annotations-basic", "header-wrong") if kind == "stream" else BEHIND
    route.publish({name: octets for name, octets in MESSAGES.items() if name not in odd})
    route.read()


@scenario
def messages_with_more_behind(play: Play) -> None:
    route = Route(play, "classic")
    route.publish({name: MESSAGES[name] for name in BEHIND})
    route.read()


# --- 0-9-1 to both ----------------------------------------------------------------------------------------

FIELDS: dict[str, Tagged] = {
    "t": Tagged("t", True),
    "t-false": Tagged("t", False),
    "b": Tagged("b", -128),
    "B": Tagged("B", 255),
    "s": Tagged("s", -32768),
    "u": Tagged("u", 65535),
    "I": Tagged("I", -2147483648),
    "I-small": Tagged("I", 1),
    "i": Tagged("i", 4294967295),
    "i-zero": Tagged("i", 0),
    "l": Tagged("l", -(1 << 63)),
    "l-small": Tagged("l", 1),
    "f": Tagged("f", 1.5),
    "d": Tagged("d", -2.5),
    "S": Tagged("S", "h\u00e9"),
    "S-empty": Tagged("S", ""),
    "S-nul": Tagged("S", b"a\0b"),
    "S-not-utf-8": Tagged("S", b"\xff\xfe"),
    "S-4096": Tagged("S", "x" * 4096),
    "S-4097": Tagged("S", "x" * 4097),
    "T": Tagged("T", 1_700_000_000),
    "T-zero": Tagged("T", 0),
    "T-large": Tagged("T", 1 << 40),
    "V": Tagged("V"),
    "A-empty": Tagged("A", []),
    "A": Tagged("A", [Tagged("S", "a"), Tagged("I", 1), Tagged("V")]),
    "A-nested": Tagged("A", [Tagged("A", [Tagged("t", True)]), Tagged("F", [("k", Tagged("S", "v"))])]),
    "F-empty": Tagged("F", []),
    "F": Tagged("F", [("k", Tagged("S", "v")), ("n", Tagged("l", 5))]),
    "F-nested": Tagged("F", [("k", Tagged("F", [("l", Tagged("A", [Tagged("B", 1)]))]))]),
}
BINARIES = {"x": Tagged("x", b"\0\xff"), "text": Tagged("x", b"abc")}
"""Streams store them as long strings."""
DECIMALS = {"D": Tagged("D", (2, 314)), "A": Tagged("A", [Tagged("D", (1, 5))])}
HEADERS: dict[str, Callable[[Tagged], list[tuple[str, Tagged]]]] = {
    "header": lambda value: [("v", value)],
    "annotation": lambda value: [("x-v", value)],
    "nested_array": lambda value: [("x-v", Tagged("A", [value])), ("v", Tagged("A", [value]))],
    "nested_table": lambda value: [("x-v", Tagged("F", [("k", value)])), ("v", Tagged("F", [("k", value)]))],
}


@each(**{f"{place}_{kind}": (kind, place) for kind in KINDS for place in HEADERS})
def headers_converted(play: Play, value: tuple[str, str]) -> None:
    kind, place = value
    route = Route(play, kind)
    route.publish_older({name: ({"headers": HEADERS[place](each)}, b"body") for name, each in FIELDS.items()})
    route.read()


@each(
    **{
        f"{place}_{name}_{kind}": (kind, place, name)
        for kind in KINDS
        for name in DECIMALS
        for place in ("header", "annotation")
    }
)
def decimals_converted(play: Play, value: tuple[str, str, str]) -> None:
    kind, place, name = value
    route = Route(play, kind)
    route.publish_older({name: ({"headers": HEADERS[place](DECIMALS[name])}, b"body")})
    route.read()


@each(**KINDS)
def binaries_converted(play: Play, kind: str) -> None:
    route = Route(play, kind)
    places = {
        f"{name}-{place}": made(value) for name, value in BINARIES.items() for place, made in HEADERS.items()
    }
    route.publish_older({name: ({"headers": headers}, b"body") for name, headers in places.items()})
    route.read()


@scenario
def fields_twice(play: Play) -> None:
    route = Route(play, "classic")
    table = Tagged("F", [("k", Tagged("B", 1)), ("k", Tagged("B", 2))])
    route.publish_older({"twice": ({"headers": [("x-v", table)]}, b"body")})
    route.read()


_TEXTS = {
    "plain": b"text",
    "empty": b"",
    "255": b"x" * 255,
    "not-utf-8": b"\xff\xfe",
    "nul": b"a\0b",
    "accent": "h\u00e9".encode(),
    "uuid": b"urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f",
    "uuid-capitals": b"urn:uuid:ABCDEF03-0405-0607-0809-0A0B0C0D0E0F",
    "uuid-wrong": b"urn:uuid:0001",
    "uuid-braces": b"urn:uuid:{00010203-0405-0607-0809-0a0b0c0d0e0f}",
    "uuid-bare": b"00010203-0405-0607-0809-0a0b0c0d0e0f",
    "uuid-no-dashes": b"urn:uuid:000102030405060708090a0b0c0d0e0f",
    "address": b"/queues/a b",
    "slash": b"a/b c%d",
}
_SHORT = (
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "message_id",
    "type",
    "app_id",
)
_NUMBERS: dict[str, list[Any]] = {
    "delivery_mode": [0, 1, 2, 3, 255],
    "priority": [0, 5, 255],
    "timestamp": [0, 1, 1_700_000_000, 1 << 40, (1 << 63) - 1],
    "expiration": [b"100000", b"0100000", b"4294967295", b"x", b"", b"-1", b" 5", b"1.5"],
    "user_id": [b"guest", b"other", b""],
}
_ENCODED = {
    "value": section(0x77, "text"),
    "sequence": section(0x76, [1]),
    "data": section(0x75, b"data"),
    "two-data": section(0x75, b"a") + section(0x75, b"b"),
    "footer": section(0x77, "text") + section(0x78, {Symbol("x-f"): 1}),
    "properties": message(properties=c.Properties(subject="s")),
    "annotations": message(annotations={Symbol("x-a"): 1}),
    "application": message(application={"a": 1}),
    "empty": b"",
    "garbage": b"garbage",
    "cut": section(0x77, "text")[:-1],
    "not-described": encode_value(5),
    "unknown": _section(0x20, b"\x40"),
    "wide-value": b"\0\x53\x77\xb1\0\0\0\1a",
    "wide-data": b"\0\x53\x75\xb0\0\0\0\1a",
}

BASIC: dict[str, tuple[dict[str, Any], bytes]] = {
    "none": ({}, b"body"),
    "empty-body": ({}, b""),
    **{f"{field}-{name}": ({field: text}, b"body") for field in _SHORT for name, text in _TEXTS.items()},
    **{f"{field}-{value!r}": ({field: value}, b"body") for field, them in _NUMBERS.items() for value in them},
    **{f"amqp-1.0-{name}": ({"type": "amqp-1.0"}, octets) for name, octets in _ENCODED.items()},
    "headers-empty": ({"headers": {}}, b"body"),
    "headers-several": ({"headers": [("b", 1), ("x-b", 2), ("a", 3), ("x-a", 4)]}, b"body"),
    "headers-cc": ({"headers": {"CC": [], "x": 1}}, b"body"),
    "headers-cc-keys": ({"headers": {"CC": ["z"], "BCC": ["y"]}}, b"body"),
    "headers-cc-text": ({"headers": {"CC": "z"}}, b"body"),
    "headers-own": ({"headers": {"x-exchange": "e", "x-routing-key": "r", "x-basic-type": "t"}}, b"body"),
    "headers-death": ({"headers": {"x-death": "none", "x-opt-deaths": "none"}}, b"body"),
    "headers-empty-name": ({"headers": {"": 1}}, b"body"),
    "headers-long-name": ({"headers": {"k" * 255: 1, "x-" + "k" * 253: 2}}, b"body"),
    "headers-10": ({"headers": {"x-opt-a": 1, "x_b": 2, "X-c": 3, "xd": 4}}, b"body"),
    "all": (
        {
            "content_type": "a/b",
            "content_encoding": "e",
            "headers": {"a": 1},
            "delivery_mode": 2,
            "priority": 4,
            "correlation_id": "c",
            "reply_to": "r",
            "expiration": "99999",
            "message_id": "m",
            "timestamp": 5,
            "type": "t",
            "user_id": "guest",
            "app_id": "a",
        },
        b"body",
    ),
}


@each(**KINDS)
def basic_converted(play: Play, kind: str) -> None:
    route = Route(play, kind)
    route.publish_older(BASIC)
    route.read()
