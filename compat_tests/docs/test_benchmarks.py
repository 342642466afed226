from __future__ import annotations

from compat_tests.benchmarks.side_by_side import page


def test_the_tables_are_those_of_the_results() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text) == text, "run `python -m compat_tests.benchmarks.side_by_side.page`"
