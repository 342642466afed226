"""Where a micro-batch ends: the planner with a consumer and a store that a test plays."""

from __future__ import annotations

from typing import Any

import pytest

import compat_tests.needs_pyspark  # noqa: F401
from fakeamqp.spark.options import read_options
from fakeamqp.spark.spool.channel import SpoolStatus
from fakeamqp.spark.spool.planner import BatchPlanner


class Consumer:
    """Answers each barrier with the next status, and counts them."""

    def __init__(self, store: Store, *visible: int, window: int) -> None:
        self._store, self._visible, self.window = store, visible, window
        self.barriers = 0

    def barrier(self, backlog: Any = None) -> SpoolStatus:
        self._store.visible = self._visible[self.barriers]
        self.barriers += 1
        return SpoolStatus(visible=self._store.visible, held=1, ready=1, arrived=0)

    def limit(self, limited: bool) -> None:
        self.limited = limited

    def forget(self, backlog: Any) -> None:
        pass

    def poke(self) -> None:
        pass


class Store:
    """Has rows up to `visible`."""

    committed = 0
    visible = 0

    def __init__(self, *, acks_on_arrival: bool) -> None:
        self.acks_on_arrival = acks_on_arrival

    def processed(self, start: int) -> None:
        pass

    def hand_out(self, start: int, end: int, octets: int | None) -> int:
        return end


def planner(*visible: int, acks_on_arrival: bool = False) -> tuple[BatchPlanner, Consumer]:
    store = Store(acks_on_arrival=acks_on_arrival)
    consumer = Consumer(store, *visible, window=8)
    options = read_options({"amqp.url": "amqp://localhost", "queue": "q"})
    return BatchPlanner(options, store, consumer), consumer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("visible", "barriers"), [([12, 13, 14, 15], 3), ([12, 17, 18], 2), ([14, 15], 1), ([9, 10, 14], 3)]
)
def test_batch_without_a_limit_ends_where_half_of_the_window_is_visible(
    visible: list[int], barriers: int
) -> None:
    """The broker sends no more before Spark commits: the planner does not wait for it."""
    batches, consumer = planner(*visible)
    assert batches.all_available(10) == 14
    assert (consumer.barriers, consumer.limited) == (barriers, True)
