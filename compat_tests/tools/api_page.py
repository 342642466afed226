"""The tables of docs/api.md, made from the public names of the code: `python -m compat_tests.tools.api_page`.

A name is public if a public module exports it. A member is public if a public class, or a class of fakeamqp
that it inherits from, defines it, and its name does not begin with an underscore. Of an event loop, only what
it has besides those of asyncio is listed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

from fakeamqp.blocking import blocking

__all__ = ["MODULES", "PAGE", "main", "members", "names", "page", "undocumented"]

PAGE = Path(__file__).parents[2] / "docs" / "api.md"

MODULES = (
    "fakeamqp",
    "fakeamqp.admin",
    "fakeamqp.errors",
    "fakeamqp.settings",
    "fakeamqp.inspect",
    "fakeamqp.inspect.snapshot",
    "fakeamqp.inspect.explanations",
    "fakeamqp.faults",
    "fakeamqp.trace",
    "fakeamqp.replay",
    "fakeamqp.portable",
    "fakeamqp.simulation",
    "fakeamqp.services",
    "fakeamqp.protocols.amqp_0_9.public",
    "fakeamqp.spark",
    "fakeamqp.spark.testing",
    "pytest_fakeamqp",
)
"""The public modules, in the order of the page."""

_INTERNAL = {
    "fakeamqp.inspect": {"Expectation", "Inspection"},
    "fakeamqp.inspect.snapshot": {"topology"},
    "fakeamqp.inspect.explanations": {"explain"},
    "fakeamqp.portable": {"BrokerRoute", "PortableRequests", "ToBroker", "ToURL", "declared"},
    "fakeamqp.services": {"Services"},
    "fakeamqp.trace": {"Recorder"},
    "pytest_fakeamqp": {"aio_pika_connection_on_anyio"},
}
"""Names that a public module exports for other packages of the project."""

_HEAD = """\
# Public names

This page lists every name that users may rely on, by module. Everything else may change without notice:
modules, names and members that are not listed, and names that begin with an underscore.

The docstrings describe the arguments of functions and methods. `python -m compat_tests.tools.api_page` writes
this page, and a test compares it with the code.
"""


_CONSTANTS = {
    "MALFORMATIONS": "The names of the malformed frames that `malform` sends",
    "PERSONALITIES": "The personalities by name",
    "PersonalityName": "The name of a personality",
    "Count": "A number, or a range as (at least, at most) where at most may be None",
}

_MEMBERS_ELSEWHERE = {"BrokerArguments", "PersonalityChoices", "ProxyArguments"}
"""Classes whose keys are the arguments of `Broker` and `Proxy` and the fields of `Personality`."""

_OURS = ("fakeamqp", "pytest_")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    shown: set[type] = set()
    for name in MODULES:
        exported = names(importlib.import_module(name))
        rows = ((each, _CONSTANTS.get(each) or _summary(value)) for each, value in exported.items())
        parts.append(f"## `{name}`\n\n{_table(rows)}")
        for each, value in exported.items():
            if inspect.isclass(value) and value not in shown and each not in _MEMBERS_ELSEWHERE:
                shown.add(value)
                parts.append(_section(each, value))
    return "\n".join(filter(None, parts))


def _section(name: str, owner: type) -> str:
    rows = members(owner)
    if not rows:
        return ""
    bases = " and ".join(f"`{each.__name__}`" for each in _public_bases(owner))
    inherited = f"The members of {bases}, and:\n\n" if bases else ""
    return f"### `{name}`\n\n{inherited}{_table(rows.items())}"


def names(module: ModuleType) -> dict[str, Any]:
    """The public names of a module, in alphabetical order, with their values."""
    internal = _INTERNAL.get(module.__name__, set())
    exported = sorted(set(module.__all__) - internal)
    return {name: getattr(module, name) for name in exported if not name.startswith("pytest_")}


def members(owner: type) -> dict[str, str]:
    """The public members of a class with what its documentation says of each, in alphabetical order.

    Members of a public base class are left out, as they are listed there, and so are overrides without
    documentation of their own.
    """
    found: dict[str, str] = {}
    foreign = _interface(owner)
    listed = {each for base in _public_bases(owner) for each in base.__mro__}
    overridden = {name for each in listed if each.__module__.startswith(_OURS) for name in vars(each)}
    for each in reversed(owner.__mro__):
        if each in listed or not each.__module__.startswith(_OURS):
            continue
        documented = _described_fields(each)
        for name in (*inspect.get_annotations(each), *vars(each)):
            if not name.startswith("_") and name not in foreign:
                text = _member_summary(each, name) or documented.get(name) or _type(each, name)
                if text or name not in overridden:
                    found[name] = text or found.get(name, "")
    elsewhere = {name for base in _public_bases(owner) for name in inspect.get_annotations(base)}
    return {name: found[name] for name in sorted(found) if not (is_typeddict(owner) and name in elsewhere)}


def _interface(owner: type) -> set[str]:
    """The members that an event loop has because it is one."""
    return set(vars(asyncio.AbstractEventLoop)) if issubclass(owner, asyncio.AbstractEventLoop) else set()


def _type(owner: type, name: str) -> str:
    """The annotation of a field that has no other documentation."""
    annotation = inspect.get_annotations(owner).get(name, "")
    text = str(getattr(annotation, "__forward_arg__", annotation))
    return f"`{text}`" if text else ""


def _public_bases(owner: type) -> list[type]:
    """The nearest base classes that public modules export."""
    public = {
        value
        for name in MODULES
        for value in names(importlib.import_module(name)).values()
        if inspect.isclass(value)
    }
    if is_typeddict(owner):  # At runtime a typed dictionary does not know its bases.
        keys = set(inspect.get_annotations(owner))
        return [each for each in public if is_typeddict(each) and set(inspect.get_annotations(each)) < keys]
    bases = [each for each in owner.__mro__[1:] if each in public]
    return [each for each in bases if not any(each in other.__mro__[1:] for other in bases)]


def undocumented() -> Iterator[str]:
    """Public functions, classes, methods and properties without a docstring."""
    for name in MODULES:
        for each, value in names(importlib.import_module(name)).items():
            if (inspect.isclass(value) or inspect.isfunction(value)) and not _summary(value):
                yield f"{name}.{each}"
            if inspect.isclass(value):
                for member, text in members(value).items():
                    if not text and isinstance(vars(value).get(member), property | type(main)):
                        yield f"{name}.{each}.{member}"


def _described_fields(owner: type) -> dict[str, str]:
    """What is said of the fields of a class: in its docstring, or in a text or comment beside each."""
    text = inspect.cleandoc(owner.__doc__ or "")
    entries = re.findall(r"^    ([a-z_0-9]+): (.*(?:\n        .*)*)", text, flags=re.MULTILINE)
    described = {name: _sentence(description) for name, description in entries}
    for block in re.finditer(
        r"(?:^ +#: (.+)\n)?^ +(?:self\.)?([a-z]\w*)(?::.*| =.*)\n"
        r"(?:(?<=\(\n)(?: {8}.*\n)+ +\)\n)?(?: +\"\"\"(\S[\s\S]*?)\"\"\")?",
        _source(owner),
        re.MULTILINE,
    ):
        before, name, after = block.groups()
        if before or after:
            described.setdefault(name, _sentence(before or after))
    return described


def _source(owner: type) -> str:
    try:
        return inspect.getsource(owner)
    except (OSError, TypeError):
        return ""


def _member_summary(owner: type, name: str) -> str:
    value = vars(owner).get(name)
    if isinstance(value, blocking):
        return f"{_summary(getattr(owner, name))}; `{name}.aio` for coroutines"
    value = getattr(value, "__func__", value)
    return _summary(value) if isinstance(value, property) or inspect.isroutine(value) else ""


def _summary(value: Any) -> str:
    """The first sentence of a docstring of ours."""
    if not (inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)):
        wrapped = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
        return _summary(wrapped) if callable(wrapped) else ""
    text = inspect.cleandoc(value.__doc__ or "")
    return _sentence(text.split("\n\n")[0])


def _sentence(text: str) -> str:
    one_line = " ".join(text.split())
    end = re.search(r"(?<!\.)[.:](?= [A-Z`]|$)", one_line)
    sentence = one_line[: end.start()] if end else one_line
    return sentence[:1].upper() + sentence[1:]


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in rows]
    return "\n".join(["| name | meaning |", "|---|---|", *lines]) + "\n"


if __name__ == "__main__":
    main()
