"""SQL filters of AMQP 1.0: any expression means what its tree means, and patterns cost little."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_1_0.codec.composites import Properties
from fakeamqp.protocols.amqp_1_0.filters.fields import IllFormed
from fakeamqp.protocols.amqp_1_0.filters.like import like
from fakeamqp.protocols.amqp_1_0.filters.sql import read_expression
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, head_of

VALUES: dict[str, Any] = {"n": 2, "m": -7, "f": 0.5, "s": "abc", "b": True, "c": False}
MESSAGE = SectionProperties(head=head_of(Properties(), VALUES))
BINARY = {"OR": 1, "AND": 2, "=": 4, "<>": 4, "<": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
"""Operator -> how strongly it binds."""


def trees() -> st.SearchStrategy[Any]:
    """Trees of expressions: an operator and its operands, a value, or the name of a property."""
    leaves = st.sampled_from([*VALUES, "unknown"]) | st.integers(0, 3).map(lambda each: ("literal", each))
    literals = st.sampled_from([("literal", each) for each in (True, False, 0.5, "abc", "it's")])
    return st.recursive(
        leaves | literals,
        lambda inner: (
            st.tuples(st.sampled_from([*BINARY]), inner, inner)
            | st.tuples(st.sampled_from(["NOT", "sign"]), inner)
            | st.tuples(st.just("IN"), inner, st.lists(inner, min_size=1, max_size=3))
            | st.tuples(st.just("IS NULL"), st.sampled_from([*VALUES, "unknown"]))
            | st.tuples(st.just("LIKE"), inner, st.sampled_from(["a%", "%b%", "_bc", ""]))
        ),
        max_leaves=12,
    )


def written(tree: Any, least: int = 0) -> str:
    """The tree as text, with as few parentheses as the grammar needs where this strength is asked for."""
    if isinstance(tree, str):
        return tree
    kind, *rest = tree
    if kind == "literal":
        [value] = rest
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value).upper() if isinstance(value, bool) else str(value)
    if kind in BINARY:
        strength = BINARY[kind]
        left = strength + (strength == 4)
        text = f"{written(rest[0], left)} {kind} {written(rest[1], strength + 1)}"
    elif kind == "NOT":
        strength, text = 3, f"NOT {written(rest[0], 3)}"
    elif kind == "sign":
        strength, text = 7, f"- {written(rest[0], 8)}"
    elif kind == "IN":
        strength = 4
        text = f"{written(rest[0], 5)} IN ({', '.join(written(each, 5) for each in rest[1])})"
    elif kind == "LIKE":
        strength, text = 4, f"{written(rest[0], 5)} LIKE '{rest[1]}'"
    else:
        strength, text = 4, f"{rest[0]} IS NULL"
    return f"({text})" if strength < least else text


def number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def meant(tree: Any) -> Any:
    """What the tree evaluates to, None if that is unknown."""
    if isinstance(tree, str):
        return VALUES.get(tree)
    kind, *rest = tree
    if kind == "literal":
        return rest[0]
    if kind == "IS NULL":
        return meant(rest[0]) is None
    one = meant(rest[0])
    if kind == "NOT":
        return not one if isinstance(one, bool) else None
    if kind == "sign":
        return -one if number(one) else None
    if kind == "LIKE":
        pattern = rest[1].replace("%", ".*").replace("_", ".")
        return bool(re.fullmatch(pattern, one)) if isinstance(one, str) else None
    if kind == "IN":
        return None if one is None else any(same(meant(each), one) for each in rest[1])
    other = meant(rest[1])
    if kind in ("AND", "OR"):
        decides = kind == "OR"
        if one is decides or other is decides:
            return decides
        return not decides if isinstance(one, bool) and isinstance(other, bool) else None
    if kind in ("+", "-", "*", "/", "%"):
        return calculated(kind, one, other) if number(one) and number(other) else None
    if one is None or other is None:
        return None
    if kind in ("=", "<>"):
        return same(one, other) == (kind == "=")
    alike = (number(one) and number(other)) or (isinstance(one, str) and isinstance(other, str))
    return alike and (one < other if kind == "<" else one >= other)


def calculated(kind: str, one: Any, other: Any) -> Any:
    if kind == "/":
        return one / other if other else None
    if kind == "%":
        whole = isinstance(one, int) and isinstance(other, int) and other
        return one - other * int(one / other) if whole else None
    return {"+": one + other, "-": one - other, "*": one * other}[kind]


@pytest.mark.rule("1-0/filter/sql")
@given(trees())
def test_expression_has_the_value_of_its_tree(tree: Any) -> None:
    value = read_expression(written(tree), lambda: 0)(MESSAGE)
    expected = meant(tree)
    if isinstance(expected, str):
        expected = expected.encode()
    assert same(value, expected), written(tree)


@pytest.mark.rule("1-0/filter/sql")
@given(st.text("AND OR()'n=1%_-\"[].0xE", max_size=30))
def test_text_that_is_no_expression_is_ill_formed_or_overflows(text: str) -> None:
    with suppress(IllFormed, OverflowError):
        read_expression(text, lambda: 0)(MESSAGE)


@pytest.mark.rule("1-0/filter/sql")
@given(st.text("ab%_!", max_size=8), st.text("ab%_\n", max_size=8))
def test_pattern_matches_what_its_regular_expression_matches(pattern: str, subject: str) -> None:
    pieces = re.findall(r"!.|.", pattern)
    if "!" in pieces:
        with pytest.raises(IllFormed):
            like(pattern, "!")
        return
    said = "".join({"%": ".*", "_": "."}.get(each, re.escape(each[-1])) for each in pieces)
    by_bytes = "_" not in pieces and pieces.count("%") < 2
    expected = re.fullmatch(said, subject, re.DOTALL) if by_bytes else re.match(f"^{said}$", subject)
    assert like(pattern, "!")(subject.encode()) == (expected is not None)


@pytest.mark.rule("1-0/filter/sql")
def test_pattern_that_would_backtrack_is_matched_at_once() -> None:
    matches = like("%a_" * 300 + "b", None)
    assert matches(b"a" * 20_000) is False
    assert matches(b"ac" * 10_000 + b"b") is True
    assert matches(b"a" * (1 << 24)) is False


@pytest.mark.rule("1-0/filter/limits")
@pytest.mark.parametrize("opening", ["(", "NOT ", "n = ("])
def test_deepest_expression_is_read(opening: str) -> None:
    with pytest.raises(IllFormed):
        read_expression(opening * (200 // len(opening.split())), lambda: 0)
    assert read_expression("NOT " * 199 + "b", lambda: 0)(MESSAGE) is False
