from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from compat_tests.tools import spark_page
from fakeamqp.spark.columns import PROPERTIES


def test_spark_page_tables_equal_options_and_columns_of_code() -> None:
    page = spark_page.PAGE.read_text()
    assert spark_page.with_tables(page) == page, "run `python -m compat_tests.tools.spark_page`"


def test_spark_page_names_every_property() -> None:
    page = spark_page.PAGE.read_text()
    assert [name for name in PROPERTIES if f"`{name}`" not in page] == []
