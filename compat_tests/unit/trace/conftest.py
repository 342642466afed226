from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
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
