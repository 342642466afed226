from __future__ import annotations

from typing import Any, cast
from unittest import mock

from hypothesis import given, strategies as st

from fakeamqp.model.deliveries.delivery import Delivery, Ledger


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
