"""Values of headers, annotations and application properties between 0-9-1 and 1.0, as RabbitMQ has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.codec.types import (
    Array,
    Blank,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Milliseconds,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)
from fakeamqp.timestamps import Timestamp

_LONGEST_TEXT: Final = 4096
_INTS: Final = range(-(1 << 31), 1 << 31)
_OF_TAG: Final[Mapping[str, type[Any]]] = {
    **{"b": Byte, "B": UByte, "s": Short, "U": Short, "u": UShort, "I": Int, "i": UInt},
    **{"l": int, "L": int, "f": Float, "d": float},
}
"""Tag of a field table -> class of the value in 1.0."""
_DROPPED: Final = (Blank, Decimal32, Decimal64, Decimal128, Char, Described)


def header_of(value: Any, *, inside: bool = False) -> tuple[bool, Any]:
    """Whether 0-9-1 can carry a value of 1.0 in a header, and as what; `inside` of a list or a map."""
    if isinstance(value, Milliseconds):
        return True, Timestamp(value // 1000)
    if isinstance(value, UUID):
        return not inside, f"urn:uuid:{value}"
    if isinstance(value, _DROPPED):
        return False, None
    if isinstance(value, bytes):
        return True, value.decode("utf-8", "surrogateescape")
    if isinstance(value, Symbol):
        return True, str(value)
    if isinstance(value, list):
        found = [header_of(each, inside=True) for each in value]
        return True, [each for kept, each in found if kept]
    if isinstance(value, dict):
        entries = {str(name): header_of(each, inside=True) for name, each in value.items()}
        return True, {name: each for name, (kept, each) in entries.items() if kept}
    if isinstance(value, ULong) and value >= 1 << 63:
        return True, int(value) - (1 << 64)
    return True, value


def text_or_binary(text: str) -> str | bytes:
    """Text as a string; what is not UTF-8, has a NUL or is too long, as binary."""
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) > _LONGEST_TEXT or b"\0" in octets:
        return octets
    try:
        octets.decode()
    except UnicodeDecodeError:
        return octets
    return str(text)


def _scalar(value: Any, tag: str | None) -> Any:
    if value is None or isinstance(value, (bool, UUID, Milliseconds)):
        return value
    if isinstance(value, str):
        return text_or_binary(value)
    if isinstance(value, Timestamp):
        return Milliseconds(value * 1000)
    if isinstance(value, datetime):
        return Milliseconds(int(value.timestamp()) * 1000)
    if isinstance(value, int):
        tag = tag or getattr(value, "field_tag", None)
        kind = _OF_TAG.get(tag or "")
        return kind(value) if kind is not None else Int(value) if value in _INTS else int(value)
    if isinstance(value, float):
        return Float(value) if tag == "f" or isinstance(value, Float) else float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return None


def annotation_of(value: Any, tag: str | None) -> Any:
    """A value of a header that becomes an annotation; tables become maps with symbols as keys."""
    if isinstance(value, Mapping):
        return {Symbol(name): annotation_of(each, None) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [annotation_of(each, None) for each in value]
    return _scalar(value, tag)


def application_property_of(value: Any, tag: str | None) -> tuple[bool, Any]:
    """Whether a value of a header can be an application property, and as what."""
    if isinstance(value, (Mapping, list, tuple, Decimal)):
        return False, None
    return True, _scalar(value, tag)


# --- deaths ------------------------------------------------------------------------------------------------


def deaths_of(table: Any) -> Any:
    """The value of x-opt-deaths for a header x-death, the latest death first."""
    if not isinstance(table, (list, tuple)) or not all(isinstance(each, Mapping) for each in table):
        return annotation_of(table, None)
    return Array([_death(each) for each in table], dict)


def _death(entry: Mapping[str, Any]) -> dict[Any, Any]:
    time = _scalar(entry.get("time"), None)
    said: dict[Any, Any] = {
        Symbol("queue"): str(entry.get("queue", "")),
        Symbol("reason"): Symbol(entry.get("reason", "")),
        Symbol("count"): ULong(max(0, int(entry.get("count", 1)))),
        Symbol("first-time"): time,
        Symbol("last-time"): time,
        Symbol("exchange"): str(entry.get("exchange", "")),
        Symbol("routing-keys"): Array([str(key) for key in entry.get("routing-keys", ())], str),
    }
    expiration = entry.get("original-expiration")
    if isinstance(expiration, str) and expiration.isdecimal():
        said[Symbol("ttl")] = UInt(min(int(expiration), 0xFFFFFFFF))
    return said


def table_of_deaths(value: Any) -> Any:
    """The header x-death for a value of x-opt-deaths."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return header_of(value)[1]
    return [_table(each) for each in value]


def _table(death: Mapping[Any, Any]) -> dict[str, Any]:
    from datetime import timezone

    time = death.get("first-time")
    found: dict[str, Any] = {
        "count": int(death.get("count", 1)),
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
