from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.protocol.driver import Client, Server

PERSONALITIES = ("rabbitmq-4.2", "spec")


@pytest.fixture(params=PERSONALITIES)
def server(request: pytest.FixtureRequest) -> Server:
    """A broker of each personality in turn: for rules where both agree."""
    return Server(request.param)


@pytest.fixture
def rabbitmq() -> Server:
    """A broker that behaves like RabbitMQ 4.2."""
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
