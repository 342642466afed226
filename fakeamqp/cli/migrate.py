"""The command `migrate`: what to change in files that were written for an older fakeamqp."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakeamqp.renamed import CHANGES, Change
from fakeamqp.settings import PersonalityChoices

if TYPE_CHECKING:
    import argparse

_ENDINGS = (".py", ".md")
_RECEIVERS = {
    "Broker": re.compile(r"broker|proxy|endpoint", re.IGNORECASE),
    "Trace": re.compile(r"trace", re.IGNORECASE),
}
"""Names of variables that hold an object of a class."""
_MAKERS = ("Broker", "Proxy", "make_amqp_broker", "make_amqp_proxy")
_WITH_CHOICES = ("Broker", "make_amqp_broker", "amqp")
"""Calls that took the choices of a personality: the class, the fixture and the marker."""
_BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_CHOICES = frozenset(PersonalityChoices.__annotations__)
_ATTRIBUTES = {each.old: each for each in reversed(CHANGES) if each.how not in ("import", "fixture")}
_FIXTURES = {each.old: each.new for each in CHANGES if each.how == "fixture"}
_IMPORTS = {each.old: each for each in CHANGES if each.how == "import"}
_DEFAULT = '"rabbitmq-4.3"'


_INLINE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_NAME = re.compile(rf"((?:\w+\.)?)\b({'|'.join(_ATTRIBUTES)})\b(?!\.py)")


@dataclass(frozen=True)
class Edit:
    """A part of a text, in bytes, and what replaces it; None if only a person can say."""

    start: int
    end: int
    new: str | None
    hint: str = ""


def add(commands: Any) -> None:
    """Add the command."""
    migrate = commands.add_parser("migrate", help="show what to change in tests for an older fakeamqp")
    migrate.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a .py or .md file, or a folder")
    migrate.add_argument("--write", action="store_true", help="change what can be changed without a person")
    migrate.set_defaults(run=_migrate)


def _migrate(options: argparse.Namespace) -> int:
    left = 0
    for path in _files(options.paths):
        text = path.read_text("utf-8")
        changed, found = migrated(text, path.suffix)
        for line, old, new in found:
            print(f"{path}:{line}: {old}\n    {new}")
        if options.write and changed != text:
            path.write_text(changed, "utf-8")
        left += sum(new.startswith("by hand") or not options.write for _, _, new in found)
    print(f"{left} to change." if left else "Nothing to change.")
    return 1 if left else 0


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.suffix in _ENDINGS and each.is_file())
        else:
            yield path


def migrated(text: str, suffix: str = ".py") -> tuple[str, list[tuple[int, str, str]]]:
    """The changed text, and each change: the line, the old text, and the new one or "by hand: ..."."""
    if suffix == ".py":
        return _python(text)
    found: list[tuple[int, str, str]] = []

    def block(match: re.Match[str]) -> str:
        code = textwrap.dedent(match[2])
        changed, inside = _python(code)
        first = text.count("\n", 0, match.start(2))
        found.extend((line + first, old, new) for line, old, new in inside)
        return match[0].replace(match[2], textwrap.indent(changed, match[1])) if inside else match[0]

    text = _BLOCK.sub(block, text)
    return _INLINE.sub(lambda match: _inline(text, match, found), text), found


def _inline(text: str, match: re.Match[str], found: list[tuple[int, str, str]]) -> str:
    """A piece of code in a sentence, which is seldom a whole expression."""

    def name(part: re.Match[str]) -> str:
        change = _ATTRIBUTES[part[2]]
        if change.how != "name" or not _is_one(change, part[1].rstrip(".")):
            return part[0]
        return part[1] + change.new

    changed = _NAME.sub(name, match[0])
    if changed != match[0]:
        found.append((text.count("\n", 0, match.start()) + 1, match[0], changed))
    return changed


def _python(text: str) -> tuple[str, list[tuple[int, str, str]]]:
    found: list[tuple[int, str, str]] = []
    by_hand: set[tuple[int, str, str]] = set()
    while True:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return text, found
        source = _Source(text)
        edits = dict.fromkeys(_edits(tree, source))
        octets = source.octets
        end = len(octets)
        changed = False
        for edit in sorted(edits, key=lambda each: (each.start, -each.end), reverse=True):
            line, old = octets.count(b"\n", 0, edit.start) + 1, octets[edit.start : edit.end].decode()
            if edit.new is None:
                by_hand.add((line, " ".join(old.split()), f"by hand: {edit.hint}"))
            elif edit.end <= end:
                octets = octets[: edit.start] + edit.new.encode() + octets[edit.end :]
                end, changed = edit.start, True
                found.extend(_differing(line, old, edit.new))
        if not changed:
            return text, sorted({*found, *by_hand})
        by_hand.clear()
        text = octets.decode()


def _differing(first: int, old: str, new: str) -> Iterator[tuple[int, str, str]]:
    """The lines that differ; of a text that became longer or shorter, the first one."""
    before, after = old.splitlines(), new.splitlines()
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            yield first + number, one.strip(), other.strip()
            if len(before) != len(after):
                break


class _Source:
    """A text, and where its nodes stand in its bytes."""

    def __init__(self, text: str) -> None:
        self.octets = text.encode()
        self._lines = [0]
        for line in self.octets.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: Any) -> int:
        line: int = node.lineno
        return self._lines[line - 1] + int(node.col_offset)

    def end(self, node: Any) -> int:
        line: int = node.end_lineno
        return self._lines[line - 1] + int(node.end_col_offset)

    def text(self, node: Any) -> str:
        return self.octets[self.start(node) : self.end(node)].decode()


def _edits(tree: ast.Module, source: _Source) -> Iterator[Edit]:
    brokers = set(_brokers(tree))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            change = _ATTRIBUTES[node.attr]
            if _is_one(change, _name(node.value), brokers):
                yield from _attribute(change, node, called.get(id(node)), source)
        elif isinstance(node, ast.arg) and node.arg in _FIXTURES:
            start = source.start(node)
            yield Edit(start, start + len(node.arg.encode()), _FIXTURES[node.arg])
        elif isinstance(node, ast.Name) and node.id in _FIXTURES:
            yield Edit(source.start(node), source.end(node), _FIXTURES[node.id])
        elif isinstance(node, ast.ImportFrom) and node.module == "fakeamqp" and not node.level:
            yield from _import(node, source)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "fakeamqp"
            and node.attr in _IMPORTS
        ):
            yield Edit(source.start(node), source.end(node), None, str(_IMPORTS[node.attr]))
        elif isinstance(node, ast.Call):
            yield from _choices(tree, node, source)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield from _code(node, source)


def _code(node: ast.Constant, source: _Source) -> Iterator[Edit]:
    """Tests of plugins have files of tests in their texts."""
    literal = source.text(node)
    quotes = literal[:3]
    if quotes not in ('"""', "'''") or "\\" in literal:
        return
    inside = literal[3:-3]
    dedented = textwrap.dedent(inside)
    changed, _ = _python(dedented)
    if changed != dedented:
        margin = next(line for line in inside.splitlines() if line.strip())
        margin = margin[: len(margin) - len(margin.lstrip())]
        last = inside[len(inside.rstrip(" ")) :]
        new = textwrap.indent(changed, margin).rstrip(" ") + last
        yield Edit(source.start(node), source.end(node), quotes + new + quotes)


def _brokers(tree: ast.Module) -> Iterator[str]:
    """Variables to which the file gives a broker."""
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and _name(node.context_expr) in _MAKERS and node.optional_vars:
            yield _name(node.optional_vars)
        elif isinstance(node, ast.Assign) and _name(node.value) in _MAKERS:
            yield from map(_name, node.targets)


def _name(node: ast.AST) -> str:
    """The last name in an expression: of `self.broker` and `make_broker()`, for example."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_one(change: Change, receiver: str, brokers: Container[str] = ()) -> bool:
    """Whether a variable, by its name, has what has changed."""
    if receiver == change.new.rpartition(".")[0] or change.owner not in _RECEIVERS:
        return change.distinct and receiver != change.new.rpartition(".")[0]
    if change.distinct or (change.owner == "Broker" and receiver in brokers):
        return True
    return bool(_RECEIVERS[change.owner].search(receiver))


def _attribute(change: Change, node: ast.Attribute, call: ast.Call | None, source: _Source) -> Iterator[Edit]:
    # The name begins behind the receiver, which may stand on another line.
    end = source.end(node)
    start = end - len(node.attr)
    if change.how == "by hand":
        yield Edit(source.start(node), end, None, change.new)
    elif change.how == "name":
        yield Edit(start, end, change.new)
    elif call is None:
        return  # It may be written for this version.
    elif change.how == "property":
        given = [source.text(each) for each in (*call.args, *(each.value for each in call.keywords))]
        new = f"{change.new}.of({given[0]})" if given and given[0] != "None" else change.new
        yield Edit(start, source.end(call), new)
    else:
        yield from _of_exchange(change, call, start, source)


def _of_exchange(change: Change, call: ast.Call, start: int, source: _Source) -> Iterator[Edit]:
    """An argument `exchange`, the first one or a keyword, becomes `exchange(...)`."""
    arguments = list(call.args)
    keywords = {each.arg: each for each in call.keywords}
    if None in keywords or (arguments and isinstance(arguments[0], ast.Starred)):
        yield Edit(source.start(call), source.end(call), None, str(change))
        return
    of = [source.text(keywords.pop("exchange").value if "exchange" in keywords else arguments.pop(0))]
    if "virtual_host" in keywords:
        of.append(source.text(keywords.pop("virtual_host").value))
    left = [source.text(each) for each in (*arguments, *keywords.values())]
    method = change.new.rpartition(".")[2]
    yield Edit(start, source.end(call), f"exchange({', '.join(of)}).{method}({', '.join(left)})")


def _import(node: ast.ImportFrom, source: _Source) -> Iterator[Edit]:
    moved = [each for each in node.names if each.name in _IMPORTS]
    if not moved:
        return
    indent = " " * node.col_offset
    homes: dict[str, list[str]] = {}
    for each in node.names:
        home = _IMPORTS[each.name].new if each in moved else "fakeamqp"
        homes.setdefault(home, []).append(each.name + (f" as {each.asname}" if each.asname else ""))
    lines = [f"from {home} import {', '.join(names)}" for home, names in sorted(homes.items())]
    yield Edit(source.start(node), source.end(node), f"\n{indent}".join(lines))


def _choices(tree: ast.Module, call: ast.Call, source: _Source) -> Iterator[Edit]:
    name = _name(call.func)
    choices = [each for each in call.keywords if each.arg in _CHOICES]
    if name not in _WITH_CHOICES or not choices:
        return
    given = next((each for each in call.keywords if each.arg == "personality"), None)
    base = _DEFAULT if given is None else source.text(given.value)
    if given is None or isinstance(given.value, ast.Constant):
        base = f"Personality({base})"
    made = f"personality={base}.with_({', '.join(map(source.text, choices))})"
    kept = [source.text(each) for each in call.args]
    for each in call.keywords:
        if each not in choices and each is not given:
            kept.append(source.text(each))
    opening = source.end(call.func)
    yield Edit(opening, source.end(call), f"({', '.join([*kept, made])})")
    if "Personality(" in base:
        yield from _imported(tree, source)


def _imported(tree: ast.Module, source: _Source) -> Iterator[Edit]:
    """Import `Personality`, unless the file does so."""
    last = None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            last = node
            if isinstance(node, ast.ImportFrom) and any(each.name == "Personality" for each in node.names):
                return
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "fakeamqp" and not node.level:
            where = source.end(node.names[-1])
            yield Edit(where, where, ", Personality")
            return
    where = 0 if last is None else source.end(last)
    text = "from fakeamqp import Personality"
    yield Edit(where, where, f"{text}\n" if last is None else f"\n{text}")
