"""docs/fidelity.md says what the lists of known differences say."""

from __future__ import annotations

import re

from compat_tests.differential import fidelity
from compat_tests.differential.comparison import SERIES, all_cases


def test_fidelity_page_tables_equal_lists_of_known_differences() -> None:
    page = fidelity.PAGE.read_text(encoding="utf-8")
    assert fidelity.with_tables(page) == page, (
        "run `python -m compat_tests.differential.fidelity --lists-only`"
    )


def test_each_family_of_cases_has_description() -> None:
    assert set(fidelity.FAMILIES) == {fidelity.family(case_id) for case_id in all_cases()}


def test_fidelity_page_has_measured_row_for_each_series() -> None:
    page = fidelity.PAGE.read_text(encoding="utf-8")
    measured = re.search(r"<!-- measured -->(.*?)<!-- end -->", page, re.DOTALL)
    assert measured is not None
    rows = re.findall(r"^\| (\d+\.\d+)\.\d+ \| `(\S+)` \|", measured[1], re.MULTILINE)
    assert rows == [(each.name, each.personality) for each in SERIES.values()]
