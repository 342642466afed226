"""The sections of a message of AMQP 1.0, as the standard has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server, message, section
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Array,
    Described,
    Float,
    Int,
    Milliseconds,
    Symbol,
    UByte,
    UInt,
    ULong,
    encode_value,
)

rule = pytest.mark.rule

DATA, SEQUENCE, VALUE = 0x75, 0x76, 0x77
X = section(DATA, b"x")


def passed(client: Client, octets: bytes) -> dict[str, Any]:
    """Publish a message; the sections of its delivery, whose bare message is under "payload"."""
    assert isinstance(client.sender(handle=10).publish(octets), c.Accepted)
    receiver = client.receiver(handle=11, credit=1)
    transfer, said = receiver.take()
    receiver.settle(c.Accepted(), transfer.delivery_id)
    receiver.detach()
    client.send(c.Detach(handle=10)).expect(c.Detach)
    return said


def payload_of(client: Client, octets: bytes) -> bytes:
    assert isinstance(client.sender(handle=10).publish(octets), c.Accepted)
    client.receiver(handle=11, credit=1)
    return b"".join(each.payload for each in client.take_all())


# --- order and body -----------------------------------------------------------------------------------------

HEADER = c.Header(durable=True).encode()
WRONG_ORDER: dict[str, tuple[bytes, str]] = {
    "header-behind": (X + HEADER, "header,{position,6}"),
    "header-twice": (HEADER * 2 + X, "header,{position,7}"),
    "footer-first": (section(0x78, {Symbol("x-a"): 1}) + X, "footer,{position,0}"),
    "data-and-value": (X + section(VALUE, 1), "amqp_value,{position,6}"),
    "two-values": (section(VALUE, 1) * 2, "amqp_value,{position,5}"),
    "data-and-sequence": (X + section(SEQUENCE, [1]), "amqp_sequence,{position,6}"),
    "properties-behind": (X + c.Properties(subject="s").encode(), "properties,{position,6}"),
}


@rule("1-0/message/order", "1-0/message/once", "1-0/message/body", "1-0/transfer/decode-error")
@pytest.mark.parametrize("name", WRONG_ORDER)
def test_section_that_comes_out_of_order_makes_the_message_unreadable_in_4_3(
    rabbitmq: Server, name: str
) -> None:
    octets, place = WRONG_ORDER[name]
    client = rabbitmq.session()
    client.sender().transfer(octets)
    error = client.expect_detach("amqp:decode-error")
    text = f"failed to parse message: {{unexpected_message_section,{place}}}"
    assert "".join(error.description.split()) == "".join(text.split())  # Long terms have several lines.


@rule("1-0/message/order")
def test_all_sections_in_their_order_pass(server: Server) -> None:
    octets = message(
        b"x",
        header=c.Header(durable=True, priority=3),
        delivery_annotations={Symbol("x-d"): 1},
        annotations={Symbol("x-a"): 1},
        properties=c.Properties(subject="s"),
        application={"a": 1},
        footer={Symbol("x-f"): 1},
    )
    said = passed(server.session(), octets)
    assert set(said) == {"header", "annotations", "properties", "application", "data", "footer"}


@rule("1-0/message/body", "1-0/transfer/decode-error")
@pytest.mark.parametrize("octets", [b"", HEADER, c.Properties(subject="s").encode(), section(0x74, {"a": 1})])
def test_message_without_body_is_unreadable(rabbitmq: Server, octets: bytes) -> None:
    client = rabbitmq.session()
    client.sender().transfer(octets)
    client.expect_detach("amqp:decode-error", "failed to parse message: missing_amqp_message_body")


@rule("1-0/message/body-data", "1-0/message/body-sequence", "1-0/message/body-value")
@rule("1-0/message/immutable", "1-0/transfer/bare-message")
@pytest.mark.parametrize(
    "octets",
    [
        section(DATA, b""),
        section(DATA, b"one") + section(DATA, b"") + section(DATA, b"two"),
        section(SEQUENCE, []),
        section(SEQUENCE, [1]) + section(SEQUENCE, ["two", None]),
        section(VALUE, None),
        section(VALUE, {"a": [UByte(1), Float(1.5), UUID(int=5)]}),
        section(VALUE, Array([UInt(1), UInt(2)])),
        section(VALUE, Described(Symbol("d"), 1)),
        b"\0\x80\0\0\0\0\0\0\0\x75\xb0\0\0\0\x01x",
        b"\0\x53\x77\x70\0\0\0\x05",
        b"\0\x53\x74\xd1\0\0\0\x0b\0\0\0\x02\xb1\0\0\0\x01a\x41" + X,
        X + section(0x78, {Symbol("x-f"): 1}),
    ],
    ids=lambda octets: octets.hex()[:24],
)
def test_bare_message_passes_in_the_encodings_that_it_came_in(client: Client, octets: bytes) -> None:
    assert payload_of(client, octets).endswith(octets)


@rule("1-0/message/symbolic-section")
def test_section_may_be_named_by_its_symbol(client: Client) -> None:
    octets = b"\0\xa3\x10amqp:data:binary\xa0\x01x"
    assert payload_of(client, octets).endswith(octets)


@rule("1-0/message/unknown-section", "1-0/message/section-type")
@pytest.mark.parametrize(
    "octets", [section(0x79, 1) + X, b"\x41", b"\0\x53\x75\x45", b"\0\x53\x75\xa1\x01x", X + b"\0"]
)
def test_value_that_is_no_section_makes_the_message_unreadable(rabbitmq: Server, octets: bytes) -> None:
    client = rabbitmq.session()
    client.sender().transfer(octets)
    client.expect_detach("amqp:decode-error")


@rule("1-0/message/footer")
def test_footer_passes_with_any_value(client: Client) -> None:
    footer = {Symbol("x-opt-digest"): b"\x01\x02", Symbol("a"): 1}
    assert passed(client, message(b"x", footer=footer))["footer"] == footer


# --- header -------------------------------------------------------------------------------------------------


@rule("1-0/header/own", "1-0/header/empty", "1-0/composite/defaults")
def test_header_of_the_publisher_may_be_empty_and_does_not_count(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    plain = passed(client, message())["header"]
    assert passed(client, c.Header().encode() + message())["header"] == plain
    own = c.Header(first_acquirer=False, delivery_count=UInt(9))
    said = passed(client, message(header=own))["header"]
    assert (said.first_acquirer, said.delivery_count) == (True, 0)


@rule("1-0/header/priority")
def test_queue_with_priorities_delivers_higher_ones_first(server: Server) -> None:
    declared = QueueDeclaration(durable=True, arguments={"x-max-priority": 5})
    server.vhost.queues.declare("p", declared)
    client = server.session()
    sender = client.sender("/queues/p")
    for priority in (1, 5, 3):
        octets = message(b"%d" % priority, header=c.Header(priority=UByte(priority)))
        assert isinstance(sender.publish(octets), c.Accepted)
    receiver = client.receiver("/queues/p", 1, credit=3)
    assert [receiver.take()[1]["data"] for _ in range(3)] == [b"5", b"3", b"1"]


@rule("1-0/header/ttl")
def test_message_expires_after_the_ttl_of_its_header(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    sender.publish(message(b"short", header=c.Header(ttl=UInt(1000))))
    sender.publish(message(b"long", header=c.Header(ttl=UInt(60000))))
    client.after(2)
    assert client.receiver(handle=1, credit=5).take()[1]["data"] == b"long"
    client.expect_nothing()


# --- annotations --------------------------------------------------------------------------------------------


@rule("1-0/annotations/delivery")
def test_delivery_annotations_are_not_passed_on(client: Client) -> None:
    said = passed(client, message(b"x", delivery_annotations={Symbol("x-d"): 1}))
    assert "delivery_annotations" not in said


@rule("1-0/annotations/message", "1-0/annotations/types")
@pytest.mark.parametrize(
    "value",
    [True, UByte(1), Int(-1), 1, 1.5, "text", Symbol("s"), b"\xff", Milliseconds(5), UUID(int=1), [1, ["a"]]],
    ids=lambda value: type(value).__name__,
)
def test_message_annotations_pass_with_their_type(client: Client, value: Any) -> None:
    said = passed(client, message(b"x", annotations={Symbol("x-a"): value}))["annotations"]
    assert (said["x-a"], type(said["x-a"])) == (value, type(value))
    assert (said["x-exchange"], said["x-routing-key"]) == ("", "q")


@rule("1-0/annotations/keys")
@pytest.mark.parametrize("key", [Symbol("a"), Symbol("opt"), ULong(1), Symbol("")])
def test_reserved_key_of_annotations_makes_the_message_unreadable(rabbitmq: Server, key: Any) -> None:
    client = rabbitmq.session()
    client.sender().transfer(message(annotations={key: 1}))
    error = client.expect_detach("amqp:decode-error")
    assert error.description.startswith("failed to parse message: {reserved_annotation_key,")


# --- properties ---------------------------------------------------------------------------------------------


@rule("1-0/properties/message-id")
@pytest.mark.parametrize("value", [ULong(5), ULong(0), UUID(int=6), b"\x01\xff", "text"])
def test_message_and_correlation_id_pass_with_their_type(client: Client, value: Any) -> None:
    said = passed(client, message(properties=c.Properties(message_id=value, correlation_id=value)))
    for found in (said["properties"].message_id, said["properties"].correlation_id):
        assert (found, type(found)) == (value, type(value))


@rule("1-0/properties/every", "1-0/properties/to")
def test_each_property_passes(client: Client) -> None:
    properties = c.Properties(
        message_id="m",
        user_id=b"guest",
        to="/queues/none",
        subject="s",
        reply_to="r",
        correlation_id="c",
        content_type=Symbol("text/plain"),
        content_encoding=Symbol("gzip"),
        absolute_expiry_time=Milliseconds(1_900_000_000_000),
        creation_time=Milliseconds(1_600_000_000_000),
        group_id="g",
        group_sequence=UInt(0xFFFFFFFF),
        reply_to_group_id="rg",
    )
    assert None not in vars(properties).values()
    assert passed(client, message(properties=properties))["properties"] == properties


@rule("1-0/properties/subject")
def test_subject_is_no_routing_key(server: Server) -> None:
    sender = server.session().sender("/exchanges/amq.direct")
    assert isinstance(sender.publish(message(properties=c.Properties(subject="q"))), c.Released)


@pytest.mark.deviates("1-0/properties/absolute-expiry-time")
def test_message_after_its_absolute_expiry_time_is_delivered(client: Client) -> None:
    said = passed(client, message(properties=c.Properties(absolute_expiry_time=Milliseconds(1))))
    assert said["properties"].absolute_expiry_time == 1


@rule("1-0/application-properties/keys")
@pytest.mark.parametrize(
    "value", [None, True, UByte(1), -1, 1.5, "text", Symbol("s"), b"\xff", UUID(int=1), Milliseconds(5)]
)
def test_application_properties_pass_with_their_type(client: Client, value: Any) -> None:
    said = passed(client, message(application={"a b": value}))["application"]
    assert (said["a b"], type(said["a b"])) == (value, type(value))


@pytest.mark.deviates("1-0/application-properties/values")
@pytest.mark.parametrize("value", [[1, "a"], {"b": 1}])
def test_application_property_may_be_a_list_or_a_map(client: Client, value: Any) -> None:
    assert passed(client, message(application={"a": value}))["application"] == {"a": value}


@rule("1-0/application-properties/routing")
def test_headers_exchange_routes_by_application_properties(server: Server) -> None:
    other: Any = server.client()
    other.bind("q", "amq.headers", arguments={"x-match": "all", "a": 1})
    sender = server.session().sender("/exchanges/amq.headers")
    for value, outcome in ((UInt(1), c.Accepted), (UInt(2), c.Released)):
        assert type(sender.publish(message(application={"a": value}))) is outcome


def test_value_in_a_section_is_written_in_its_shortest_encoding() -> None:
    assert section(VALUE, 1) == b"\0\x53\x77" + encode_value(1)
