from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fakeamqp.model.equivalence import compare_arguments, compare_flag, freeze
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

VALUES: Any = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, 1.5]), st.text(max_size=2)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_equal_values_freeze_to_equal_hashable_values(value: Any) -> None:
    def rebuilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rebuilt(item) for key, item in reversed(list(value.items()))}
        return [rebuilt(item) for item in value] if isinstance(value, list) else value

    assert freeze(value) == freeze(rebuilt(value))
    assert hash(freeze(value)) == hash(freeze(rebuilt(value)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1.0, True),
        (1, "1"),
        (1, Decimal(1)),
        (Decimal("1.0"), Decimal("1.00")),
        ("x", b"x"),
        (None, False),
        (None, ""),
        ([1], [1.0]),
        ([], {}),
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ({"a": {}}, {"a": []}),
        ({"a": 1}, [("a", 1)]),
    ],
)
def test_values_of_different_types_freeze_to_different_values(one: Any, other: Any) -> None:
    assert freeze(one) != freeze(other)


def test_timestamp_freezes_like_its_number() -> None:
    # RabbitMQ: measured.
    assert freeze(Timestamp(5)) == freeze(5)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        (1, "signedint"),
        (-(2**31), "signedint"),
        (2**31, "long"),
        (1.5, "double"),
        ("s", "longstr"),
        (b"s", "binary"),
        (Decimal(1), "decimal"),
        ({}, "table"),
        ([], "array"),
        (None, "void"),
        (Timestamp(1), "timestamp"),
    ],
)
def test_value_types_have_rabbitmq_names(value: Any, name: str) -> None:
    assert type_name(value) == name


def difference(received: dict[str, Any], current: dict[str, Any], considered: Any = None) -> str | None:
    """What a comparison of arguments says, after the part that is always the same."""
    try:
        compare_arguments("queue", "q", "/", received, current, considered)
    except PreconditionFailed as problem:
        return problem.text.replace(" for queue 'q' in vhost '/': ", "|", 1)
    return None


def test_equivalent_arguments_are_accepted() -> None:
    assert difference({"a": 1, "b": {"c": [1]}}, {"b": {"c": [1]}, "a": 1}) is None
    assert difference({}, {}) is None


def test_inequivalent_argument_error_has_rabbitmq_text() -> None:
    assert difference({"a": 2}, {"a": 1}) == "inequivalent arg 'a'|received '2' but current is '1'"
    assert (
        difference({"a": True}, {"a": False}) == "inequivalent arg 'a'|received 'true' but current is 'false'"
    )
    assert difference({}, {"a": "x"}) == (
        "inequivalent arg 'a'|received none but current is the value 'x' of type 'longstr'"
    )
    assert difference({"a": True}, {}) == (
        "inequivalent arg 'a'|received the value 'true' of type 'bool' but current is none"
    )


def test_only_considered_arguments_are_compared_and_in_their_order() -> None:
    assert difference({"a": 1, "b": 1}, {"a": 2, "b": 2}, ("c",)) is None
    assert "'b'" in (difference({"a": 1, "b": 1}, {"a": 2, "b": 2}, ("b", "a")) or "")
    assert "'a'" in (difference({"a": 1, "b": 1}, {"a": 2, "b": 2}) or "")


def test_void_argument_is_not_equivalent_to_absent_argument() -> None:
    assert difference({"a": None}, {}) is not None


def test_different_flag_is_refused_with_rabbitmq_text() -> None:
    compare_flag("queue", "q", "/", "durable", True, True)
    with pytest.raises(PreconditionFailed) as caught:
        compare_flag("exchange", "x", "v", "type", "fanout", "direct")
    assert caught.value.text == (
        "inequivalent arg 'type' for exchange 'x' in vhost 'v': received 'fanout' but current is 'direct'"
    )
