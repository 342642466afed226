from __future__ import annotations

from compat_tests.benchmarks.side_by_side import page


def test_benchmark_page_tables_equal_recorded_results() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text) == text, "run `python -m compat_tests.benchmarks.side_by_side.page`"
