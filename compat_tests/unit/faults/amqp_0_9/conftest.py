from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.amqp_0_9.server import FaultServer


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def client(server: FaultServer) -> Client:
    """A client that has declared a queue "q"."""
    return server.client_with("q")


@pytest.fixture(params=[True, False], ids=["reserved bytes", "no reserved bytes"])
def requester(server: FaultServer, request: pytest.FixtureRequest) -> Requester:
    """The same, by requests of either form."""
    return server.requester(reserved=request.param)
