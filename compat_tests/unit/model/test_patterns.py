"""The patterns of operators mean what they mean in RabbitMQ. No compile and no search takes long."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
from itertools import combinations, islice
from pathlib import Path
from string import ascii_letters
from types import FrameType

import pytest
from hypothesis import given, strategies as st

from compat_tests.tools.matrix import cases
from fakeamqp.model.access import Permission, TopicPermission
from fakeamqp.model.patterns import LONGEST_PATTERN, MOST_STEPS, InvalidPattern, compiled
from fakeamqp.model.patterns.parsing import parsed

#: What `re:run` of Erlang/OTP 25 (PCRE 8) found in texts, or `re:compile` said.
MEASURED = json.loads(Path(__file__).with_name("measured_patterns.json").read_text())

SINGLE = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", "[]a]", r"\.", r"\d", r"\W", r"\x61", r"[\]b-]", " "]
)
PLACES = st.sampled_from(["^", "$", r"\b", r"\B", r"\A"])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{2,}", "{0}"])


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


def test_pattern_matches_same_texts_as_in_erlang() -> None:
    with cases() as case:
        for row in MEASURED:
            with case(row["pattern"]):
                try:
                    program = compiled(row["pattern"])
                except InvalidPattern as error:
                    assert (error.problem, error.place) == (row.get("problem"), row.get("place"))
                else:
                    assert {text: program.search(text) for text in row["fits"]} == row["fits"]


@given(PATTERNS, st.lists(st.text("ab-.1 \n", max_size=6), min_size=1, max_size=4), st.booleans())
def test_search_finds_same_as_python_re(pattern: str, texts: list[str], ignoring_case: bool) -> None:
    pattern = "(?i)" * ignoring_case + pattern
    try:
        expected = re.compile(pattern, re.ASCII)
    except re.error:  # Two groups have the same name.
        return
    for text in [*texts, *map(str.upper, texts)]:
        if not text and "\\B" in pattern:
            continue  # Python before 3.14 finds no \\B in an empty text.
        assert compiled(pattern).search(text) is (expected.search(text) is not None), text


@pytest.mark.parametrize(
    "quantifier", ["*", "+", "?", "*?", "+?", "??", "{0}", "{2}", "{1,3}", "{2,}", "{2,3}?"]
)
@pytest.mark.parametrize("pattern", ["^aQ$", "^(ab)Q$", "^(?:a|b)Qb$", "xQy", "^(a?)Q$"])
def test_quantifier_repeats_as_often_as_in_python_re(pattern: str, quantifier: str) -> None:
    pattern = pattern.replace("Q", quantifier)
    for part in ("a", "b", "ab", "x"):
        for times in range(6):
            for text in (part * times, part * times + "b", part * times + "y"):
                assert compiled(pattern).search(text) is (re.search(pattern, text) is not None), text


# --- the bound of a search ----------------------------------------------------------------------------

_NAME = "a" * 254 + "!"
#: Patterns that are found, or found not to match, in steps that grow with the length of the text alone.
LINEAR = [
    ("^(a+)+$", _NAME, False),
    ("^(a|a)*$", _NAME, False),
    ("(a|aa)*b", _NAME, False),
    ("(.*)*x", _NAME, False),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", _NAME, False),
    (".*.*x", _NAME, False),
    (".*.*.*.*.*.*x", _NAME, False),
    ("^(?!(a+)+!)", _NAME, False),
    (r"^(\w+\s?)*$", _NAME, False),
    ("^(?=.*(?=.*(?=.*(?=.*x))))", _NAME, False),
    ("^(?=.*(?=.*(?=.*(?=.*x))))", "x" + _NAME, True),
    ("^(?:(?=.*!).)*$", _NAME, True),
    ("^(?:(?=.*x).)*$", _NAME, False),
    ("(?<=a)(?<=[^!])(?<!x)+(a+)+$", _NAME, False),
    ("(?>(a|aa)*)b", _NAME, False),
    ("(a++|aa)*+b", _NAME, False),
    ("(((a|b|ab)*(b|a)*)*)c", _NAME, False),
    (r"(\w+\.?)+@", _NAME, False),
    ("((ä|é|ü)+)+$", "ä" * 127 + "!", False),
]


def test_search_steps_grow_linearly_with_text_length() -> None:
    with cases() as case:
        for pattern, text, fits in LINEAR:
            with case(pattern, text[:3]):
                found = compiled(pattern).run(text)
                assert found[0] is fits
                twice = compiled(pattern).run(text[:1] + 2 * text[1:-1] + text[-1:])
                assert twice[0] is fits
                assert twice[1] < 2.5 * found[1]
                assert found[1] < MOST_STEPS / 2


#: Patterns that cannot be searched within the bound. They match nothing then, as in RabbitMQ.
ENDED = [
    r"(.*)\1\1x",
    r"^(a*)(a*)(a*)(a*)\1\2\3\4b",
    "^((a{0,100}){0,100}){0,100}$",
    "^(((a?){0,9999}){0,9999}){0,9999}$",
    "(((){9999}){9999}a{9999}){9999}",
    "(a|b)" * 6000,
    "a?" * 16_000 + "a{200}b",
    "(a)" * 5000 + r"\1\2\3\4\5\6\7\8\9",
]


def test_search_over_step_limit_ends_without_match() -> None:
    with cases() as case:
        for pattern in ENDED:
            with case(pattern[:40]):
                found = compiled(pattern).run(_NAME)
                assert not found[0]
                assert found[1] < 1.1 * MOST_STEPS


def test_negative_lookahead_over_step_limit_grants_no_permission() -> None:
    assert not Permission(configure="^(?!((a{0,100}){0,100}){0,100}$)").grants("configure", _NAME)


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "(",
                "(?:",
                "(?=",
                "(?!",
                "(?>",
                "(?<n>",
                ")",
                ")*",
                ")+",
                "){0,9}",
                ")*?",
                "|",
                ".*",
                r"\1",
                "$",
            ]
        ),
        max_size=60,
    ).map("".join),
    st.text("ab!", max_size=255),
)
def test_steps_of_random_search_stay_within_limit(pattern: str, text: str) -> None:
    pattern += ")" * (len(re.findall(r"\((?!\?\))", pattern)) - pattern.count(")"))
    try:
        program = compiled(pattern)
    except InvalidPattern:
        return
    assert program.run(text)[1] < 1.1 * MOST_STEPS


def test_search_of_many_alternatives_selects_them_by_next_character() -> None:
    pattern = "|".join(f"{letter}name{number}" for letter in "bcdefghij" for number in range(100))
    assert compiled(pattern).run(_NAME)[1] < 3 * len(_NAME)
    assert compiled(pattern).search(_NAME + "jname99")


# --- the bound of a compile ---------------------------------------------------------------------------

#: Each is repeated up to the longest pattern.
HUGE = [
    "a",
    "a?",
    "(a|b)",
    "(a)\\1",
    "(?=a)",
    "(a){2,3}",
    "(a?)?",
    "[^a]|",
    "{1",
    "\\x{",
    "\\Qa\\E",
    "(?#)",
    "|[[:",
]


def _calls(pattern: str) -> int:
    """How many calls it takes to compile a pattern, whether it is valid or not."""
    count = 0

    def counting(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counting)
    try:
        parsed(pattern)
    except InvalidPattern:
        pass
    finally:
        sys.setprofile(None)
    return count


def test_compiling_huge_pattern_takes_calls_in_proportion_to_its_length() -> None:
    with cases() as case:
        for part in HUGE:
            with case(part):
                half, whole = (part * (length // len(part)) for length in (1_000, 2_000))
                assert _calls(whole) < 2.2 * _calls(half) + 1_000


def test_compiling_huge_pattern_takes_at_most_200_times_its_memory() -> None:
    sets = ["[^" + "".join(letters) + "]" for letters in islice(combinations(ascii_letters, 3), 1300)]
    tracemalloc.start()
    try:
        parsed("".join(sets))
        assert tracemalloc.get_traced_memory()[1] < 200 * 6 * len(sets)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a" * (LONGEST_PATTERN + 1), "regular expression is too large"),
        ("ä" * (LONGEST_PATTERN // 2 + 1), "regular expression is too large"),
        ("(" * 5000 + ")" * 5000, "regular expression is too complicated"),
        ("(?=.*" * 5000 + ")" * 5000, "regular expression is too complicated"),
        ("a(?R)?b", "'(?R' is not supported"),
        ("(a)(?1)", "'(?1' is not supported"),
        ("(?P<n>a)(?&n)", "'(?&' is not supported"),
        ("(?|(a)|(b))", "'(?|' is not supported"),
        ("(?(?=a)b|c)", "'(?(?' is not supported"),
        ("(*FAIL)", "'(*F' is not supported"),
        (r"\p{L}", r"'\\p' is not supported"),
        ("\ud800", "an unpaired surrogate has no bytes"),
    ],
)
def test_unsupported_or_too_large_pattern_is_refused(pattern: str, problem: str) -> None:
    for kind in (Permission, TopicPermission):
        with pytest.raises(InvalidPattern) as caught:
            kind(write=pattern)
        assert problem in str(caught.value)


def test_dot_of_pattern_matches_one_octet() -> None:
    assert compiled(r"^(..)\1$").search("éé")
    assert not compiled(r"^(.)\1$").search("é")


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_posix_class_of_one_case_has_letters_of_both_in_a_pattern_without_case(name: str) -> None:
    for sign, expected in (("", True), ("^", False)):
        pattern = compiled(f"(?i)^[[:{sign}{name}:]]$")
        assert all(bool(pattern.search(each)) is expected for each in ascii_letters)
    assert not compiled(f"^[[:{name}:]]$").search("a" if name == "upper" else "A")


def test_error_of_a_comment_without_end_is_at_the_end_of_the_pattern() -> None:
    with pytest.raises(InvalidPattern) as caught:
        compiled("a(?#never closed")
    assert (caught.value.problem, caught.value.place) == ("missing ) after comment", 16)
