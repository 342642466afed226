"""How the model's properties and headers become those of AMQP 0-10, and back: a table for each.

The model names properties as 0-9-x does. Each has a `PropertyPlace010` in the structs of 0-10, or else a
header that carries it. Conversion never fails: a value that cannot be carried becomes the nearest one that
can. docs/protocols.md shows both tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.structs import ReplyTo
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, MAX_DEPTH, Map, code_of, encode_value
from fakeamqp.protocols.base.codec import (
    EXPIRATION_HEADER,
    MESSAGE_ID_HEADER,
    TYPE_HEADER,
    WireError,
    encoded,
    fits_short_string,
    ttl,
)
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["EXPIRATION_HEADER", "FILE", "MESSAGE_ID_HEADER", "STREAM", "TAGS", "TRANSFER", "TYPE_HEADER"]
__all__ += ["PropertyPlace010", "application_headers", "carried", "code_of_tag", "fits_short_string"]
__all__ += ["plain_headers", "plain_value", "reply_text", "reply_to", "tag_of", "ttl"]

_LONGEST = 255
_LONGEST_STR16 = 0xFFFF
_DIRECT_REPLY = "amq.rabbitmq.reply-to."
_HIGHEST_PRIORITY = 9
_PERSISTENT = 2

# --- properties --------------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


class PropertyPlace010(NamedTuple):
    """Where 0-10 has one of the model's properties, and how its values change."""

    role: str
    """Which struct: "delivery" (delivery-properties), "message" (message-properties), "content" (file- or
    stream-properties); "" for none."""
    field: str
    """Its field in that struct; "" for none."""
    says: str
    """A note about the values, for docs/protocols.md."""
    read: Callable[[Any], Any] = _same
    """From 0-10; None where the model cannot carry it."""
    write: Callable[[Any], Any] = _same
    """To 0-10; None where the field cannot carry it."""
    header: str = ""
    """The header that carries it where the field cannot; "" for none."""


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _short_text(octets: bytes) -> str:
    return _text(octets[:_LONGEST])


def _uuid(text: str) -> UUID | None:
    """The UUID that is written as this text; None where there is none."""
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
    """The first 255 bytes of a text."""
    octets = encoded(text)
    return text if len(octets) <= _LONGEST else _text(octets[:_LONGEST])


def reply_text(address: ReplyTo) -> str:
    """The text of an address: "routing-key" or "exchange/routing-key"; see `reply_to`."""
    key = address.routing_key or ""
    if address.exchange:
        return f"{_escaped(address.exchange)}/{key}"
    return key if _address(key) is None else "/" + key


def reply_to(text: str) -> ReplyTo:
    """The address of a text: the exchange stands before the first slash; without one it is the default one.

    A slash in the name of an exchange is %2F, and a % before 2F or 25 is %25. A key of the default exchange
    that would read as an address has a slash in front. Any other text is a routing key, and so is a name of
    direct reply-to; `reply_text` gives every text back unchanged.
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


_TEXT = "the same text"
_OCTETS = "the same bytes; from 0-10 the first 255"
_TIME = "seconds since 1970"


def _in_header(header: str) -> PropertyPlace010:
    return PropertyPlace010("", "", "the text in the header", write=lambda _: None, header=header)


#: message-properties and delivery-properties of message.transfer
TRANSFER: Final[Mapping[str, PropertyPlace010]] = {
    "content_type": PropertyPlace010("message", "content_type", _TEXT, write=_cut),
    "content_encoding": PropertyPlace010("message", "content_encoding", _TEXT, write=_cut),
    "delivery_mode": PropertyPlace010(
        "delivery", "delivery_mode", "2 is persistent, all others become 1", write=_delivery_mode
    ),
    "priority": PropertyPlace010(
        "delivery", "priority", "to 0-10: a value above 9 becomes 9", write=_priority
    ),
    "correlation_id": PropertyPlace010("message", "correlation_id", _OCTETS, _short_text, encoded),
    "reply_to": PropertyPlace010(
        "message",
        "reply_to",
        "`routing-key` for the default exchange, else `exchange/routing-key`",
        lambda address: _cut(reply_text(address)),
        lambda text: reply_to(_cut(text)),
    ),
    "expiration": PropertyPlace010(
        "delivery",
        "ttl",
        "milliseconds; text that is not a number, in the header",
        str,
        ttl,
        EXPIRATION_HEADER,
    ),
    "message_id": PropertyPlace010(
        "message", "message_id", "a UUID; any other text in the header", str, _uuid, MESSAGE_ID_HEADER
    ),
    "timestamp": PropertyPlace010("delivery", "timestamp", _TIME, write=_seconds),
    "type": _in_header(TYPE_HEADER),
    "user_id": PropertyPlace010("message", "user_id", _OCTETS, _short_text, encoded),
    "app_id": PropertyPlace010("message", "app_id", _OCTETS, _short_text, encoded),
}

_CONTENT = {
    "content_type": PropertyPlace010("content", "content_type", _TEXT, write=_cut),
    "content_encoding": PropertyPlace010("content", "content_encoding", _TEXT, write=_cut),
    "priority": PropertyPlace010("content", "priority", "the same number"),
    "timestamp": PropertyPlace010("content", "timestamp", _TIME, write=_seconds),
    "type": _in_header(TYPE_HEADER),
    "expiration": _in_header(EXPIRATION_HEADER),
    "correlation_id": _in_header("x-amqp-0-9-1.correlation-id"),
    "user_id": _in_header("x-amqp-0-9-1.user-id"),
    "app_id": _in_header("x-amqp-0-9-1.app-id"),
}

#: file-properties
FILE: Final[Mapping[str, PropertyPlace010]] = {
    **_CONTENT,
    "reply_to": PropertyPlace010("content", "reply_to", _TEXT, write=_cut),
    "message_id": PropertyPlace010("content", "message_id", _TEXT, write=_cut),
}
#: stream-properties
STREAM: Final[Mapping[str, PropertyPlace010]] = {
    **_CONTENT,
    "reply_to": _in_header("x-amqp-0-9-1.reply-to"),
    "message_id": _in_header(MESSAGE_ID_HEADER),
}

# --- values of headers -------------------------------------------------------------------------------------

_LONGS = range(-(1 << 63), 1 << 63)
_WIDEST = range(-(1 << 63), 1 << 64)

#: type of 0-10 -> the tag of its values in a field table of 0-9-x
TAGS: Final[Mapping[str, str]] = {
    name: tag
    for tag, names in (
        *(("t", "boolean bit"), ("b", "int8"), ("B", "uint8"), ("s", "int16"), ("u", "uint16")),
        *(("I", "int32"), ("i", "uint32"), ("l", "int64 uint64"), ("f", "float"), ("d", "double")),
        *(("D", "dec32 dec64"), ("T", "datetime"), ("V", "void"), ("F", "map"), ("A", "list array")),
        ("S", "uuid char char-utf32 str8 str8-latin str8-utf16 str16 str16-latin str16-utf16"),
        ("x", " ".join([name for name in CODES if name.lstrip("v").startswith("bin")]) + " struct32"),
    )
    for name in names.split()
}
_TAG_OF_CODE = {CODES[name]: tag for name, tag in TAGS.items()}

#: tag of 0-9-x -> code of 0-10; values of other tags get the code that suits them
_CODE_OF_TAG = {
    **{"b": CODES["int8"], "B": CODES["uint8"], "s": CODES["int16"], "U": CODES["int16"]},
    **{"u": CODES["uint16"], "I": CODES["int32"], "i": CODES["uint32"], "f": CODES["float"]},
}


def plain_headers(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Application headers as the model has them: see `plain_value`."""
    return {name: plain_value(value) for name, value in fields.items()}


def plain_value(value: Any) -> Any:
    """A value of 0-10 as the model has it: a uuid or a too large number as text, a struct as bytes."""
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


def _fits_decimal(value: Decimal) -> bool:
    """True for a mantissa of 32 bits, signed or not, and at most 255 places."""
    _, digits, places = value.as_tuple()
    if not isinstance(places, int) or not -255 <= places <= 0:
        return False
    mantissa = int("".join(map(str, digits)))
    return mantissa <= 1 << 31 if value.is_signed() else mantissa < 1 << 32


def _sound(text: str) -> str:
    """The text, with the bytes of lone surrogates that stand for none (UTF-16 has such surrogates)."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _text(text.encode("utf-8", "surrogatepass"))
    return text


def application_headers(
    headers: Mapping[str, Any], tag: Callable[[str], str | None], extra: Mapping[str, str]
) -> Map:
    """The model's headers as a map; `tag` gives their tags, and `extra` headers follow them."""
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
    """A value as a map of 0-10 can carry it; void below the deepest level of nesting."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        value = _sound(value)
        octets = encoded(value)
        return value if len(octets) <= _LONGEST_STR16 else octets
    if isinstance(value, Timestamp):
        return value if 0 <= value < 1 << 64 else str(int(value))
    if isinstance(value, int):
        value = int(value)  # A range searches its numbers one by one for anything but a plain int.
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
    """The tag of 0-9-x for values of this code."""
    return _TAG_OF_CODE[code]


def code_of_tag(tag: str) -> int | None:
    """The code for values of a tag of 0-9-x; None where it depends on the value."""
    return _CODE_OF_TAG.get(tag)
