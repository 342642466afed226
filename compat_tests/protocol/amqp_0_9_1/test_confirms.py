"""Publisher confirms (RabbitMQ: documented extension; shapes measured)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties


def confirming(client: Client, channel: int = 1) -> Client:
    return client.perform(m.ConfirmSelect(), channel=channel)


def publishes(routing_keys: list[str]) -> bytes:
    """Several publishes on channel 1, to be sent in one write."""
    content = b"".join(content_frames(1, 60, BasicProperties().encode(), b"m", 4000))
    return b"".join(
        method_frame(1, m.BasicPublish(routing_key=key, mandatory=True).encode()) + content
        for key in routing_keys
    )


def expect_ack(client: Client, tag: int, *, multiple: bool = False, channel: int = 1) -> None:
    ack = client.expect(m.BasicAck, channel)
    assert (ack.delivery_tag, ack.multiple) == (tag, multiple)


def expect_nack(client: Client, tag: int) -> None:
    nack = client.expect(m.BasicNack)
    assert (nack.delivery_tag, nack.multiple, nack.requeue) == (tag, True, True)


# --- select ------------------------------------------------------------------------------------------
def test_repeated_confirm_select_does_not_restart_delivery_tags(client: Client) -> None:
    confirming(client).publish()
    expect_ack(client, 1)
    confirming(client).publish()
    expect_ack(client, 2)


def test_spec_personality_announces_and_sends_publisher_confirms(spec: Server) -> None:
    """No document has class confirm, and none gives its ids to another class: docs/decisions-0-9-1.md."""
    client = spec.connect()
    client.send_bytes(client.protocol_header)
    assert client.expect(m.ConnectionStart, 0).server_properties["capabilities"]["publisher_confirms"] is True
    client = spec.client().send_bytes(method_frame(1, b"\x00\x55\x00\x0a\x00"))
    assert client.take_frame().payload == b"\x00\x55\x00\x0b"
    client.publish()
    expect_ack(client, 1)


@pytest.mark.needs("personality of choices")
def test_confirm_select_on_a_broker_without_class_confirm_is_refused_with_540(server: Server) -> None:
    server.varied(not_implemented=("confirm",)).client().ends(m.ConfirmSelect(), 540, at=(85, 10))


def test_confirm_select_with_no_wait_is_not_answered(client: Client) -> None:
    client.send(m.ConfirmSelect(no_wait=True)).expect_nothing()
    client.publish()
    expect_ack(client, 1)


def test_publish_without_confirm_select_is_not_confirmed(client: Client) -> None:
    client.publish().expect_nothing()


def test_confirm_delivery_tags_count_from_confirm_select(client: Client) -> None:
    client.publish().publish()
    confirming(client).publish()
    expect_ack(client, 1)


def test_each_channel_counts_its_own_confirm_delivery_tags(client: Client) -> None:
    client.open_channel(2)
    confirming(client, 1)
    confirming(client, 2)
    client.publish(channel=1).publish(channel=1).publish(channel=2)
    expect_ack(client, 1, channel=1)
    expect_ack(client, 2, channel=1)
    expect_ack(client, 1, channel=2)


# --- acks --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("routing_key", ["q", "nowhere"])
def test_routed_and_unroutable_messages_are_confirmed(client: Client, routing_key: str) -> None:
    client.declare("q", durable=True)
    confirming(client).publish(routing_key=routing_key, delivery_mode=2)
    expect_ack(client, 1)
    client.expect_nothing()


def test_acks_for_publishes_of_one_write_cover_all_tags_in_order(client: Client) -> None:
    client.declare("q")
    confirming(client).send_bytes(publishes(["q"] * 100))
    confirmed = 0
    while client.inbox:
        ack = client.expect(m.BasicAck)
        assert ack.delivery_tag > confirmed
        assert ack.multiple or ack.delivery_tag == confirmed + 1
        confirmed = ack.delivery_tag
    assert confirmed == 100


def test_basic_return_precedes_the_ack_of_its_message(client: Client) -> None:
    confirming(client).publish(b"lost", routing_key="nowhere", mandatory=True)
    assert client.expect_content(m.BasicReturn).body == b"lost"
    expect_ack(client, 1)


def test_returns_precede_their_acks_for_publishes_of_one_write(client: Client) -> None:
    client.declare("q")
    confirming(client).send_bytes(publishes(["q", "nowhere", "q", "nowhere"]))
    returned = 0
    confirmed = 0
    while client.inbox:
        if isinstance(client.inbox[0].method, m.BasicReturn):
            client.expect_content(m.BasicReturn)
            returned += 2
            assert confirmed < returned, "the ack came before its return"
        else:
            confirmed = max(confirmed, client.expect(m.BasicAck).delivery_tag)
    assert (returned, confirmed) == (4, 4)


def test_confirm_of_returned_message_follows_return_and_precedes_earlier_confirms(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    confirming(client).send_bytes(publishes(["q", "nowhere", "q"])).expect_content(m.BasicReturn)
    expect_ack(client, 2)
    confirmed = client.expect(m.BasicAck)
    if (confirmed.delivery_tag, confirmed.multiple) != (3, True):
        assert confirmed.delivery_tag == 1
        expect_ack(client, 3)


def test_confirms_of_earlier_publishes_precede_channel_close(client: Client) -> None:
    client.declare("q")
    confirming(client)
    good = publishes(["q", "q"])
    client.send_bytes(good + method_frame(1, m.QueueDeclare(queue="missing", passive=True).encode()))
    expect_ack(client, 2, multiple=True)
    client.expect_channel_close(404)


def test_publish_that_closes_the_channel_is_not_confirmed(client: Client) -> None:
    confirming(client).publish(exchange="missing").expect_channel_close(404)
    client.expect_nothing()


# --- nacks -------------------------------------------------------------------------------------------
def bounded(client: Client, overflow: str = "reject-publish", **arguments: object) -> Client:
    return client.declare("q", arguments={"x-max-length": 1, "x-overflow": overflow, **arguments})


def test_publish_to_full_reject_publish_queue_is_nacked(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client())
    confirming(client).fill("q", b"1", b"2")
    expect_ack(client, 1)
    expect_nack(client, 2)
    assert client.empty("q") == [b"1"]
    client.fill("q", b"3")
    expect_ack(client, 3)


def test_publishes_of_one_write_are_acked_and_nacked_in_runs(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client()).declare("other")
    confirming(client).send_bytes(publishes(["other", "q", "q", "q", "other"]))
    expect_ack(client, 2, multiple=True)
    expect_nack(client, 4)
    expect_ack(client, 5)
    client.expect_nothing()


def test_unacknowledged_messages_do_not_count_for_x_max_length(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client())
    confirming(client).fill("q", b"1")
    expect_ack(client, 1)
    assert client.get("q") is not None
    client.fill("q", b"2", b"3")
    expect_ack(client, 2)
    expect_nack(client, 3)


def test_message_refused_by_one_full_queue_is_nacked_although_another_accepts_it(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client()).declare("r")
    for queue in ("q", "r"):
        client.bind(queue, "amq.fanout")
    confirming(client).publish(b"1", exchange="amq.fanout").publish(b"2", exchange="amq.fanout")
    expect_ack(client, 1)
    expect_nack(client, 2)
    assert client.empty("q") == [b"1"]
    assert client.empty("r") == [b"1", b"2"]


def test_mandatory_message_refused_by_full_queue_is_not_returned(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client())
    confirming(client).fill("q", b"1", b"2", mandatory=True)
    expect_ack(client, 1)
    expect_nack(client, 2)
    client.expect_nothing()


def test_message_refused_by_full_queue_is_dropped_silently_without_confirms(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    bounded(client).fill("q", b"1", b"2").expect_nothing()
    assert client.empty("q") == [b"1"]


def test_message_refused_by_full_reject_publish_dlx_queue_is_dead_lettered(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("dead")
    target = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    bounded(client, "reject-publish-dlx", **target)
    confirming(client).fill("q", b"1", b"2")
    expect_ack(client, 1)
    expect_nack(client, 2)
    dead = client.fetch("dead")
    assert (dead.body, (dead.properties.headers or {})["x-first-death-reason"]) == (b"2", "maxlen")


def test_publish_to_full_drop_head_queue_is_acked(rabbitmq: Server) -> None:
    client = bounded(rabbitmq.client(), "drop-head")
    confirming(client).fill("q", b"1", b"2")
    expect_ack(client, 1)
    expect_ack(client, 2)
    assert client.empty("q") == [b"2"]
