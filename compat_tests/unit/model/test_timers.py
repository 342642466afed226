"""Timers: order, lateness, cancelling."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from fakeamqp.model.timers import Timers, TimeSource


class ManualClock(TimeSource):
    def __init__(self) -> None:
        self.instant = 100.0

    def now(self) -> float:
        return self.instant

    def time(self) -> float:
        return self.instant


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timers(clock: ManualClock) -> Timers:
    return Timers(clock)


def test_due_timers_run_in_order_of_instant_then_of_creation(clock: ManualClock, timers: Timers) -> None:
    ran: list[str] = []
    for due, name in [(103, "d"), (101, "a"), (102, "b"), (102, "c"), (101, "a2")]:
        timers.call_at(due, lambda name=name: ran.append(name), name)
    clock.instant = 103
    assert timers.run_due() == 5
    assert ran == ["a", "a2", "b", "c", "d"]


def test_timer_runs_at_its_instant_and_not_before(clock: ManualClock, timers: Timers) -> None:
    ran: list[float] = []
    timers.call_at(101, lambda: ran.append(clock.now()))
    clock.instant = 100.999
    assert timers.run_due() == 0
    clock.instant = 101
    assert timers.run_due() == 1
    assert timers.run_due() == 0
    assert ran == [101]


def test_timer_in_the_past_runs_at_next_run_due(timers: Timers) -> None:
    ran: list[int] = []
    timers.call_at(1, lambda: ran.append(1))
    assert ran == []
    assert timers.run_due() == 1
    assert ran == [1]


def test_due_timer_created_by_timer_runs_in_same_pass(clock: ManualClock, timers: Timers) -> None:
    ran: list[str] = []

    def first() -> None:
        ran.append("first")
        timers.call_at(100, lambda: ran.append("due"))
        timers.call_at(101, lambda: ran.append("later"))

    timers.call_at(100, first)
    assert timers.run_due() == 2
    assert ran == ["first", "due"]
    assert timers.next_due() == 101


def test_timer_that_moves_clock_makes_later_timer_due(clock: ManualClock, timers: Timers) -> None:
    ran: list[str] = []
    timers.call_at(100, lambda: setattr(clock, "instant", 200.0))
    timers.call_at(150, lambda: ran.append("150"))
    assert timers.run_due() == 2
    assert ran == ["150"]


def test_next_due_skips_cancelled_timers(timers: Timers) -> None:
    first = timers.call_at(101, lambda: None)
    timers.call_at(102, lambda: None)
    assert timers.next_due() == 101
    first.cancel()
    assert timers.next_due() == 102
    assert len(timers) == 1


def test_no_timer_is_due_without_timers(timers: Timers) -> None:
    assert timers.next_due() is None
    assert timers.run_due() == 0


def test_cancelled_timer_does_not_run(clock: ManualClock, timers: Timers) -> None:
    ran: list[str] = []
    timer = timers.call_at(101, lambda: ran.append("cancelled"))
    timers.call_at(101, lambda: ran.append("kept"))
    assert timer.active
    timer.cancel()
    timer.cancel()
    assert not timer.active
    clock.instant = 102
    assert timers.run_due() == 1
    assert ran == ["kept"]
    assert len(timers) == 0


def test_timer_can_cancel_timer_due_at_same_instant(timers: Timers) -> None:
    ran: list[str] = []
    timers.call_at(100, lambda: second.cancel())
    second = timers.call_at(100, lambda: ran.append("second"))
    assert timers.run_due() == 1
    assert ran == []


def test_timer_can_cancel_itself_while_running(timers: Timers) -> None:
    timer = timers.call_at(100, lambda: timer.cancel())
    assert timers.run_due() == 1
    assert len(timers) == 0
    assert timers.next_due() is None


def test_cancelling_timer_after_its_run_has_no_effect(timers: Timers) -> None:
    timer = timers.call_at(100, lambda: None)
    timers.call_at(101, lambda: None)
    timers.run_due()
    timer.cancel()
    assert len(timers) == 1


class Thing:
    def act(self) -> None: ...


def test_cancelled_timer_releases_its_callback(timers: Timers) -> None:
    thing = Thing()
    timers.call_at(50_000, lambda: None)
    timer = timers.call_at(60_000, thing.act)
    gone = weakref.ref(thing)
    del thing
    assert gone() is not None
    timer.cancel()
    gc.collect()
    assert gone() is None


def test_finished_timer_releases_its_callback(timers: Timers) -> None:
    thing = Thing()
    timer = timers.call_at(100, thing.act)
    gone = weakref.ref(thing)
    del thing
    timers.run_due()
    gc.collect()
    assert gone() is None
    assert not timer.active


def test_timer_heap_does_not_grow_with_cancelled_timers(timers: Timers) -> None:
    timers.call_at(999_999, lambda: None)
    for number in range(10_000):
        timers.call_at(1000 + number, lambda: None).cancel()
    assert len(timers) == 1
    assert len(timers._heap) < 200
    assert timers.next_due() == 999_999


def test_compaction_of_timer_heap_keeps_order(clock: ManualClock, timers: Timers) -> None:
    ran: list[int] = []
    handles = [timers.call_at(1000, lambda n=n: ran.append(n)) for n in range(1000)]
    for number, handle in enumerate(handles):
        if number % 7:
            handle.cancel()
    clock.instant = 1000
    timers.run_due()
    assert ran == list(range(0, 1000, 7))


def test_timer_heap_can_be_compacted_while_timers_run(clock: ManualClock, timers: Timers) -> None:
    ran: list[str] = []
    handles = [timers.call_at(200 + n, lambda: ran.append("cancelled")) for n in range(500)]

    def cancel_all() -> None:
        for handle in handles:
            handle.cancel()

    timers.call_at(150, cancel_all)
    timers.call_at(900, lambda: ran.append("last"))
    clock.instant = 1000
    assert timers.run_due() == 2
    assert ran == ["last"]


def test_exception_of_timer_propagates_and_remaining_timers_still_run(
    clock: ManualClock, timers: Timers
) -> None:
    ran: list[str] = []

    def broken() -> None:
        raise LookupError("broken timer")

    timers.call_at(100, broken)
    timers.call_at(100, lambda: ran.append("other"))
    with pytest.raises(LookupError, match="broken timer"):
        timers.run_due()
    assert timers.run_due() == 1
    assert ran == ["other"]


def test_repr_of_timer_has_name_due_time_and_state(timers: Timers) -> None:
    timer = timers.call_at(101.5, lambda: None, "queue expiry")
    assert repr(timer) == "<Timer queue expiry due=101.500 active>"
    timer.cancel()
    assert repr(timer) == "<Timer queue expiry due=101.500 done>"
    assert repr(timers.call_at(101.5, lambda: None)) == "<Timer unnamed due=101.500 active>"


def test_callable_words_of_timer_are_evaluated_at_each_access(timers: Timers) -> None:
    asked: list[int] = []

    def words() -> str:
        asked.append(1)
        return f"asked {len(asked)} times"

    timer = timers.call_at(101, lambda: None, words)
    list(timers.pending())
    assert asked == []
    assert timer.words == "asked 1 times"
    assert timer.words == "asked 2 times"


def test_timer_is_not_housekeeping_by_default(timers: Timers) -> None:
    assert not timers.call_at(101, lambda: None).housekeeping
    assert timers.call_at(101, lambda: None, housekeeping=True).housekeeping


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 100])
def test_pending_timers_are_listed_in_order_of_running(
    clock: ManualClock, timers: Timers, count: int
) -> None:
    randomness = random.Random(count)
    ran: list[str] = []
    made = []
    for number in range(count):
        name = f"t{number}"
        made.append(timers.call_at(randomness.randrange(101, 120), lambda name=name: ran.append(name), name))
    for timer in randomness.sample(made, count // 3):
        timer.cancel()
    announced = [timer.words for timer in timers.pending()]
    assert len(announced) == len(timers) == count - count // 3
    clock.instant = 200
    timers.run_due()
    assert ran == announced


def test_listing_pending_timers_has_no_side_effect(clock: ManualClock, timers: Timers) -> None:
    timers.call_at(103, lambda: None)
    timers.call_at(102, lambda: None).cancel()
    timers.call_at(101, lambda: None)
    assert [timer.due for timer in timers.pending()] == [101, 103]
    assert [timer.due for timer in timers.pending()] == [101, 103]
    assert next(timers.pending()).due == timers.next_due() == 101
    clock.instant = 200
    assert timers.run_due() == 2
    assert list(timers.pending()) == []


def test_first_pending_timer_is_found_without_comparing_all_timers(timers: Timers) -> None:
    looked: list[object] = []

    class Looked(float):
        def __lt__(self, other: float) -> bool:
            looked.append(self)
            return float.__lt__(self, other)

    for number in range(10_000):
        timers.call_at(Looked(1000 + number), lambda: None)
    looked.clear()
    assert next(timers.pending()).due == 1000
    assert len(looked) < 10


def test_time_source_defaults_hold_peers_and_give_no_hint(clock: ManualClock, timers: Timers) -> None:
    assert clock.holds_peers
    assert clock.heading() == clock.now()
    assert clock.hint() == ""


# --- timers that are not moved when they are needed later ------------------------------------------------


def test_pending_timers_are_ordered_by_revised_instant(timers: Timers) -> None:
    needed: dict[str, float | None] = {"a": 101, "b": 105, "c": None, "d": 103.5}
    for due, name in [(101, "a"), (102, "b"), (103, "c"), (103, "d")]:
        timers.call_at(due, lambda: None, name, revise=lambda name=name: needed[name])
    timers.call_at(104, lambda: None, "e")
    assert [(each.words, each.due) for each in timers.pending()] == [
        ("a", 101),
        ("d", 103.5),
        ("e", 104),
        ("b", 105),
    ]
    needed.update(b=102, c=103)
    assert [each.words for each in timers.pending()] == ["a", "b", "c", "d", "e"]


def test_revised_instant_earlier_than_due_time_is_ignored(timers: Timers) -> None:
    timers.call_at(102, lambda: None, revise=lambda: 101)
    assert [each.due for each in timers.pending()] == [102]


def test_timer_revised_to_not_needed_still_runs_but_is_not_pending(
    clock: ManualClock, timers: Timers
) -> None:
    ran: list[float] = []
    timers.call_at(101, lambda: ran.append(clock.now()), revise=lambda: None)
    assert (list(timers.pending()), timers.next_due()) == ([], 101)
    clock.instant = 101
    timers.run_due()
    assert ran == [101]
