"""What is particular to the methods of 0-9; what they share with those of 0-9-1 is in the tests above."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, Body, decode_body, encode_body
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties as BasicProperties_0_9_1
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED_0_9, RABBITMQ
from fakeamqp.protocols.base.codec import FieldError, FrameError

if sys.version_info >= (3, 11):
    pass
else:
    pass

rule = pytest.mark.rule


@rule("0-9/message.transfer/fields")
def test_transfer_is_encoded_octet_for_octet() -> None:
    transfer = m.MessageTransfer(
        ticket=1,
        destination="d",
        redelivered=True,
        immediate=True,
        ttl=2,
        priority=3,
        timestamp=4,
        delivery_mode=5,
        expiration=6,
        exchange="e",
        routing_key="k",
        message_id="m",
        correlation_id="c",
        reply_to="r",
        content_type="t",
        content_encoding="n",
        user_id="u",
        app_id="a",
        transaction_id="x",
        security_token=b"s",
        application_headers={"h": None},
        body=Body(b"ref", by_reference=True),
    )
    octets = bytes.fromhex(
        "0078000a 0001 0164 03 0000000000000002 03 0000000000000004 05 0000000000000006"
        "0165 016b 016d 0163 0172 0174 016e 0175 0161 0178 00000001 73 00000003 016856 01 00000003 726566"
    )
    assert len(m.MessageTransfer.LAYOUT) == 22
    assert transfer.encode() == octets
    assert m.MessageTransfer.decode(octets, PUBLISHED_0_9) == transfer


@rule("0-9/types/content-union")
@given(st.binary(max_size=40), st.booleans(), st.binary(max_size=5))
def test_a_body_is_inline_or_a_reference(octets: bytes, by_reference: bool, before: bytes) -> None:
    body = Body(octets, by_reference)
    written = encode_body(body)
    assert written == bytes((by_reference,)) + len(octets).to_bytes(4, "big") + octets
    assert decode_body(before + written + b"rest", len(before)) == (body, len(before + written))


@rule("0-9/types/content-union")
def test_a_body_of_another_kind_is_a_syntax_error_that_names_the_field() -> None:
    octets = m.MessageTransfer(body=Body(b"x")).encode()
    assert octets[-6:] == b"\0\0\0\0\1x"
    for kind in (2, 255):
        with pytest.raises(FieldError, match=r"^message.transfer, field body: .*not " + str(kind)):
            m.MessageTransfer.decode(octets[:-6] + bytes((kind,)) + octets[-5:], RABBITMQ)
    with pytest.raises(FrameError, match=r"^message.transfer, field body: .*cut short"):
        m.MessageTransfer.decode(octets[:-6] + b"\0\xff\xff\xff\xffx", RABBITMQ)


def test_transfer_without_a_body_argument_has_an_empty_inline_body() -> None:
    assert m.MessageTransfer().body is NO_BODY
    assert Body(b"", by_reference=False) == NO_BODY


def test_basic_properties_of_0_9_are_those_of_0_9_1() -> None:
    assert PROPERTIES[60] is BasicProperties_0_9_1


@rule("0-9/content/flags-continuation")
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=lambda kind: kind.NAME)
def test_property_flags_continue_while_their_last_bit_is_set(properties: type) -> None:
    value = properties(headers={"a": None})
    flags, values = value.encode()[:2], value.encode()[2:]
    more = bytes((flags[0], flags[1] | 1))
    assert properties.decode(more + b"\0\1\0\0" + values, 0, RABBITMQ) == value
    for cut in (1, 2, 3, 4, 5):
        with pytest.raises(FrameError, match=f"^{properties.NAME}"):
            properties.decode((more + b"\0\1\0\0")[:cut], 0, RABBITMQ)
    with pytest.raises(FieldError, match="does not exist"):
        properties.decode(more + b"\x80\0" + values, 0, RABBITMQ)


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=lambda kind: kind.NAME)
def test_property_flags_are_in_the_order_of_the_properties(properties: type) -> None:
    values = {"octet": 7, "shortstr": "x", "table": {"a": None}, "timestamp": 9}
    for bit, (name, kind) in enumerate(properties.LAYOUT):
        octets = properties(**{name: values[kind]}).encode()
        assert int.from_bytes(octets[:2], "big") == 0x8000 >> bit
        assert getattr(properties.decode(octets, 0, RABBITMQ), name) == values[kind]


@rule("0-9/types/max-shortstr")
def test_a_short_string_has_255_octets_at_most() -> None:
    assert m.DtxStart("x" * 255).encode()[4] == 255
    with pytest.raises(FieldError, match=r"^dtx.start, field dtx_identifier"):
        m.DtxStart("x" * 256).encode()
