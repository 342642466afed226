from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Server
from fakeamqp.trace import Recorder


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def recorder(server: Server) -> Recorder:
    """A recorder on the tap of `server`."""
    recorder = Recorder(server.clock.now)
    server.state.tap = recorder
    return recorder
