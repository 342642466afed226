"""The work of operations grows with the number of objects, and not with its square.

A quadratic part of one line for each pair of objects makes the work at four times as many objects more than
5 times as large; see `compat_tests/benchmarks/growth.py` for the operations and for their times.
"""

from __future__ import annotations

import pytest

from compat_tests.benchmarks.growth import OPERATIONS, Operation
from compat_tests.protocol.driver import Server
from compat_tests.work import work
from fakeamqp.model.exchanges import hashing

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
def test_work_is_linear(operation: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_integer", lambda text: Weight(text))
    few, many = (work(operation.prepare(number)) for number in (FEW, 4 * FEW))
    assert many < 4.6 * few, f"{few} lines for {FEW} objects, {many} for {4 * FEW}"


def test_a_login_does_not_look_at_every_other_connection() -> None:
    """Where there is no limit, nothing has to be counted."""
    server = Server()
    server.client()
    first = work(server.client)
    others = [server.client() for _ in range(200)]
    assert work(server.client) < first + len(others)
