"""Values in field tables, and how long strings may be."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.octets import arguments, cut, field, long_string, short_string, table
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule

HEADERS_ONLY = b"\x20\x00"
"""Property flags of a message that has headers and nothing else."""


def header_that_arrives(client: Client, value: bytes) -> bytes:
    """What becomes of a header on its way, in bytes with the tag."""
    client.declare("q").publish_bytes(HEADERS_ONLY + table(field("h", value)), b"body", routing_key="q")
    client.send(m.BasicGet(queue="q", no_ack=True))
    header = cut(client.take_bytes())[1].payload
    before = HEADERS_ONLY + (len(value) + 2).to_bytes(4, "big") + b"\x01h"
    assert header[12:].startswith(before)
    return header[12 + len(before) :]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"S" + long_string(b"any \x01 octets"), marks=rule("0-9/types/value-longstr")),
        pytest.param(b"I\xff\xff\xff\xff", marks=rule("0-9/types/value-int")),
        pytest.param(b"D\x02\xff\xff\xcf\xc7", marks=rule("0-9/types/value-decimal")),
        pytest.param(b"T" + (1_700_000_000).to_bytes(8, "big"), marks=rule("0-9/types/value-timestamp")),
        pytest.param(b"F" + table(field("in", b"I\0\0\0\x01")), marks=rule("0-9/types/value-table")),
        pytest.param(b"V", marks=rule("0-9/types/value-void")),
        # What is sent in the field, although the text knows no more than the six above.
        pytest.param(b"t\x01", marks=pytest.mark.deviates("0-9/types/table-types")),
        pytest.param(b"l" + bytes(7) + b"\x05", marks=pytest.mark.deviates("0-9/types/table-types")),
        pytest.param(b"d" + bytes(8), marks=pytest.mark.deviates("0-9/types/table-types")),
    ],
    ids=lambda value: chr(value[0]),
)
def test_header_field_of_each_type_is_delivered_in_the_same_octets(client: Client, value: bytes) -> None:
    assert header_that_arrives(client, value) == value


@rule("0-9/types/table-types")
def test_header_field_of_an_unknown_type_closes_the_connection_with_502(spec: Server) -> None:
    client = spec.client().declare("q")
    client.publish_bytes(HEADERS_ONLY + table(field("h", b"?\x01")), routing_key="q")
    client.expect_connection_close(502)


@rule("0-9/types/value-int")
@rows("minus_one", b"I\xff\xff\xff\xff", b"l" + b"\xff" * 8, b"s\xff\xff", ids=["I", "l", "s"])
@pytest.mark.letter
def test_integers_have_a_sign_in_tables_only(client: Client, minus_one: bytes) -> None:
    """In a table ffffffff is -1; as a prefetch size it is 4 gigabytes, which lets everything pass."""
    client.perform(m.QueueDeclare(queue="minus"))
    matching = {"x-match": "all", "n": -1}
    client.bind("minus", "amq.match", arguments=matching)
    client.publish_bytes(HEADERS_ONLY + table(field("n", minus_one)), exchange="amq.match")
    assert client.qos(0, size=2**32 - 1).consume("minus").expect(m.BasicDeliver).exchange == "amq.match"


@rule("0-9/types/table-duplicates")
def test_of_fields_with_one_name_the_first_counts(spec: Server) -> None:
    client = spec.client().declare("q")
    twice = field("x-match", b"S" + long_string(b"all")) + field("a", b"I\0\0\0\1") + field("a", b"I\0\0\0\2")
    bind = arguments(
        50, 20, b"\0\0", short_string("q"), short_string("amq.match"), b"\0", b"\0", table(twice)
    )
    client.send_frame(1, 1, bind).expect(m.QueueBindOk)
    client.publish(b"second", exchange="amq.match", headers={"a": 2})
    assert client.publish(b"first", exchange="amq.match", headers={"a": 1}).empty("q") == [b"first"]
