from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.model.personality import Personality, personality
from fakeamqp.protocols.amqp_0_9.choices import letter_of


@pytest.fixture
def tickets() -> bool:
    """Whether clients show access tickets by themselves where they are asked for them."""
    return True


@pytest.fixture(params=("rabbitmq-4.3", "spec"))
def server(request: pytest.FixtureRequest, tickets: bool) -> Server:
    """A broker of each personality in turn: for rules where both agree.

    In place of rabbitmq-4.3, a test that is marked `letter` gets a personality of its own that follows the
    letter of 0-9 where RabbitMQ does as in 0-9-1.
    """
    return Server(_of(request, request.param), tickets=tickets)


@pytest.fixture
def lenient(request: pytest.FixtureRequest) -> Server:
    """A broker that does what clients in the field expect; `letter` as for `server`."""
    return Server(_of(request, "rabbitmq-4.3"))


def _of(request: pytest.FixtureRequest, name: str) -> Personality:
    follows_letter = request.node.get_closest_marker("letter") is not None
    return letter_of(name) if follows_letter else personality(name)


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


@pytest.fixture
def requester(client: Client) -> Requester:
    """Requests on channel 1 of an open connection, with a queue "q"."""
    return Requester(client.declare("q"))
