"""Whose turn it is at a quorum queue, and which consumer is the single active one."""

from __future__ import annotations

from random import Random

import pytest

from compat_tests.tools.work import work
from compat_tests.unit.model.fakes import message, subscription
from fakeamqp.model.deliveries.subscription import Credit, Gate, Subscription
from fakeamqp.model.queues.quorum.consumers import ServiceQueue, SingleActive


def served(line: ServiceQueue, count: int) -> list[str]:
    """Who is served, if all take a message of one byte."""
    found = []
    for _ in range(count):
        first = line.first_able(message())
        if first is None:
            break
        for credit in first.credits:
            credit.take(message())
        line.served(first)
        found.append(first.tag)
    return found


def with_credit(tag: str, messages: int, priority: int = 0) -> Subscription:
    return subscription(tag, priority=priority, limits=(Credit(messages),))


def test_service_queue_serves_consumers_round_robin() -> None:
    line = ServiceQueue()
    for tag in "abc":
        line.add(subscription(tag))
    assert served(line, 5) == ["a", "b", "c", "a", "b"]


def test_consumer_without_credit_leaves_service_queue() -> None:
    line = ServiceQueue()
    line.add(with_credit("a", 1))
    line.add(with_credit("b", 2))
    assert served(line, 9) == ["a", "b", "b"]
    assert not line


def test_consumer_with_new_credit_joins_service_queue_at_end() -> None:
    line = ServiceQueue()
    a, b, c = (with_credit(tag, 1) for tag in "abc")
    for each in (a, b, c):
        line.add(each)
    served(line, 2)
    for each in (b, a):
        each.credits[0].refill(message())
        line.credited(each)
    assert [each.tag for each in line] == ["c", "b", "a"]


def test_rejoin_adds_only_consumers_with_credit_to_service_queue() -> None:
    line = ServiceQueue()
    a = with_credit("a", 1)
    line.add(a)
    served(line, 1)
    line.rejoin()
    assert not line
    a.credits[0].refill(message())
    line.rejoin()
    assert a in line


def test_service_queue_serves_consumers_of_higher_priority_first() -> None:
    line = ServiceQueue()
    line.add(with_credit("low", 1))
    line.add(with_credit("high", 2, priority=5))
    assert served(line, 9) == ["high", "high", "low"]


def test_consumer_with_closed_gate_keeps_place_in_service_queue() -> None:
    gate = Gate()
    gate.shut()
    line = ServiceQueue()
    line.add(subscription("a", limits=(gate,)))
    line.add(subscription("b"))
    assert served(line, 2) == ["b", "b"]
    gate.open = True
    assert served(line, 2) == ["a", "b"]


def test_removed_consumer_never_rejoins_service_queue() -> None:
    line = ServiceQueue()
    a, b = with_credit("a", 1), with_credit("b", 1)
    line.add(a)
    line.add(b)
    served(line, 1)
    line.remove(a)
    line.remove(b)
    line.remove(b)
    a.credits[0].refill(message())
    line.rejoin()
    line.credited(a)
    assert not line


# --- single active ------------------------------------------------------------------------------------------


class Office:
    """Consumers, of whom some hold something and some may not be active."""

    def __init__(self, *, by_priority: bool) -> None:
        self.holding: set[Subscription] = set()
        self.barred: set[Subscription] = set()
        self.single = SingleActive(
            by_priority, self.holding.__contains__, lambda each: each not in self.barred
        )
        self._age = 0

    def add(self, tag: str, priority: int = 0, window: int = 5) -> Subscription:
        one = with_credit(tag, window, priority)
        self._age = one.age = self._age + 1
        self.single.add(one)
        self.single.elect()
        return one

    @property
    def serving(self) -> str | None:
        return None if self.single.serving is None else self.single.serving.tag


@pytest.mark.parametrize("by_priority", [True, False])
def test_second_consumer_becomes_active_after_first_is_removed(by_priority: bool) -> None:
    office = Office(by_priority=by_priority)
    a = office.add("a")
    office.add("b")
    assert office.serving == "a"
    office.single.remove(a)
    assert office.serving is None
    office.single.elect()
    assert office.serving == "b"


def test_next_active_consumer_ignores_priority_when_not_by_priority() -> None:
    office = Office(by_priority=False)
    a = office.add("a")
    office.add("b")
    office.add("c", priority=5)
    office.single.remove(a)
    office.single.elect()
    assert office.serving == "b"


def test_consumer_of_higher_priority_becomes_single_active_consumer() -> None:
    office = Office(by_priority=True)
    office.add("a")
    b = office.add("b", priority=1)
    assert office.serving == "b"
    office.single.remove(b)
    office.single.elect()
    assert office.serving == "a"


def test_active_consumer_is_replaced_only_after_it_settles_held_messages() -> None:
    office = Office(by_priority=True)
    a = office.add("a")
    office.holding.add(a)
    office.add("b", priority=1)
    assert office.serving is None
    office.single.stand_back_if_done()
    assert office.single.active is a
    office.holding.clear()
    office.single.stand_back_if_done()
    office.single.elect()
    assert office.serving == "b"


def test_next_active_consumer_has_larger_window_and_is_older_on_tie() -> None:
    office = Office(by_priority=True)
    first = office.add("first")
    office.add("small", window=1)
    office.add("large", window=9)
    office.add("younger", window=9)
    office.single.remove(first)
    office.single.elect()
    assert office.serving == "large"


def test_barred_consumer_is_not_elected_as_single_active_consumer() -> None:
    office = Office(by_priority=True)
    a = office.add("a")
    b = office.add("b")
    office.barred.add(a)
    office.single.stand_back()
    office.single.elect()
    assert office.serving == "b"
    office.barred.add(b)
    office.single.stand_back()
    office.single.elect()
    assert office.serving is None


def test_rejoin_work_is_limited_to_consumers_with_reopened_credit() -> None:
    line = ServiceQueue()
    consumers = [with_credit(str(number), 1) for number in range(100)]
    for each in consumers:
        line.add(each)
    assert len(served(line, 200)) == 100
    for number in (70, 30):
        consumers[number].credits[0].refill(message())
    few = work(line.rejoin)
    assert [each.tag for each in line] == ["30", "70"]  # In the order in which they left.
    assert few < 100


def test_election_uses_window_resized_while_consumer_waited() -> None:
    office = Office(by_priority=True)
    first = office.add("first")
    small, large = office.add("small", window=1), office.add("large", window=9)
    small.credits[0].resize(20, 0)
    large.credits[0].resize(1, 0)
    office.single.remove(first)
    office.single.elect()
    assert office.serving == "small"


@pytest.mark.parametrize("by_priority", [True, False])
def test_permitted_consumer_returns_to_its_old_place_among_waiting_consumers(by_priority: bool) -> None:
    office = Office(by_priority=by_priority)
    first, second = office.add("first"), office.add("second")
    office.add("third")
    office.barred.add(second)
    assert office.single.first_waiting() is not second
    office.barred.clear()
    office.single.permit(second)
    office.single.remove(first)
    office.single.elect()
    assert office.serving == "second"


@pytest.mark.parametrize("by_priority", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_first_waiting_consumer_equals_plain_rule_in_random_programs(by_priority: bool, seed: int) -> None:
    random = Random(seed)
    office = Office(by_priority=by_priority)
    waiting: list[Subscription] = []
    for step in range(300):
        action = random.choice(("add", "add", "remove", "resize", "bar", "permit"))
        if action == "add":
            one = with_credit(str(step), random.randrange(1, 4), random.randrange(3))
            one.age = step
            office.single.add(one)
            waiting.append(one)
        elif waiting:
            one = random.choice(waiting)
            if action == "remove":
                waiting.remove(one)
                office.barred.discard(one)
                office.single.remove(one)
            elif action == "resize":
                one.credits[0].resize(random.randrange(1, 4), 0)
            elif action == "bar":
                office.barred.add(one)
            else:
                office.barred.discard(one)
                office.single.permit(one)
        able = [each for each in waiting if each not in office.barred]
        if by_priority:
            able.sort(key=lambda each: (-each.priority, -each.credits[0].message_limit, each.age))
        assert office.single.first_waiting() is (able[0] if able else None)
