from __future__ import annotations

from hypothesis import given, strategies as st

from compat_tests.unit.model.fakes import QueueThatCounts, message, subscription
from fakeamqp.model.deliveries.subscription import Credit, Gate, InheritedCredit


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
