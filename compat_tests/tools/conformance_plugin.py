"""Pytest plugin: checks the marks `rule`, and writes the conformance report when asked to.

A test with a parameter `protocol` shows the rules of that protocol that its marks name, or that are the same;
so does one that names `protocols` in a mark, for all of them. One with a parameter `content_class`, file or
stream, does not show the rules of the other.

`--conformance PATH` names the file. What the bodies of tests show (see `evidence`) is gathered only then. Ids
and evidence travel in `user_properties`, so the report is the same under xdist.

With `--blank`, the bodies of tests do nothing; with `--mute`, brokers deliver nothing: see `blanking`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from compat_tests.tools.conformance import (
    MARKS,
    Catalogue,
    Results,
    pages,
    read_catalogues,
    to_the_letter,
    unknown,
)
from compat_tests.tools.evidence import asserts, gathering, mute_deliveries, watch_connections
from compat_tests.tools.folding import CASE, EVIDENCE, RULE, FoldedTest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--conformance",
        metavar="PATH",
        type=Path,
        help="write the report of protocol rules and the tests that show them to this file",
    )
    parser.getgroup("fakeamqp").addoption(
        "--blank", action="store_true", help="with --conformance: run tests without their bodies"
    )
    parser.getgroup("fakeamqp").addoption(
        "--mute", action="store_true", help="with --conformance: run tests on brokers that deliver nothing"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect outcomes where the report is written: not in the workers of xdist."""
    config.addinivalue_line("markers", "letter: the broker follows the letter of 0-9, whatever RabbitMQ does")
    config.addinivalue_line("markers", "rule(*ids): the rules of the protocol catalogue that this test holds")
    config.addinivalue_line(
        "markers", "deviates(*ids): this test shows that the broker does otherwise; with rule: except in spec"
    )
    config.addinivalue_line(
        "markers", "protocols(*names): the protocols that this test is about, and no other"
    )
    path = config.getoption("--conformance")
    if path is not None:
        watch_connections()
        if config.getoption("--mute"):
            mute_deliveries()
        config.pluginmanager.register(_Gatherer(blank=config.getoption("--blank")), "conformance-gatherer")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(config.invocation_params.dir / path), "conformance-reporter")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note every test's rules. Raises UsageError for an id that no rule has."""
    catalogues = read_catalogues()
    wrong = []
    for item in items:
        for mark in MARKS:
            ids = [id_ for each in item.iter_markers(mark) for id_ in each.args]
            wrong += [f"{item.nodeid}: {line}" for line in unknown(catalogues, ids)]
            shown = dict.fromkeys(_shown(item, ids, catalogues))
            item.user_properties += [(RULE, (id_, mark == "deviates")) for id_ in shown]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    if items and items[0].config.getoption("--mute"):
        items[:] = [item for item in items if _shows_rules(item) or _has_marked_cases(item)]


@pytest.hookimpl(optionalhook=True)
def pytest_cases(items: list[pytest.Item]) -> None:
    """The same for cases of a folded test."""
    pytest_collection_modifyitems(items)


class _Gatherer:
    """Notes with each marked test what its body shows."""

    def __init__(self, blank: bool) -> None:
        self.blank = blank

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Gather it while the body runs."""
        if self.blank:
            pyfuncitem.obj = lambda **_fixtures: None
        if not _shows_rules(pyfuncitem):
            return (yield)
        with gathering() as evidence:
            result = yield
        said = asserts(pyfuncitem.path, pyfuncitem.originalname)
        kind = evidence.kind if said else ""
        pyfuncitem.user_properties.append((EVIDENCE, (kind, sorted(evidence.personalities))))
        return result


def _shows_rules(item: pytest.Item) -> bool:
    return any(name == RULE for name, _ in item.user_properties)


def _has_marked_cases(item: pytest.Item) -> bool:
    """Whether this is a folded test whose marks are those of its cases."""
    if not isinstance(item, FoldedTest):
        return False
    cases = [
        case
        for mark in getattr(item.function, "pytestmark", ())
        if mark.name == "parametrize"
        for case in mark.args[1]
    ]
    return any(mark.name in MARKS for case in cases for mark in getattr(case, "marks", ()))


def _shown(item: pytest.Item, ids: Iterable[str], catalogues: Mapping[str, Catalogue]) -> Iterable[str]:
    """The rules that a test shows: those it names, in the terms of the protocols that it speaks."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "content_class" in callspec.params:
        other = {"file": "stream", "stream": "file"}[callspec.params["content_class"]]
        ids = [id_ for id_ in ids if not re.match(rf"[^/]+/{other}\b", id_)]
    said = item.get_closest_marker("protocols")
    if callspec is not None and "protocol" in callspec.params:
        spoken = [callspec.params["protocol"]]
    elif said is not None:
        spoken = list(said.args)
    else:
        return ids
    return [
        same
        for id_ in ids
        for protocol in spoken
        for same in (catalogues[protocol].same(id_) if protocol in catalogues else ())
    ]


Properties = list[tuple[str, object]]


def _cases(report: pytest.TestReport, outcome: str) -> Iterator[tuple[str, Properties]]:
    """The outcome and the properties of each case of a test."""
    yield outcome, report.user_properties
    for name, value in report.user_properties:
        if name == CASE:
            yield value  # type: ignore[misc]


def _add(results: Results, test: str, outcome: str, properties: Properties) -> None:
    """Add what a case shows of each of its rules."""
    kind, personalities = next((value for name, value in properties if name == EVIDENCE), ("", ()))  # type: ignore[misc]
    if outcome == "passed" and not kind:
        outcome = "empty"
    rules = [value for name, value in properties if name == RULE]
    for id_, deviates in rules:  # type: ignore[misc]
        other = [id_, not deviates] in rules or (id_, not deviates) in rules
        if other and deviates == to_the_letter(personalities):
            continue  # It has both marks, and this is the other personality.
        results.add(id_, test, outcome, deviates=deviates, personalities=personalities, kind=kind)


class _Reporter:
    """Collects outcomes and writes the report at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = Results()
        self.catalogues = read_catalogues()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the call, and what goes wrong or is skipped before and after it."""
        if report.when != "call" and report.passed:
            return
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        test = report.nodeid.split("[")[0]
        for own, properties in _cases(report, outcome):
            _add(self.results, test, own, properties)

    def pytest_sessionfinish(self) -> None:
        """Write the files."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for path, text in pages(self.catalogues.values(), self.results, self.path).items():
            path.write_text(text, encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where it is."""
        for protocol, catalogue in self.catalogues.items():
            states = [self.results.state(catalogue, rule) for rule in catalogue.rules]
            terminalreporter.write_line(
                f"conformance to {protocol}: {states.count('passing')} of {len(states)} rules pass, "
                f"{states.count('deviating')} deviate, {states.count('held by none')} are held by none, "
                f"{states.count('spec only')} are shown in spec only, "
                f"{states.count('in part')} in part, "
                f"{states.count('failing')} fail, {states.count('excepted')} are excepted, "
                f"{states.count('not yet')} are not covered yet: {self.path}"
            )
