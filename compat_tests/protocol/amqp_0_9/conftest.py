from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.protocol.amqp_0_9.driver import Client, Server


@pytest.fixture(params=("rabbitmq-4.2", "spec"))
def server(request: pytest.FixtureRequest) -> Server:
    """A broker of each personality in turn: for rules where both agree."""
    return Server(request.param)


@pytest.fixture
def lenient() -> Server:
    """A broker that does what clients in the field expect: the default personality."""
    return Server("rabbitmq-4.2")


@pytest.fixture
def spec() -> Server:
    """A broker that follows the documents to the letter."""
    return Server("spec")


@pytest.fixture
def client(server: Server) -> Client:
    """An open connection with channel 1 open, on each personality in turn."""
    return server.client()


@pytest.fixture
def connect(server: Server) -> Callable[..., Client]:
    """Makes open connections to `server`."""
    return server.client
