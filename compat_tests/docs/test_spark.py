from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from compat_tests import spark_page
from fakeamqp.spark.columns import PROPERTIES


def test_the_tables_are_those_of_the_options_and_columns() -> None:
    page = spark_page.PAGE.read_text()
    assert spark_page.with_tables(page) == page, "run `python -m compat_tests.spark_page`"


def test_every_property_is_named() -> None:
    page = spark_page.PAGE.read_text()
    assert [name for name in PROPERTIES if f"`{name}`" not in page] == []
