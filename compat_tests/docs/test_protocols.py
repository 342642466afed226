from __future__ import annotations

from compat_tests.tools import protocols_page


def test_protocol_page_tables_equal_code() -> None:
    page = protocols_page.PAGE.read_text()
    assert protocols_page.with_tables(page) == page, "run `python -m compat_tests.tools.protocols_page`"
