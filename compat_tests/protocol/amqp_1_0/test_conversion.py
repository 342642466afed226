"""Messages between AMQP 1.0 and 0-9-1: what RabbitMQ 4.0.5 and 4.3.6 make of each value (measured)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.differential.codec import Tagged
from compat_tests.differential.raw_client import Address, RawClient
from compat_tests.scripted.amqp_1_0 import Client, Server, message, section, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
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
    encode_value,
)

CRASH = 'connection.close(541, "INTERNAL_ERROR", 0.0)'
VALUES: dict[str, tuple[Any, str]] = {
    "null": (None, "V"),
    "true": (True, "t:True"),
    "ubyte": (UByte(255), "B:255"),
    "ushort": (UShort(1), "u:1"),
    "uint": (UInt(1), "i:1"),
    "ulong": (ULong(1), "l:1"),
    "largest ulong": (ULong((1 << 64) - 1), "l:-1"),
    "byte": (Byte(-1), "b:-1"),
    "short": (Short(-1), "s:-1"),
    "int": (Int(-1), "I:-1"),
    "long": (1, "l:1"),
    "float": (Float(1.5), "f:1.5"),
    "double": (1.5, "d:1.5"),
    "timestamp": (Milliseconds(1999), "T:1"),
    "negative timestamp": (Milliseconds(-1), "T:0"),
    "binary": (b"\xff", "S:'\\xff'"),
    "string": ("a", "S:'a'"),
    "symbol": (Symbol("a"), "S:'a'"),
    "list": ([1, UInt(2), None], "[l:1, i:2, V]"),
    "map": ({"k": ULong(1), Symbol("l"): [Int(1)]}, "{k=l:1, l=[I:1]}"),
    "array": (Array([UInt(1)]), "[i:1]"),
    "char": (Char("c"), CRASH),
    "uuid": (UUID(int=1), CRASH),
    "described in a list": ([Described(Symbol("d"), 1)], CRASH),
    "uuid in a list": ([UUID(int=1)], CRASH),
    "ulong in a list": ([ULong(1)], CRASH),
    "number as a key": ({UInt(1): "v"}, CRASH),
    "decimal in a nested list": ([[Decimal32(b"\0\0\0\1")]], CRASH),
}


def read_by_older(server: Server, octets: bytes) -> str:
    """What a client of 0-9-1 gets of a message."""
    assert isinstance(server.session().sender().publish(octets), c.Accepted)
    client = RawClient(Address("", 0, server=server))
    told = client.do(1, "basic.get", queue="q", no_ack=1)[0]
    return told.partition("{")[2].rpartition("}")[0] if "get-ok" in told else told


@pytest.mark.rule("1-0/conversion/to-0-9-1")
@pytest.mark.parametrize("place", ["annotation", "application property"])
def test_values_become_fields_of_headers_or_close_the_reader(rabbitmq: Server, place: str) -> None:
    name = "x-v" if place == "annotation" else "v"
    wrong = {}
    for case, (value, expected) in VALUES.items():
        said: dict[str, Any] = {"annotations" if name == "x-v" else "application": {_key(name): value}}
        told = read_by_older(rabbitmq, message(**said))
        if told != (expected if expected == CRASH else f"headers={{{name}={expected}}}"):
            wrong[case] = told
    assert not wrong


def _key(name: str) -> Any:
    return Symbol(name) if name.startswith("x-") else name


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_decimal_is_left_out_of_headers_and_closes_the_reader_in_rabbitmq_4_0(
    rabbitmq: Server, rabbitmq_4_0: Server
) -> None:
    octets = message(application={"a": 1, "d": Decimal32(b"\0\0\0\1")})
    assert read_by_older(rabbitmq, octets) == "headers={a=l:1}"
    assert read_by_older(rabbitmq_4_0, octets) == CRASH


PROPERTIES: dict[str, tuple[dict[str, Any], str]] = {
    "string id": ({"message_id": "m"}, "message_id='m'"),
    "ulong id": ({"message_id": ULong(7)}, "message_id='7'"),
    "uuid": ({"correlation_id": UUID(int=5)}, f"correlation_id='urn:uuid:{UUID(int=5)}'"),
    "binary id": ({"message_id": b"\1"}, "headers={x-message-id=x:'\\x01'}"),
    "long ids": (
        {"message_id": "m" * 256, "correlation_id": "c" * 256},
        f"headers={{x-correlation-id=S:'{'c' * 256}', x-message-id=S:'{'m' * 256}'}}",
    ),
    "queue": ({"reply_to": "/queues/a%20b"}, "reply_to='a b'"),
    "empty queue": ({"reply_to": "/queues/"}, "reply_to=''"),
    "slash in queue": ({"reply_to": "/queues/a/b"}, ""),
    "bad escape": ({"reply_to": "/queues/%zz"}, ""),
    "exchange": ({"reply_to": "/exchanges/x/k"}, "reply_to='/exchanges/x/k'"),
    "group": ({"group_id": "g"}, "app_id='g'"),
    "long group": ({"group_id": "g" * 256}, ""),
    "time": ({"creation_time": Milliseconds(2999)}, "timestamp=2"),
    "lost": ({"to": "t", "subject": "s", "group_sequence": 3, "reply_to_group_id": "r"}, ""),
    "long content type": ({"content_type": Symbol("c" * 256)}, CRASH),
}


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_properties_become_those_of_0_9_1(rabbitmq: Server) -> None:
    found = {
        case: read_by_older(rabbitmq, message(properties=c.Properties(**said)))
        for case, (said, _) in PROPERTIES.items()
    }
    assert found == {case: expected for case, (_, expected) in PROPERTIES.items()}


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_property_of_another_type_closes_the_reader_or_is_lost(rabbitmq: Server) -> None:
    def octets(place: int, value: Any) -> bytes:
        return section(0x73, [None] * place + [value]) + message()

    assert read_by_older(rabbitmq, octets(0, 5)) == CRASH
    assert read_by_older(rabbitmq, octets(6, "text")) == "content_type='text'"
    assert read_by_older(rabbitmq, octets(6, 5)) == CRASH
    assert read_by_older(rabbitmq, octets(3, 5)) == ""
    assert read_by_older(rabbitmq, octets(10, 5)) == ""


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_headers_are_sorted_and_an_annotation_hides_a_property_of_its_name(rabbitmq: Server) -> None:
    octets = message(annotations={Symbol("x-b"): 1}, application={"z": 1, "x-b": 2, "a": 3})
    assert read_by_older(rabbitmq, octets) == "headers={a=l:3, x-b=l:1, z=l:1}"


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_crash_of_one_reader_closes_its_connection_and_no_other(rabbitmq: Server) -> None:
    reader = RawClient(Address("", 0, server=rabbitmq))
    reader.do(1, "basic.consume", queue="q")
    sender = rabbitmq.session().sender()
    assert isinstance(sender.publish(message(application={"u": UUID(int=1)})), c.Accepted)
    assert CRASH in reader.quiet(0)
    assert len(rabbitmq.vhost.queues["q"].ready) == 1
    assert isinstance(sender.publish(message()), c.Accepted)


# --- 0-9-1 to 1.0 -----------------------------------------------------------------------------------------

FIELDS: dict[str, tuple[Tagged, bytes]] = {
    "t": (Tagged("t", True), b"\x56\1"),
    "b": (Tagged("b", -1), b"\x51\xff"),
    "B": (Tagged("B", 1), b"\x50\1"),
    "s": (Tagged("s", -1), b"\x61\xff\xff"),
    "u": (Tagged("u", 1), b"\x60\0\1"),
    "I": (Tagged("I", 1), b"\x54\1"),
    "i": (Tagged("i", 1), b"\x52\1"),
    "l": (Tagged("l", 1), b"\x55\1"),
    "f": (Tagged("f", 1.5), b"\x72\x3f\xc0\0\0"),
    "T": (Tagged("T", 1), encode_value(Milliseconds(1000))),
    "S": (Tagged("S", "a"), b"\xa1\1a"),
    "S with NUL": (Tagged("S", b"\0"), b"\xa0\1\0"),
    "S not UTF-8": (Tagged("S", b"\xff"), b"\xa0\1\xff"),
    "S of 4097 octets": (Tagged("S", "x" * 4097), encode_value(b"x" * 4097)),
    "x": (Tagged("x", b"a"), b"\xa0\1a"),
    "V": (Tagged("V"), b"\x40"),
}


def read_by_newer(server: Server, body: bytes = b"body", **properties: Any) -> tuple[bytes, dict[str, Any]]:
    """The octets and the sections that a client of 1.0 gets of a message of 0-9-1."""
    publisher = RawClient(Address("", 0, server=server))
    publisher.publish(1, routing_key="q", props=properties, body=body)
    client: Client = server.session()
    link = client.receiver(credit=1)
    got = next(each for each in client.take_all() if each.payload)
    link.settle(c.Accepted(), got.what.delivery_id)
    return got.payload, sections(got.payload)


@pytest.mark.rule("1-0/conversion/from-0-9-1")
def test_headers_keep_the_width_of_their_field_also_in_arrays(rabbitmq: Server) -> None:
    wrong = {}
    for case, (value, expected) in FIELDS.items():
        headers = {"v": value, "x-v": Tagged("A", [value])}
        payload, _ = read_by_newer(rabbitmq, headers=headers)
        if b"\xa1\1v" + expected not in payload or expected not in payload.partition(b"x-v")[2]:
            wrong[case] = payload
    assert not wrong


@pytest.mark.rule("1-0/conversion/from-0-9-1")
def test_headers_keep_their_order(rabbitmq: Server) -> None:
    _, said = read_by_newer(rabbitmq, headers=[("x-b", 1), ("z", 2), ("x-a", 3), ("a", 4)])
    assert list(said["application"]) == ["z", "a"]
    assert list(said["annotations"]) == ["x-routing-key", "x-exchange", "x-b", "x-a"]


@pytest.mark.rule("1-0/conversion/from-0-9-1")
@pytest.mark.parametrize("place", ["x-d", "d"])
def test_decimal_closes_the_connection_of_the_reader(rabbitmq: Server, place: str) -> None:
    publisher = RawClient(Address("", 0, server=rabbitmq))
    publisher.publish(1, routing_key="q", props={"headers": {place: Tagged("D", (1, 5))}}, body=b"m")
    client = rabbitmq.session()
    client.receiver(credit=1)
    rabbitmq.advance(0)
    [came] = client.take_all()
    assert came.what.error.condition == "amqp:internal-error"
    assert len(rabbitmq.vhost.queues["q"].ready) == 1


TEXTS: dict[str, tuple[bytes, Any]] = {
    "uuid": (b"urn:uuid:00000000-0000-0000-0000-000000000005", UUID(int=5)),
    "braces": (b"urn:uuid:{00000000-0000-0000-0000-000000000005}", None),
    "no dashes": (b"urn:uuid:" + b"0" * 31 + b"5", None),
    "NUL": (b"a\0", None),
}


@pytest.mark.rule("1-0/conversion/from-0-9-1")
def test_message_ids_become_uuids_or_strings(rabbitmq: Server) -> None:
    for text, expected in TEXTS.values():
        _, said = read_by_newer(rabbitmq, message_id=text)
        assert said["properties"].message_id == (text.decode() if expected is None else expected)


@pytest.mark.rule("1-0/conversion/from-0-9-1")
def test_encoded_body_becomes_sections(rabbitmq: Server) -> None:
    body = message(properties=c.Properties(subject="s")) + section(0x75, b"more")
    _, said = read_by_newer(rabbitmq, body, type="amqp-1.0", message_id="lost")
    assert said["data"] == [b"body", b"more"]
    assert said["properties"] == c.Properties(subject="s")
    assert said["annotations"]["x-basic-type"] == "amqp-1.0"
