"""The account of what a broker has confirmed, checked against one that keeps every tag."""

from __future__ import annotations

from hypothesis import given, strategies as some

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.sink.window import ConfirmWindow

ANSWERS = some.lists(
    some.one_of(
        some.tuples(some.just("send"), some.integers(1, 5)),
        some.tuples(some.just("one"), some.integers(0, 30)),
        some.tuples(some.just("all"), some.integers(0, 30)),
    ),
    max_size=40,
)


@given(ANSWERS)
def test_each_message_is_settled_once_for_any_order_of_confirms(steps):
    window, open_tags, sent = ConfirmWindow(), set(), 0
    for what, number in steps:
        if what == "send":
            window.add([f"m{tag}" for tag in range(sent + 1, sent + number + 1)])
            open_tags.update(range(sent + 1, sent + number + 1))
            sent += number
            continue
        if what == "one":
            expected = open_tags & {number}
        else:
            expected = {tag for tag in open_tags if tag <= number or number == 0}
        assert window.settle(number, what == "all") == [f"m{tag}" for tag in sorted(expected)]
        open_tags -= expected
        assert [*window.values()] == [f"m{tag}" for tag in sorted(open_tags)]


def test_a_confirm_of_messages_that_were_never_sent_settles_those_that_were():
    window = ConfirmWindow()
    window.add(["a", "b"])
    assert window.settle(1 << 60, multiple=False) == []
    assert window.settle(1 << 60, multiple=True) == ["a", "b"]
