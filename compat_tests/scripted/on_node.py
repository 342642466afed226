"""Pytest plugin: `--on rabbitmq-4.3` runs the protocol tests of 0-9-1 on a node of RabbitMQ.

The node is started once, stands for all brokers, and is emptied after each test (`node.py`). Only tests of
0-9-1 are collected, each case as a test of its own. A test that is marked with `needs` is skipped with what
it needs, unless the node has that; it runs on a broker of this process, and fails if it does not need it
(`needs.py`). The lists of `known_differences.py` have the tests that fail on a node; one that passes is
an error.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.scripted import needs
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.known_differences import Results, covering, differences_of, id_of
from compat_tests.scripted.needs import WatchedServer
from fakeamqp.errors import near_match

if TYPE_CHECKING:
    from compat_tests.scripted.node import Node

_PROTOCOL = Path(__file__).parents[1] / "protocol"
_TESTS = _PROTOCOL / "amqp_0_9_1"
_NODES = ("rabbitmq-3.10", "rabbitmq-4.0", "rabbitmq-4.3")
_UNMET = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--on",
        metavar="RABBITMQ",
        help=f"run the protocol tests of 0-9-1 on RabbitMQ: {', '.join(_NODES)}, or the one at amqp://...",
    )
    parser.getgroup("fakeamqp").addoption(
        "--record-on", action="store_true", help="with --on: keep how many cases pass, for docs/fidelity.md"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have the node stand for all brokers of the tests."""
    told = f"needs(*what): what RabbitMQ has not, where the test is skipped: {', '.join(needs.NEEDS)}"
    config.addinivalue_line("markers", told)
    if (name := config.getoption("--on")) is not None:
        if name not in _NODES and not name.startswith("amqp://"):
            raise pytest.UsageError(f"--on {name}: neither amqp://... nor known{near_match(name, _NODES)}")
        config.option.each_case = True
        on_node = _OnNode(name, record=config.getoption("--record-on"))
        config.pluginmanager.register(on_node, "on-node")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raises UsageError for a need that is not known."""
    if wrong := [line for item in items for line in needs.problems(item)]:
        raise pytest.UsageError("\n".join(wrong))


@pytest.hookimpl(optionalhook=True)
def pytest_cases(items: list[pytest.Item]) -> None:
    """The same for cases of a folded test."""
    pytest_collection_modifyitems(items)


class _OnNode:
    """Runs the tests on the node."""

    def __init__(self, name: str, record: bool) -> None:
        self._wanted = self.name = name
        self._record = record
        self._node: Node | None = None
        if "://" in name:  # Which version it is, it says itself.
            self.name = self._started().personality.name
        self.series = self.name.removeprefix("rabbitmq-")
        self._sent = 0
        self._results = Results()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out other protocols, and what the node would run twice. Mark what is listed."""
        items[:] = [item for item in items if item.path.parent == _TESTS and _fits(item)]
        unused = differences_of(self.series)
        for item in items:
            item.stash[_UNMET] = needs.unmet(item, self.name)
            if not item.stash[_UNMET] and (entry := covering(self.series, id_of(item))) is not None:
                strict = not entry.sometimes
                item.add_marker(pytest.mark.xfail(reason=entry.rabbitmq, raises=Exception, strict=strict))
                unused = [each for each in unused if each is not entry]
        whole = {item.path.name for item in items} if not any("::" in each for each in config.args) else ()
        if unused := [each for each in unused if each.file in whole]:
            listed = "".join(f"\n{', '.join(each.tests)}" for each in unused)
            raise pytest.UsageError(f"known differences of no test that runs on {self.series}:{listed}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Have the right thing stand for brokers."""
        if item.stash[_UNMET]:
            WatchedServer.watch(self.name)
            Server.on_node = WatchedServer
        else:
            node = self._started()
            self._sent = node.sent
            Server.on_node = node.server

    def _started(self) -> Node:
        if self._node is None:
            from compat_tests.scripted.node import started

            self._node = started(self._wanted)
        return self._node

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Skip a test that needs what the node has not, and see that it does so; that the others use it."""
        if unmet := pyfuncitem.stash[_UNMET]:
            try:
                yield
            except Exception:
                untrue = []
            else:
                untrue = needs.untrue(pyfuncitem, unmet)
            if untrue:
                pytest.fail(f"the mark is not true: the test needs no {', no '.join(untrue)}", pytrace=False)
            raise pytest.skip.Exception(f"needs {', '.join(unmet)}", _use_item_location=True)
        result = yield
        if self._node is not None and self._node.sent == self._sent:
            pytest.fail('the test does not use the node: mark it with @pytest.mark.needs("own broker")')
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """The next test finds the node as it was started."""
        try:
            return (yield)
        finally:
            Server.on_node = None
            if self._node is not None:
                self._node.reset()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count it."""
        if report.when == "call" or report.outcome == "failed":
            self._results.count(report)

    def pytest_sessionfinish(self) -> None:
        """Stop the node, and keep the results."""
        if self._node is not None:
            if self._record:
                self._results.write(self.series, self._node.version)
            self._node.stop()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the results."""
        terminalreporter.section(f"cases on RabbitMQ {self.series}")
        terminalreporter.line(str(self._results))


def _fits(item: pytest.Item) -> bool:
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    if params.get("protocol", "0-9-1") != "0-9-1":
        return False
    return params.get("server") != "spec" or not needs.stands_for_all(item, "server")
