"""Writes the types of the arguments of `Faults.on`: `python -m compat_tests.tools.fault_names`."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword
from pathlib import Path

from fakeamqp.dialects import Dialect, dialect_named, protocol_names
from fakeamqp.faults.frame_group import HEARTBEAT, READERS
from fakeamqp.faults.matching import _OTHER_KEYWORDS, CONFIRM
from fakeamqp.protocols import registry as registry  # It registers the protocols.

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "fakeamqp" / "faults" / "names.py"

_HEAD = '''\
"""The types of the arguments of `Faults.on`: written by `python -m compat_tests.tools.fault_names`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Conditions", "MethodName", "ProtocolName"]

'''


def _dialects() -> list[Dialect]:
    return [dialect_named(name) for name in protocol_names()]


def method_names() -> list[str]:
    """The names of methods, and the patterns of a class and of a method of every class."""
    names = sorted({name for each in _dialects() for name in each.kinds})
    patterns = {f"{name.partition('.')[0]}.*" for name in names}
    patterns |= {f"*.{name.partition('.')[2]}" for name in names}
    return [HEARTBEAT, "connection.heartbeat", CONFIRM, "*", *sorted(patterns), *names]


def condition_names() -> list[str]:
    """The keywords: what every method has, the fields of methods, and the properties of contents."""
    found: set[str] = set(READERS)
    for each in _dialects():
        found.update(each.property_names)
        found.update(field for kind in each.kinds.values() for field in kind.fields)
    return sorted(name for name in found - set(_OTHER_KEYWORDS) if not iskeyword(name))


def _lines(words: Iterable[str]) -> str:
    return "".join(f"    {word}\n" for word in words)


def with_tables(_: str = "") -> str:
    """The module as it should be."""
    methods = _lines(f'"{name}",' for name in dict.fromkeys(method_names()))
    protocols = ", ".join(f'"{name}"' for name in protocol_names())
    keywords = _lines(f"{name}: Any" for name in condition_names())
    return (
        f'{_HEAD}ProtocolName: TypeAlias = Literal[{protocols}]\n"""The name of a protocol."""\n\n'
        f'MethodName: TypeAlias = Literal[\n{methods}]\n"""A method, a pattern of methods, or '
        '"confirm"."""\n\n\nclass Conditions(TypedDict, total=False):\n    """What a rule of `Faults.on` '
        f'compares: a value, a pattern, or a function of the value."""\n\n{keywords}'
    )


def main() -> None:
    """Write the module."""
    PAGE.write_text(with_tables(), encoding="utf-8")


if __name__ == "__main__":
    main()
