from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.protocol.amqp_0_9.driver import Client, Server


@pytest.fixture
def tickets() -> bool:
    """Whether clients show access tickets by themselves where they are asked for them."""
    return True


@pytest.fixture(params=("rabbitmq-4.2", "spec"))
def server(request: pytest.FixtureRequest, tickets: bool) -> Server:
    """A broker of each personality in turn: for rules where both agree."""
    return Server(request.param, tickets=tickets)


@pytest.fixture
def lenient() -> Server:
    """A broker that does what clients in the field expect: the default personality."""
    return Server("rabbitmq-4.2")


@pytest.fixture
def spec(tickets: bool) -> Server:
    """A broker that follows the documents to the letter."""
    return Server("spec", tickets=tickets)


@pytest.fixture
def client(server: Server) -> Client:
    """An open connection with channel 1 open, on each personality in turn."""
    return server.client()


@pytest.fixture
def connect(server: Server) -> Callable[..., Client]:
    """Makes open connections to `server`."""
    return server.client
