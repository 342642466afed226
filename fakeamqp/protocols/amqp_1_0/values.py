"""Values of headers, annotations and application properties between 0-9-1 and 1.0, as RabbitMQ has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from math import isfinite
from struct import Struct
from typing import Any, Final
from uuid import UUID

from fakeamqp.model.messages.message import Int64
from fakeamqp.protocols.amqp_1_0.codec import types as t
from fakeamqp.protocols.base.codec import FieldError, encoded
from fakeamqp.timestamps import Timestamp

_LONGEST_TEXT: Final = 4096
_INTS: Final = range(-(1 << 31), 1 << 31)
_TURN: Final = 1 << 64
_OF_TAG: Final[Mapping[str, type[Any]]] = {
    **{"b": t.Byte, "B": t.UByte, "s": t.Short, "U": t.Short, "u": t.UShort, "I": t.Int, "i": t.UInt},
    **{"l": int, "L": int, "f": t.Float, "d": float},
}
"""Tag of a field table -> class of the value in 1.0."""
_NUMBERS: Final[Mapping[str, str]] = {
    **{"b": "b", "B": "B", "s": "h", "U": "h", "u": "H", "I": "i", "i": "I", "l": "q", "L": "q"},
    **{"f": "f", "d": "d", "T": "Q"},
}
"""Tag of a field table -> how `struct` reads the value."""


class Unconvertible(FieldError):
    """A value at whose conversion RabbitMQ crashes."""


# --- to 0-9-1 ----------------------------------------------------------------------------------------------


def header_of(value: Any, *, drops: bool) -> tuple[bool, Any]:
    """Whether a header of 0-9-1 carries a value of 1.0, and as what.

    `drops` says that a decimal is left out, also one in a list or in a map; else RabbitMQ crashes at it.

    Raises:
        Unconvertible: RabbitMQ crashes (RabbitMQ: measured on 4.0.5 and 4.3.6).
    """
    if isinstance(value, t.Blank) and not drops:
        return True, []  # RabbitMQ: measured on 4.0.5.
    if _is_kept_encoded(value):
        if drops:
            return False, None
        raise Unconvertible(f"{value!r:.40} has no type in 0-9-1")
    if isinstance(value, list):
        kept = [each for each in value if not (drops and _is_kept_encoded(each))]
        return True, [_item(each) for each in kept]
    if isinstance(value, dict):
        pairs = [pair for pair in value.items() if not (drops and any(map(_is_kept_encoded, pair)))]
        return True, {_name(name): _field(each) for name, each in pairs}
    return True, _scalar_header(value)


def _is_kept_encoded(value: Any) -> bool:
    """Whether RabbitMQ keeps a value in its encoding, without a type."""
    if isinstance(value, float):
        return not isfinite(value)
    return isinstance(value, (t.Blank, t.Decimal32, t.Decimal64, t.Decimal128))


def _item(value: Any) -> Any:
    """An item of a list: RabbitMQ converts fewer types there."""
    if isinstance(value, (t.ULong, t.Array)):
        raise Unconvertible(f"{value!r:.40} in a list")
    if isinstance(value, list):
        return [_item(each) for each in value]
    return _field(value)


def _field(value: Any) -> Any:
    if _is_kept_encoded(value):
        raise Unconvertible(f"{value!r:.40} in a list or a map")
    return header_of(value, drops=True)[1]


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8", "surrogateescape")
    if not isinstance(key, str) or isinstance(key, t.Char):
        raise Unconvertible(f"{key!r:.40} is no name of a field")
    return str(key)


def _scalar_header(value: Any) -> Any:
    if isinstance(value, t.Milliseconds):
        return Timestamp(seconds(value) % _TURN)
    if isinstance(value, (UUID, t.Char, t.Described)):
        raise Unconvertible(f"{value!r:.40} has no type in 0-9-1")
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, t.Symbol):
        return str(value)
    if type(value) is int or isinstance(value, t.ULong):
        return Int64(int(value) - _TURN if value >= _TURN // 2 else int(value))
    return value


def has_decimal(value: Any) -> bool:
    """Whether a value is a decimal, or has one inside."""
    if isinstance(value, (list, dict)):
        return any(map(has_decimal, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (t.Decimal32, t.Decimal64, t.Decimal128))


def seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, towards zero."""
    return milliseconds // 1000 if milliseconds >= 0 else -(-milliseconds // 1000)


# --- from 0-9-1 --------------------------------------------------------------------------------------------


def text_or_binary(text: str) -> str | bytes:
    """Text as a string; what is not UTF-8, has a NUL or is too long, as binary."""
    octets = encoded(text)
    if len(octets) > _LONGEST_TEXT or b"\0" in octets:
        return octets
    try:
        octets.decode()
    except UnicodeDecodeError:
        return octets
    return str(text)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, UUID, t.Milliseconds)):
        return value
    if isinstance(value, str):
        return text_or_binary(value)
    if isinstance(value, Timestamp):
        return t.Milliseconds(value * 1000)
    if isinstance(value, datetime):
        return t.Milliseconds(int(value.timestamp()) * 1000)
    if isinstance(value, int):
        kind = _OF_TAG.get(getattr(value, "field_tag", ""))
        return kind(value) if kind is not None else t.Int(value) if value in _INTS else int(value)
    if isinstance(value, float):
        return value if isinstance(value, t.Float) else float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return None


def field_value(octets: bytes, offset: int = 0) -> tuple[Any, int]:
    """The value of 1.0 for an encoded field of 0-9-1, and the offset behind it.

    Raises:
        Unconvertible: a decimal.
    """
    tag = chr(octets[offset])
    offset += 1
    if tag in _NUMBERS:
        layout = Struct(">" + _NUMBERS[tag])
        (number,) = layout.unpack_from(octets, offset)
        if tag == "T":
            return t.Milliseconds(signed(number * 1000)), offset + layout.size
        return _OF_TAG[tag](number), offset + layout.size
    if tag == "t":
        return t.WideBoolean(octets[offset] != 0), offset + 1
    if tag == "V":
        return None, offset
    if tag == "D":
        raise Unconvertible("a decimal has no type in 1.0")
    end = offset + 4 + int.from_bytes(octets[offset : offset + 4], "big")
    offset += 4
    if tag == "A":
        items = []
        while offset < end:
            item, offset = field_value(octets, offset)
            items.append(item)
        return items, end
    if tag == "F":
        found: dict[Any, Any] = {}
        while offset < end:
            behind = offset + 1 + octets[offset]
            name = octets[offset + 1 : behind].decode("utf-8", "surrogateescape")
            value, offset = field_value(octets, behind)
            found.setdefault(t.Symbol(name), value)
        return found, end
    value = octets[offset:end]
    return (value if tag == "x" else text_or_binary(value.decode("utf-8", "surrogateescape"))), end


def signed(number: int) -> int:
    """A number as 64 bits hold it."""
    return (number + _TURN // 2) % _TURN - _TURN // 2


def annotation_of(value: Any) -> Any:
    """A value of a header that becomes an annotation; tables become maps with symbols as keys."""
    if isinstance(value, Mapping):
        return {t.Symbol(name): annotation_of(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [annotation_of(each) for each in value]
    return _scalar(value)


def application_property_of(value: Any) -> Any:
    """A value of a header that becomes an application property."""
    return None if isinstance(value, (Mapping, list, tuple, Decimal)) else _scalar(value)


def untyped(value: Any) -> Any:
    """A value of an outcome, without its type, which RabbitMQ infers when it writes the value (measured)."""
    if isinstance(value, UUID):
        value = value.bytes
    if isinstance(value, (bytes, str)):
        return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


# --- deaths ------------------------------------------------------------------------------------------------


def deaths_of(table: Any) -> Any:
    """The value of x-opt-deaths for a header x-death, the latest death first."""
    if not isinstance(table, (list, tuple)) or not all(isinstance(each, Mapping) for each in table):
        return annotation_of(table)
    return t.Array([death_of(each) for each in table], dict)


def death_of(entry: Mapping[str, Any], first: Any = None, last: Any = None) -> dict[Any, Any]:
    """One death, for an entry of x-death; `first` and `last` are exact times, if they are known."""
    time = _scalar(entry.get("time"))
    said: dict[Any, Any] = {}
    expiration = entry.get("original-expiration")
    if isinstance(expiration, str) and expiration.isdecimal():
        said[t.Symbol("ttl")] = t.UInt(min(int(expiration), 0xFFFFFFFF))
    return {
        **said,
        t.Symbol("queue"): str(entry.get("queue", "")),
        t.Symbol("reason"): t.Symbol(entry.get("reason", "")),
        t.Symbol("count"): t.ULong(max(0, int(entry.get("count", 1)))),
        t.Symbol("first-time"): time if first is None else first,
        t.Symbol("last-time"): time if last is None else last,
        t.Symbol("exchange"): str(entry.get("exchange", "")),
        t.Symbol("routing-keys"): t.Array([str(key) for key in entry.get("routing-keys", ())], str),
    }


def table_of_deaths(value: Any) -> Any:
    """The header x-death for a value of x-opt-deaths; None for a value of another form."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    return [_table(each) for each in value]


def _table(death: Mapping[Any, Any]) -> dict[str, Any]:
    time = death.get("first-time")
    found: dict[str, Any] = {
        "count": Int64(death.get("count", 1)),
        "reason": str(death.get("reason", "")),
        "queue": str(death.get("queue", "")),
        "time": datetime.fromtimestamp((time or 0) // 1000, timezone.utc),
        "exchange": str(death.get("exchange", "")),
        "routing-keys": [str(key) for key in death.get("routing-keys", ())],
    }
    if "ttl" in death:
        found["original-expiration"] = str(int(death["ttl"]))
    return found


# --- texts -------------------------------------------------------------------------------------------------

_NAMES: Final[Mapping[type[Any], str]] = {str: "utf8", int: "long", float: "double", bytes: "binary"}


def term(value: Any) -> str:
    """A value as RabbitMQ's parser has it, in Erlang's notation."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    name = _NAMES.get(type(value), type(value).__name__.lower())
    if isinstance(value, str):
        return f'{{{name},<<"{value}">>}}'
    if isinstance(value, bytes):
        return f'{{{name},<<"{value.decode("latin-1")}">>}}'
    if isinstance(value, list):
        return f"{{{name},[{','.join(map(term, value))}]}}"
    if isinstance(value, dict):
        entries = ",".join(f"{{{term(key)},{term(each)}}}" for key, each in value.items())
        return f"{{map,[{entries}]}}"
    return f"{{{name},{value!r}}}"
