"""A message that is too large for a window of bytes holds up those behind it, until it is pushed out."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server

LARGE, SMALL = b"x" * 100, b"y"


@pytest.fixture
def client(server: Server) -> Client:
    """It holds a message of one byte, and may hold ten."""
    client = server.client()
    client.qos(0, size=10)
    client.declare("long")
    client.consume("long")
    client.publish(SMALL, routing_key="long")
    client.delivery()
    return client


@pytest.mark.parametrize("arguments", [{"x-max-length": 1}, {"x-max-length-bytes": 100}], ids=str)
@pytest.mark.letter
def test_small_message_is_delivered_when_it_pushes_out_a_too_large_message(
    client: Client, arguments: dict[str, int]
) -> None:
    client.declare("q", arguments=arguments)
    client.consume("q")
    client.publish(LARGE, routing_key="q")
    client.expect_nothing()
    client.publish(SMALL, routing_key="q")
    assert client.delivery().body == SMALL
