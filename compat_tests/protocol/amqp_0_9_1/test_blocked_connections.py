"""connection.blocked and the end of reading (RabbitMQ: documented extension; measured)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties


def capable(server: Server) -> Client:
    return server.client(client_properties={"capabilities": {"connection.blocked": True}})


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return capable(rabbitmq).declare("q")


@pytest.mark.needs("settings")
def test_connection_blocked_is_sent_at_the_first_publish_of_a_client(client: Client) -> None:
    client.server.state.block("low on memory")
    client.expect_nothing()
    assert client.count("q") == 0
    assert client.fill("q", b"m").expect(m.ConnectionBlocked, 0).reason == "low on memory"
    client.expect_nothing()


@pytest.mark.needs("inspection", "settings")
def test_broker_reads_no_methods_of_a_blocked_connection_until_unblocked(client: Client) -> None:
    client.server.state.block("low on memory")
    assert client.connection.reading
    client.fill("q", b"m").expect(m.ConnectionBlocked, 0)
    assert not client.connection.reading
    client.send(m.QueueDeclare(queue="q", passive=True)).expect_nothing()

    client.server.state.unblock()
    assert client.connection.reading
    client.expect(m.ConnectionUnblocked, 0)
    assert client.expect(m.QueueDeclareOk).message_count == 1
    client.expect_nothing()


@pytest.mark.needs("settings")
def test_blocked_publish_is_queued_and_confirmed_after_unblock(rabbitmq: Server, client: Client) -> None:
    client.perform(m.ConfirmSelect())
    rabbitmq.state.block("low on memory")
    client.fill("q", b"m").expect(m.ConnectionBlocked, 0)
    other = rabbitmq.client()
    assert other.count("q") == 0
    client.expect_nothing()

    rabbitmq.state.unblock()
    client.expect(m.ConnectionUnblocked, 0)
    assert client.expect(m.BasicAck).delivery_tag == 1
    assert other.empty("q") == [b"m"]


@pytest.mark.needs("settings")
def test_methods_of_one_write_wait_until_the_connection_is_unblocked(client: Client) -> None:
    client.server.state.block("low on memory")
    content = b"".join(content_frames(1, 60, BasicProperties().encode(), b"m", 4000))
    publish = method_frame(1, m.BasicPublish(routing_key="q").encode()) + content
    octets = publish * 3 + method_frame(1, m.QueueDeclare(queue="q", passive=True).encode())
    client.send_bytes(octets[:-5]).expect(m.ConnectionBlocked, 0)
    client.send_bytes(octets[-5:]).expect_nothing()

    client.server.state.unblock()
    client.expect(m.ConnectionUnblocked, 0)
    assert client.expect(m.QueueDeclareOk).message_count == 3


@pytest.mark.needs("inspection", "settings")
def test_client_without_capability_is_blocked_without_connection_blocked(client: Client) -> None:
    plain = client.server.client()
    client.server.state.block("low on memory")
    plain.fill("q", b"m").send(m.QueueDeclare(queue="q", passive=True)).expect_nothing()
    assert not plain.connection.reading
    client.server.state.unblock()
    assert plain.expect(m.QueueDeclareOk).message_count == 1


@pytest.mark.needs("inspection", "settings")
def test_connection_that_does_not_publish_is_not_blocked(rabbitmq: Server, client: Client) -> None:
    client.fill("q", b"m")
    rabbitmq.state.block("low on disk")
    other = capable(rabbitmq)
    assert other.empty("q") == [b"m"]
    assert other.connection.reading
    rabbitmq.state.unblock()
    other.expect_nothing()  # It was never told that it was blocked.


@pytest.mark.needs("inspection", "settings")
def test_connection_opened_during_an_alarm_is_blocked_at_its_first_publish(rabbitmq: Server) -> None:
    rabbitmq.state.block("low on disk")
    late = capable(rabbitmq).declare("q")
    assert late.fill("q", b"m").expect(m.ConnectionBlocked, 0).reason == "low on disk"
    assert not late.connection.reading


@pytest.mark.needs("settings")
def test_connection_blocked_is_sent_once_per_alarm(rabbitmq: Server, client: Client) -> None:
    for _ in range(2):
        rabbitmq.state.block("low on memory")
        rabbitmq.state.block("low on memory")
        client.fill("q", b"1", b"2").expect(m.ConnectionBlocked, 0)
        client.expect_nothing()
        rabbitmq.state.unblock()
        client.expect(m.ConnectionUnblocked, 0)
        client.expect_nothing()
    assert client.count("q") == 4


@pytest.mark.needs("inspection", "settings")
def test_blocked_connection_still_receives_deliveries(rabbitmq: Server, client: Client) -> None:
    client.consume("q")
    rabbitmq.state.block("low on memory")
    client.fill("q", b"held back").expect(m.ConnectionBlocked, 0)
    rabbitmq.vhost.publish(Message("", "q", BasicProperties(), b"from elsewhere"))
    assert client.bodies() == [b"from elsewhere"]


@pytest.mark.needs("inspection")
def test_set_blocked_blocks_a_single_connection(rabbitmq: Server, client: Client) -> None:
    free = rabbitmq.client()
    endpoint = next(iter(rabbitmq.state.connections))
    endpoint.set_blocked("by the test")
    assert client.fill("q", b"1").expect(m.ConnectionBlocked, 0).reason == "by the test"
    assert free.fill("q", b"2").count("q") == 1
    endpoint.set_blocked(None)
    client.expect(m.ConnectionUnblocked, 0)
    assert free.count("q") == 2


@pytest.mark.needs("inspection", "settings")
def test_blocked_connection_closed_by_operator_completes_the_close_handshake(client: Client) -> None:
    client.server.state.block("low on memory")
    client.fill("q", b"m").expect(m.ConnectionBlocked, 0)
    next(iter(client.server.state.connections)).close_by_operator(320, "CONNECTION_FORCED - goodbye")
    assert client.connection.reading
    client.expect_connection_close(320)


@pytest.mark.needs("virtual time", "settings")
def test_blocked_connection_is_not_closed_for_missed_heartbeats(rabbitmq: Server) -> None:
    client = rabbitmq.client(heartbeat=10).declare("q")
    rabbitmq.state.block("low on memory")
    assert not client.fill("q", b"m").after(100).closed


@pytest.mark.needs("settings")
def test_unread_publishes_of_blocked_client_are_dropped_when_it_disconnects(client: Client) -> None:
    client.server.state.block("low on memory")
    client.fill("q", b"1", b"2").drop()
    client.server.state.unblock()
    assert client.server.client().count("q") == 0
