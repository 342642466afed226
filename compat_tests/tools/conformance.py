"""What the protocol demands, what is tested, and the report about both.

The catalogue is spec/rules/amqp-<protocol>.toml, what cannot be tested spec/rules/exceptions-<protocol>.toml.
Tests name the rules they hold with `@pytest.mark.rule("0-9-1/section/name")`; an id begins with its protocol.
A rule that says several things has clauses in spec/rules/clauses.toml, and tests name the one that they hold:
`"0-9-1/section/name#clause"`. `@pytest.mark.deviates(...)` takes the same ids: the test asserts that the
broker does otherwise, by decision. On a test that also says `rule`, it counts for all but "spec".

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

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "spec" / "rules"
PROTOCOL_0_9_1 = "0-9-1"
PROTOCOLS = (PROTOCOL_0_9_1, "0-9", "0-10", "1-0")
#: Those that share their bytes, so that one test can run over both.
SHARING = (PROTOCOL_0_9_1, "0-9")
#: Those whose every rule must have a test or an exception.
COMPLETE = frozenset(PROTOCOLS)
#: Those that the personality `spec` does not speak.
NOT_IN_SPEC = frozenset(("1-0",))
#: The marks that name rules.
MARKS = ("rule", "deviates")
#: The personality that brokers have unless they are told otherwise, and the one that follows the documents.
DEFAULT, TO_THE_LETTER = "rabbitmq-4.3", "spec"
#: whose behaviour stands beside the documents
_OTHER = {
    PROTOCOL_0_9_1: "RabbitMQ",
    "0-9": "clients in the field",
    "0-10": "real brokers",
    "1-0": "RabbitMQ",
}


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
    rabbitmq: str = ""
    """How RabbitMQ is known to do otherwise."""

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
    clauses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of rules that say several things: each by its name."""

    def same(self, id_: str) -> list[str]:
        """The rules of this protocol that say what a rule of any protocol says: itself, or its like.

        An id may have a clause behind it, which the results have, too.
        """
        rule, mark, clause = id_.partition("#")
        same = [rule] if rule in self.rules else self._same.get(rule, [])
        return [each + mark + clause for each in same]

    @cached_property
    def _same(self) -> dict[str, list[str]]:
        same: dict[str, list[str]] = {}
        for rule in self.rules.values():
            if rule.same_as:
                same.setdefault(rule.same_as, []).append(rule.id)
        return same

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """A line for each id that no rule has, with the nearest one that there is; the same for clauses."""
        lines = []
        for id_ in dict.fromkeys(ids):
            rule, _, clause = id_.partition("#")
            clauses = self.clauses.get(rule, {})
            if rule not in self.rules:
                near = difflib.get_close_matches(rule, self.rules, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                lines.append(f"no rule {rule!r}{hint}")
            elif clause and clause not in clauses:
                has = f"it has {', '.join(clauses)}" if clauses else "it has none in spec/rules/clauses.toml"
                lines.append(f"rule {rule!r} has no clause {clause!r}: {has}")
            elif clauses and not clause:
                lines.append(f"rule {rule!r} says several things; name one: {rule}#{'|'.join(clauses)}")
        return lines


def read_catalogue(protocol: str = PROTOCOL_0_9_1, folder: Path = RULES) -> Catalogue:
    """Read rules and exceptions. Raises ValueError for an id that occurs twice or has no rule."""
    rules: dict[str, Rule] = {}
    for entry in _entries(folder / f"amqp-{protocol}.toml", "rule"):
        if entry["id"] in rules:
            raise ValueError(f"rule {entry['id']!r} is there twice")
        names = ("id", "level", "testable", "summary", "same_as", "wip", "rabbitmq")
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
    clauses = _clauses(folder)
    own = {
        rule.id: dict(said)
        for rule in rules.values()
        if (said := clauses.get(rule.id) or clauses.get(rule.same_as or ""))
    }
    return Catalogue(protocol, rules, exceptions, own)


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


@cache
def _clauses(folder: Path) -> dict[str, dict[str, str]]:
    """The clauses of rules of any protocol."""
    path = folder / "clauses.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _entries(path: Path, table: str) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8")).get(table, []) if path.exists() else []


# --- marks, without running anything -------------------------------------------------------------------


def marked_rules(folder: Path, catalogue: Catalogue) -> dict[str, set[str]]:
    """Rule id -> files that mark it, or one that is the same, from the source of all tests below `folder`."""
    found: dict[str, set[str]] = {}
    known = {*catalogue.rules, *(rule.same_as for rule in catalogue.rules.values() if rule.same_as)}
    for path in sorted(folder.rglob("test_*.py")):
        for id_, said in marks_in(path.read_text(encoding="utf-8"), known):
            id_ = id_.partition("#")[0]
            own = id_.split("/")[0]
            protocols = said or (SHARING if path.parent.name == "amqp_0_9_1" else (own,))
            if catalogue.protocol in protocols or catalogue.protocol == own:
                for same in catalogue.same(id_):
                    found.setdefault(same, set()).add(path.relative_to(folder).as_posix())
    return found


def marks_in(source: str, known: Container[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids in all calls of `pytest.mark.rule(...)` or `deviates`, or of such a name that stands for it.

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
            yield from ((id_, said) for id_ in ids if id_.partition("#")[0] in known)


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
        for argument in _arguments(MARKS, statement):
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


def _arguments(names: Container[str | None], tree: ast.AST) -> Iterator[ast.expr]:
    """The arguments of all calls of some marks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in names:
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
class Shown:
    """What the cases of one test show about a rule."""

    outcome: str
    """The worst: failed, empty (nothing was shown), passed, skipped."""
    deviates: bool = False
    """They assert that the broker does otherwise."""
    clauses: set[str] = field(default_factory=set)
    personalities: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)


#: From the one that says least to the worst.
_RANKS = ("skipped", "passed", "empty", "failed")
#: What is known about a rule that some test asserts something about.
_COVERED = ("passing", "deviating", "held by none", "spec only", "in part", "failing")


def to_the_letter(personalities: Iterable[str]) -> bool:
    """Whether `spec` is among some personalities; a test may have changed choices of it."""
    return TO_THE_LETTER in (name.removesuffix("*") for name in personalities)


@dataclass
class Results:
    """What a run showed: rule id -> test -> what its cases show. Those that deviate stand apart."""

    shown: dict[str, dict[tuple[str, bool], Shown]] = field(default_factory=dict)

    def add(
        self,
        rule: str,
        test: str,
        outcome: str,
        *,
        deviates: bool = False,
        personalities: Iterable[str] = (DEFAULT, TO_THE_LETTER),
        kind: str = "wire",
    ) -> None:
        """Note what a case of `test` shows; `rule` may have a clause behind it.

        Args:
            rule: the id of the rule.
            test: the id of the test, without its parameters.
            outcome: passed, skipped, failed, or empty: it passed, and shows nothing.
            deviates: it asserts that the broker does otherwise.
            personalities: of the brokers that took part.
            kind: of the evidence; see `Evidence.kind`.
        """
        id_, _, clause = rule.partition("#")
        shown = self.shown.setdefault(id_, {}).setdefault((test, deviates), Shown(outcome, deviates))
        shown.outcome = max(shown.outcome, outcome, key=_RANKS.index)
        if outcome == "passed":
            shown.clauses.add(clause)
            shown.personalities.update(personalities)
            shown.kinds.add(kind)

    def tests(self, rule: str, *outcomes: str) -> list[tuple[str, Shown]]:
        """The tests of a rule, by name, with these outcomes or with any."""
        tests = sorted(self.shown.get(rule, {}).items())
        return [(test, shown) for (test, _), shown in tests if not outcomes or shown.outcome in outcomes]

    def holds_in(self, rule: str, *, deviates: bool = False) -> set[str]:
        """The personalities in which tests show the rule, or that the broker does otherwise."""
        shown = [each for _, each in self.tests(rule, "passed") if each.deviates == deviates]
        return set().union(*(each.personalities for each in shown))

    def missing_clauses(self, catalogue: Catalogue, rule: str) -> list[str]:
        """The clauses that no test shows."""
        shown = set().union(*(each.clauses for _, each in self.tests(rule, "passed")))
        return [clause for clause in catalogue.clauses.get(rule, {}) if clause not in shown]

    def held_by_none(self, catalogue: Catalogue, rule: str) -> list[str]:
        """The clauses that no personality holds, `spec` included; "" of a rule without clauses."""
        passed = [each for _, each in self.tests(rule, "passed")]
        held = set().union(*(each.clauses for each in passed if not each.deviates))
        broken = [each for each in passed if each.deviates and to_the_letter(each.personalities)]
        broken_clauses = set().union(*(each.clauses for each in broken))
        return [clause for clause in catalogue.clauses.get(rule, {"": ""}) if clause in broken_clauses - held]

    def state(self, catalogue: Catalogue, rule: str) -> str:
        """What is known about a rule: see the head of the report."""
        tests = self.tests(rule, "failed", "passed")
        if any(shown.outcome == "failed" for _, shown in tests):
            return "failing"
        if not tests:
            return "excepted" if rule in catalogue.exceptions else "not yet"
        if self.missing_clauses(catalogue, rule):
            return "in part"
        if self.held_by_none(catalogue, rule):
            return "held by none"
        holds, deviates = self.holds_in(rule), self.holds_in(rule, deviates=True)
        if DEFAULT in deviates:
            return "deviating"
        by_the_letter = {TO_THE_LETTER} | {name for name in holds if name.endswith("*")}
        return "spec only" if holds and holds <= by_the_letter else "passing"


def pages(catalogues: Iterable[Catalogue], results: Results, path: Path) -> dict[Path, str]:
    """A page with the numbers of all protocols, and beside it the report about each, in Markdown."""
    reports = {path.with_stem(f"{path.stem}-{each.protocol}"): each for each in catalogues}
    return {
        path: _overview(reports, results),
        **{own: report(each, results) for own, each in reports.items()},
    }


def _overview(reports: Mapping[Path, Catalogue], results: Results) -> str:
    rows = [
        (
            f"[{catalogue.protocol}]({own.name})",
            *_counts([results.state(catalogue, rule) for rule in catalogue.rules]),
        )
        for own, catalogue in reports.items()
    ]
    parts = [
        "# Conformance to AMQP",
        "This page says how many rules of each protocol's documents tests show. Each protocol has a "
        "page with its deviations and all of its rules. `make conformance` writes these pages.",
        _table(("Protocol", *_COLUMNS), rows),
        _explained(),
        "[Decisions](decisions.md) says why the default deviates.",
    ]
    return "\n\n".join(parts) + "\n"


def _explained() -> str:
    return "\n".join(f"- *{state}*: {text}" for state, text in _STATES.items())


def report(catalogue: Catalogue, results: Results) -> str:
    """The report about one protocol, in Markdown."""
    states = {rule: results.state(catalogue, rule) for rule in catalogue.rules}
    unfinished = [rule.id for rule in catalogue.rules.values() if rule.wip]
    parts = [
        f"# Conformance to AMQP {catalogue.protocol}",
        f"This page lists the rules of AMQP {catalogue.protocol}, and the tests that show each. "
        "`make conformance` writes it. Every rule of the protocol's documents is an entry in "
        f"[the catalogue](../spec/rules/amqp-{catalogue.protocol}.toml), "
        "and tests say which rules they show. "
        "A test counts if it asserts something, and if its body exchanges bytes with a broker or, where it "
        "is about the codec alone, runs that.",
        _explained(),
        _personalities(catalogue.protocol),
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
    parts.append("## Covered in part")
    partly = []
    for rule in (rule for rule, state in states.items() if state == "in part"):
        partly.append(f"- `{rule}`: {catalogue.rules[rule].summary}")
        clauses = catalogue.clauses[rule]
        partly += [f"  - no test: {clauses[name]}" for name in results.missing_clauses(catalogue, rule)]
    parts.append("\n".join(partly) or "None.")
    parts.append("## Failing")
    failing = []
    for rule in (rule for rule, state in states.items() if state == "failing"):
        failing.append(f"- `{rule}`: {catalogue.rules[rule].summary}")
        failing += [f"  - {test}" for test, _ in results.tests(rule, "failed")]
    parts.append("\n".join(failing) or "None.")
    for state, head in (("deviating", "Deviating"), ("held by none", "Held by no personality")):
        parts.append(f"## {head}")
        parts.append(
            "\n".join(
                line
                for rule in states
                if states[rule] == state
                for line in _deviating(catalogue, results, rule)
            )
            or "None."
        )
    parts.append("## Shown in spec only")
    parts.append(_rule_list(catalogue, [rule for rule, state in states.items() if state == "spec only"]))
    parts.append("## Tests that show nothing")
    empty = sorted({test for rule in catalogue.rules for test, _ in results.tests(rule, "empty")})
    parts.append("\n".join(f"- {test}" for test in empty) or "None.")
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
            (
                _name(rule),
                rule.level,
                _mark(states[rule.id]),
                _holds_in(results, rule.id),
                _tests(catalogue, results, rule.id),
            )
            for rule in catalogue.rules.values()
            if rule.section == section
        ]
        parts += [
            "<details markdown>\n"
            f"<summary>{section}: {len(rows)} {'rule' if len(rows) == 1 else 'rules'}</summary>",
            _table(("Rule", "Level", "State", "Holds in", "Tests"), rows),
            "</details>",
        ]
    return "\n\n".join(parts) + "\n"


def _personalities(protocol: str) -> str:
    """What the column *Holds in* means."""
    column = "*Holds in* names the personalities of the brokers in which tests show a rule"
    if protocol in NOT_IN_SPEC:
        return (
            f"The personality `spec` does not speak AMQP {protocol}: where the documents and "
            f"{_OTHER[protocol]} differ, every personality follows {_OTHER[protocol]}. {column}; `*` stands "
            "for one that a test changed."
        )
    return (
        f"Where the documents and {_OTHER[protocol]} differ, the personality `spec` follows the "
        f"documents, and the default, `{DEFAULT}`, does not. {column}: *both* stands for these two, and `*` "
        "for one that a test changed."
    )


_UNFINISHED = (
    "Rules about what the document itself calls work in progress, for test implementations only, are marked "
    "*wip*. In the summary they are among the others, and once more by themselves."
)


def _name(rule: Rule) -> str:
    return f"`{rule.id.split('/', 2)[2]}`" + (" *wip*" if rule.wip else "")


_STATES = {
    "passing": "tests that are marked with it show it, in the default personality; all its clauses, if any.",
    "deviating": "the default does otherwise, by decision, and a test shows that.",
    "held by none": "no personality does it, or a clause of it, by decision, and tests show that.",
    "spec only": "tests show it in the personality `spec`, and none shows what the default does.",
    "in part": "no test shows some of its clauses.",
    "excepted": "there is nothing to test; the report of the protocol says why.",
    "not yet": "no test shows it.",
}

_COLUMNS = (
    "Rules",
    "Covered",
    "Passing",
    "Deviating",
    "Held by none",
    "Spec only",
    "In part",
    "Excepted",
    "Not yet",
)


def _counts(states: list[str]) -> tuple[int, ...]:
    covered = sum(states.count(state) for state in _COVERED)
    return (len(states), covered, *(states.count(column.lower()) for column in _COLUMNS[2:]))


def _mark(state: str) -> str:
    return state if state in ("passing", "excepted") else f"**{state}**"


def _holds_in(results: Results, rule: str) -> str:
    holds = results.holds_in(rule)
    if {DEFAULT, TO_THE_LETTER} <= holds:
        return "both"
    shown = {name for name in holds if name.removesuffix("*") == name or name.removesuffix("*") not in holds}
    code = any("code" in each.kinds for _, each in results.tests(rule, "passed"))
    return ", ".join(sorted(shown)) or ("codec" if code else "")


def _tests(catalogue: Catalogue, results: Results, rule: str) -> str:
    lines = []
    tests = results.tests(rule)
    deviating = {test for test, shown in tests if shown.deviates}
    for test, shown in tests:
        if test in deviating and not shown.deviates:
            continue  # The other line about it says more.
        clauses = ", ".join(name for name in catalogue.clauses.get(rule, {}) if name in shown.clauses)
        notes = [*([clauses] if clauses else []), *(["deviates"] if shown.deviates else [])]
        notes += ["shows nothing"] if shown.outcome == "empty" else []
        lines.append(_short(test) + (f" ({'; '.join(notes)})" if notes else ""))
    return "<br>".join(lines)


def _short(test: str) -> str:
    """A test without its folder."""
    return test.rpartition("/")[2]


def _deviating(catalogue: Catalogue, results: Results, rule: str) -> Iterator[str]:
    """A rule, its clauses that no personality holds, and the tests that show the deviation."""
    said = catalogue.rules[rule].rabbitmq
    yield f"- `{rule}`: {catalogue.rules[rule].summary}" + (f" *RabbitMQ: {said}*" if said else "")
    clauses = catalogue.clauses.get(rule, {})
    yield from (f"  - not held: {clauses[name]}" for name in results.held_by_none(catalogue, rule) if name)
    yield from (f"  - {_short(test)}" for test, shown in results.tests(rule, "passed") if shown.deviates)


def _rule_list(catalogue: Catalogue, rules: list[str]) -> str:
    return "\n".join(f"- `{rule}`: {catalogue.rules[rule].summary}" for rule in rules) or "None."


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    numeric = [all(isinstance(row[i], int) for row in rows) for i in range(len(head))]
    lines = [" | ".join(head), " | ".join("---:" if number else "---" for number in numeric)]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
