"""The patterns of operators: they mean what Python's engine makes of them, and none takes long."""

from __future__ import annotations

import re
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeamqp.model import patterns
from fakeamqp.model.access import Permission, TopicPermission
from fakeamqp.model.patterns import InvalidPattern, Program, compiled

SINGLE = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", "[]a]", r"\.", r"\d", r"\W", r"\x61", r"[\]b-]", " "]
)
PLACES = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{,2}", "{2,}", "{0}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds("{}{})".format, st.sampled_from(["(", "(?:", "(?P<name>"]), inner)
    return st.one_of(
        st.builds("{}{}".format, st.one_of(SINGLE, group), QUANTIFIERS),
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.builds("({}{})".format, st.sampled_from(["?=", "?!"]), inner),
        st.builds("({}{})".format, st.sampled_from(["?<=", "?<!"]), SINGLE),
    )


PATTERNS = st.recursive(st.one_of(SINGLE, PLACES), _larger, max_leaves=8)


def by_program(pattern: str) -> Program | None:
    """A pattern as a program, even if Python's engine is fast enough."""
    parser = patterns._Parser(pattern, re.compile(pattern).flags)
    parser._nested = True
    return parser.program()


@given(PATTERNS, st.lists(st.text("ab-.1 \n", max_size=6), min_size=1, max_size=4), st.booleans())
def test_a_program_finds_what_pythons_engine_finds(
    pattern: str, texts: list[str], ignoring_case: bool
) -> None:
    pattern = "(?i)" * ignoring_case + pattern
    try:
        expected = re.compile(pattern)
    except re.error:  # Two groups have the same name.
        return
    program = by_program(pattern)
    assert program is not None
    for text in [*texts, *map(str.upper, texts)]:
        assert program.search(text) is (expected.search(text) is not None), text


@pytest.mark.parametrize(
    "quantifier", ["*", "+", "?", "*?", "+?", "??", "{0}", "{2}", "{1,3}", "{,2}", "{2,}", "{2,3}?"]
)
@pytest.mark.parametrize("pattern", ["^aQ$", "^(ab)Q$", "^(?:a|b)Qb$", "xQy"])
def test_a_program_repeats_as_often_as_pythons_engine(pattern: str, quantifier: str) -> None:
    pattern = pattern.replace("Q", quantifier)
    program = by_program(pattern)
    assert program is not None
    for part in ("a", "b", "ab", "x"):
        for times in range(6):
            for text in (part * times, part * times + "b", part * times + "y"):
                assert program.search(text) is (re.search(pattern, text) is not None), text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="possessive quantifiers came with Python 3.11")
@pytest.mark.parametrize("quantifier", ["*+", "++", "?+", "{1,2}+"])
def test_a_possessive_quantifier_is_left_to_pythons_engine(quantifier: str) -> None:
    pattern = f"^a{quantifier}a$"
    assert isinstance(compiled(pattern), re.Pattern)
    with pytest.raises(InvalidPattern, match=re.escape(f"with '{quantifier}' a pattern may have")):
        by_program(pattern)


#: Each would keep Python's engine busy for ever.
SLOW = [
    ("^(a+)+$", "a" * 200 + "!", False),
    ("^(a|a)*$", "a" * 200 + "!", False),
    ("^(a?){60}a{60}$", "a" * 60, True),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200, False),
    (".*.*.*.*.*.*x", "a" * 250, False),
    ("^(?!(a+)+!)", "a" * 200 + "!", False),
    (r"^(\w+\s?)*$", "a" * 200 + "!", False),
]


@pytest.mark.parametrize(("pattern", "name", "fits"), SLOW, ids=[each[0] for each in SLOW])
def test_no_pattern_takes_long(pattern: str, name: str, fits: bool) -> None:
    assert Permission(configure=pattern).grants("configure", name) is fits


@pytest.mark.parametrize(
    "pattern", ["", ".*", "^own", r"^(?!amq\.).*", "a+b+", "(a|b)", r"(a)\1", "(?x) a # b"]
)
def test_pythons_engine_runs_what_it_is_fast_at(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(compiled(pattern), re.Pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing ), unterminated subpattern (at 0)"),
        ("a**", "multiple repeat (at 2)"),
        (r"(a+)\1(b+)+", r"with '\\1' a pattern may have at most 2 quantifiers"),
        ("(?x)(a+)+", "with '(?x' a pattern may have at most 2 quantifiers"),
        ("(?P<x>a+)(?P=x)(b+)+", "with '(?P=' a pattern may have at most 2 quantifiers"),
        ("(a)?(?(1)b|c+)+", "with '(?(1)' a pattern may have at most 2 quantifiers"),
        ("(?i:a+)+", "with '(?i:' a pattern may have at most 2 quantifiers"),
        ("(a{1,50}){1,50}", "the pattern is too large"),
        ("(((){9999}){9999}a{9999}){9999}", "the pattern is too large"),
        ("(" * 5000 + ")" * 5000, ""),
    ],
)
def test_others_are_refused(pattern: str, problem: str) -> None:
    for kind in (Permission, TopicPermission):
        with pytest.raises(InvalidPattern) as caught:
            kind(write=pattern)
        assert problem in str(caught.value)
