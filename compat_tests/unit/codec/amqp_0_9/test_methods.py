"""What is particular to the methods of 0-9; what they share with those of 0-9-1 is in the tests above."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9.codec import methods as m, methods as m09
from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, Body, decode_body, encode_body
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES
from fakeamqp.protocols.amqp_0_9.codec.methods import ADDED, RABBITMQ_METHODS
from fakeamqp.protocols.amqp_0_9.method_names import METHOD_NAMES
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties as BasicProperties_0_9_1, methods as m091
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


# --- the methods of 0-9 in RabbitMQ: those of 0-9, and what the facts about 0-9-1 add to them ----------


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC = Path(__file__).resolve().parents[4] / "spec"
BOTH = sorted(m09.METHODS.keys() & m091.METHODS.keys())


def facts(name: str) -> dict[int, dict[str, Any]]:
    """The methods of a protocol as its facts tell them, by index."""
    spec = tomllib.loads((SPEC / name).read_text(encoding="utf-8"))
    return {each["id"] << 16 | method["id"]: method for each in spec["classes"] for method in each["methods"]}


def test_added_methods_are_exactly_those_of_0_9_1_missing_in_0_9() -> None:
    of_0_9, of_0_9_1 = facts("amqp-0-9.toml"), facts("amqp-0-9-1.toml")
    assert ADDED.keys() == of_0_9_1.keys() - of_0_9.keys()
    of_the_document = {index for index in ADDED if of_0_9_1[index].get("extension") != "rabbitmq"}
    assert {ADDED[index].NAME for index in of_the_document} == {"basic.recover", "basic.recover-ok"}


def test_no_method_of_0_9_is_replaced() -> None:
    assert RABBITMQ_METHODS == {**m09.METHODS, **ADDED}
    assert RABBITMQ_METHODS.keys() == m09.METHODS.keys() | m091.METHODS.keys()


@pytest.mark.parametrize("index", BOTH, ids=lambda index: m09.METHODS[index].NAME)
def test_methods_of_both_protocols_have_the_same_layout(index: int) -> None:
    """So it does not matter which of them reads it."""
    one, other = m09.METHODS[index], m091.METHODS[index]
    assert [kind for _, kind in one.LAYOUT] == [kind for _, kind in other.LAYOUT]
    assert one.HAS_CONTENT == other.HAS_CONTENT


def test_only_basic_recover_has_another_name_in_0_9_1() -> None:
    differing = {m09.METHODS[index].NAME: m091.METHODS[index].NAME for index in BOTH}
    assert {one: other for one, other in differing.items() if one != other} == {
        "basic.recover": "basic.recover-async"
    }


def test_method_names_equal_the_kinds_of_the_0_9_dialect() -> None:
    assert tuple(dialect_named("0-9").kinds) == METHOD_NAMES
