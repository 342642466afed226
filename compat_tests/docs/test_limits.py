from __future__ import annotations

from dataclasses import fields

from compat_tests.tools import limits_page
from fakeamqp.model.limits import Bounds


def test_limits_page_tables_equal_code() -> None:
    page = limits_page.PAGE.read_text()
    assert limits_page.with_tables(page) == page, "run `python -m compat_tests.tools.limits_page`"


def test_each_bound_has_limits_page_row() -> None:
    assert list(limits_page.ROWS) == [each.name for each in fields(Bounds)]
