"""Header segments as properties: what is kept of their bytes, and how they change."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import records
from fakeamqp.model.messages.message import PlainProperties, ReadableProperties
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    DeliveryProperties,
    FileProperties,
    FragmentProperties,
    MessageProperties,
    StreamProperties,
    UnknownStruct,
)
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, Map
from fakeamqp.protocols.amqp_0_10.properties import (
    FILE_ENCODING,
    MESSAGE_ID_HEADER,
    STREAM_ENCODING,
    TYPE_HEADER,
    ContentProperties,
    FileContentProperties,
    TransferProperties,
)

rule = pytest.mark.rule

DELIVERY = DeliveryProperties(priority=5, delivery_mode=2, ttl=100, routing_key="k")
HEADERS = Map.of_entries(
    [("a", 1, CODES["int8"]), ("b", "x", CODES["str8-latin"]), ("c", 2, CODES["uint16"])]
)
MESSAGE = MessageProperties(content_type="t", application_headers=HEADERS)
FRAGMENT = FragmentProperties(first=True, fragment_size=9)
STRANGE = UnknownStruct(0x6301, b"\0\0")


def read(*structs: object) -> TransferProperties:
    return TransferProperties.decode(b"".join(struct.encode() for struct in structs))


def uses(properties: ReadableProperties) -> list[object]:
    """That the model can use them is for the type checker to say; that they answer is said here."""
    return [properties.content_type, properties.headers, properties.header_tag("a")]


@rule("0-10/message.message-properties/application-headers#carried")
def test_all_but_delivery_properties_keep_their_octets() -> None:
    four = (STRANGE, FRAGMENT, DELIVERY, MESSAGE)
    for structs in ((DELIVERY, MESSAGE), (MESSAGE, DELIVERY), four, (MESSAGE,)):
        found = read(*structs)
        rest = b"".join(struct.encode() for struct in structs if struct is not DELIVERY)
        assert found.rest_bytes == rest
        assert found.message == MESSAGE
    assert found.delivery is None
    found = read(*four)
    assert (found.delivery, found.fragment, found.others) == (DELIVERY, FRAGMENT, (STRANGE,))
    assert found.encode() == DELIVERY.encode() + found.rest_bytes
    assert read(DELIVERY).rest_bytes == b""


@rule("0-10/message.fragment-properties/first-last-default")
def test_a_transfer_without_fragment_properties_is_a_whole_message() -> None:
    assert read(DELIVERY).fragment is None
    found = read(FRAGMENT).fragment
    assert found is not None and (found.first, found.last) == (True, False)


def test_properties_of_a_transfer_are_those_of_its_header_structs() -> None:
    found = read(DELIVERY, MESSAGE)
    assert uses(found) == ["t", {"a": 1, "b": "x", "c": 2}, "b"]
    assert (found.priority, found.delivery_mode, found.expiration) == (5, 2, "100")
    assert found.headers is found.headers
    assert repr(found) == (
        "TransferProperties(headers={'a': 1, 'b': 'x', 'c': 2}, content_type='t', delivery_mode=2, "
        "priority=5, expiration='100')"
    )


def test_with_headers_keeps_the_types_of_unchanged_headers() -> None:
    found = read(DELIVERY, MESSAGE)
    changed = found.with_headers({"a": 300, "z": [1]}, ["b"])
    octets = changed.message.application_headers.octets
    assert octets[8:].startswith(b"\x01a\x31" + bytes(6) + b"\x01\x2c" + b"\x01c\x12\0\x02" + b"\x01z\xa9")
    assert changed.headers == {"a": 300, "c": 2, "z": [1]}
    assert TransferProperties.decode(changed.encode()) == changed
    assert found.headers == {"a": 1, "b": "x", "c": 2} and found.rest_bytes == MESSAGE.encode()
    assert changed.delivery == DELIVERY and changed.message.content_type == "t"
    ordered = found.with_headers({"B": 1, "aa": 2}, ordered=True)
    assert list(ordered.headers) == ["B", "a", "aa", "b", "c"]
    assert found.with_headers({}, ["nothing"]).headers == found.headers


def test_with_headers_adds_and_removes_headers() -> None:
    empty = TransferProperties.decode(b"")
    assert empty.with_headers({}) == empty and empty.with_headers({}, ["x"]).message is None
    made = empty.with_headers({"n": None})
    assert (
        made.headers == {"n": None}
        and made.encode() == MessageProperties(application_headers={"n": None}).encode()
    )
    assert made.with_headers({}, ["n"]).headers == {}
    assert read(MessageProperties(content_type="t")).with_headers({"n": 1}).content_type == "t"


def test_replace_changes_the_fields_and_headers_of_the_given_properties() -> None:
    found = read(DELIVERY, MESSAGE)
    changed = found.replace(
        expiration=None, priority=3, reply_to="q", type="order", message_id="m", headers={"n": 1}
    )
    assert changed.delivery == DeliveryProperties(priority=3, delivery_mode=2, routing_key="k")
    assert changed.message.application_headers == {"n": 1, MESSAGE_ID_HEADER: "m", TYPE_HEADER: "order"}
    assert (changed.reply_to, changed.type, changed.message_id, changed.headers) == (
        "q",
        "order",
        "m",
        {"n": 1},
    )
    assert TransferProperties.decode(changed.encode()) == changed
    back = changed.replace(type=None, message_id=None, reply_to=None, headers=None)
    assert back.message == MessageProperties(content_type="t")
    assert found.delivery == DELIVERY and found.message == MESSAGE
    assert found.replace(expiration=None).rest_bytes == MESSAGE.encode()
    kept = changed.replace(headers={"other": 2})
    assert kept.message.application_headers == {"other": 2, MESSAGE_ID_HEADER: "m", TYPE_HEADER: "order"}
    assert changed.replace(headers=None).headers is None and changed.replace(headers=None).type == "order"
    assert found.replace() == found and found.replace(expiration=None, user_id=None).message == MESSAGE
    with pytest.raises(SegmentError, match="no property 'expires'"):
        found.replace(expires="1")


@pytest.mark.parametrize("encoding", [FILE_ENCODING, STREAM_ENCODING])
def test_file_and_stream_contents_are_decoded_and_can_be_changed(encoding: str) -> None:
    kind = FileProperties if encoding == FILE_ENCODING else StreamProperties
    octets = kind(content_type="t", headers={"n": 1}, priority=3).encode() + STRANGE.encode()
    found = ContentProperties.decode(encoding, octets)
    assert found.encode() == octets and found.others == (STRANGE,)
    assert uses(found)[:2] == ["t", {"n": 1}]
    assert (found.priority, found.correlation_id) == (3, None)
    assert found.delivery_mode == (2 if encoding == FILE_ENCODING else None)
    changed = found.with_headers({"m": 2}).replace(priority=None, delivery_mode=1)
    assert changed.headers == {"n": 1, "m": 2} and changed.priority is None
    assert ContentProperties.of(encoding, found) is found
    nothing = ContentProperties.of(encoding, PlainProperties())
    assert nothing.encode() == kind().encode()


@pytest.mark.parametrize("octets", [None, b"", StreamProperties().encode(), STRANGE.encode()])
def test_a_content_must_hold_the_properties_of_its_class(octets: bytes | None) -> None:
    with pytest.raises(SegmentError, match="does not hold its properties"):
        ContentProperties.decode(FILE_ENCODING, octets)


def test_file_properties_take_message_id_and_reply_to_of_plain_properties() -> None:
    made = ContentProperties.of(FILE_ENCODING, PlainProperties(message_id="m", reply_to="r"))
    assert isinstance(made, FileContentProperties)
    assert made.content == FileProperties(message_id="m", reply_to="r")


def test_properties_of_0_10_are_used_without_a_copy() -> None:
    found = read(DELIVERY)
    assert TransferProperties.of(found) is found


def test_properties_with_equal_structs_in_another_order_are_equal() -> None:
    assert read(DELIVERY, MESSAGE) == read(MESSAGE, DELIVERY)
    assert read(DELIVERY) != read(DELIVERY, MESSAGE)
    assert read(DELIVERY) != DELIVERY
    with pytest.raises(TypeError):
        hash(read())


def test_header_segment_with_a_duplicate_struct_is_refused() -> None:
    with pytest.raises(IllegalValue, match="0x0401 twice"):
        read(DELIVERY, DELIVERY)


@examples(200)
@given(records(DeliveryProperties), records(MessageProperties), st.integers(0, 400), st.integers(0, 255))
def test_damaged_headers_give_properties_or_a_segment_error(
    delivery: DeliveryProperties, message: MessageProperties, place: int, octet: int
) -> None:
    octets = bytearray(delivery.encode() + message.encode())
    octets[place % len(octets)] = octet
    try:
        found = TransferProperties.decode(bytes(octets))
    except SegmentError:
        return
    repr(found)
    found.with_headers({"x": 1}).encode()
    found.replace(message_id="m", expiration=None).encode()
