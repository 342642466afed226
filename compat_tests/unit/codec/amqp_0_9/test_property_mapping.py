"""Messages that cross from message.transfer to contents of class basic, to 0-10, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.strategies import short_texts, tables
from fakeamqp.model.messages.message import PlainProperties
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties as BasicProperties09
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageTransfer
from fakeamqp.protocols.amqp_0_9.property_mapping import FIELDS, encode_transfer, from_transfer, to_transfer
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.amqp_0_10.properties import EXPIRATION_HEADER, TYPE_HEADER, TransferProperties
from fakeamqp.protocols.base.codec import FieldError

TRANSACTION_ID = "x-amqp-0-9-transaction-id"
SECURITY_TOKEN = "x-amqp-0-9-security-token"
BODY = Body(b"body")
FULL = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c",
    "reply_to": "answers",
    "message_id": "m-1",
    "timestamp": 1_600_000_000,
    "user_id": "guest",
    "app_id": "app",
}
NUMBERS = {"ttl": (1 << 64) - 1, "priority": 255, "timestamp": (1 << 64) - 1, "delivery_mode": 255}


def read(method: MessageTransfer) -> BasicProperties:
    """What class basic has of a transfer that came."""
    octets = method.encode()
    return from_transfer(MessageTransfer.decode(octets, RABBITMQ), octets, RABBITMQ)


def written(properties: Any, body: Body = BODY) -> MessageTransfer:
    """The transfer that goes out for these properties, read from its bytes."""
    values, table = to_transfer(properties)
    return MessageTransfer.decode(encode_transfer(MessageTransfer(**values), table, body), RABBITMQ)


@st.composite
def transfers(draw: st.DrawFn) -> MessageTransfer:
    """Transfers with what a publisher may say of its message."""
    texts = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id")
    texts += ("user_id", "app_id", "transaction_id")
    values: dict[str, Any] = {name: draw(short_texts()) for name in texts}
    values |= {name: draw(st.integers(0, most)) for name, most in NUMBERS.items()}
    values["security_token"] = draw(st.binary(max_size=50))
    values["application_headers"] = draw(tables())
    return MessageTransfer(**values)


# --- from a transfer -----------------------------------------------------------------------------------


def test_fields_of_a_transfer_become_basic_properties() -> None:
    assert read(MessageTransfer(**FULL, ttl=5000, application_headers={"n": 1})) == BasicProperties(
        **FULL, expiration="5000", headers={"n": 1}
    )


def test_empty_and_zero_fields_of_a_transfer_are_absent_properties() -> None:
    assert read(MessageTransfer()) == BasicProperties()


def test_transaction_id_and_security_token_of_a_transfer_become_headers() -> None:
    properties = read(
        MessageTransfer(transaction_id="t", security_token=b"\0s", application_headers={"n": 1})
    )
    assert properties.headers == {"n": 1, TRANSACTION_ID: "t", SECURITY_TOKEN: b"\0s"}


def test_type_and_expiration_headers_of_a_transfer_become_properties() -> None:
    properties = read(
        MessageTransfer(application_headers={TYPE_HEADER: "t", EXPIRATION_HEADER: "soon", "n": 1})
    )
    assert (properties.type, properties.expiration, properties.headers) == ("t", "soon", {"n": 1})
    assert read(MessageTransfer(application_headers={TYPE_HEADER: "t"})) == BasicProperties(type="t")


def test_expiration_header_beside_a_ttl_and_numeric_type_header_stay_headers() -> None:
    properties = read(MessageTransfer(ttl=1, application_headers={EXPIRATION_HEADER: "2", TYPE_HEADER: 3}))
    assert (properties.type, properties.expiration) == (None, "1")
    assert properties.headers == {EXPIRATION_HEADER: "2", TYPE_HEADER: 3}


def test_headers_of_a_transfer_keep_their_received_octets() -> None:
    tagged = b"\x01bb\x05\x01uu\x00\x07\x01ll\0\0\0\0\0\0\0\x09"
    table = len(tagged).to_bytes(4, "big") + tagged
    octets = encode_transfer(MessageTransfer(ttl=5, security_token=b"s"), table, Body(b"\0\0"))
    method = MessageTransfer.decode(octets, RABBITMQ)
    properties = from_transfer(method, octets, RABBITMQ)
    assert properties.header_tag("b") == "b" and properties.header_tag("u") == "u"
    assert to_transfer(properties).table == table
    assert written(properties).application_headers == method.application_headers


# --- to a transfer -------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [BasicProperties, BasicProperties09, PlainProperties])
def test_basic_and_plain_properties_become_fields_of_a_transfer(made: Any) -> None:
    method = written(made(**FULL, expiration="5000", headers={"n": 1}))
    assert method == MessageTransfer(**FULL, ttl=5000, application_headers={"n": 1}, body=BODY)


def test_properties_of_0_10_become_fields_of_a_transfer() -> None:
    came = TransferProperties.of(BasicProperties(**FULL, expiration="5000", headers={"n": 1}))
    method = written(TransferProperties.decode(came.encode()))
    assert method == MessageTransfer(**FULL, ttl=5000, application_headers={"n": 1}, body=BODY)


def test_type_and_textual_expiration_become_headers_of_a_transfer() -> None:
    assert written(BasicProperties(type="t", expiration="soon")).application_headers == {
        TYPE_HEADER: "t",
        EXPIRATION_HEADER: "soon",
    }


@pytest.mark.parametrize("expiration", ["0", "007", "-1", str(1 << 64)])
def test_expiration_without_an_equal_ttl_becomes_a_header(expiration: str) -> None:
    method = written(BasicProperties(expiration=expiration))
    assert (method.ttl, method.application_headers) == (0, {EXPIRATION_HEADER: expiration})


def test_transaction_id_and_security_token_headers_become_fields_of_a_transfer() -> None:
    method = written(BasicProperties(headers={TRANSACTION_ID: "t", SECURITY_TOKEN: b"s", "n": 1}))
    assert (method.transaction_id, method.security_token) == ("t", b"s")
    assert method.application_headers == {"n": 1}
    odd = {TRANSACTION_ID: "t" * 256, SECURITY_TOKEN: "text"}
    assert written(BasicProperties(headers=odd)).application_headers == odd


def test_headers_are_carried_between_classes_under_the_published_grammar() -> None:
    octets = MessageTransfer(security_token=b"s", application_headers={"n": 1}).encode()
    properties = from_transfer(MessageTransfer.decode(octets, PUBLISHED), octets, PUBLISHED)
    assert properties.headers == {"n": 1, SECURITY_TOKEN: b"s"}
    content = BasicProperties(expiration="soon", headers={"n": 1}).encode()
    properties = BasicProperties.decode(content, 0, PUBLISHED)
    assert written(properties).application_headers == {"n": 1, EXPIRATION_HEADER: "soon"}


def test_body_by_reference_stays_by_reference_in_a_transfer() -> None:
    assert written(BasicProperties(), Body(b"r", by_reference=True)).body == Body(b"r", by_reference=True)


def test_priority_out_of_range_is_a_field_error() -> None:
    with pytest.raises(FieldError, match="priority"):
        encode_transfer(MessageTransfer(priority=256), b"\0\0\0\0", Body())


# --- there and back ------------------------------------------------------------------------------------


@given(transfers())
@examples(300)
def test_transfer_survives_conversion_to_basic_properties_and_back(method: MessageTransfer) -> None:
    assert written(read(method), Body()) == method


@given(transfers())
@examples(100)
def test_transfer_survives_encoded_basic_properties_and_back(method: MessageTransfer) -> None:
    octets = read(method).encode()
    assert written(BasicProperties.decode(octets, 0, RABBITMQ), Body()) == method


@given(st.data())
@examples(300)
def test_basic_properties_survive_conversion_to_a_transfer_and_back(data: st.DataObject) -> None:
    names = [place.property for place in FIELDS if place.property]
    texts = [name for name in names if name not in NUMBERS]
    values: dict[str, Any] = {name: data.draw(st.none() | short_texts().filter(bool)) for name in texts}
    values |= {
        name: data.draw(st.none() | st.integers(1, most)) for name, most in NUMBERS.items() if name in names
    }
    properties = BasicProperties(**values, headers=data.draw(tables()) or None)
    assert read(written(properties)) == properties


def test_every_property_and_every_transfer_field_is_mapped() -> None:
    properties = {name for name, _ in BasicProperties.LAYOUT} - {"headers", "cluster_id"}
    assert {place.property for place in FIELDS if place.property} == properties
    routing = {"ticket", "destination", "redelivered", "immediate", "expiration", "exchange", "routing_key"}
    others = {name for name, _ in MessageTransfer.LAYOUT} - routing - {"application_headers", "body"}
    assert {place.field for place in FIELDS if place.field} == others
