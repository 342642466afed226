from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session


@pytest.fixture(params=("rabbitmq-4.3", "spec"))
def server(request: pytest.FixtureRequest) -> Server:
    """A broker of each personality in turn: for rules where both agree."""
    return Server(request.param)


@pytest.fixture
def lenient() -> Server:
    """A broker that does what the brokers in the field do: the default personality."""
    return Server("rabbitmq-4.3")


@pytest.fixture
def spec() -> Server:
    """A broker that follows the documents to the letter."""
    return Server("spec")


@pytest.fixture
def client(server: Server) -> Client:
    """An open connection, on each personality in turn."""
    return server.open()


@pytest.fixture
def session(client: Client) -> Session:
    """A session on channel 0 of an open connection."""
    return client.session()
