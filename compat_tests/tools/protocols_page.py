"""Writes the tables of docs/protocols.md from the code: `python -m compat_tests.tools.protocols_page`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.protocols.amqp_0_9.property_mapping import FIELDS
from fakeamqp.protocols.amqp_0_10.codec.types import SCALARS
from fakeamqp.protocols.amqp_0_10.properties import (
    CODE_OF_TAG,
    FILE,
    STREAM,
    TAGS,
    TRANSFER,
    PropertyPlace010,
)

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"

_STRUCTS = {"delivery": "delivery-properties", "message": "message-properties", "": ""}
_PYTHON = {
    "t": "bool",
    "f": "float",
    "d": "float",
    "D": "Decimal",
    "S": "str",
    "x": "bytes",
    "T": "int, seconds since 1970",
    "F": "dict",
    "A": "list",
    "V": "None",
}
#: Values of 0-10 types without an equal value in 0-9-x
_BECOMES = {
    "uuid": "its text",
    "struct32": "its bytes",
    "uint64": "the number; as text from 2**63 on",
    "dec32": "the number",
    "dec64": "the number; as text if it needs more than 32 bits or 255 decimal places",
    "char": "the text",
    "char-utf32": "the text",
    "bit": "true",
    "array": "its elements",
}
_MEANS = {
    "t": "boolean",
    "b": "int8",
    "B": "uint8",
    "s": "int16",
    "U": "int16",
    "u": "uint16",
    "I": "int32",
    "i": "uint32",
    "l": "int64",
    "L": "int64",
    "f": "float",
    "d": "double",
    "D": "dec32, or dec64 if the value does not fit",
    "S": "str16, or vbin32 if it is longer than 65535 bytes",
    "x": "vbin32",
    "T": "datetime",
    "F": "map; void below 100 levels",
    "A": "list; void below 100 levels",
    "V": "void",
}


def with_tables(page: str) -> str:
    """The page with current tables. Raises ValueError if the page has no place for a table."""
    return tables.with_tables(
        page,
        {
            "transfer": lambda: _places(TRANSFER, "application-headers"),
            "file": lambda: _places(FILE, "headers"),
            "stream": lambda: _places(STREAM, "headers"),
            "transfer-0-9": _fields,
            "tags": _tags,
            "types": _types,
        },
    )


def _places(places: Mapping[str, PropertyPlace010], headers: str) -> str:
    rows = []
    for name, place in places.items():
        struct = _STRUCTS.get(place.role, "")
        field = f"{struct}.{place.field.replace('_', '-')}".lstrip(".")
        where = [f"`{field}`"] if field else []
        where += [f"header `{place.header}`"] if place.header else []
        rows.append([f"`{name.replace('_', '-')}`", " or ".join(where), place.says])
    struct = "message-properties." if headers == "application-headers" else ""
    rows.append(["`headers`", f"`{struct}{headers}`", "as below"])
    return tables.table(["0-9-1 and 0-9", "0-10", "Values"], rows)


def _fields() -> str:
    rows = []
    for place in FIELDS:
        here = f"`{place.property.replace('_', '-')}`" if place.property else f"header `{place.header}`"
        there = [f"`{place.field.replace('_', '-')}`"] if place.field else []
        there += [f"header `{place.header}`"] if place.property and place.header else []
        rows.append([here, " or ".join(there), place.says])
    rows.append(["`headers`", "`application-headers`", "the same table"])
    return tables.table(["0-9-1 and class basic of 0-9", "message.transfer of 0-9", "Values"], rows)


def _tags() -> str:
    rows = []
    for tag, name in _MEANS.items():
        code = CODE_OF_TAG.get(tag)
        assert code is None or SCALARS[code].name == name, f"{tag} is {SCALARS[code].name}"
        rows.append([f"`{tag}`", name])
    return tables.table(["Tag of 0-9-1 and 0-9", "Type of 0-10"], rows)


def _types() -> str:
    rows = []
    for name, tag in TAGS.items():
        rows.append([f"`{name}`", f"`{tag}`", _PYTHON.get(tag, "int"), _BECOMES.get(name, "the same")])
    return tables.table(["Type of 0-10", "Tag", "In Python", "Value"], rows)


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
