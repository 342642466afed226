"""What tests of the public interface begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from fakeamqp import Broker


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker with the options that the module names in `OPTIONS`, and without failures at the end."""
    with Broker(**{"seed": 1, **getattr(request.module, "OPTIONS", {})}) as running:
        yield running
        running.faults.clear()
        assert running.admin.failures == ()


@pytest.fixture
def channel(broker: Broker) -> Iterator[BlockingChannel]:
    """A channel of pika."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    yield connection.channel()
    with suppress(pika.exceptions.AMQPError):  # Some tests have the broker close it.
        connection.close()
