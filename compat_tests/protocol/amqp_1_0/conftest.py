"""Fixtures of the raw 1.0 client: brokers of RabbitMQ's oldest and newest version that speaks 1.0."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server

PERSONALITIES = ("rabbitmq-4.3", "rabbitmq-4.0")


def with_queues(server: Server) -> Server:
    server.vhost.queues.create("q")
    return server


@pytest.fixture(params=PERSONALITIES)
def server(request: pytest.FixtureRequest) -> Server:
    """A broker with queue "q", of each personality in turn: for what both do."""
    return with_queues(Server(request.param))


@pytest.fixture
def rabbitmq() -> Server:
    """A broker like RabbitMQ 4.3, with queue "q"."""
    return with_queues(Server("rabbitmq-4.3"))


@pytest.fixture
def rabbitmq_4_0() -> Server:
    """A broker like RabbitMQ 4.0, with queue "q"."""
    return with_queues(Server("rabbitmq-4.0"))


@pytest.fixture
def client(server: Server) -> Client:
    """A client with a session on channel 0."""
    return server.session()
