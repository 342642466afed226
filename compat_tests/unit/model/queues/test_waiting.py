"""Lists of waiting messages, and the order in which consumers take turns."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.fakes import message, positions, queued, subscription
from fakeamqp.model.deliveries.subscription import Credit, Gate, Subscription
from fakeamqp.model.queues.waiting import Fifo, MessagesOf, PriorityFifo, Rotation


@pytest.mark.parametrize("ready", [Fifo(), PriorityFifo(9)], ids=["plain", "priority"])
def test_empty_ready_list_has_no_head_and_accepts_returned_message(ready: Fifo | PriorityFifo) -> None:
    assert len(ready) == 0
    assert not ready
    assert ready.head() is None
    assert not ready.clear()
    ready.put_back([queued(1)])
    assert positions(ready) == [1]
    ready.clear()


def test_fifo_pops_messages_in_order_of_arrival() -> None:
    ready = Fifo()
    for position in (1, 2, 3):
        ready.append(queued(position))
    head = ready.head()
    assert head is not None
    assert head.position == 1
    assert [ready.pop().position, ready.pop_lowest().position, ready.pop().position] == [1, 2, 3]


@given(st.lists(st.sampled_from(["waits", "returned", "returns"]), max_size=30))
def test_put_in_front_accepts_only_messages_that_belong_to_the_front(kinds: list[str]) -> None:
    items = [queued(position) for position in range(1, len(kinds) + 1)]
    by_kind = {
        kind: [item for item, each in zip(items, kinds, strict=True) if each == kind]
        for kind in ("waits", "returned", "returns")
    }
    ready = Fifo()
    for item in by_kind["waits"]:
        ready.append(item)
    ready.put_back(by_kind["returned"])
    before = positions(ready)
    if not by_kind["returns"]:
        return
    if ready.put_in_front(deque(by_kind["returns"])):
        assert positions(ready) == list(range(1, len(kinds) + 1))
        assert [ready.pop().position for _ in range(len(kinds))] == list(range(1, len(kinds) + 1))
    else:
        assert positions(ready) == before
        assert by_kind["returned"] or before[0] < by_kind["returns"][-1].position


@given(st.lists(st.booleans(), max_size=30), st.randoms(use_true_random=False))
def test_fifo_puts_returned_messages_back_into_their_positions(taken: list[bool], random: object) -> None:
    items = [queued(position) for position in range(len(taken))]
    ready = Fifo()
    for item, gone in zip(items, taken, strict=True):
        if not gone:
            ready.append(item)
    returned = [item for item, gone in zip(items, taken, strict=True) if gone]
    random.shuffle(returned)  # type: ignore[attr-defined]
    half = len(returned) // 2
    for some in (returned[:half], returned[half:]):
        if some:
            ready.put_back(some)
    assert positions(ready) == list(range(len(items)))


def test_message_can_be_removed_from_middle_of_fifo_and_put_back() -> None:
    ready = Fifo()
    items = [queued(position) for position in range(5)]
    for item in items:
        ready.append(item)
    ready.remove(items[2])
    assert positions(ready) == [0, 1, 3, 4]
    ready.put_back([items[2]])
    assert positions(ready) == [0, 1, 2, 3, 4]


@given(st.lists(st.one_of(st.none(), st.integers(0, 255)), max_size=40), st.integers(0, 12))
def test_priority_fifo_pops_by_priority_and_then_in_order_of_arrival(
    given_: list[int | None], most: int
) -> None:
    ready = PriorityFifo(most)
    for position, priority in enumerate(given_):
        ready.append(queued(position, priority))
    expected = sorted(range(len(given_)), key=lambda at: (-min(given_[at] or 0, most), at))
    assert positions(ready) == expected
    assert len(ready) == len(given_)
    popped = []
    while ready:
        head = ready.head()
        popped.append(ready.pop())
        assert popped[-1] is head
    assert positions(popped) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_priority_fifo_puts_returned_messages_back_into_their_positions(
    priorities: list[int], data: st.DataObject
) -> None:
    ready = PriorityFifo(3)
    items = [queued(position, priority) for position, priority in enumerate(priorities)]
    for item in items:
        ready.append(item)
    before = positions(ready)
    chosen = data.draw(st.lists(st.sampled_from(items), unique_by=id))
    for item in chosen:
        ready.remove(item)
    assert len(ready) == len(items) - len(chosen)
    ready.put_back(chosen)
    assert positions(ready) == before
    assert len(ready) == len(items)


@given(st.lists(st.integers(0, 5), max_size=20), st.data())
def test_gathered_messages_return_to_same_positions_as_single_ones(
    priorities: list[int], data: st.DataObject
) -> None:
    items = [queued(position, priority) for position, priority in enumerate(priorities)]
    chosen = data.draw(st.lists(st.sampled_from(items), unique_by=id)) if items else []
    found = []
    for together in (True, False):
        ready = PriorityFifo(3)
        for item in items:
            ready.append(item)
        for item in chosen:
            ready.remove(item)
        if together:
            gathered = ready.returning()
            for item in chosen:
                gathered.append(item)
            assert len(gathered) == len(chosen)
            assert sorted(positions(gathered)) == sorted(each.position for each in chosen)
            ready.put_back(gathered)
        else:
            for item in chosen:
                ready.put_back((item,))
        assert len(ready) == len(items)
        found.append([ready.pop().position for _ in items])
        assert not ready
    assert found[0] == found[1]


def test_pop_lowest_takes_oldest_message_of_lowest_priority() -> None:
    ready = PriorityFifo(9)
    for position, priority in enumerate((5, 1, 9, 1, 5)):
        ready.append(queued(position, priority))
    assert [ready.pop_lowest().position for _ in range(5)] == [1, 3, 0, 4, 2]
    assert len(ready) == 0


@given(st.lists(st.integers(0, 3), max_size=20), st.data())
def test_clear_takes_all_messages_in_delivery_order(priorities: list[int], data: st.DataObject) -> None:
    for ready in (Fifo(), PriorityFifo(3)):
        items = [queued(position, priority) for position, priority in enumerate(priorities)]
        for item in items:
            ready.append(item)
        returned = data.draw(st.lists(st.sampled_from(items), unique_by=id)) if items else []
        for item in returned:
            ready.remove(item)
        ready.put_back(returned)
        expected = positions(ready)
        assert positions(ready.clear()) == expected
        assert (len(ready), positions(ready), ready.head()) == (0, [], None)
        ready.append(queued(1))
        assert positions(ready.clear()) == [1]


@given(st.integers(0, 6), st.slices(8) | st.integers(-8, 8))
def test_messages_of_queued_messages_are_a_sequence(count: int, index: Any) -> None:
    those = [queued(each) for each in range(count)]
    expected = [each.message for each in those]
    for kind in (list, tuple, deque):
        messages = MessagesOf(kind(those))
        assert [*messages] == expected
        assert len(messages) == count
        if isinstance(index, slice) or -count <= index < count:
            assert messages[index] == expected[index]
        else:
            with pytest.raises(IndexError):
                messages[index]


# --- rotation ------------------------------------------------------------------------------------------


def rotation_of(*subscriptions: Subscription) -> Rotation:
    rotation = Rotation()
    for each in subscriptions:
        rotation.add(each)
    return rotation


def turns(rotation: Rotation, count: int, size: int = 1) -> str:
    """The tags of those whose turn it is, one after the other; "-" for nobody."""
    chosen = (rotation.next_able(message(size)) for _ in range(count))
    return "".join("-" if each is None else each.tag for each in chosen)


def test_empty_rotation_selects_no_consumer() -> None:
    rotation = Rotation()
    assert not rotation
    assert len(rotation) == 0
    assert turns(rotation, 1) == "-"


def test_removing_consumer_keeps_turns_of_remaining_consumers() -> None:
    a, b, c = map(subscription, "abc")
    rotation = rotation_of(a, b, c)
    assert turns(rotation, 1) == "a"
    rotation.remove(b)
    assert turns(rotation, 4) == "caca"
    assert b not in rotation
    rotation.remove(a)
    rotation.remove(c)
    assert not rotation


def test_listing_able_consumers_does_not_change_their_order() -> None:
    a, b, c = map(subscription, "abc")
    rotation = rotation_of(a, b, c)
    assert [each.tag for each in rotation.able(message())] == ["a", "b", "c"]
    assert [each.tag for each in rotation.able(message())] == ["a", "b", "c"]
    rotation.passed(a)
    assert [each.tag for each in rotation.able(message())] == ["b", "c", "a"]


def test_consumer_without_credit_can_be_removed_from_rotation() -> None:
    gate = Gate()
    full, other = subscription("f", limits=(gate,)), subscription("o", limits=(gate,))
    rotation = rotation_of(full, other)
    gate.shut()
    assert turns(rotation, 1) == "-"
    assert len(rotation) == 2 and full in rotation
    rotation.remove(full)
    assert rotation and [*rotation] == [other]
    gate.reopen()
    assert turns(rotation, 1) == "o"
    rotation.remove(other)
    assert not rotation


class PlainRotation:
    """The rule without indexes: everyone is looked at for each message."""

    def __init__(self) -> None:
        self.groups: dict[int, list[Subscription]] = {2: [], 1: [], 0: []}
        self.resting: list[Subscription] = []

    def rejoin(self) -> None:
        for each in [each for each in self.resting if not each.paused]:
            self.resting.remove(each)
            self.groups[each.priority].append(each)

    def next_able(self, size: int) -> Subscription | None:
        self.rejoin()
        for group in self.groups.values():
            for _ in range(len(group)):
                first = group.pop(0)
                refusing = [limit for limit in first.limits if not limit.admits(message(size))]
                (group if not refusing or refusing[0].open else self.resting).append(first)
                if not refusing:
                    return first
        return None


@pytest.mark.parametrize("seed", range(50))
def test_rotation_order_equals_plain_rule_in_random_programs(seed: int) -> None:
    random = Random(seed)
    rotation, plain = Rotation(), PlainRotation()
    shared = Credit(message_limit=5)
    gates = [Gate() for _ in range(3)]
    members: list[Subscription] = []
    held: list[tuple[Subscription, int]] = []
    for step in range(400):
        action = random.choice(
            ("add", "remove", "gate", "settle", "settle", "limits", "rejoin", *["take"] * 8)
        )
        if action == "add" and len(members) < 8:
            own = Credit(random.choice((0, 1, 2)), random.choice((0, 0, 6)))
            limits = (own, random.choice(gates), *random.choice(((), (shared,))))
            new = subscription(str(step), priority=random.choice((0, 1, 2)), limits=limits)
            members.append(new)
            rotation.add(new)
            plain.groups[new.priority].append(new)
        elif action == "remove" and members:
            old = members.pop(random.randrange(len(members)))
            rotation.remove(old)
            (plain.resting if old in plain.resting else plain.groups[old.priority]).remove(old)
        elif action == "gate":
            gate = random.choice(gates)
            gate.reopen() if not gate.open else gate.shut()
        elif action == "settle" and held:
            holder, size = held.pop(random.randrange(len(held)))
            for credit in holder.credits:
                credit.refill(message(size))
        elif action == "limits" and members:
            changed = random.choice(members)
            if random.random() < 0.5:
                changed.credits[0].resize(random.choice((0, 1, 3)), 0)
            else:
                changed.depend_on((*changed.credits, random.choice(gates)), changed.credits)
        elif action == "rejoin":
            rotation.rejoin()
            plain.rejoin()
        elif action == "take":
            size = random.choice((1, 4))
            chosen = rotation.next_able(message(size))
            assert chosen is plain.next_able(size)
            if chosen is not None:
                held.append((chosen, size))
                for credit in chosen.credits:
                    credit.take(message(size))
        assert len(rotation) == len(members)
        order = [each for group in plain.groups.values() for each in group]
        assert [each for each in rotation if each not in plain.resting] == order
