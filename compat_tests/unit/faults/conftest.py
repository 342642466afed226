from __future__ import annotations

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher
from fakeamqp.faults import Faults


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def faults(server: FaultServer) -> Faults:
    """What goes wrong in `server`."""
    return server.faults


@pytest.fixture
def publisher(server: FaultServer) -> Publisher:
    """A client that has declared a queue "q" and has its publishes confirmed."""
    return server.publisher()
