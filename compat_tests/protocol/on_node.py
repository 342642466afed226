"""Pytest plugin: `--on rabbitmq-4.3` runs the protocol tests of 0-9-1 on that RabbitMQ instead of the broker.

A test that needs what no RabbitMQ offers says so with the mark `needs`, and is skipped there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from compat_tests.differential.comparison import PLUGINS
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.protocol.driver import Server
from compat_tests.protocol.node import Needs, Node, NodeServer

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--on`."""
    parser.getgroup("fakeamqp").addoption(
        "--on", metavar="RABBITMQ", help="run protocol tests of 0-9-1 on a real RabbitMQ: rabbitmq-4.3"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--on"):
        config.pluginmanager.register(_OnNode(config.getoption("--on")), "fakeamqp-on-node")


class _OnNode:
    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.path.parent == HERE and self._fits(item)]

    def pytest_cases(self, items: list[pytest.Item]) -> None:
        """The same for cases of a folded test."""
        items[:] = [item for item in items if self._fits(item)]

    def _fits(self, item: pytest.Item) -> bool:
        params = getattr(getattr(item, "callspec", None), "params", {})
        return params.get("protocol", "0-9-1") == "0-9-1" and params.get("server", "rabbitmq-4.3") != "spec"

    @pytest.fixture(scope="session", autouse=True)
    def node(self) -> Generator[Node, None, None]:
        with RabbitMQNode(self.name.removeprefix("rabbitmq-"), plugins=PLUGINS) as node:
            NodeServer.node = Node(node, self.name)
            Server.on_node = NodeServer
            yield NodeServer.node
            Server.on_node = None

    @pytest.fixture(autouse=True)
    def _clean(self, node: Node) -> Generator[None, None, None]:
        yield
        node.reset()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]):
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, Needs):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: {call.excinfo.value}")
            self.found[item.nodeid] = str(call.excinfo.value)
        elif report.when == "call" or report.outcome != "passed":
            self.found.setdefault(item.nodeid, report.outcome)
        return report

    def pytest_sessionfinish(self) -> None:
        Path(os.environ.get("ON_FOUND", "/tmp/on.json")).write_text(json.dumps(self.found, indent=0))
