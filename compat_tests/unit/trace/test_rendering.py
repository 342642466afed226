from __future__ import annotations

from decimal import Decimal

import pytest

from fakeamqp.trace.truncation import Truncated, one_line, short


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to say")


class Chatty:
    def __repr__(self) -> str:
        return "line\n" * 100


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("orders", "'orders'"),
        ("a\nb\udcff", r"'a\nb\udcff'"),
        (b"a\xff", r"b'a\xff'"),
        (7, "7"),
        (True, "True"),
        (None, "None"),
        (Decimal("1.5"), "Decimal('1.5')"),
        ({"a": [1, {"b": None}]}, "{'a': [1, {'b': None}]}"),
        ((1, "x"), "[1, 'x']"),
        ({}, "{}"),
        (list(range(12)), "[0, 1, 2, 3, 4, 5, 6, 7, ... 4 more]"),
        ([[[[[[1]]]]]], "[[[[...]]]]"),
        ("x" * 61, "'" + "x" * 60 + "'..."),
        (b"x" * 61, "b'" + "x" * 60 + "'... (61 bytes)"),
        (Truncated(b"x" * 100_000, 4096), "b'" + "x" * 60 + "'... (100000 bytes)"),
        (Silent(), "<Silent, whose repr raised RuntimeError>"),
    ],
)
def test_short_form_of_a_value_is_limited_in_length_and_depth(value: object, shown: str):
    assert short(value) == shown


def test_short_form_of_any_value_is_a_single_line():
    assert "\n" not in short(Chatty())
    assert len(short(Chatty())) < 250
    assert short({"\n": "\r", "x" * 1000: Silent()}).isprintable()


def test_one_line_escapes_unprintable_characters_only():
    assert one_line("it's the client's café") == "it's the client's café"
    assert one_line("a\nb\x1b[31m\udcff") == r"a\nb\x1b[31m\udcff"
    assert one_line("x" * 20, 10) == "xxxxxxx..."
