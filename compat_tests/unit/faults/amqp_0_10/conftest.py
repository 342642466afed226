from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Session
from compat_tests.unit.faults.amqp_0_10.server import FaultServer


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def session(server: FaultServer) -> Session:
    """A session that has declared a queue "q"; nothing has come since."""
    session = server.session_with("q", b"shop")
    session.client.inbox.clear()
    return session
