"""How a message crosses from AMQP 0-10 to 0-9-1 and 0-9, and back: one table for properties, one for values.

The model, and whatever else reads properties, knows those of 0-9-x. Each of them has a `Place` in the structs
of 0-10, or else a header that it travels in. Nothing here fails: what cannot be carried becomes the nearest
that can. docs/protocols.md shows both tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.structs import ReplyTo
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, MAX_DEPTH, Map
from fakeamqp.protocols.amqp_0_10.codec.writing import code_of, encode_value
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.codec.timestamps import Timestamp

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "EXPIRATION_HEADER",
    "FILE",
    "STREAM",
    "TAGS",
    "TRANSFER",
    "TYPE_HEADER",
    "Place",
    "application_headers",
    "fits_short_string",
    "plain_headers",
    "plain_value",
    "reply_text",
    "reply_to",
    "ttl",
]

#: The header that carries the property `type`: the name that Qpid Broker-J gives it when it converts.
TYPE_HEADER: Final = "x-jms-type"
#: Headers that carry what does not fit the field of 0-10.
MESSAGE_ID_HEADER: Final = "x-amqp-0-9-1.message-id"
EXPIRATION_HEADER: Final = "x-amqp-0-9-1.expiration"

_LONGEST = 255
_LONGEST_STR16 = 0xFFFF
_DIRECT_REPLY = "amq.rabbitmq.reply-to."
_HIGHEST_PRIORITY = 9
_PERSISTENT = 2

# --- properties --------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where 0-10 has a property of 0-9-x, and how its values change."""

    role: str
    """Which struct: "delivery" (delivery-properties), "message" (message-properties), "content" (file- or
    stream-properties); "" for none."""
    field: str
    """Its field in that struct; "" for none."""
    read: Callable[[Any], Any]
    """From 0-10; None where 0-9-x cannot carry it."""
    write: Callable[[Any], Any]
    """To 0-10; None where the field cannot carry it."""
    header: str
    """The header that it travels in where the field cannot carry it; "" for none."""
    says: str
    """About the values, for the page."""


def _same(value: Any) -> Any:
    return value


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _short_text(octets: bytes) -> str:
    return _text(octets[:_LONGEST])


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def ttl(expiration: str) -> int | None:
    """Milliseconds, where the text is what they are written as."""
    if not (expiration.isascii() and expiration.isdigit()) or len(expiration) > 20:
        return None
    number = int(expiration)
    return number if str(number) == expiration and number < 1 << 64 else None


def _uuid(text: str) -> UUID | None:
    """The UUID, where the text is what it is written as."""
    if len(text) != 36 or text[8] != "-":
        return None
    from uuid import UUID

    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def _delivery_mode(mode: int) -> int:
    return _PERSISTENT if mode == _PERSISTENT else 1


def _priority(priority: int) -> int:
    return min(max(priority, 0), _HIGHEST_PRIORITY)


def _seconds(timestamp: int) -> int | None:
    return int(timestamp) if 0 <= timestamp < 1 << 64 else None


def _cut(text: str) -> str:
    """As much of a text as fits 255 bytes."""
    octets = _octets(text)
    return text if len(octets) <= _LONGEST else _text(octets[:_LONGEST])


def reply_text(address: ReplyTo) -> str:
    """The text of an address: "routing-key", or "exchange/routing-key"; see `reply_to`."""
    key = address.routing_key or ""
    if address.exchange:
        return f"{_escaped(address.exchange)}/{key}"
    return key if _address(key) is None else "/" + key


def reply_to(text: str) -> ReplyTo:
    """The address of a text: what stands before the first slash is the exchange, else it is the default one.

    A slash in the name of an exchange is %2F, and a % before 2F or 25 is %25. A key of the default exchange
    that would be taken for an address has a slash in front. A text that no address is written as is a routing
    key, and so is a name that direct reply-to gave; every text comes back as it was.
    """
    return _address(text) or ReplyTo(routing_key=text)


def _address(text: str) -> ReplyTo | None:
    exchange, slash, key = text.lstrip("/").partition("/")
    if not slash or text.startswith(_DIRECT_REPLY):
        return None
    name = exchange.replace("%2F", "/").replace("%25", "%") if "%" in exchange else exchange
    if _escaped(name) != exchange:
        return None
    return ReplyTo(routing_key=text[1:]) if text.startswith("/") else ReplyTo(name, key)


def _escaped(exchange: str) -> str:
    if "%" in exchange:
        exchange = exchange.replace("%25", "%2525").replace("%2F", "%252F")
    return exchange.replace("/", "%2F")


def _always(value: object) -> Callable[[Any], Any]:
    return lambda _: value


def _header_only(header: str, says: str) -> Place:
    return Place("", "", _same, _always(None), header, says)


#: message-properties and delivery-properties of message.transfer
TRANSFER: Final[Mapping[str, Place]] = {
    "content_type": Place("message", "content_type", _same, _cut, "", "the same text"),
    "content_encoding": Place("message", "content_encoding", _same, _cut, "", "the same text"),
    "delivery_mode": Place(
        "delivery", "delivery_mode", _same, _delivery_mode, "", "2 is persistent, everything else becomes 1"
    ),
    "priority": Place("delivery", "priority", _same, _priority, "", "to 0-10: what is above 9 becomes 9"),
    "correlation_id": Place(
        "message", "correlation_id", _short_text, _octets, "", "the same bytes; from 0-10 the first 255"
    ),
    "reply_to": Place(
        "message",
        "reply_to",
        lambda address: _cut(reply_text(address)),
        lambda text: reply_to(_cut(text)),
        "",
        "`routing-key` for the default exchange, else `exchange/routing-key`",
    ),
    "expiration": Place(
        "delivery",
        "ttl",
        str,
        ttl,
        EXPIRATION_HEADER,
        "milliseconds; a text that is no number in the header",
    ),
    "message_id": Place(
        "message", "message_id", str, _uuid, MESSAGE_ID_HEADER, "a UUID; any other text in the header"
    ),
    "timestamp": Place("delivery", "timestamp", _same, _seconds, "", "seconds since 1970"),
    "type": _header_only(TYPE_HEADER, "the text in the header"),
    "user_id": Place(
        "message", "user_id", _short_text, _octets, "", "the same bytes; from 0-10 the first 255"
    ),
    "app_id": Place("message", "app_id", _short_text, _octets, "", "the same bytes; from 0-10 the first 255"),
}

_CONTENT = {
    "content_type": Place("content", "content_type", _same, _cut, "", "the same text"),
    "content_encoding": Place("content", "content_encoding", _same, _cut, "", "the same text"),
    "priority": Place("content", "priority", _same, _same, "", "the same number"),
    "timestamp": Place("content", "timestamp", _same, _seconds, "", "seconds since 1970"),
    "type": _header_only(TYPE_HEADER, "the text in the header"),
    "expiration": _header_only(EXPIRATION_HEADER, "the text in the header"),
    "correlation_id": _header_only("x-amqp-0-9-1.correlation-id", "the text in the header"),
    "user_id": _header_only("x-amqp-0-9-1.user-id", "the text in the header"),
    "app_id": _header_only("x-amqp-0-9-1.app-id", "the text in the header"),
}

#: file-properties
FILE: Final[Mapping[str, Place]] = {
    **_CONTENT,
    "reply_to": Place("content", "reply_to", _same, _cut, "", "the same text"),
    "message_id": Place("content", "message_id", _same, _cut, "", "the same text"),
}
#: stream-properties
STREAM: Final[Mapping[str, Place]] = {
    **_CONTENT,
    "reply_to": _header_only("x-amqp-0-9-1.reply-to", "the text in the header"),
    "message_id": _header_only(MESSAGE_ID_HEADER, "the text in the header"),
}

# --- values of headers -------------------------------------------------------------------------------------

_LONGS = range(-(1 << 63), 1 << 63)
_WIDEST = range(-(1 << 63), 1 << 64)

#: type of 0-10 -> the tag that a field table of 0-9-x has for its values
TAGS: Final[Mapping[str, str]] = {
    "boolean": "t",
    "bit": "t",
    "int8": "b",
    "uint8": "B",
    "int16": "s",
    "uint16": "u",
    "int32": "I",
    "uint32": "i",
    "int64": "l",
    "uint64": "l",
    "float": "f",
    "double": "d",
    "dec32": "D",
    "dec64": "D",
    "datetime": "T",
    "void": "V",
    "map": "F",
    "list": "A",
    "array": "A",
    "uuid": "S",
    **dict.fromkeys(("char", "char-utf32", "str8", "str8-latin", "str8-utf16"), "S"),
    **dict.fromkeys(("str16", "str16-latin", "str16-utf16"), "S"),
    **dict.fromkeys([name for name in CODES if name.lstrip("v").startswith("bin")], "x"),
    "struct32": "x",
}
_TAG_OF_CODE = {CODES[name]: tag for name, tag in TAGS.items()}

#: tag of 0-9-x -> code of 0-10; where a tag is not listed the value says it
_CODE_OF_TAG = {
    "b": CODES["int8"],
    "B": CODES["uint8"],
    "s": CODES["int16"],
    "U": CODES["int16"],
    "u": CODES["uint16"],
    "I": CODES["int32"],
    "i": CODES["uint32"],
    "f": CODES["float"],
}


def plain_headers(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Application headers as the model has them: see `plain_value`."""
    return {name: plain_value(value) for name, value in fields.items()}


def plain_value(value: Any) -> Any:
    """A value of 0-10 as 0-9-x can carry it: a uuid or too large a number as text, a struct as bytes."""
    if value is None or isinstance(value, (bool, float, bytes, Timestamp)):
        return value
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, int):
        return value if int(value) in _LONGS else str(value)
    if isinstance(value, Mapping):
        return plain_headers(value)
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, Decimal):
        return value if _fits_decimal(value) else str(value)
    if hasattr(value, "encode"):
        return value.encode()
    return str(value)


def fits_short_string(text: str) -> bool:
    """Whether a short string can hold a text."""
    try:
        return len(_octets(text)) <= _LONGEST
    except UnicodeEncodeError:
        return False


def _fits_decimal(value: Decimal) -> bool:
    """Whether it has a mantissa of 32 bits, with or without a sign, and at most 255 places."""
    _, digits, places = value.as_tuple()
    if not isinstance(places, int) or not -255 <= places <= 0:
        return False
    mantissa = int("".join(map(str, digits)))
    return mantissa <= 1 << 31 if value.is_signed() else mantissa < 1 << 32


def _sound(text: str) -> str:
    """The text, with lone surrogates that stand for no byte (UTF-16 has them) as bytes."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _text(text.encode("utf-8", "surrogatepass"))
    return text


def application_headers(
    headers: Mapping[str, Any], tag: Callable[[str], str | None], extra: Mapping[str, str]
) -> Map:
    """Headers of 0-9-x as a map; `tag` knows their tags, and `extra` come behind them."""
    entries = []
    for name, value in headers.items():
        if name not in extra:
            entries.append(_entry(name, value, _CODE_OF_TAG.get(tag(name) or "")))
    entries += [_entry(name, value, None) for name, value in extra.items()]
    return Map.of_entries(entries)


def _entry(name: str, value: Any, code: int | None) -> tuple[str, Any, int]:
    value = carried(value, 1)
    if code is not None:
        try:
            encode_value(value, code)
        except WireError:
            code = None
    return _cut(str(name)), value, code_of(value) if code is None else code


def carried(value: Any, depth: int = 0) -> Any:
    """A value as a map of 0-10 can carry it; below the deepest level that it can have, void."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        value = _sound(value)
        octets = _octets(value)
        return value if len(octets) <= _LONGEST_STR16 else octets
    if isinstance(value, Timestamp):
        return value if 0 <= value < 1 << 64 else str(int(value))
    if isinstance(value, int):
        value = int(value)  # A range looks through its numbers one by one for what is no plain int.
        return value if value in _WIDEST else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= MAX_DEPTH:
            return None
        if isinstance(value, Mapping):
            return {_cut(str(name)): carried(item, depth + 1) for name, item in value.items()}
        return [carried(item, depth + 1) for item in value]
    try:
        encode_value(value, code_of(value))
    except WireError:
        return str(value)
    return value


def tag_of(code: int) -> str:
    """The tag that 0-9-x has for values of this code."""
    return _TAG_OF_CODE[code]


def code_of_tag(tag: str) -> int | None:
    """The code that values of a tag of 0-9-x have; None where the value says it."""
    return _CODE_OF_TAG.get(tag)
