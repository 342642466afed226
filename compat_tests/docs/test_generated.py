"""Tables that code writes into pages equal that code, the recorded results, or the lists of differences."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import import_module

import pytest

from compat_tests.differential import fidelity
from compat_tests.differential.comparison import SERIES, all_cases
from compat_tests.tools import limits_page, personalities
from fakeamqp.model.limits import Bounds

WRITERS = {
    "benchmarks.side_by_side.page": "python -m compat_tests.benchmarks.side_by_side.page",
    "differential.fidelity": "python -m compat_tests.differential.fidelity --lists-only",
    "reliability.page": "python -m compat_tests.reliability.page",
    "tools.control_page": "python -m compat_tests.tools.control_page",
    "tools.fault_names": "python -m compat_tests.tools.fault_names",
    "tools.limits_page": "python -m compat_tests.tools.limits_page",
    "tools.personalities": "make personalities",
    "tools.renamed_page": "python -m compat_tests.tools.renamed_page",
    "tools.protocols_page": "python -m compat_tests.tools.protocols_page",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_tables_of_page_equal_what_they_are_written_from(writer: str) -> None:
    module = import_module(f"compat_tests.{writer}")
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.with_tables(text) == text, f"run `{WRITERS[writer]}`"


def test_each_bound_has_limits_page_row() -> None:
    assert list(limits_page.ROWS) == [each.name for each in fields(Bounds)]


def test_personality_page_has_row_for_each_described_choice() -> None:
    page = personalities.PAGE.read_text()
    assert [name for name in personalities.WORDS if f"| `{name}` |" not in page] == []


def test_tables_of_spark_pages_equal_options_and_columns() -> None:
    pytest.importorskip("pyspark")
    spark_pages = import_module("compat_tests.tools.spark_pages")
    differ = [
        each.name for each in spark_pages.PAGES if spark_pages.with_tables(each) != each.read_text("utf-8")
    ]
    assert differ == [], "run `python -m compat_tests.tools.spark_pages`"


def test_page_of_spark_columns_names_every_property() -> None:
    pytest.importorskip("pyspark")
    pages = import_module("compat_tests.tools.spark_pages").PAGES
    [page] = (each.read_text(encoding="utf-8") for each in pages if each.name == "spark-columns.md")
    properties = import_module("fakeamqp.spark.rows.columns").PROPERTIES
    assert [name for name in properties if f"`{name}`" not in page] == []


def test_each_family_of_cases_has_description() -> None:
    assert set(fidelity.FAMILIES) == {fidelity.family(case_id) for case_id in all_cases()}


def test_fidelity_page_has_measured_row_for_each_series() -> None:
    page = fidelity.PAGE.read_text(encoding="utf-8")
    measured = re.search(r"<!-- measured -->(.*?)<!-- end -->", page, re.DOTALL)
    assert measured is not None
    rows = re.findall(r"^\| (\d+\.\d+)\.\d+ \| `(\S+)` \|", measured[1], re.MULTILINE)
    assert rows == [(each.name, each.personality) for each in SERIES.values()]
