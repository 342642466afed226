"""Sets that keep the order in which their elements were added, and do all else as those of Python."""

from __future__ import annotations

import copy
import pickle
from weakref import WeakSet

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from fakeamqp import simulation
from fakeamqp.simulation.ordered_sets import OrderedFrozenSet, OrderedSet, OrderedWeakSet

items = st.lists(st.integers(-3, 8), max_size=6)
CHANGES = ("update", "difference_update", "intersection_update", "symmetric_difference_update")
OPERATORS = ("__or__", "__and__", "__sub__", "__xor__", "__ior__", "__iand__", "__isub__", "__ixor__")
RESULTS = ("union", "difference", "intersection", "symmetric_difference")
steps = st.one_of(
    st.tuples(st.sampled_from(("add", "discard", "remove")), st.integers(-3, 8)),
    st.tuples(st.sampled_from(("clear", "copy"))),
    st.tuples(st.sampled_from((*CHANGES, *RESULTS)), items.map(tuple)),
    st.tuples(st.sampled_from(OPERATORS), st.one_of(items.map(frozenset), items.map(tuple))),
)


class Thing:
    """Has the hash of its address."""


@examples(200)
@given(items, st.lists(steps, max_size=8))
def test_each_method_of_ordered_set_has_the_same_result_as_in_set(
    first: list[int], done: list[tuple]
) -> None:
    plain, ordered = set(first), OrderedSet(first)
    assert list(ordered) == list(dict.fromkeys(first))
    for name, *arguments in done:
        outcomes = []
        for each in (plain, ordered):
            try:
                outcomes.append(getattr(each, name)(*arguments))
            except KeyError:
                outcomes.append("KeyError")
        assert outcomes[0] == outcomes[1], name
        assert ordered == plain
        # In whatever order: nothing is missing, nothing is there twice.
        assert sorted(ordered) == sorted(plain)
        if isinstance(outcomes[0], set):
            assert sorted(outcomes[1]) == sorted(outcomes[0])


def test_elements_keep_the_order_of_insertion() -> None:
    things = [Thing() for _ in range(50)]
    found = OrderedSet(things)
    assert list(found) == things
    found.remove(things[0])
    found.add(things[1])
    found.add(things[0])
    assert list(found) == [*things[1:], things[0]]
    assert found.pop() is things[1]
    found -= set(things[2:10])
    found ^= {things[10], things[1]}
    assert list(found) == [*things[11:], things[0], things[1]]
    assert list(found & set(things[:20])) == [*things[11:20], things[0], things[1]]
    assert list(found.copy()) == list(copy.copy(found)) == list(found)
    assert list(OrderedFrozenSet(found)) == list(found)
    assert pickle.loads(pickle.dumps(OrderedSet("cab"))) == set("abc")


def test_ordered_weak_set_keeps_insertion_order_and_does_not_keep_elements_alive() -> None:
    things = [Thing() for _ in range(50)]
    found = OrderedWeakSet(things)
    assert list(found) == things
    del things[3:47]
    assert list(found) == things
    assert len(found) == 6


def test_a_change_during_an_iteration_is_an_error_as_with_sets() -> None:
    for kind in (set, OrderedSet):
        for change in (lambda found: found.add(9), lambda found: found.discard(2)):
            found = kind([1, 2, 3])
            with pytest.raises(RuntimeError, match=r"^Set changed size during iteration$"):
                for item in found:
                    if item == 3:
                        change(found)
    with pytest.raises(KeyError, match="pop from an empty set"):
        OrderedSet().pop()


def test_ordered_sets_and_builtin_sets_are_instances_of_each_other() -> None:
    for usual, ordered in ((set, OrderedSet), (frozenset, OrderedFrozenSet), (WeakSet, OrderedWeakSet)):
        assert isinstance(usual(), ordered)
        assert isinstance(ordered(), usual)
        assert not isinstance([], ordered)
    assert OrderedSet[int]


def test_clients_use_ordered_sets_only_in_seeded_simulations() -> None:
    robust_connection = pytest.importorskip("aio_pika.robust_connection")
    base = pytest.importorskip("aiormq.base")

    async def kinds() -> tuple[object, ...]:
        return robust_connection.WeakSet, vars(base).get("set"), vars(base).get("frozenset")

    assert simulation.run(kinds(), seed=1) == (OrderedWeakSet, OrderedSet, OrderedFrozenSet)
    assert simulation.run(kinds()) == (WeakSet, None, None)
