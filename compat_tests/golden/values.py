"""A value of its own for every field: then fields that change places change the octets.

The values are what JSON can hold:

| Types | Value |
|---|---|
| bit; numbers; text | true or false; number; text |
| longstr, vbin* | the octets in hexadecimal digits |
| table of 0-8 to 0-9-1 | list of [name, tag, value] |
| map, array of 0-10 | list of [key, type, value]; [type, values] |
| struct:NAME, struct32 | list of the values of all fields; [NAME, list of the values] |
| sequence-set, byte-ranges | list of [lower, upper] |
| a field that is not there | null |
"""

from __future__ import annotations

from typing import Any

from compat_tests.golden.published import Field, Layout

__all__ = ["cases", "values_of"]

WIDTHS = {
    **{"octet": 1, "short": 2, "long": 4, "longlong": 8},
    **{"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "sequence-no": 4},
}


class _Values:
    """The values of one record. Numbers have octets that occur nowhere else in the record's numbers."""

    def __init__(self, structs: dict[str, Layout]) -> None:
        self._structs = structs
        self._next = 0x81  # From here on every octet has its upper bit: a signed number shows.
        self._taken: set[tuple[str, int]] = set()

    def _number(self, width: int) -> int:
        octets = bytes((self._next + place) % 0x100 for place in range(width))
        self._next += width
        return int.from_bytes(octets, "big")

    def _choice(self, field: Field) -> int:
        """The last value of the domain that no other field of this type has."""
        found = next(each for each in reversed(field.choices) if (field.type, each) not in self._taken)
        self._taken.add((field.type, found))
        return found

    def of(self, field: Field) -> Any:
        kind, name = field.type, field.name
        if field.choices:
            return self._choice(field)
        if kind in ("timestamp", "datetime"):  # More than four octets, and what datetime can hold.
            return 0x21 << 32 | self._number(4)
        if kind in WIDTHS:
            return self._number(WIDTHS[kind])
        if kind == "bit":
            return True
        if kind in ("shortstr", "str8", "str16"):
            return f"{name} \u00e9"
        if kind == "longstr":
            return f"{name} \0\u00e9".encode().hex()
        if kind in ("vbin8", "vbin16", "vbin32"):
            return (name.encode() + b" \x00\xff").hex()
        if kind == "content":
            return [True, f"the {name}".encode().hex()]
        if kind == "uuid":
            return bytes(range(0xC0, 0xD0)).hex()
        if kind == "table":
            return [["name", "S", f"the {name}"], ["number", "I", -0x1000000 - self._number(1)]]
        if kind == "map":
            return [["name", "str16", f"the {name}"], ["number", "int64", -0x1000000 - self._number(1)]]
        if kind == "array":
            return ["str16", [f"one of {name}", "another"]]
        if kind in ("sequence-set", "byte-ranges"):
            # Ascending ranges, each end with octets of its own.
            first = self._number(1) << 16
            return [[first, first + 0x1234], [first + 0x123456, first + 0x123457]]
        if kind == "struct32":
            return ["dtx.xa-result", [7]]
        what, _, struct = kind.partition(":")
        fields = self._structs[struct].fields
        if what == "struct":
            return [self.of(each) for each in fields]
        if what == "array":
            return [[self.of(each) for each in fields] for _ in range(2)]
        raise ValueError(f"no value for a {kind}")


def values_of(layout: Layout, structs: dict[str, Layout]) -> dict[str, Any]:
    """A value for every field of a record."""
    values = _Values(structs)
    return {field.name: values.of(field) for field in layout.fields}


def cases(kind: str, values: dict[str, tuple[str, Any]], *, optional: bool) -> dict[str, dict[str, Any]]:
    """The cases of a record: all fields, each bit or each optional field alone, none of them.

    Args:
        kind: the kind of record.
        values: type and value of each field.
        optional: whether fields may be left out.

    Returns:
        The values of all fields by name of the case: "all", "only NAME", "none".
    """
    full = {name: value for name, (_, value) in values.items()}
    if kind == "method":
        switched = [name for name, (of, _) in values.items() if of == "bit"]
    else:
        switched = list(values) if optional else []
    nothing = {**full, **{name: False if values[name][0] == "bit" else None for name in switched}}
    found = {"all": full}
    if len(switched) > 1:
        found |= {f"only {name}": {**nothing, name: full[name]} for name in switched}
    if switched:
        found["none"] = nothing
    return found
