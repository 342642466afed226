"""What the protocol demands, what is tested, and the report about both.

The catalogue is spec/rules/amqp-<protocol>.toml, what cannot be tested spec/rules/exceptions-<protocol>.toml.
Tests name the rules they hold with `@pytest.mark.rule("0-9-1/section/name")`; an id begins with its protocol.

Half of the rules of 0-9 say the same as one of 0-9-1 (`same_as`). A test of such a rule runs over both
protocols, and counts for the rule of the one it runs over, unless it says `@pytest.mark.protocols("0-9-1")`.
An exception counts for both.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "spec" / "rules"
PROTOCOL_0_9_1 = "0-9-1"
PROTOCOLS = (PROTOCOL_0_9_1, "0-9", "0-10")
#: Those that share their bytes, so that one test can run over both.
SHARING = (PROTOCOL_0_9_1, "0-9")
#: Those whose every rule must have a test or an exception; the others are on their way.
COMPLETE = frozenset(PROTOCOLS)
#: whose behaviour stands beside the documents
_OTHER = {PROTOCOL_0_9_1: "RabbitMQ", "0-9": "clients in the field", "0-10": "real brokers"}
#: how a rule can be shown, for those that every release must show
REQUIRED = frozenset({"wire", "functional", "restart"})


@dataclass(frozen=True)
class Rule:
    """One rule of the catalogue."""

    id: str
    level: str
    testable: str
    summary: str
    same_as: str | None = None
    wip: bool = False
    """The document calls it work in progress."""
    refuses: bool = False
    """It says what becomes of who does wrong."""

    @property
    def section(self) -> str:
        """Class and method, class, domain or topic."""
        return self.id.split("/")[1]

    @property
    def group(self) -> str:
        """The class, or the topic."""
        return self.section.split(".")[0]


@dataclass(frozen=True)
class Catalogue:
    """The rules of one protocol, in the order of their file, and the reasons why some have no test."""

    protocol: str
    rules: Mapping[str, Rule]
    exceptions: Mapping[str, str]

    def same(self, id_: str) -> list[str]:
        """The rules of this protocol that say what a rule of any protocol says: itself, or its like."""
        return [id_] if id_ in self.rules else self._same.get(id_, [])

    @cached_property
    def _same(self) -> dict[str, list[str]]:
        same: dict[str, list[str]] = {}
        for rule in self.rules.values():
            if rule.same_as:
                same.setdefault(rule.same_as, []).append(rule.id)
        return same

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """A line for each id that no rule has, with the nearest one that there is."""
        lines = []
        for id_ in dict.fromkeys(ids):
            if id_ not in self.rules:
                near = difflib.get_close_matches(id_, self.rules, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                lines.append(f"no rule {id_!r}{hint}")
        return lines


def read_catalogue(protocol: str = PROTOCOL_0_9_1, folder: Path = RULES) -> Catalogue:
    """Read rules and exceptions. Raises ValueError for an id that occurs twice or has no rule."""
    rules: dict[str, Rule] = {}
    for entry in _entries(folder / f"amqp-{protocol}.toml", "rule"):
        if entry["id"] in rules:
            raise ValueError(f"rule {entry['id']!r} is there twice")
        names = ("id", "level", "testable", "summary", "same_as", "wip")
        facts = {name: entry[name] for name in names if name in entry}
        rules[entry["id"]] = Rule(**facts, refuses="on_failure" in entry or "scope" in entry)
    exceptions: dict[str, str] = {}
    for entry in _entries(folder / f"exceptions-{protocol}.toml", "exception"):
        if entry["id"] in exceptions:
            raise ValueError(f"exception {entry['id']!r} is there twice")
        exceptions[entry["id"]] = entry["reason"]
    if wrong := Catalogue(protocol, rules, {}).unknown(exceptions):
        raise ValueError("exceptions: " + "\n".join(wrong))
    for other in {rule.same_as.split("/")[0] for rule in rules.values() if rule.same_as}:
        reasons = (catalogue_of(other) if folder == RULES else read_catalogue(other, folder)).exceptions
        for rule in rules.values():
            if rule.same_as in reasons:
                exceptions.setdefault(rule.id, reasons[rule.same_as])
    return Catalogue(protocol, rules, exceptions)


#: The catalogue of a protocol, read once.
catalogue_of: Callable[[str], Catalogue] = cache(read_catalogue)


def read_catalogues() -> dict[str, Catalogue]:
    """The catalogue of each protocol that has one; see `read_catalogue`."""
    return {protocol: catalogue_of(protocol) for protocol in PROTOCOLS}


def unknown(catalogues: Mapping[str, Catalogue], ids: Iterable[str]) -> list[str]:
    """A line for each id that no rule of its protocol has; see `Catalogue.unknown`."""
    lines = []
    for id_ in dict.fromkeys(ids):
        catalogue = catalogues.get(id_.split("/")[0])
        if catalogue is None:
            lines.append(f"no rule {id_!r}; an id begins with {' or '.join(catalogues)}")
        else:
            lines += catalogue.unknown([id_])
    return lines


def _entries(path: Path, table: str) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8")).get(table, []) if path.exists() else []


# --- marks, without running anything -------------------------------------------------------------------


def marked_rules(folder: Path, catalogue: Catalogue) -> dict[str, set[str]]:
    """Rule id -> files that mark it, or one that is the same, from the source of all tests below `folder`."""
    found: dict[str, set[str]] = {}
    known = {*catalogue.rules, *(rule.same_as for rule in catalogue.rules.values() if rule.same_as)}
    for path in sorted(folder.rglob("test_*.py")):
        for id_, said in marks_in(path.read_text(encoding="utf-8"), known):
            own = id_.split("/")[0]
            protocols = said or (SHARING if path.parent.name == "protocol" else (own,))
            if catalogue.protocol in protocols or catalogue.protocol == own:
                for same in catalogue.same(id_):
                    found.setdefault(same, set()).add(path.relative_to(folder).as_posix())
    return found


def marks_in(source: str, known: Container[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids in all calls of `pytest.mark.rule(...)`, or of a name `rule` that stands for it.

    With each come the protocols that its test or the module names in a call of `pytest.mark.protocols(...)`.
    In place of an f-string such as `f"0-9-1/tx/{name}"` come those `known` ids that it can become with a
    string of the same file.
    """
    for argument, said, strings in _marks(source):
        if isinstance(argument, str):
            yield argument, said
        else:
            before, behind = argument
            ids = (f"{before}{string}{behind}" for string in strings)
            yield from ((id_, said) for id_ in ids if id_ in known)


@cache
def _marks(source: str) -> list[tuple[str | tuple[str, str], tuple[str, ...], list[str]]]:
    """Of each mark: its argument (of an f-string, what is around the expression), protocols and strings."""
    tree = ast.parse(source)
    strings = sorted(
        {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    )
    module: tuple[str, ...] = ()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and "pytestmark" in map(ast.unparse, statement.targets):
            module = _protocols_in([statement.value])
    marks: list[tuple[str | tuple[str, str], tuple[str, ...], list[str]]] = []
    for statement in tree.body:
        said = module
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            said = _protocols_in(statement.decorator_list) or module
        for argument in _arguments("rule", statement):
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                marks.append((argument.value, said, strings))
            elif isinstance(argument, ast.JoinedStr):
                marks.append((_around(argument), said, strings))
    return marks


def _protocols_in(marks: list[ast.expr]) -> tuple[str, ...]:
    """What the calls of `protocols` among some marks name, but for those that stand in a parameter."""
    found = []
    for mark in marks:
        marked = mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark]
        for call in marked:
            if isinstance(call, ast.Call) and _called(call) == "protocols":
                found += [ast.literal_eval(argument) for argument in call.args]
    return tuple(found)


def _arguments(name: str, tree: ast.AST) -> Iterator[ast.expr]:
    """The arguments of all calls of a mark."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == name:
            yield from node.args


def _called(call: ast.Call) -> str | None:
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)


def _around(text: ast.JoinedStr) -> tuple[str, str]:
    """What stands before and behind the one expression of an f-string."""
    parts = [part.value if isinstance(part, ast.Constant) else None for part in text.values]
    place = parts.index(None)
    return "".join(map(str, parts[:place])), "".join(map(str, parts[place + 1 :]))


# --- the report ----------------------------------------------------------------------------------------


@dataclass
class Results:
    """What a run showed: rule id -> test -> its outcome, the worst of its parameters."""

    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, rule: str, test: str, outcome: str) -> None:
        """Note that `test` (without its parameters) has `outcome`: passed, skipped or failed."""
        tests = self.outcomes.setdefault(rule, {})
        ranks = ("skipped", "passed", "failed")
        tests[test] = max(tests.get(test, outcome), outcome, key=ranks.index)

    def state(self, catalogue: Catalogue, rule: str) -> str:
        """What is known about a rule: passing, failing, excepted, or not yet."""
        outcomes = set(self.outcomes.get(rule, {}).values())
        if "failed" in outcomes:
            return "failing"
        if "passed" in outcomes:
            return "passing"
        return "excepted" if rule in catalogue.exceptions else "not yet"


def page(catalogues: Iterable[Catalogue], results: Results) -> str:
    """The reports about all protocols, in Markdown."""
    return "\n".join(report(catalogue, results) for catalogue in catalogues)


def report(catalogue: Catalogue, results: Results) -> str:
    """The report about one protocol, in Markdown."""
    states = {rule: results.state(catalogue, rule) for rule in catalogue.rules}
    unfinished = [rule.id for rule in catalogue.rules.values() if rule.wip]
    parts = [
        f"# Conformance to AMQP {catalogue.protocol}",
        "This report is made by `make conformance`: every rule of the protocol's documents is an entry in "
        f"[the catalogue](../spec/rules/amqp-{catalogue.protocol}.toml), "
        "and tests say which rules they show. "
        "A rule is *covered* when a test that is marked with it ran, *passing* when all of those passed, "
        "*excepted* when there is nothing to test (the reasons are below), and otherwise *not yet* covered. "
        f"Where the documents and {_OTHER[catalogue.protocol]} differ, both personalities, `spec` and "
        "`rabbitmq-4.2`, are tested.",
        *([_UNFINISHED] if unfinished else []),
        "## Summary",
        _table(
            ("Level", *_COLUMNS),
            [
                (level, *_counts([states[r.id] for r in catalogue.rules.values() if r.level == level]))
                for level in ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "SEMANTIC")
                if any(r.level == level for r in catalogue.rules.values())
            ]
            + [("**all**", *_counts(list(states.values())))]
            + ([("*work in progress*", *_counts([states[id_] for id_ in unfinished]))] if unfinished else []),
        ),
        "SEMANTIC rules are statements that define behaviour without one of the capitalised words.",
        "## By class and section",
    ]
    for group in dict.fromkeys(rule.group for rule in catalogue.rules.values()):
        members = [rule for rule in catalogue.rules.values() if rule.group == group]
        sections = dict.fromkeys(rule.section for rule in members)
        rows = [
            (section, *_counts([states[rule.id] for rule in members if rule.section == section]))
            for section in sections
        ]
        if len(rows) > 1:
            rows.append(("**all**", *_counts([states[rule.id] for rule in members])))
        parts += [f"### {group}", _table(("Section", *_COLUMNS), rows)]
    parts.append("## Not yet covered")
    parts.append(_rule_list(catalogue, [rule for rule, state in states.items() if state == "not yet"]))
    parts.append("## Failing")
    failing = []
    for rule in (rule for rule, state in states.items() if state == "failing"):
        tests = [test for test, outcome in sorted(results.outcomes[rule].items()) if outcome == "failed"]
        failing.append(f"- `{rule}`: {catalogue.rules[rule].summary}")
        failing += [f"  - {test}" for test in tests]
    parts.append("\n".join(failing) or "None.")
    parts.append("## Exceptions")
    parts.append(
        "\n".join(
            f"- `{rule}`: {catalogue.rules[rule].summary} *{catalogue.exceptions[rule]}*"
            for rule in catalogue.rules
            if states[rule] == "excepted"
        )
        or "None."
    )
    parts.append("## Rules and their tests")
    for section in dict.fromkeys(rule.section for rule in catalogue.rules.values()):
        rows = [
            (_name(rule), rule.level, _mark(states[rule.id]), _tests(results, rule.id))
            for rule in catalogue.rules.values()
            if rule.section == section
        ]
        parts += [f"### {section}: rules", _table(("Rule", "Level", "State", "Tests"), rows)]
    return "\n\n".join(parts) + "\n"


_UNFINISHED = (
    "Rules about what the document itself calls work in progress, for test implementations only, are marked "
    "*wip*. In the summary they are among the others, and once more by themselves."
)


def _name(rule: Rule) -> str:
    return f"`{rule.id.split('/', 2)[2]}`" + (" *wip*" if rule.wip else "")


_COLUMNS = ("Rules", "Covered", "Passing", "Excepted", "Not yet")


def _counts(states: list[str]) -> tuple[int, ...]:
    passing = states.count("passing")
    return (
        len(states),
        passing + states.count("failing"),
        passing,
        states.count("excepted"),
        states.count("not yet"),
    )


def _mark(state: str) -> str:
    return state if state in ("passing", "excepted") else f"**{state}**"


def _tests(results: Results, rule: str) -> str:
    return "<br>".join(sorted(results.outcomes.get(rule, {})))


def _rule_list(catalogue: Catalogue, rules: list[str]) -> str:
    return "\n".join(f"- `{rule}`: {catalogue.rules[rule].summary}" for rule in rules) or "None."


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    numeric = [all(isinstance(row[i], int) for row in rows) for i in range(len(head))]
    lines = [" | ".join(head), " | ".join("---:" if number else "---" for number in numeric)]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
