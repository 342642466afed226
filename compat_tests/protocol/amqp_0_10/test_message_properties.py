"""What a message says of itself: carried as it came, but for what is the broker's to say."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session, Transfer
from compat_tests.tools.matrix import marked_rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, Array, List, Map
from fakeamqp.timestamps import Timestamp

rule = pytest.mark.rule

NOW = 1_700_000_000


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


def carried(session: Session, message: structs.MessageProperties | None = None, **delivery: Any) -> Transfer:
    session.publish(message=message, **delivery).subscribe()
    return session.transfer()


# --- message properties ------------------------------------------------------------------------------


OCTETS_256 = bytes(range(256))
CONTENT_TYPE = rule(
    "0-10/message.message-properties/content-type#type",
    "0-10/message.message-properties/content-type#encoding",
)


@marked_rows(
    "fields",
    (rule("0-10/message.message-properties/content-length"), {"content_length": 4}),
    (rule("0-10/message.message-properties/correlation-id"), {"correlation_id": OCTETS_256}),
    (rule("0-10/message.message-properties/app-id"), {"app_id": OCTETS_256[::-1] * 2}),
    (CONTENT_TYPE, {"content_type": "a/b; c=\xe9", "content_encoding": "gzip"}),
    *(
        (rule("0-10/message.message-properties/reply-to"), {"reply_to": structs.ReplyTo(*address)})
        for address in (("amq.direct", "k"), ("", "k"), (None, "k"), ("amq.fanout", None))
    ),
    ids=str,
)
def test_message_properties_are_delivered_unchanged(session: Session, fields: dict[str, Any]) -> None:
    transfer = carried(session, structs.MessageProperties(**fields))
    assert transfer.body == b"body"
    assert transfer.message == structs.MessageProperties(**fields)


def test_wrong_content_length_is_refused_by_spec_and_delivered_by_default_personality(
    session: Session,
) -> None:
    message = structs.MessageProperties(content_length=5)
    if session.server.is_spec:
        session.fails(x.MessageTransfer(accept_mode=1), 531, header=[message], body=b"body")
    else:
        assert carried(session, message).message.content_length == 5


def test_default_personality_adds_only_exchange_to_delivery_properties(lenient: Server) -> None:
    """Clients count bytes of credit: a key of one byte and a body of eight cost 19."""
    session = lenient.session().declare("q")
    transfer = session.publish(b"12345678").subscribe().transfer()
    assert transfer.structs == (structs.DeliveryProperties(exchange="", routing_key="q"),)
    assert transfer.cost == 19


@rule("0-10/message.message-properties/message-id-unique")
def test_spec_personality_accepts_two_messages_with_equal_message_id(spec: Server) -> None:
    session = spec.session().declare("q")
    message = structs.MessageProperties(message_id=UUID(int=7))
    ids = [session.transfer_id(accept_mode=0, message=message) for _ in range(2)]
    accepts = [session.news(x.MessageAccept) for _ in ids]
    assert [list(each.transfers or ()) for each in accepts] == [[each] for each in ids]
    assert session.query().message_count == 2


@rule("0-10/message.message-properties/message-id-immutable")
def test_message_id_is_unchanged_in_copies_and_redeliveries(session: Session) -> None:
    id_ = UUID("00112233-4455-6677-8899-aabbccddeeff")
    session.declare("copy")
    for queue in ("q", "copy"):
        session.bind(queue, "amq.fanout")
    session.publish(exchange="amq.fanout", message=structs.MessageProperties(message_id=id_))
    first, second = session.subscribe("q", "d").subscribe("copy", "c").transfers()
    again = session.release(first.id, set_redelivered=True).transfer()
    assert again.redelivered
    assert [each.message.message_id for each in (first, second, again)] == [id_] * 3


@rule("0-10/message.message-properties/user-id-authentication")
def test_message_with_user_id_of_another_user_is_refused(session: Session) -> None:
    assert session.publish(message=structs.MessageProperties(user_id=b"guest")).query().message_count == 1
    exception = session.fails(
        x.MessageTransfer(accept_mode=1), 403, header=[structs.MessageProperties(user_id=b"other")], body=b""
    )
    assert "guest" in (exception.description or "")


def test_user_id_accepted_from_its_user_is_refused_from_another_user(server: Server) -> None:
    server.state.access.add(User("ann", "secret", (), {"/": Permission()}))
    message = structs.MessageProperties(user_id=b"ann")
    server.session(b"a", user="ann", password="secret").publish(message=message)
    server.session(b"b").fails(x.MessageTransfer(), 403, header=[message], body=b"")


EVERY_TYPE = Map.of_entries(
    [
        ("boolean", True, CODES["boolean"]),
        ("int8", -8, CODES["int8"]),
        ("uint16", 16, CODES["uint16"]),
        ("uint32", 32, CODES["uint32"]),
        ("uint64", (1 << 64) - 1, CODES["uint64"]),
        ("float", 0.5, CODES["float"]),
        ("double", 0.1, CODES["double"]),
        ("decimal", Decimal("1.25"), CODES["dec32"]),
        ("datetime", Timestamp(NOW), CODES["datetime"]),
        ("uuid", UUID(int=5), CODES["uuid"]),
        ("void", None, CODES["void"]),
        ("str8", "short", CODES["str8"]),
        ("str16", "\xe9\u20ac", CODES["str16"]),
        ("vbin8", b"\0\xff", CODES["vbin8"]),
        ("vbin32", b"octets", CODES["vbin32"]),
        ("list", List([1, "a", None]), CODES["list"]),
        ("array", Array.of("uint8", [1, 2]), CODES["array"]),
        ("map", Map({"nested": Map({"deep": 1})}), CODES["map"]),
    ]
)


@rule("0-10/message.message-properties/application-headers#carried")
@rule("0-10/message.message-properties/application-headers#used")
def test_application_headers_are_delivered_unchanged_and_used_for_routing(session: Session) -> None:
    session.bind("q", "amq.match", "b", arguments={"x-match": "all", "uint16": 16, "str8": "short"})
    message = structs.MessageProperties(application_headers=EVERY_TYPE)
    session.publish(exchange="amq.match", message=message)
    session.publish(
        b"lost", exchange="amq.match", message=structs.MessageProperties(application_headers={"a": 1})
    )
    (transfer,) = session.subscribe().transfers()
    assert transfer.message.application_headers == EVERY_TYPE
    assert transfer.message.encode() == message.encode()


#: Type -> its values as a map has them: code, size where there is one, and octets (0-10, 3.3 and 4.9).
OCTETS = {
    "bin8": ["00 00", "00 ff"],
    "int8": ["01 80", "01 7f"],
    "uint8": ["02 00", "02 ff"],
    "char": ["04 a4"],
    "boolean": ["08 00", "08 07"],
    "bin16": ["10 00 ff"],
    "int16": ["11 80 00", "11 ff fe"],
    "uint16": ["12 ff ff"],
    "bin32": ["20 00 01 fe ff"],
    "int32": ["21 80 00 00 00", "21 ff ff ff ff"],
    "uint32": ["22 ff ff ff ff"],
    "float": ["23 3f c0 00 00"],
    "char-utf32": ["27 00 01 f6 00"],
    "bin64": ["30 00 01 02 03 fc fd fe ff"],
    "int64": ["31 80" + " 00" * 7],
    "uint64": ["32" + " ff" * 8],
    "double": ["33 3f b9 99 99 99 99 99 9a"],
    "datetime": ["38 00 00 00 01 00 00 00 00"],
    "bin128": ["40" + " a5" * 16],
    "uuid": ["48 6b a7 b8 10 9d ad 11 d1 80 b4 00 c0 4f d4 30 c8"],
    "bin256": ["50" + " 00 ff" * 16],
    "bin512": ["60" + " 00 ff" * 32],
    "bin1024": ["70" + " 00 ff" * 64],
    "vbin8": ["80 00", "80 ff" + " 7f" * 255],
    "str8-latin": ["84 02 e9 df"],
    "str8": ["85 00", "85 03 e2 82 ac"],
    "str8-utf16": ["86 02 20 ac"],
    "vbin16": ["90 00 00", "90 ff ff" + " 7f" * 65535],
    "str16-latin": ["94 00 02 e9 df"],
    "str16": ["95 ff ff" + " 41" * 65535],
    "str16-utf16": ["96 00 02 20 ac"],
    "vbin32": ["a0 00 01 11 70" + " 7f" * 70000],
    "map": ["a8 00 00 00 07 00 00 00 01 01 6b f0"],
    "list": ["a9 00 00 00 07 00 00 00 02 f0 02 05"],
    "array": ["aa 00 00 00 09 12 00 00 00 02 00 01 ff ff"],
    "bin40": ["c0 00 01 02 03 ff"],
    "dec32": ["c8 02 ff ff cf c7"],
    "bin72": ["d0 00 01 02 03 04 05 06 07 ff"],
    "dec64": ["d8 03 00 03 44 0d 91 8f b5 ff"],
    "void": ["f0"],
}


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(bytes.fromhex(value), marks=rule(f"0-10/types/{name}"), id=f"{name}-{number}")
        for name, values in OCTETS.items()
        for number, value in enumerate(values)
    ],
)
def test_header_of_each_type_is_delivered_unchanged_and_decoded(session: Session, octets: bytes) -> None:
    """The broker finds the end of the value: it routes by the header behind it."""
    entries = b"\x01v" + octets + b"\x05right\x02\x01"
    headers = struct.pack(">II", 4 + len(entries), 2) + entries
    fields = b"\x04\x03" + b"\x00\x01" + headers  # Message properties that have application headers only.
    properties = struct.pack(">I", len(fields)) + fields
    session.declare("q").bind("q", "amq.match", "b", arguments={"x-match": "all", "right": 1})
    transfer = x.MessageTransfer(destination="amq.match", accept_mode=1)
    session.send(transfer, header=properties, body=b"")
    session.subscribe()
    (header,) = [each.header for each in session.client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert header is not None and properties in header


# --- delivery properties -----------------------------------------------------------------------------
def test_delivery_mode_and_priority_are_delivered_unchanged(session: Session) -> None:
    delivery = carried(session, delivery_mode=2, priority=7).delivery
    assert (delivery.delivery_mode, delivery.priority) == (2, 7)


@rule("0-10/message.delivery-properties/timestamp")
def test_spec_personality_sets_timestamp_to_time_of_arrival(spec: Server) -> None:
    session = spec.session().declare("q").publish()
    session.publish(timestamp=5).after(10).subscribe()
    assert [each.delivery.timestamp for each in session.transfers()] == [NOW, NOW]


@pytest.mark.deviates("0-10/message.delivery-properties/timestamp")
@pytest.mark.deviates("0-10/message.delivery-properties/expiration")
def test_default_personality_delivers_timestamp_and_expiration_unchanged(lenient: Server) -> None:
    session = lenient.session().declare("q")
    delivery = carried(session, timestamp=5, expiration=6, ttl=10_000).delivery
    assert (delivery.timestamp, delivery.expiration) == (5, 6)


@rule("0-10/message.delivery-properties/expiration")
def test_spec_personality_sets_expiration_to_arrival_time_plus_ttl(spec: Server) -> None:
    session = spec.session().declare("q")
    first, second = session.publish(ttl=10_000).publish().after(4).subscribe().transfers()
    assert (first.delivery.timestamp, first.delivery.expiration) == (NOW, NOW + 10)
    assert second.delivery.expiration is None


@rule("0-10/message.delivery-properties/ttl#discarded")
def test_expired_message_is_discarded(server: Server) -> None:
    session = server.session().declare("q")
    session.publish(b"short", ttl=50).publish(b"long", ttl=5000)
    assert session.after(0.2).subscribe().bodies() == [b"long"]


@rule("0-10/message.delivery-properties/ttl#dead-lettered")
def test_expired_message_is_dead_lettered_with_original_expiration_and_without_ttl(server: Server) -> None:
    session = server.session().declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    server.client().declare("old", arguments=arguments)
    (transfer,) = session.publish(key="old", ttl=50).after(0.2).subscribe("dead").transfers()
    assert transfer.delivery.ttl is None
    assert transfer.message.application_headers["x-death"][0]["original-expiration"] == "50"
    stamped = server.state.personality.extension(Amqp010Choices).stamps_arrival
    assert (transfer.delivery.timestamp is not None) is stamped


def test_delivered_ttl_is_remaining_time(server: Server) -> None:
    session = server.session().declare("q").publish(ttl=1000, priority=4, delivery_mode=1)
    (transfer,) = session.after(0.25).subscribe().transfers()
    assert transfer.delivery.ttl == 750
    assert (transfer.delivery.priority, transfer.delivery.delivery_mode) == (4, 1)
    (again,) = session.after(0.25).release(transfer.id, set_redelivered=True).transfers()
    assert again.redelivered
    assert again.delivery.ttl == 500


@pytest.mark.parametrize("ttl", [0, (1 << 64) - 1])
def test_smallest_and_largest_ttl_are_delivered_unchanged(session: Session, ttl: int) -> None:
    assert session.subscribe().publish(ttl=ttl).transfer().delivery.ttl == ttl


@rule("0-10/message.delivery-properties/redelivered-sticky")
def test_message_published_as_redelivered_is_delivered_as_redelivered(session: Session) -> None:
    session.publish(redelivered=True).publish().subscribe()
    assert [each.redelivered for each in session.transfers()] == [True, False]


@rule("0-10/message.delivery-properties/redelivered-implementation")
def test_unaccepted_message_is_delivered_again_as_redelivered(server: Server) -> None:
    session = server.session().declare("q")
    session.publish().subscribe()
    assert [each.redelivered for each in session.transfers()] == [False]
    session.detach()
    again = session.client.session(b"again").subscribe()
    assert [each.redelivered for each in again.transfers()] == [True]
