"""Pytest plugin: all parameters of a test function are the cases of one test.

A case of less than a millisecond costs more than that as a test of its own: every process collects it, and it
is reported by itself. In the folders of `FOLDED`, all that `parametrize` and parametrized fixtures make of a
function runs as one test, case by case, each with fixtures of its own. The test fails if any case fails, and
lists every case that did. The cases are made when the test runs.

`--each-case` makes every case a test of its own again. So do `-k`, and an id with a case in it:
`pytest 'compat_tests/unit/test_a.py::test_b[case]'`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compat_tests.tools.matrix import Failed, listed

__all__ = ["FOLDED", "FoldedTest"]

_HERE = Path(__file__).resolve().parents[1]
#: Folders with thousands of quick cases.
FOLDED = (_HERE / "protocol", _HERE / "unit")
#: Tracebacks that a report shows; of further cases it shows the error only.
SHOWN = 3
RULE = "rule"
"""The property with the id of a rule that a test shows, and whether it shows that the broker deviates."""
EVIDENCE = "evidence"
"""The property with the kind of what the body of a test shows, and the personalities of its brokers."""
CASE = "case"
"""The property with the outcome of one case, and those of its properties that have one of these names."""

_ACTED_ON = frozenset({"skip", "skipif", "xfail"})
_EACH_CASE = pytest.StashKey[bool]()


class Hooks:
    """What this plugin asks others."""

    def pytest_cases(self, items: list[pytest.Function]) -> None:
        """Change or leave out cases of a folded test, as `pytest_collection_modifyitems` does with tests."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add them."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--each-case", action="store_true", help="run every parameter of a function as a test of its own"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and see whether cases are asked for one by one."""
    config.addinivalue_line("markers", "each_case: every parameter of this function is a test of its own")
    by_id = any("::" in argument and "[" in argument for argument in config.args)
    config.stash[_EACH_CASE] = config.option.each_case or bool(config.option.keyword) or by_id


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> FoldedTest | None:
    """Make one test of a function, unless its cases are to stay apart."""
    if collector.config.stash[_EACH_CASE] or not _has_quick_cases(collector.path, FOLDED):
        return None
    if not collector.istestfunction(obj, name) or getattr(obj, "is_hypothesis_test", False):
        return None
    marks = [mark for mark in getattr(obj, "pytestmark", ()) if mark.name != "parametrize"]
    if any(mark.name == "each_case" for mark in marks):
        return None
    folded: FoldedTest = FoldedTest.from_parent(collector, name=name, function=obj, marks=marks)
    return folded


@cache
def _has_quick_cases(file: Path, folders: tuple[Path, ...]) -> bool:
    return any(file.is_relative_to(folder) for folder in folders)


class CasesFailed(AssertionError):
    """Some cases of a test failed."""


class FoldedTest(pytest.Item):
    """All cases of one function."""

    def __init__(self, function: object, marks: list[pytest.Mark], **more: Any) -> None:
        super().__init__(**more)
        self.function = function
        self.own_markers += marks
        self.keywords.update((mark.name, mark) for mark in marks)
        self._failures: list[tuple[pytest.Function, pytest.ExceptionInfo[BaseException]]] = []
        self._count = 0

    def listchain(self) -> list[Any]:
        """The collectors only: pytest sets up what is in this chain, and here that is each case by itself."""
        return super().listchain()[:-1]

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the function is."""
        code = inspect.unwrap(self.function).__code__  # type: ignore[arg-type,attr-defined]
        return self.path, code.co_firstlineno - 1, self.name

    def runtest(self) -> None:
        """Run all cases. Raises CasesFailed if any fails, and skips if none fails and any is skipped."""
        cases = self._cases()
        self._count = len(cases)
        self._failures.clear()
        self.user_properties.clear()
        skipped = []
        for case in cases:
            error = self._run(case)
            outcome = "passed"
            if error is not None and error.errisinstance(pytest.skip.Exception):
                outcome = "skipped"
                skipped.append(Failed(_id(case), error.value))
            elif error is not None:
                outcome = "failed"
                self._failures.append((case, error))
            properties = [each for each in case.user_properties if each[0] in (RULE, EVIDENCE)]
            if properties:
                self.user_properties.append((CASE, (outcome, properties)))
        if self._failures:
            failed = [Failed(_id(case), error.value) for case, error in self._failures]
            raise CasesFailed(listed(failed, len(cases)))
        if skipped:
            pytest.skip(f"{len(skipped)} of {len(cases)} cases: {skipped[0].error}")

    def _cases(self) -> list[pytest.Function]:
        """The tests that pytest makes of the function."""
        assert self.parent is not None
        stash = self.config.stash
        stash[_EACH_CASE] = True
        try:
            cases: list[pytest.Function] = self.ihook.pytest_pycollect_makeitem(
                collector=self.parent, name=self.name, obj=self.function
            )
        finally:
            stash[_EACH_CASE] = False
        self.ihook.pytest_cases(items=cases)
        assert cases, "this function has no case"
        for case in cases:
            of_case = {mark.name for mark in case.own_markers} - {mark.name for mark in self.own_markers}
            assert not of_case & _ACTED_ON, f"{case.name} wants the function to be marked with each_case"
        return cases

    def _run(self, case: pytest.Function) -> pytest.ExceptionInfo[BaseException] | None:
        """Set up, run and tear down one case as pytest does with a test. Gives what went wrong first."""
        # Some fixtures use what pytest keeps for the test that it runs, and take it away.
        case.stash._storage.update(self.stash._storage)
        setup = self.session._setupstate
        error = None
        try:
            setup.setup(case)
            case.runtest()
        except (Exception, pytest.fail.Exception, pytest.skip.Exception):
            error = pytest.ExceptionInfo.from_current()
        log = case.funcargs.get("caplog")
        try:
            setup.teardown_exact(self)
        except (Exception, pytest.fail.Exception):
            if error is None or error.errisinstance(pytest.skip.Exception):
                error = pytest.ExceptionInfo.from_current()
        if log is not None:
            log.clear()
        case.funcargs = None  # type: ignore[assignment]
        case._request = False  # type: ignore[assignment]
        return error

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The list of cases that failed, and the tracebacks of the first ones."""
        if not isinstance(excinfo.value, CasesFailed):
            return super().repr_failure(excinfo)
        if self._count == 1:
            case, error = self._failures[0]
            return case.repr_failure(error)
        first = self._failures[0][0].nodeid
        return "\n\n".join([*self._tracebacks(), f"{excinfo.value}\n\nTo run one of them: pytest '{first}'"])

    def _tracebacks(self) -> Iterator[str]:
        for case, error in self._failures[:SHOWN]:
            yield f"--- case [{_id(case)}] ---\n{case.repr_failure(error)}"


def _id(case: pytest.Function) -> str:
    """What is in brackets in the name of a case."""
    return case.callspec.id if hasattr(case, "callspec") else ""
