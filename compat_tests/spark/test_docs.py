"""Every code block of the documentation about Spark works."""

from __future__ import annotations

import importlib
import pkgutil
import re
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import fakeamqp
from compat_tests.docs.pages import pages

pyspark_sql = pytest.importorskip("pyspark.sql")

if TYPE_CHECKING:
    pass

PAGES = pages(spark=True)
BLOCKS = [
    pytest.param(page, index, id=f"{page.name}:{block.line}")
    for page in PAGES
    for index, block in enumerate(page.blocks)
]


def import_all(package):
    """An inner run forgets what it imports, and is lent a session that knows the classes of this one."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        # These want more than PySpark, and `connect` ends the process that has less.
        if not re.search(r"\bconnect\b|pandas|proto|tests|__main__", module.name):
            imported = importlib.import_module(module.name)
            if module.ispkg:
                import_all(imported)


def lender_of(session):
    """A plugin that gives tests of an inner run the session of the outer one: a process has one only."""

    @pytest.fixture(scope="session")
    def spark():
        return session

    plugin = ModuleType("lender")
    plugin.spark = spark
    return plugin


@pytest.fixture(scope="module", autouse=True)
def prepare(amqp_spark):
    """Before `pytester` begins to forget what is imported. In the end, others want the session as it was."""
    import_all(pyspark_sql)
    import_all(fakeamqp)
    before = {table.name for table in amqp_spark.catalog.listTables()}
    yield
    for table in amqp_spark.catalog.listTables():
        if table.name not in before:
            amqp_spark.catalog.dropTempView(table.name)
    for page in PAGES:
        page.forget()


@pytest.mark.parametrize(("page", "index"), BLOCKS)
def test_block(page, index, amqp_spark, pytester):
    page.namespace["spark"] = amqp_spark
    page.run_through(index)
    if page.blocks[index].is_test_file:
        page.write_files(index, pytester.path)
        result = pytester.runpytest_inprocess(
            "-p",
            "no:cacheprovider",
            "-o",
            "asyncio_default_fixture_loop_scope=function",
            plugins=[lender_of(amqp_spark)],
        )
        outcomes = result.parseoutcomes()
        assert outcomes.get("passed", 0) > 0
        assert not set(outcomes) & {"failed", "errors", "warnings"}


def test_the_pages_have_code():
    assert {"docs/spark.md", "docs/spark-queues.md", "docs/spark-traces.md"} <= {page.name for page in PAGES}
