from __future__ import annotations

import pytest

from fakeamqp import Broker


@pytest.fixture
def broker():
    with Broker(clock="virtual") as broker:
        yield broker


@pytest.fixture
def log(broker):
    """Publishes to the empty stream `log`."""
    from compat_tests.unit.spark.stream.streams import publisher

    with publisher(broker.url) as log:
        log.declare("log")
        yield log


@pytest.fixture
def source():
    """Options that name what `follow` reads, other than the stream `log`."""
    return {}


@pytest.fixture
def follow(broker, source):
    """Makes readers, and stops them."""
    from compat_tests.unit.spark.stream.streams import stream_reader

    readers = []

    def make(**options):
        readers.append(stream_reader(broker.url, **{**source, **options}))
        return readers[-1]

    yield make
    for each in readers:
        each.stop()
