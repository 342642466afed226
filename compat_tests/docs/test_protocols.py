from __future__ import annotations

from compat_tests import protocols_page


def test_the_tables_are_those_of_the_code() -> None:
    page = protocols_page.PAGE.read_text()
    assert protocols_page.with_tables(page) == page, "run `python -m compat_tests.protocols_page`"
