from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


def make_and_forget(record: logging.LogRecord) -> bool:
    """Every line of the log is made and nobody gets it: ten thousand bad peers would fill the report."""
    record.getMessage().encode("utf-8", "surrogateescape")
    return False


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    logger = logging.getLogger("fakeamqp")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addFilter(make_and_forget)
    yield
    logger.removeFilter(make_and_forget)
    logger.setLevel(level)
