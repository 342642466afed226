"""Values in Erlang's notation, as RabbitMQ's texts print them.

`term` and `pairs_term` print on one line. `pretty` breaks what is longer than a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import inf
from typing import Any, TypeAlias, TypeGuard


class Atom(str):
    """A name that Erlang prints without quotes."""

    __slots__ = ()


class Latin1(bytes):
    """A binary that is printed as Erlang's `~p` does: as a text if it is printable in Latin-1.

    The text has the same bytes when it is encoded with "surrogateescape" (measured on Erlang/OTP 25).
    """

    __slots__ = ()


Plain: TypeAlias = "Atom | str | bytes | int"
"""A value without members: an atom, a string (a list of characters in Erlang), a binary or an integer."""
Member: TypeAlias = "Plain | tuple[Member, ...]"
"""A value, or a tuple whose first member is an atom."""


def term(value: Any) -> str:
    """A value from JSON or a field table, as Erlang prints it.

    Text is printed as a binary (`<<"abc">>`), a table as a map.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return octets_term(value)
    if isinstance(value, Mapping):
        return "#{" + ",".join(f"{term(key)} => {term(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(term(item) for item in value) + "]"
    return str(value)


def float_text(value: float) -> str:
    """A float as Erlang prints it: `1.0e3` for 1000.0, since that is shorter (measured).

    It is the shortest of the decimal and the scientific form, and the decimal one if both are as short.
    """
    if value != value or value in (inf, -inf):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    power = len(text) + exponent - 1
    scientific = f"{text[0]}.{text[1:] or '0'}e{power}"
    if exponent >= 0:
        decimal = f"{text}{'0' * exponent}.0"
    elif power >= 0:
        decimal = f"{text[: power + 1]}.{text[power + 1 :]}"
    else:
        decimal = f"0.{'0' * (-power - 1)}{text}"
    return "-" * sign + (decimal if len(decimal) <= len(scientific) else scientific)


_NAMES_OF_TAGS = {
    **{"b": "byte", "B": "unsignedbyte", "s": "short", "u": "unsignedshort"},
    **{"I": "signedint", "i": "unsignedint", "l": "long"},
}


def type_name(value: Any) -> str:
    """RabbitMQ's name for the field type that encodes a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if type(value) is not int:
            return _NAMES_OF_TAGS.get(getattr(value, "field_tag", "T"), "timestamp")
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    for kind, name in (
        (float, "double"),
        (str, "longstr"),
        (bytes, "binary"),
        (Decimal, "decimal"),
        (Mapping, "table"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "void"


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value of a table is an integer of any width."""
    return type(value) is int or (isinstance(value, int) and type_name(value) not in ("bool", "timestamp"))


def pairs_term(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names with values, as Erlang prints a list of pairs: `[{<<"a">>,1}]`."""
    return "[" + ",".join(f"{{{term(name)},{term(value)}}}" for name, value in pairs) + "]"


def octets_term(octets: bytes) -> str:
    """A binary as a row of numbers, whatever its length (Erlang's `~w`)."""
    return f"<<{','.join(map(str, octets))}>>"


def _text(value: str) -> str:
    if not value:
        return "<<>>"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'<<"{quoted}">>' if value.isascii() else f'<<"{quoted}"/utf8>>'


# --- lines -----------------------------------------------------------------------------------------------
#
# Measured on Erlang/OTP 25, 27 and 29. What does not fit into the rest of a line is broken: a row of numbers
# behind a comma, and it goes on below its first number; a tuple in front of a member, always of one that is a
# tuple, and it goes on below the member behind its tag. Where that member is too far to the right, the tuple
# goes on four columns behind its brace, or one. Texts and numbers are never broken. Columns are counted from
# 1.

_LINE = 80
_HALF = _LINE // 2
_SHORTEST_ROW = 8
_ESCAPES = {
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    "\x1b": "e",
    '"': '"',
    "\\": "\\",
}
_ESCAPED = str.maketrans({character: f"\\{escape}" for character, escape in _ESCAPES.items()})
# Compiled on first use: that costs more than any other line of an import.
_PRINTABLE = "[\b-\r\x1b -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+"


def pretty(value: Member, text: str = "") -> str:
    """A value as Erlang's `~tp` prints it behind a text: on several lines if it does not fit into one.

    Bytes become a text if all of them are printable in UTF-8, or else in Latin-1; if not, a row of numbers.
    The first member of a tuple is an atom.
    """
    column = len(text) - text.rfind("\n")
    return _laid_out(value, column, 0)


def _broken_tuple(members: tuple[Member, ...], column: int) -> str:
    tag = _flat(members[0])
    lines = "{" + tag
    position = column + len(tag) + 2
    starts_line = position < _HALF
    if starts_line:
        column = position
        lines += ","
    else:
        column += 4 if len(tag) > 2 and column + 4 <= _HALF else 1
    for number, member in enumerate(members[1:], 2):
        closing = int(number == len(members))
        shown = _flat(member)
        is_row = _is_row(shown)
        if not starts_line:
            if not is_row and shown[0] != "{" and len(shown) + 2 < _LINE - position:
                lines += f",{shown}"
                position += len(shown) + 1
                continue
            lines += ",\n" + " " * (column - 1)
        starts_line = False
        lines += _laid_out(member, column, closing)
        fits = not is_row and len(shown) < _LINE - column - closing
        position = column + (len(shown) if fits else _LINE)  # Nothing follows a broken member on its line.
    return lines + "}"


def _laid_out(value: Member, column: int, closing: int) -> str:
    """A value in this column, with so many brackets behind it; tuples and long rows of numbers are broken."""
    shown = _flat(value)
    if isinstance(value, tuple):
        return shown if len(shown) < _LINE - column - closing else _broken_tuple(value, column)
    if not _is_row(shown) or len(shown) < _LINE - column - closing:
        return shown
    *numbers, last = shown[2:-2].split(",")
    width = max(_SHORTEST_ROW, _LINE - 2 - column - closing)
    lines = [""]
    for number in (*(f"{each}," for each in numbers), last):
        if len(lines[-1]) + len(number) > width:
            lines.append("")
        lines[-1] += number
    return "<<" + ("\n" + " " * (column + 1)).join(lines) + ">>"


def _is_row(shown: str) -> bool:
    return shown.startswith("<<") and shown[2].isdigit()


def _flat(value: Member) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(map(_flat, value)) + "}"
    if isinstance(value, bytes):
        return _binary(value)
    if isinstance(value, str) and not isinstance(value, Atom):
        return f'"{value.translate(_ESCAPED)}"'
    return str(value)


def _binary(octets: bytes) -> str:
    if isinstance(octets, Latin1):
        if not re.fullmatch(_PRINTABLE, octets.decode("latin-1")):
            return octets_term(octets)
        text = octets.decode("ascii", "surrogateescape")
        return f'<<"{text.translate(_ESCAPED)}">>'
    sign = ""
    try:
        text = octets.decode()
        if not octets.isascii():
            sign = "/utf8"
    except UnicodeDecodeError:
        # Erlang/OTP 29 prints numbers if U+FFFE or U+FFFF stands before the first byte that is not UTF-8.
        text = octets.decode("latin-1")
    if not re.fullmatch(_PRINTABLE, text):
        return octets_term(octets)
    return f'<<"{text.translate(_ESCAPED)}"{sign}>>'
