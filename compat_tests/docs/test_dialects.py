from __future__ import annotations

from compat_tests import dialects_page


def test_the_tables_are_those_of_the_code() -> None:
    page = dialects_page.PAGE.read_text()
    assert dialects_page.with_tables(page) == page, "run `python -m compat_tests.dialects_page`"
