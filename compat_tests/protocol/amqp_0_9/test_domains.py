"""Names and tags."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


@rule("0-9/domain.consumer-tag/scope", "0-9/basic.consume/consumer-tag-01")
@pytest.mark.parametrize("channel", [1, 2])
@pytest.mark.letter
def test_duplicate_consumer_tag_on_a_connection_closes_it_with_530(server: Server, channel: int) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", "t")
    client.send(m.BasicConsume(queue="q", consumer_tag="t"), channel)
    client.expect_connection_close(530)


@rule("0-9/basic.consume/consumer-tag-02")
def test_a_consumer_is_cancelled_on_its_own_channel_only(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", "t")
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk, 2)
    assert client.declare("q", passive=True).consumer_count == 1
    client.fill("q", b"1")
    delivery = client.delivery()
    assert delivery.body == b"1"
    client.ack(delivery.method.delivery_tag, channel=2)
    client.expect_channel_close(406, channel=2)


@rule("0-9/domain.consumer-tag/scope")
def test_two_connections_may_use_one_tag(connect: Callable[..., Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    assert one.consume("q", "t") == other.consume("q", "t") == "t"


@rule("0-9/domain.consumer-tag/scope")
def test_consumer_tag_can_be_used_again_after_cancel_or_channel_close(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", "t")
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    client.consume("q", "t", channel=2)
    client.close_channel(2)
    client.consume("q", "t")


@rule("0-9/domain.exchange-name/characters")
@pytest.mark.parametrize("name", ["ex_1", "A", "x" * 127])
def test_names_of_exchanges_have_digits_letters_and_underscores(client: Client, name: str) -> None:
    client.call(m.ExchangeDeclare(exchange=name, type="direct"), m.ExchangeDeclareOk)
    client.call(m.ExchangeDeclare(exchange=name, passive=True), m.ExchangeDeclareOk)


@rule("0-9/domain.queue-name/characters")
@pytest.mark.parametrize("name", ["q_1", "A", "x" * 127])
def test_names_of_queues_have_digits_letters_and_underscores(client: Client, name: str) -> None:
    assert client.declare(name).queue == name
