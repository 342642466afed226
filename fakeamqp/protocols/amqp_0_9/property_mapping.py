"""The conversion between message.transfer and contents of class basic: one table.

The model reads the properties of class basic. A transfer has most of them as fields of its method. A field is
never absent, so an empty text and 0 mean none. A property without a field is carried in a header, and so is a
field without a property. The conversion does not fail: a value that does not fit becomes the nearest one that
does. docs/protocols.md shows the table. `fakeamqp.protocols.amqp_0_10.properties` converts to 0-10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_9.codec.bodies import encode_body
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageTransfer
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties, Properties
from fakeamqp.protocols.base.codec import (
    EXPIRATION_HEADER,
    TYPE_HEADER,
    fits_short_string,
    ttl,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

_EMPTY_TABLE_AND_BODY = 9
"""Bytes of a transfer's last two fields when empty: the length of a table, a kind and a length."""


class PropertyPlace09(NamedTuple):
    """The property, field and header that carry one value."""

    property: str
    """The property of class basic; "" for none."""
    field: str
    """The field of message.transfer; "" for none."""
    header: str
    """The header that replaces the missing field or property; "" for none."""
    says: str
    """A note about the values, for docs/protocols.md."""


_TEXT = "the same text; empty means absent"
_NUMBER = "the same number; 0 means absent"

FIELDS: Final[tuple[PropertyPlace09, ...]] = (
    PropertyPlace09("content_type", "content_type", "", _TEXT),
    PropertyPlace09("content_encoding", "content_encoding", "", _TEXT),
    PropertyPlace09("delivery_mode", "delivery_mode", "", _NUMBER),
    PropertyPlace09("priority", "priority", "", _NUMBER),
    PropertyPlace09("correlation_id", "correlation_id", "", _TEXT),
    PropertyPlace09("reply_to", "reply_to", "", _TEXT),
    PropertyPlace09(
        "expiration", "ttl", EXPIRATION_HEADER, "milliseconds; 0, or text that is not a number, in the header"
    ),
    PropertyPlace09("message_id", "message_id", "", _TEXT),
    PropertyPlace09("timestamp", "timestamp", "", "seconds since 1970; 0 means absent"),
    PropertyPlace09("type", "", TYPE_HEADER, "the text in the header"),
    PropertyPlace09("user_id", "user_id", "", _TEXT),
    PropertyPlace09("app_id", "app_id", "", _TEXT),
    PropertyPlace09(
        "", "transaction_id", "x-amqp-0-9-transaction-id", "the text in the header; empty means absent"
    ),
    PropertyPlace09(
        "", "security_token", "x-amqp-0-9-security-token", "the bytes in the header; empty means absent"
    ),
)
"""The values of message.transfer and class basic."""

_SAME: Final = tuple(
    place for place in FIELDS if place.property and place.field and place.property != "expiration"
)
_OWN: Final = tuple(place for place in FIELDS if not place.property)


class Transferred(NamedTuple):
    """A message as message.transfer carries it: `values` by field, and the headers as an encoded table."""

    values: dict[str, Any]
    table: bytes


def from_transfer(method: MessageTransfer, payload: bytes, grammar: Grammar) -> BasicProperties:
    """The properties of a transfer as those of class basic, which 0-9 and 0-9-1 encode alike.

    `payload` are the bytes of the transfer, decoded with `grammar`: its headers keep their encoding.
    """
    given: dict[str, Any] = {place.property: getattr(method, place.field) or None for place in _SAME}
    if method.ttl:
        given["expiration"] = str(method.ttl)
    headers = method.application_headers
    if headers:
        given["headers"] = headers
        # Headers added later may have tags that the grammar of the specification does not know.
        given["_raw_headers"] = (_table_of(method, payload), grammar.unchecked)
    properties = BasicProperties(**given)
    added = {place.header: getattr(method, place.field) for place in _OWN if getattr(method, place.field)}
    carried = dict(_carried(headers, expires=bool(method.ttl)))
    if added or carried:
        properties = properties.with_headers(added, [place.header for place in carried])
        if not properties.headers:
            properties = properties.replace(headers=None)
        properties = properties.replace(**{place.property: value for place, value in carried.items()})
    return properties


def _carried(headers: dict[str, Any], *, expires: bool) -> Iterator[tuple[PropertyPlace09, str]]:
    """The properties that headers of a transfer carry. Where the field is set, the header stays a header."""
    for place in FIELDS:
        value = headers.get(place.header) if place.property and place.header else None
        if isinstance(value, str) and fits_short_string(value) and not (place.field and expires):
            yield place, value


def _table_of(method: MessageTransfer, payload: bytes) -> bytes:
    """The encoded headers: the bytes between the other fields and the body."""
    behind = len(encode_body(method.body))
    bare = MessageTransfer(**{name: getattr(method, name) for name in _BEFORE_HEADERS})
    return payload[len(bare.encode()) - _EMPTY_TABLE_AND_BODY : len(payload) - behind]


_BEFORE_HEADERS: Final = tuple(
    name for name, _ in MessageTransfer.LAYOUT if name not in ("application_headers", "body")
)


def to_transfer(properties: Any) -> Transferred:
    """The properties of any protocol, `ReadableProperties`, as message.transfer carries them."""
    values: dict[str, Any] = {}
    for place in _SAME:
        value = getattr(properties, place.property)
        if value:
            values[place.field] = value
    headers = properties.headers or {}
    added: dict[str, Any] = {}
    if properties.type is not None:
        added[TYPE_HEADER] = properties.type
    if properties.expiration is not None:
        milliseconds = ttl(properties.expiration)
        if milliseconds:
            values["ttl"] = milliseconds
        else:
            added[EXPIRATION_HEADER] = properties.expiration
    taken = []
    for place in _OWN:
        value = headers.get(place.header)
        if value and _suits(place.field, value):
            values[place.field] = value
            taken.append(place.header)
    if not isinstance(properties, Properties):
        # Properties of another family of protocols have no encoded table.
        properties = BasicProperties(headers=properties.headers)
    return Transferred(values, properties.headers_table(added, taken))


def _suits(field: str, value: object) -> bool:
    if field == "security_token":
        return isinstance(value, bytes)
    return isinstance(value, str) and fits_short_string(value)


def encode_transfer(method: MessageTransfer, table: bytes, body: Body) -> bytes:
    """The payload of a transfer with these headers and this body; those of `method` must be empty."""
    return b"".join((method.encode()[:-_EMPTY_TABLE_AND_BODY], table, encode_body(body)))
