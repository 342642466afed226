"""What every emitter needs: names in Python, and text laid out the way `ruff format` would lay it out."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

LINE_LENGTH = 110

Facts = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """One set of facts and the package that is made of it."""

    source: str
    package: str
    emit: Callable[[Dialect, Facts], dict[str, str]]
    title: str
    #: spec name -> Python name where the rule of `python_name` does not do, keyed by class name or "" for all
    renames: dict[tuple[str, str], str] = field(default_factory=dict)
    #: class whose contents are described as in another package -> that package
    described_elsewhere: dict[str, str] = field(default_factory=dict)


def python_name(dialect: Dialect, class_name: str, name: str) -> str:
    """no-wait -> no_wait; words of the language get an underscore: global -> global_."""
    name = dialect.renames.get((class_name, name), dialect.renames.get(("", name), name)).replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def camel(*names: str) -> str:
    """basic, get-ok -> BasicGetOk."""
    return "".join(part.capitalize() for name in names for part in name.split("-"))


def bracketed(indent: int, head: str, items: Sequence[str], tail: str) -> list[str]:
    """`head` items `tail` on one line, or else the items on one line of their own, or else one line each."""
    pad = " " * indent
    line = f"{pad}{head}{', '.join(items)}{tail}"
    if len(line) <= LINE_LENGTH:
        return [line]
    inner = f"{pad}    {', '.join(items)}"
    if len(inner) <= LINE_LENGTH:
        return [f"{pad}{head}", inner, f"{pad}{tail}"]
    return [f"{pad}{head}", *(f"{pad}    {item}," for item in items), f"{pad}{tail}"]


def display(indent: int, head: str, items: Sequence[str], tail: str) -> list[str]:
    """A tuple, list, set or dict display: on one line, or else one line each."""
    line = f"{' ' * indent}{head}{', '.join(items)}{tail}"
    return [line] if len(line) <= LINE_LENGTH else multiline(indent, head, items, tail)


def docstring(indent: int, summary: str, notes: Sequence[str]) -> list[str]:
    """Summary and notes as one sentence, or, when that is too long, the notes as a paragraph of their own."""
    pad = " " * indent
    line = f'{pad}"""{"; ".join([summary, *notes])}."""'
    if len(line) <= LINE_LENGTH:
        return [line]
    rest = "; ".join(notes)
    return [f'{pad}"""{summary}.', "", f"{pad}{rest[0].upper()}{rest[1:]}.", f'{pad}"""']


def multiline(indent: int, head: str, items: Iterable[str], tail: str) -> list[str]:
    """One line for each item, whatever would fit."""
    pad = " " * indent
    return [f"{pad}{head}", *(f"{pad}    {item}," for item in items), f"{pad}{tail}"]


def tuple_of(items: Sequence[str]) -> list[str]:
    """The items of a tuple display: a single one needs its comma."""
    return [f"{items[0]},"] if len(items) == 1 else list(items)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def exported(names: Sequence[str]) -> list[str]:
    """`__all__`, constants before classes."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), name))
    return display(0, "__all__ = [", [quoted(name) for name in ordered], "]")


def octets_literal(octets: bytes) -> str:
    return 'b"' + "".join(f"\\x{octet:02x}" for octet in octets) + '"'


def module_text(docstring: str, lines: Iterable[str], source: str) -> str:
    head = [
        f'"""{docstring}',
        "",
        f"Made from spec/{source} by spec/generate.py; changes belong there.",
        '"""',
        "",
    ]
    return "\n".join([*head, "from __future__ import annotations", "", *lines]).rstrip("\n") + "\n"


def slots_lines(names: Sequence[str]) -> list[str]:
    ordered = sorted(quoted(name) for name in names)
    return display(4, "__slots__ = (", tuple_of(ordered), ")")


def names_lines(attribute: str, names: Sequence[str]) -> list[str]:
    head = f"{attribute}: ClassVar[tuple[str, ...]] = ("
    return display(4, head, tuple_of([quoted(name) for name in names]), ")")
