"""Tests that need Spark itself. They share one session, `amqp_spark`, and so one process of pytest-xdist."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = f"{Path(__file__).parent}/"


def pytest_configure(config):
    config.addinivalue_line("markers", "stops_sources: Spark stops the sources of a query that fails early")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    missing = find_spec("pyspark") is None
    stops = missing or version("pyspark") >= "4.1"
    for item in items:
        if missing and str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.skip(reason="PySpark is not installed"))
        if not stops and item.get_closest_marker("stops_sources"):
            why = "PySpark 4.0 does not stop the sources of a query that fails before its first batch"
            item.add_marker(pytest.mark.skip(reason=why))
        if "amqp_spark" in getattr(item, "fixturenames", ()):  # The tests of examples, too.
            # PySpark before 4.1 leaves the sockets open that rows are collected through.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def spark(amqp_spark):
    """The session, under the name that tests of Spark jobs give it. Without Java they are skipped."""
    return amqp_spark
