"""Deliveries: the ledger of a channel, and what comes back to a queue."""

from __future__ import annotations

from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.readers import Reader, publish, waiting
from fakeamqp.model.deliveries.delivery import Delivery, Ledger, release_all
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.queues import QueueDeclaration


def delivery() -> Delivery:
    return Delivery(cast(Any, None), cast(Any, None), None, None, (), 0.0)


def ledger_of(count: int) -> tuple[Ledger, list[Delivery]]:
    ledger = Ledger()
    deliveries = [delivery() for _ in range(count)]
    for each in deliveries:
        ledger.add(each)
    return ledger, deliveries


def test_delivery_tags_count_up_from_one() -> None:
    ledger, deliveries = ledger_of(3)
    assert [each.tag for each in deliveries] == [1, 2, 3]
    assert list(ledger.outstanding) == [1, 2, 3]


def test_tag_of_no_ack_delivery_is_used_up_and_not_outstanding() -> None:
    ledger, _ = ledger_of(1)
    assert ledger.next_tag() == 2
    assert ledger.take(2, False) is None
    assert ledger.add(delivery()) == 3


def test_delivery_can_be_taken_only_once() -> None:
    ledger, deliveries = ledger_of(3)
    assert ledger.take(2, False) == [deliveries[1]]
    assert ledger.take(2, False) is None
    assert list(ledger.outstanding) == [1, 3]


def test_multiple_takes_all_deliveries_up_to_tag_oldest_first() -> None:
    ledger, deliveries = ledger_of(4)
    ledger.take(2, False)
    assert ledger.take(3, True) == [deliveries[0], deliveries[2]]
    assert list(ledger.outstanding) == [4]


def test_multiple_with_unknown_tag_takes_no_delivery() -> None:
    ledger, _ = ledger_of(3)
    ledger.take(3, False)
    for tag in (3, 4, 2**64 - 1):
        assert ledger.take(tag, True) is None
    assert list(ledger.outstanding) == [1, 2]


def test_tag_zero_takes_all_deliveries_only_with_multiple() -> None:
    ledger, deliveries = ledger_of(2)
    assert ledger.take(0, False) is None
    assert ledger.take(0, True) == deliveries
    assert ledger.take(0, True) == []


def test_delivery_put_back_returns_to_its_old_position() -> None:
    ledger, deliveries = ledger_of(4)
    for tag in (3, 1):
        assert ledger.take(tag, False) is not None
    ledger.put_back([deliveries[2], deliveries[0]])
    assert list(ledger.outstanding.values()) == deliveries
    assert ledger.take(2, True) == deliveries[:2]


@given(
    st.lists(
        st.one_of(
            st.just(("add",)),
            st.just(("undo",)),
            st.tuples(st.just("take"), st.integers(0, 12), st.booleans()),
        )
    ),
    st.sampled_from([0, 100]),
)
def test_ledger_behaves_like_plain_list_in_random_programs(steps: list[tuple[Any, ...]], long: int) -> None:
    with mock.patch("fakeamqp.model.deliveries.delivery._LONG", long):
        agree_with_a_plain_list(steps)


def agree_with_a_plain_list(steps: list[tuple[Any, ...]]) -> None:
    ledger = Ledger()
    expected: list[int] = []
    last: list[Delivery] = []
    count = 0
    for step in steps:
        if step[0] == "add":
            count += 1
            assert ledger.add(delivery()) == count
            expected.append(count)
        elif step[0] == "undo":
            ledger.put_back(last)
            expected = sorted(expected + [each.tag for each in last])
            last = []
        else:
            _, tag, multiple = step
            if multiple and tag == 0:
                wanted = list(expected)
            elif tag not in expected:
                assert ledger.take(tag, multiple) is None
                continue
            else:
                wanted = [each for each in expected if each <= tag] if multiple else [tag]
            taken = ledger.take(tag, multiple)
            assert taken is not None
            assert [each.tag for each in taken] == wanted
            expected = [each for each in expected if each not in wanted]
            last = taken
        assert list(ledger.outstanding) == expected


# --- what comes back to a queue -------------------------------------------------------------------------


KINDS = ("classic", "quorum")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("redelivered", [True, False, None])
def test_release_sets_redelivered_mark_as_client_asks(kind: str, redelivered: bool | None) -> None:
    queue = Bench().queue("q", kind)
    publish(queue, "ab")
    first = Reader(queue, "1", messages=2)
    release_all(first.deliveries, redelivered=redelivered)
    assert [each.redelivered for each in queue.ready] == [bool(redelivered)] * 2
    assert Reader(queue, "2").got == (["a*", "b*"] if redelivered else ["a", "b"])


@pytest.mark.parametrize("kind", KINDS)
def test_redelivered_mark_is_never_removed(kind: str) -> None:
    queue = Bench().queue("q", kind)
    publish(queue, "a")
    first = Reader(queue, "1", messages=1)
    release_all(first.deliveries)
    second = Reader(queue, "2", messages=1)
    assert second.got == ["a*"]
    release_all(second.deliveries, redelivered=None)
    assert Reader(queue, "3").got == ["a*"]


@pytest.mark.parametrize("redelivered", [True, False])
def test_released_messages_return_to_their_positions(redelivered: bool) -> None:
    queue = Bench().queue("q")
    publish(queue, "abcde")
    reader = Reader(queue, messages=3)
    release_all([reader.deliveries[1], reader.deliveries[0]], redelivered=redelivered)
    assert waiting(queue) == "abde"


def test_release_without_redelivered_mark_does_not_count_as_delivery() -> None:
    most = PERSONALITIES["spec"].most_deliveries
    assert most
    queue = Bench(PERSONALITIES["spec"]).queue("q")
    publish(queue, "a")
    for _ in range(2 * most):
        reader = Reader(queue, messages=1)
        release_all(reader.deliveries, redelivered=False)
        reader.cancel()
    assert waiting(queue) == "a"
    for _ in range(most):
        reader = Reader(queue, messages=1)
        release_all(reader.deliveries)
        reader.cancel()
    assert waiting(queue) == ""


# --- priorities -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("personality", "priorities", "maximum", "expected"),
    [
        (PERSONALITIES["rabbitmq-4.2"], None, None, "abc"),
        (PERSONALITIES["rabbitmq-4.2"], True, None, "cba"),
        (PERSONALITIES["rabbitmq-4.2"], True, 1, "bca"),
        (PERSONALITIES["rabbitmq-4.2"], False, 9, "cba"),
        (PERSONALITIES["spec"], None, None, "cba"),
        (PERSONALITIES["spec"], False, None, "abc"),
    ],
)
def test_declaration_can_request_priorities_without_x_max_priority(
    personality: Personality, priorities: bool | None, maximum: int | None, expected: str
) -> None:
    arguments = {} if maximum is None else {"x-max-priority": maximum}
    queue = Bench(personality).host.queues.declare(
        "q", QueueDeclaration(durable=True, arguments=arguments, priorities=priorities)
    )
    for body, priority in (("a", 0), ("b", 5), ("c", 9)):
        publish(queue, body, priority=priority)
    assert waiting(queue) == expected
    assert queue.arguments.get("x-max-priority") == maximum


def test_requested_priorities_have_ten_levels() -> None:
    queue = Bench().host.queues.declare("q", QueueDeclaration(durable=True, priorities=True))
    for level in range(12):
        publish(queue, chr(ord("a") + level), priority=level)
    assert waiting(queue) == "jklihgfedcba"


@pytest.mark.parametrize("kind", [*KINDS, "stream"])
def test_deleted_queue_keeps_no_reference_to_consumers(kind: str) -> None:
    """Clients may hold deliveries of it for long, and these know the queue."""
    bench = Bench()
    queue = bench.queue("q", kind, **({} if kind == "stream" else {"single_active_consumer": True}))
    for tag in "abc":
        Reader(queue, tag)
    bench.host.queues.delete("q", None)
    assert queue.deleted and not queue.subscriptions
    assert not queue.rotation
    assert not queue.successors
