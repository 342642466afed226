from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from compat_tests.unit.model.fakes import message, subscription
from fakeamqp.model.deliveries.subscription import Credit, Gate, Subscription
from fakeamqp.model.queues.waiting import Rotation


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


def test_rotation_serves_consumers_round_robin() -> None:
    assert turns(rotation_of(*map(subscription, "abc")), 7) == "abcabca"


def test_new_consumer_is_last_in_rotation() -> None:
    rotation = rotation_of(*map(subscription, "ab"))
    assert turns(rotation, 1) == "a"
    rotation.add(subscription("c"))
    assert turns(rotation, 4) == "bacb"


def test_rotation_serves_consumers_of_higher_priority_first() -> None:
    low = subscription("l", priority=-1)
    middle = subscription("m")
    high = [subscription(tag, priority=10) for tag in "hi"]
    rotation = rotation_of(low, middle, *high)
    assert turns(rotation, 4) == "hihi"
    assert "".join(each.tag for each in rotation) == "himl"


def test_rotation_skips_consumer_with_closed_gate_until_reopened() -> None:
    gate = Gate()
    rotation = rotation_of(subscription("h", priority=1, limits=(gate,)), *map(subscription, "ab"))
    gate.shut()
    assert turns(rotation, 3) == "aba"
    gate.reopen()
    assert turns(rotation, 2) == "hh"


def test_consumer_is_selected_only_if_all_its_limits_admit() -> None:
    gate, credit = Gate(), Credit(message_limit=1)
    rotation = rotation_of(subscription("a", limits=(gate, credit)))
    assert turns(rotation, 1) == "a"
    credit.take(message())
    assert turns(rotation, 1) == "-"
    credit.refill(message())
    gate.shut()
    assert turns(rotation, 1) == "-"


def test_rotation_skips_consumer_without_byte_credit_for_message_size() -> None:
    narrow = Credit(byte_limit=10)
    narrow.take(message(5))
    rotation = rotation_of(subscription("n", limits=(narrow,)), subscription("w"))
    assert turns(rotation, 4, size=5) == "nwnw"
    assert turns(rotation, 2, size=6) == "ww"


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


def test_rotation_gives_every_consumer_equal_turns() -> None:
    rotation = rotation_of(*map(subscription, "abcde"))
    assert set(Counter(turns(rotation, 500)).values()) == {100}


def test_skipped_consumer_is_last_in_rotation_once_able() -> None:
    gates = Gate(), Gate()
    a, b = (subscription(tag, limits=(gate,)) for tag, gate in zip("ab", gates, strict=True))
    rotation = rotation_of(a, b, subscription("c"))
    for gate in gates:
        gate.shut()
    assert turns(rotation, 2) == "cc"
    gates[1].reopen()
    rotation.rejoin()
    gates[0].reopen()
    assert turns(rotation, 4) == "cbac"


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
