"""Pytest plugin: checks the marks `rule`, and writes the conformance report when asked to.

A test with a parameter `protocol` shows the rules of that protocol that its marks name, or that are the same;
so does one that names `protocols` in a mark, for all of them.

`--conformance PATH` names the file. Ids travel in `user_properties`, so the report is the same under xdist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from compat_tests.conformance import Catalogue, Results, page, read_catalogues, unknown
from compat_tests.folding import CASE, RULE


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--conformance",
        metavar="PATH",
        type=Path,
        help="write the report of protocol rules and the tests that show them to this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect outcomes where the report is written: not in the workers of xdist."""
    config.addinivalue_line("markers", "letter: the broker follows the letter of 0-9, whatever RabbitMQ does")
    config.addinivalue_line("markers", "rule(id): the rule of the protocol catalogue that this test holds")
    config.addinivalue_line(
        "markers", "protocols(*names): the protocols that this test is about, and no other"
    )
    path = config.getoption("--conformance")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(config.invocation_params.dir / path), "conformance-reporter")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note every test's rules. Raises UsageError for an id that no rule has."""
    catalogues = read_catalogues()
    wrong = []
    for item in items:
        ids = list(_ids(item))
        wrong += [f"{item.nodeid}: {line}" for line in unknown(catalogues, ids)]
        item.user_properties += [(RULE, id_) for id_ in dict.fromkeys(_shown(item, ids, catalogues))]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


@pytest.hookimpl(optionalhook=True)
def pytest_cases(items: list[pytest.Item]) -> None:
    """The same for cases of a folded test."""
    pytest_collection_modifyitems(items)


def _ids(item: pytest.Item) -> Iterable[str]:
    for mark in item.iter_markers("rule"):
        yield from mark.args


def _shown(item: pytest.Item, ids: Iterable[str], catalogues: Mapping[str, Catalogue]) -> Iterable[str]:
    """The rules that a test shows: those it names, in the terms of the protocols that it speaks."""
    callspec = getattr(item, "callspec", None)
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


def _outcomes(report: pytest.TestReport, outcome: str) -> Iterator[tuple[str, str]]:
    """Each rule that a test shows, with the outcome of the test, or of the case that shows the rule."""
    for name, value in report.user_properties:
        if name == RULE:
            yield str(value), outcome
        elif name == CASE:
            own, rules = value  # type: ignore[misc]
            yield from ((rule, own) for rule in rules)


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
        for rule, shown in _outcomes(report, outcome):
            self.results.add(rule, test, shown)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(page(self.catalogues.values(), self.results), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where it is."""
        for protocol, catalogue in self.catalogues.items():
            states = [self.results.state(catalogue, rule) for rule in catalogue.rules]
            terminalreporter.write_line(
                f"conformance to {protocol}: {states.count('passing')} of {len(states)} rules pass, "
                f"{states.count('failing')} fail, {states.count('excepted')} are excepted, "
                f"{states.count('not yet')} are not covered yet: {self.path}"
            )
