from __future__ import annotations

from compat_tests import personalities


def test_the_tables_are_those_of_the_records() -> None:
    page = personalities.PAGE.read_text()
    assert personalities.with_tables(page) == page, "run `make personalities`"


def test_words_are_for_choices_that_differ() -> None:
    page = personalities.PAGE.read_text()
    assert [name for name in personalities.WORDS if f"| `{name}` |" not in page] == []
