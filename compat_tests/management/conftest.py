from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from compat_tests.management.client import Api
from fakeamqp import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(management=True, clock="virtual") as broker:
        yield broker
        assert broker.admin.failures == ()


@pytest.fixture
def api(broker: Broker) -> Api:
    return Api(broker.admin.management_url)


@pytest.fixture
def channel(broker: Broker) -> Iterator[Any]:
    """A channel of pika's, whose connection is called "billing"."""
    parameters = pika.URLParameters(broker.url)
    parameters.client_properties = {"connection_name": "billing"}
    connection = pika.BlockingConnection(parameters)
    yield connection.channel()
    if connection.is_open:
        connection.close()
