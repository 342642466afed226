from __future__ import annotations

import pytest

from compat_tests.unit.faults.amqp_0_9 import server as amqp_0_9
from compat_tests.unit.faults.server import FaultServer, Publisher
from fakeamqp.faults import Faults


@pytest.fixture(params=["0-9-1", "0-9"])
def server(request: pytest.FixtureRequest) -> FaultServer:
    """A broker whose clients speak 0-9-1 or 0-9: what these tests use of both is the same."""
    return FaultServer() if request.param == "0-9-1" else amqp_0_9.FaultServer()


@pytest.fixture
def faults(server: FaultServer) -> Faults:
    """What goes wrong in `server`."""
    return server.faults


@pytest.fixture
def publisher(server: FaultServer) -> Publisher:
    """A client that has declared a queue "q" and has its publishes confirmed."""
    return server.publisher()
