"""Consumers are told when their queue goes (RabbitMQ: documented extension; measured)."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def capable(server: Server, **capabilities: bool) -> Client:
    capabilities = capabilities or {"consumer_cancel_notify": True}
    return server.client(channels=2, client_properties={"capabilities": capabilities})


def expect_cancel(client: Client, tag: str, channel: int = 1) -> None:
    cancel = client.expect(m.BasicCancel, channel)
    assert (cancel.consumer_tag, cancel.no_wait) == (tag, True)


def test_capable_client_receives_basic_cancel_when_its_queue_is_deleted(server: Server) -> None:
    client, other = capable(server), server.client()
    client.declare("q").consume("q", "t")
    other.perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "t")
    client.expect_nothing()


def test_basic_cancel_follows_delete_ok_on_the_channel_that_deletes_the_queue(server: Server) -> None:
    client = capable(server).declare("q")
    client.consume("q", "t").perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "t")


def test_basic_cancel_of_another_channel_precedes_delete_ok(rabbitmq: Server) -> None:
    client = capable(rabbitmq).declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    client.consume("q", "t", channel=1).consume("q", "u", channel=2).send(m.QueueDelete(queue="q"))
    expect_cancel(client, "u", channel=2)
    client.expect(m.QueueDeleteOk)
    expect_cancel(client, "t", channel=1)


def test_each_consumer_of_deleted_queue_receives_basic_cancel(server: Server) -> None:
    client, other = capable(server), server.client()
    client.declare("q").consume("q", "1").consume("q", "2")
    other.perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "1")
    expect_cancel(client, "2")


def test_client_without_consumer_cancel_notify_receives_no_basic_cancel(server: Server) -> None:
    clients = [server.client(), capable(server, consumer_cancel_notify=False)]
    for client in clients:
        client.declare("q")
        client.consume("q", "t")
    server.client().perform(m.QueueDelete(queue="q"))
    for client in clients:
        client.expect_nothing()
        client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)


def test_client_that_cancels_its_consumer_receives_only_cancel_ok(server: Server) -> None:
    client = capable(server).declare("q")
    client.consume("q", "t").perform(m.BasicCancel(consumer_tag="t")).expect_nothing()


def test_consumer_tag_can_be_reused_after_basic_cancel_of_the_broker(server: Server) -> None:
    client = capable(server).declare("q")
    client.consume("q", "t").perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "t")
    assert client.declare("q").consume_ok("q", "t").consumer_tag == "t"


def test_delivery_from_before_basic_cancel_can_be_acknowledged_once(server: Server) -> None:
    client = capable(server).declare("q").consume("q", "t")
    assert client.fill("q", b"m").bodies() == [b"m"]
    client.perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "t")
    client.ack(1).expect_nothing()
    client.ack(1).expect_channel_close(406)


def test_rabbitmq_refuses_cancel_ok_as_answer_to_basic_cancel(rabbitmq_4_2: Server) -> None:
    client = capable(rabbitmq_4_2).declare("q")
    client.consume("q", "t").perform(m.QueueDelete(queue="q"))
    expect_cancel(client, "t")
    client.ends(m.BasicCancelOk(consumer_tag="t"), 503, text="COMMAND_INVALID - unimplemented method")
