"""A matrix that could not fail would hide all of its cases."""

from __future__ import annotations

import pytest

from compat_tests.tools.matrix import cases


def test_every_failed_case_of_matrix_is_listed() -> None:
    with pytest.raises(AssertionError) as raised, cases() as case:
        for number in range(6):
            with case(number, "odd" if number % 2 else "even"):
                assert number % 2 == 0, f"{number} is odd"
    lines = str(raised.value).splitlines()
    assert lines[0] == "3 of 6 cases failed:"
    assert [line for line in lines if line.startswith("[")] == [
        "[1-odd] AssertionError: 1 is odd",
        "[3-odd] AssertionError: 3 is odd",
        "[5-odd] AssertionError: 5 is odd",
    ]


def test_error_of_any_type_fails_its_case() -> None:
    with pytest.raises(AssertionError) as raised, cases() as case:
        with case("division"):
            _ = 1 / 0
        with case("fail"):
            pytest.fail("two\nlines")
        with case("expected"), pytest.raises(ValueError):
            pass
    assert str(raised.value).splitlines()[:5] == [
        "3 of 3 cases failed:",
        "[division] ZeroDivisionError: division by zero",
        "[fail] Failed: two",
        "    lines",
        "[expected] Failed: DID NOT RAISE ValueError",
    ]
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_matrix_of_passed_cases_raises_no_error() -> None:
    seen = []
    with cases() as case:
        for number in range(3):
            with case(number):
                seen.append(number)
    assert seen == [0, 1, 2]


def test_a_matrix_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="the matrix has no case"), cases():
        pass


def test_error_outside_of_cases_is_raised_unchanged() -> None:
    with pytest.raises(KeyError), cases() as case:
        with case("first"):
            raise ValueError
        raise KeyError


def test_keyboard_interrupt_ends_matrix() -> None:
    with pytest.raises(KeyboardInterrupt), cases() as case, case("first"):
        raise KeyboardInterrupt
