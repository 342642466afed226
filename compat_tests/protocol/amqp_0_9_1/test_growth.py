"""The work of operations grows with the number of objects, and not with its square.

A quadratic part of one line for each pair of objects makes the work at four times as many objects more than
5 times as large; see `compat_tests/benchmarks/growth.py` for the operations and for their times.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from compat_tests.benchmarks.growth import OPERATIONS, Operation
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.work import work
from fakeamqp.model.exchanges.hashing import Ring

pytestmark = pytest.mark.needs("own broker")

FEW = 50


class Weight(int):
    """A weight that adds in Python, so that adding counts as work."""

    def __add__(self, other: int) -> Weight:
        return Weight(int(self) + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Weight:
        return Weight(int(self) - int(other))


@pytest.mark.parametrize(
    "operation", [pytest.param(each, id=each.name) for each in OPERATIONS if each.linear]
)
def test_work_of_operation_grows_linearly_with_number_of_objects(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Ring.add
    monkeypatch.setattr(Ring, "add", lambda ring, member, weight: add(ring, member, Weight(weight)))
    few, many = (work(operation.prepare(number)) for number in (FEW, 4 * FEW))
    assert many < 4.6 * few, f"{few} lines for {FEW} objects, {many} for {4 * FEW}"


def test_work_of_a_login_does_not_grow_with_number_of_connections() -> None:
    """Where there is no limit, nothing has to be counted."""
    server = Server()
    server.client()
    first = work(server.client)
    others = [server.client() for _ in range(200)]
    assert work(server.client) < first + len(others)


class Garbage:
    """An object that only the collector can end, and whose finalizer has many lines to execute."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(1000):
            pass


@pytest.fixture
def busy_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


def test_finalizers_of_garbage_are_not_counted_as_work(busy_collector: None) -> None:
    def action() -> list[list[int]]:
        Garbage()
        return [[number] for number in range(100)]

    assert work(action) < 1000
