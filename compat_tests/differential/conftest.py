"""The nodes that all tests of this folder share: one for each series, with a broker beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from compat_tests.differential.comparison import SERIES, Series, SideBySide, side_by_side
from compat_tests.differential.rabbitmq_node import available


class Nodes:
    """What compares with each series; started when it is first asked for, several at once."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._pool = self._stack.enter_context(ThreadPoolExecutor(len(SERIES)))
        self._starting: dict[str, Future[SideBySide | str]] = {}

    def start(self, series: str) -> Future[SideBySide | str]:
        """Begin to start the node of a series, unless that has been done."""
        if series not in self._starting:
            self._starting[series] = self._pool.submit(self._started, series)
        return self._starting[series]

    def _started(self, series: str) -> SideBySide | str:
        reason = available(series)
        return self._stack.enter_context(side_by_side(series)) if reason is None else reason

    def beside(self, series: str) -> SideBySide:
        """The node of a series with its broker. Skips the test where there is none."""
        found = self.start(series).result()
        if isinstance(found, str):
            pytest.skip(found)
        return found

    def close(self) -> None:
        for each in self._starting.values():
            each.exception()  # Nothing is still starting.
        self._stack.close()


@pytest.fixture(scope="session")
def nodes(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    """The nodes; those that any chosen test asks for are started at once."""
    nodes = Nodes()
    for item in request.session.items:
        series = getattr(getattr(item, "callspec", None), "params", {}).get("series")
        if isinstance(series, Series):
            nodes.start(series.name)
    try:
        yield nodes
    finally:
        nodes.close()


@pytest.fixture
def beside(nodes: Nodes, series: Series) -> SideBySide:
    """The node of the series that a test is about, and the broker beside it."""
    return nodes.beside(series.name)
