"""Tests that need Spark itself. They share one session, `amqp_spark`, and so one process of pytest-xdist."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = f"{Path(__file__).parent}/"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    missing = find_spec("pyspark") is None
    for item in items:
        if str(item.path).startswith(HERE):
            if missing:
                item.add_marker(pytest.mark.skip(reason="PySpark is not installed"))
            # PySpark before 4.1 leaves the sockets open that rows are collected through.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def spark(amqp_spark):
    """The session, under the name that tests of Spark jobs give it. Without Java they are skipped."""
    return amqp_spark
