from __future__ import annotations

from compat_tests.tools import personalities


def test_personality_page_tables_equal_records_of_code() -> None:
    page = personalities.PAGE.read_text()
    assert personalities.with_tables(page) == page, "run `make personalities`"


def test_personality_page_has_row_for_each_described_choice() -> None:
    page = personalities.PAGE.read_text()
    assert [name for name in personalities.WORDS if f"| `{name}` |" not in page] == []
