from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Client
from compat_tests.unit.faults.amqp_1_0.server import FaultServer


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def client(server: FaultServer) -> Client:
    """A client with a session on channel 0."""
    return server.session()
