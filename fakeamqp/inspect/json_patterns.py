"""Partial comparison of JSON values, with the places where they differ.

An object of the pattern names the members that must be there; further members are ignored. An array must have
the same length. A compiled regular expression is searched, a function is asked, and any other value is
compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["MISSING", "NO_JSON", "JsonDifference", "differences", "parsed"]


class _Marker:
    """A value that stands for none of JSON."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __repr__(self) -> str:
        return self._said


MISSING = _Marker("not there")
NO_JSON = _Marker("not JSON")


class JsonDifference(NamedTuple):
    """One place where a value does not match.

    Args:
        path: of the place in the value, such as `.items[0].price`; "" is the value itself.
        wanted: the part of the pattern, or a text about it in `said`.
        was: the part of the value; MISSING if it has none.
        said: what was expected, if not `wanted` itself.
        near: the name of the member that may be meant, or "".
    """

    path: str
    wanted: Any
    was: Any
    said: str = ""
    near: str = ""


def parsed(body: bytes) -> Any:
    """The body parsed as JSON, or NO_JSON."""
    import json

    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return NO_JSON


def differences(
    wanted: Any, value: Any, accepts: Callable[[Any, Any], bool], path: str = ""
) -> Iterator[JsonDifference]:
    """Where `value` does not match `wanted`, in the order of `wanted`.

    Args:
        wanted: the pattern.
        value: a value of JSON, or NO_JSON.
        accepts: compares values that are neither objects nor arrays in the pattern.
        path: of `value` in the whole.
    """
    if isinstance(wanted, Mapping):
        if isinstance(value, dict):
            yield from _of_members(wanted, value, accepts, path)
        else:
            yield JsonDifference(path, wanted, value)
    elif isinstance(wanted, Sequence) and not isinstance(wanted, (str, bytes, bytearray)):
        if not isinstance(value, list):
            yield JsonDifference(path, wanted, value)
        elif len(wanted) != len(value):
            yield JsonDifference(path, wanted, value, said=_elements(len(wanted)))
        else:
            for index, (part, element) in enumerate(zip(wanted, value, strict=True)):
                yield from differences(part, element, accepts, f"{path}[{index}]")
    elif _differ_in_kind(wanted, value) or not accepts(wanted, value):
        yield JsonDifference(path, wanted, value)


def _of_members(
    wanted: Mapping[Any, Any], value: dict[str, Any], accepts: Callable[[Any, Any], bool], path: str
) -> Iterator[JsonDifference]:
    for name, part in wanted.items():
        here = f"{path}{_step(name)}"
        if name in value:
            yield from differences(part, value[name], accepts, here)
        else:
            yield JsonDifference(here, part, MISSING, near=_near(name, value.keys() - wanted.keys()))


def _differ_in_kind(wanted: Any, value: Any) -> bool:
    """Whether one is true or false, and the other a number: Python takes True for 1."""
    plain = isinstance(wanted, (int, float)) and isinstance(value, (int, float))
    return plain and isinstance(wanted, bool) is not isinstance(value, bool)


def _step(name: object) -> str:
    text = str(name)
    return f".{text}" if re.fullmatch(r"[^\W\d][\w-]*", text) else f"[{name!r}]"


def _near(name: object, others: set[str]) -> str:
    import difflib  # Imported only for errors.

    found = difflib.get_close_matches(str(name), sorted(others), n=1)
    return found[0] if found else ""


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
