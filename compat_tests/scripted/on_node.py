"""Pytest plugin: `--on rabbitmq-4.3` runs the protocol tests of 0-9-1 on a node of RabbitMQ.

The node is started once, stands for all brokers, and is emptied after each test (`node.py`). Only tests of
0-9-1 are collected. A test that needs what no RabbitMQ has (virtual time, a view into the broker, another
personality) is skipped when it asks for that, and the reason names it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1] / "protocol" / "amqp_0_9_1"
_NODES = ("rabbitmq-3.10", "rabbitmq-4.0", "rabbitmq-4.3")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--on",
        metavar="RABBITMQ",
        choices=_NODES,
        help=f"run the protocol tests of 0-9-1 on a node of RabbitMQ: {', '.join(_NODES)}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have the node stand for all brokers of the tests."""
    if config.getoption("--on"):
        from compat_tests.scripted import node

        config.pluginmanager.register(_Selection())
        config.pluginmanager.register(node)


class _Selection:
    """Leaves out what does not run on a node."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.path.parent == _TESTS and _fits(item)]

    def pytest_cases(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _fits(item)]


def _fits(item: pytest.Item) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("protocol", "0-9-1") == "0-9-1" and params.get("server") != "spec"
