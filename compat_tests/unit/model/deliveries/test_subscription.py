"""Limits of subscriptions: credits of a window, gates, and credit by explicit grants."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.fakes import QueueThatCounts, message, subscription
from compat_tests.unit.model.readers import Reader, publish, waiting
from fakeamqp.model.deliveries.subscription import UNLIMITED, Credit, Gate, Grant, InheritedCredit
from fakeamqp.model.errors import IllegalState


def test_credit_without_limits_is_always_open() -> None:
    credit = Credit()
    for _ in range(1000):
        credit.take(message(10_000))
    assert credit.open
    assert credit.admits(message(10**9))
    assert not credit.refill(message(10_000)), "nobody can be waiting for it"


def test_credit_closes_at_message_limit_and_reopens_after_refill() -> None:
    credit = Credit(message_limit=2)
    credit.take(message())
    assert credit.open
    credit.take(message())
    assert not credit.open
    assert not credit.admits(message(0))
    assert credit.refill(message())
    assert credit.open


def test_credit_admits_only_messages_within_byte_limit() -> None:
    credit = Credit(byte_limit=100)
    credit.take(message(60))
    assert credit.admits(message(40))
    assert not credit.admits(message(41))
    credit.take(message(40))
    assert not credit.open
    credit.refill(message(60))
    assert credit.admits(message(60))
    assert not credit.admits(message(61))


def test_credit_without_outstanding_messages_admits_message_of_any_size() -> None:
    credit = Credit(byte_limit=100)
    assert credit.admits(message(1_000_000))
    credit.take(message(1_000_000))
    assert not credit.open
    credit.refill(message(1_000_000))
    assert credit.admits(message(1_000_000))


def test_resized_credit_counts_outstanding_messages() -> None:
    credit = Credit(message_limit=5)
    for _ in range(3):
        credit.take(message())
    credit.resize(2, 0)
    assert not credit.open
    credit.refill(message())
    assert not credit.open, "two of two are outstanding"
    credit.refill(message())
    assert credit.open
    credit.resize(0, 0)
    assert credit.admits(message(10**9))


@given(
    st.integers(0, 5),
    st.integers(0, 50),
    st.lists(st.integers(0, 60), max_size=30),
    st.data(),
)
def test_credit_is_never_overdrawn(messages: int, octets: int, sizes: list[int], data: st.DataObject) -> None:
    credit = Credit(messages, octets)
    outstanding: list[int] = []
    for size in sizes:
        if credit.admits(message(size)):
            credit.take(message(size))
            outstanding.append(size)
        elif outstanding:
            credit.refill(message(outstanding.pop(data.draw(st.integers(0, len(outstanding) - 1)))))
        assert not messages or len(outstanding) <= messages
        assert not octets or len(outstanding) <= 1 or sum(outstanding) <= octets
        assert credit.messages == len(outstanding)
        assert credit.octets == sum(outstanding)
    for size in list(outstanding):
        credit.refill(message(size))
    assert credit.open


def test_reopening_closed_gate_dispatches_every_queue_once() -> None:
    gate = Gate()
    queues = [QueueThatCounts() for _ in range(3)]
    for queue in queues:
        subscription(limits=(gate,), queue=queue)
    gate.reopen()
    assert [queue.dispatched for queue in queues] == [0, 0, 0], "it was open"
    gate.shut()
    assert not gate.admits(message(0))
    gate.reopen()
    assert [queue.dispatched for queue in queues] == [1, 1, 1]


def test_queues_that_close_reopened_gate_are_dispatched_in_turn() -> None:
    gate = Gate()
    queues = [QueueThatCounts() for _ in range(3)]
    for queue in queues:
        subscription(limits=(gate,), queue=queue)
        queue.then = gate.shut
    for _ in range(6):
        gate.shut()
        gate.reopen()
    assert [queue.dispatched for queue in queues] == [2, 2, 2]


def test_reopened_gate_skips_subscription_ended_during_reopening() -> None:
    gate = Gate()
    first, second = QueueThatCounts(), QueueThatCounts()
    subscription(limits=(gate,), queue=first)
    ended = subscription(limits=(gate,), queue=second)
    first.then = ended.end
    gate.shut()
    gate.reopen()
    assert (first.dispatched, second.dispatched) == (1, 0)
    assert ended not in gate.subscriptions


def test_subscription_can_move_from_exhausted_credit_to_new_credit() -> None:
    old, new = Credit(message_limit=1), Credit(message_limit=1)
    it = subscription(limits=(old,))
    old.take(message())
    assert it.paused
    it.depend_on((new,), (new,))
    assert not it.paused
    assert it not in old.subscriptions
    assert it in new.subscriptions


def test_inherited_deliveries_count_against_credit_at_once() -> None:
    assert not InheritedCredit(2, 0, messages=2).open
    assert not InheritedCredit(2, 0, messages=5).open
    assert InheritedCredit(2, 0, messages=1).open


def test_inherited_delivery_beyond_limit_returns_no_credit() -> None:
    credit = InheritedCredit(2, 0, messages=3)
    for left in (1, 0, 0):
        credit.refill(message())
        assert credit.messages == left
    credit.take(message())
    assert credit.open, "one of two is outstanding"
    credit.take(message())
    assert not credit.open


# --- credit by explicit grants -------------------------------------------------------------------------


def granted(messages: int | None, octets: int | None, *, window: bool = True) -> Grant:
    grant = Grant(window=window)
    grant.grant("message", messages)
    grant.grant("byte", octets)
    return grant


def test_new_grant_has_no_credit() -> None:
    grant = Grant()
    assert not grant.open
    assert not grant.admits(message(0))
    assert (grant.messages, grant.octets) == (0, 0)


@pytest.mark.parametrize("unit", ["message", "byte"])
def test_grant_opens_only_with_message_and_byte_credit(unit: str) -> None:
    grant = Grant()
    grant.grant(unit)  # type: ignore[arg-type]
    assert not grant.open
    grant.grant("message")
    grant.grant("byte")
    assert grant.open


def test_repeated_grants_add_up() -> None:
    grant = granted(1, 5)
    grant.grant("message", 2)
    grant.grant("byte", 6)
    assert (grant.messages, grant.octets) == (3, 11)


@pytest.mark.parametrize("value", [None, UNLIMITED])
def test_unlimited_grant_stays_unlimited_until_stop(value: int | None) -> None:
    grant = granted(value, value)
    for _ in range(3):
        grant.give_back(grant.take(message(10**9)))
    grant.grant("message", 5)
    assert (grant.messages, grant.octets) == (None, None)
    grant.stop()
    assert (grant.messages, grant.octets, grant.open) == (0, 0, False)
    grant.grant("message", 5)
    assert grant.messages == 5


def test_finite_grant_saturates_below_unlimited() -> None:
    grant = granted(UNLIMITED - 5, None)
    grant.grant("message", 10)
    assert grant.messages == UNLIMITED - 1


def test_grant_admits_only_messages_within_remaining_byte_credit() -> None:
    grant = granted(None, 10)
    assert grant.admits(message(10))
    assert not grant.admits(message(11))
    grant.take(message(6))
    assert grant.admits(message(4)) and not grant.admits(message(5))
    assert grant.open, "smaller ones still may go"


def test_message_cost_is_measured_once_by_grants_measure() -> None:
    asked = []

    def measure(each: object) -> int:
        asked.append(each)
        return 19

    grant = Grant(measure)
    grant.grant("message")
    assert not grant.admits(message()) and not asked, "nobody measures what cannot be sent"
    grant.grant("byte", 19)
    one = message(8)
    assert grant.admits(one)
    assert grant.take(one)[1] == 19
    assert asked == [one]
    assert grant.octets == 0 and not grant.open


def test_explicit_octets_replace_measured_cost() -> None:
    grant = granted(None, 100)
    receipt = grant.take(message(10), octets=30)
    assert grant.octets == 70
    grant.give_back(receipt)
    assert grant.octets == 100


def test_balance_never_goes_below_zero() -> None:
    grant = granted(1, 10)
    receipt = grant.take(message(10), octets=30)
    assert (grant.messages, grant.octets) == (0, 0)
    grant.give_back(receipt)
    assert (grant.messages, grant.octets) == (1, 10)


def test_window_mode_returns_credit_of_completed_deliveries() -> None:
    grant = granted(2, 10)
    first = grant.take(message(4))
    second = grant.take(message(6))
    assert not grant.open
    assert grant.give_back(second)
    assert (grant.messages, grant.octets, grant.open) == (1, 6, True)
    assert grant.give_back(first)
    assert (grant.messages, grant.octets) == (2, 10)


def test_credit_mode_returns_no_credit() -> None:
    grant = granted(2, None, window=False)
    receipts = [grant.take(message()), grant.take(message())]
    assert [grant.give_back(each) for each in receipts] == [False, False]
    assert not grant.open


def test_delivery_before_stop_returns_no_credit() -> None:
    grant = granted(5, None)
    before = [grant.take(message()) for _ in range(5)]
    grant.stop()
    assert [grant.give_back(each) for each in before[:2]] == [False] * 2
    assert not grant.open
    grant.grant("message", 5)
    grant.grant("byte")
    assert [grant.give_back(each) for each in before[2:]] == [False] * 3
    assert grant.messages == 5
    after = grant.take(message())
    assert grant.give_back(after)
    assert grant.messages == 5


@pytest.mark.parametrize("unit", ["message", "byte"])
def test_changing_mode_with_credit_left_is_refused_when_strict(unit: str) -> None:
    grant = Grant()
    grant.set_mode(False)
    grant.grant(unit, 1)  # type: ignore[arg-type]
    with pytest.raises(IllegalState):
        grant.set_mode(True)
    assert not grant.window
    grant.set_mode(True, strict=False)
    assert grant.window
    grant.grant(unit)  # type: ignore[arg-type]
    with pytest.raises(IllegalState):
        grant.set_mode(False)


def test_delivery_in_previous_mode_returns_no_credit() -> None:
    grant = granted(1, None, window=False)
    receipt = grant.take(message())
    grant.set_mode(True, strict=False)
    assert not grant.give_back(receipt)
    assert grant.messages == 0


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 300), st.integers(0, 20))
def test_window_returns_exactly_to_granted_credit(sizes: list[int], octets: int, messages: int) -> None:
    grant = granted(messages, octets)
    receipts = []
    for size in sizes:
        if grant.admits(message(size)):
            receipts.append(grant.take(message(size)))
    for receipt in receipts:
        grant.give_back(receipt)
    assert (grant.messages, grant.octets) == (messages, octets)


class Granting(RuleBasedStateMachine):
    """A grant beside a plain account of it: sums of what was granted and what is out, era by era."""

    def __init__(self) -> None:
        super().__init__()
        self.grant = Grant(lambda each: len(each.body))
        self.out: list[tuple[tuple[int, int], int, bool]] = []
        self.messages: int | None = 0
        self.octets: int | None = 0
        self.era = 0

    @rule(unit=st.sampled_from(["message", "byte"]), value=st.none() | st.integers(0, 9))
    def give(self, unit: str, value: int | None) -> None:
        self.grant.grant(unit, value)  # type: ignore[arg-type]
        name = "messages" if unit == "message" else "octets"
        left = getattr(self, name)
        setattr(self, name, None if left is None or value is None else left + value)

    @rule(size=st.integers(0, 5))
    def send(self, size: int) -> None:
        may = self.messages != 0 and self.octets != 0 and (self.octets is None or size <= self.octets)
        assert self.grant.admits(message(size)) == may
        if may:
            self.out.append((self.grant.take(message(size)), size if self.octets is not None else 0, True))
            self.messages = None if self.messages is None else self.messages - 1
            self.octets = None if self.octets is None else self.octets - size

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        receipt, size, counts = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.grant.give_back(receipt)
        if counts and self.grant.window:
            self.messages = None if self.messages is None else self.messages + 1
            self.octets = None if self.octets is None else self.octets + size

    @rule()
    def stop(self) -> None:
        self.grant.stop()
        self.messages = self.octets = 0
        self.out = [(receipt, size, False) for receipt, size, _ in self.out]

    @rule(window=st.booleans())
    def switch(self, window: bool) -> None:
        if window != self.grant.window:
            self.out = [(receipt, size, False) for receipt, size, _ in self.out]
        self.grant.set_mode(window, strict=False)

    @invariant()
    def both_agree(self) -> None:
        assert (self.grant.messages, self.grant.octets) == (self.messages, self.octets)
        assert self.grant.open == (self.messages != 0 and self.octets != 0)


TestGranting = Granting.TestCase


# --- at a queue -------------------------------------------------------------------------------------------


def test_queue_delivers_as_many_messages_as_granted() -> None:
    queue = Bench().queue("q")
    publish(queue, "abcdef")
    reader = Reader(queue, messages=2)
    assert reader.seen == "ab"
    reader.allow(3)
    assert (reader.seen, waiting(queue)) == ("abcde", "f")


def test_consumer_with_new_credit_is_last_in_round_robin() -> None:
    queue = Bench().queue("q")
    small, large = Reader(queue, "s", messages=1), Reader(queue, "l")
    publish(queue, "abc")
    assert (small.seen, large.seen) == ("a", "bc")
    small.allow(1)
    publish(queue, "de")
    assert (small.seen, large.seen) == ("ae", "bcd"), "last among its equals once it is able again"


def test_completed_transfer_lets_window_deliver_next_message() -> None:
    queue = Bench().queue("q")
    publish(queue, "abcdef")
    reader = Reader(queue, messages=2, window=True)
    for expected in ("abc", "abcd"):
        assert reader.grant.give_back(reader.receipts.pop(0))
        reader.grant.resume()
        assert reader.seen == expected


def test_message_beyond_byte_credit_blocks_messages_behind_it() -> None:
    queue = Bench().queue("q")
    publish(queue, "a")
    large = message()
    large.body = b"long"
    queue.enqueue(large)
    publish(queue, "b")
    reader = Reader(queue, octets=4)
    assert reader.got == ["a"]
    reader.grant.grant("byte", 1)
    reader.grant.resume()
    assert reader.got == ["a", "long"]


@pytest.mark.parametrize("looked_at", [True, False])
def test_higher_priority_message_passes_message_beyond_byte_credit(looked_at: bool) -> None:
    queue = Bench().queue("q", max_priority=1)
    large = message()
    large.body = b"long"
    queue.enqueue(large)
    if looked_at:
        Reader(queue, "looker", acquires=False, messages=0)
    reader = Reader(queue, octets=1)
    publish(queue, "a", priority=0)
    assert reader.got == []
    publish(queue, "b", priority=1)
    assert reader.got == ["b"]


def test_consumer_without_granted_credit_is_paused_but_not_stopped() -> None:
    reader = Reader(Bench().queue("q"), messages=0)
    assert reader.subscription.paused and not reader.subscription.stopped
