"""Class basic of 0-9, where its text or its clients want something else than 0-9-1."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


@rule("0-9/basic/grammar#get", "0-9/basic/grammar#ok", "0-9/basic/grammar#silent")
@rule("0-9/basic.recover/asynchronous")
@pytest.mark.letter
def test_publish_ack_reject_and_recover_have_no_answer(client: Client) -> None:
    client.declare("q").perform(m.BasicQos(prefetch_count=10)).publish(routing_key="q").expect_nothing()
    tag = client.perform(m.BasicConsume(queue="q", consumer_tag="t")).delivery().method.delivery_tag
    client.ack(tag).publish(routing_key="q").reject(client.delivery().method.delivery_tag).expect_nothing()
    client.perform(m.BasicCancel(consumer_tag="t")).call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    for requeue in (False, True):
        client.recover(requeue=requeue).expect_nothing()
    assert client.fill("q", b"1").get("q") is not None
    client.expect_nothing()


# --- consume, get ------------------------------------------------------------------------------------
@rule("0-9/basic.consume/filter")
@pytest.mark.parametrize("filter_", [{}, {"anything": 1}])
def test_consumer_with_unknown_filter_gets_every_message(client: Client, filter_: dict[str, object]) -> None:
    client.declare("q").fill("q", b"1").perform(m.BasicConsume(queue="q", filter=filter_))
    assert client.delivery().body == b"1"


@pytest.mark.parametrize("no_ack", [False, True])
@pytest.mark.letter
def test_consumer_with_no_local_gets_no_message_of_its_own_connection(server: Server, no_ack: bool) -> None:
    """basic.consume/no-local."""
    client, other = server.client(), server.client()
    client.declare("q").consume("q", no_local=True, no_ack=no_ack).fill("q", b"own").expect_nothing()
    other.fill("q", b"foreign")
    assert client.bodies() == [b"foreign"]
    assert other.empty("q") == [b"own"]


@pytest.mark.letter
def test_immediate_message_without_a_consumer_is_returned_with_code_313(client: Client) -> None:
    """basic.publish/immediate."""
    client.declare("q")
    returned = client.publish(b"now", routing_key="q", immediate=True).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (313, b"now")
    client.consume("q", no_ack=True)
    assert client.publish(b"now", routing_key="q", immediate=True).delivery().body == b"now"
    client.expect_nothing()


@pytest.mark.letter
def test_immediate_message_is_delivered_beside_message_that_its_channel_has_rejected(client: Client) -> None:
    client.declare("q").consume("q").publish(b"refused", routing_key="q")
    client.reject(client.delivery().method.delivery_tag, requeue=True)
    client.bodies()  # By personality it comes again, or waits for another consumer.
    assert client.publish(b"at once", routing_key="q", immediate=True).delivery().body == b"at once"


@rule("0-9/server-model/auto-transactions#publish", "0-9/server-model/auto-transactions#ack")
def test_publish_and_ack_outside_a_transaction_take_effect_at_once(server: Server, client: Client) -> None:
    assert client.open_channel(2).declare("q").publish(routing_key="q").count("q", 2) == 1
    assert client.publish(b"kept", routing_key="q").get("q") is not None
    assert client.get("q") is not None
    client.ack(1).drop()
    assert server.client().empty("q") == [b"kept"], "the acknowledgement stands although its channel is gone"


@pytest.mark.parametrize("name", ["amq.rabbitmq.reply-to", "anything"])
@pytest.mark.letter
def test_a_reply_address_is_a_property_like_others(client: Client, name: str) -> None:
    """Direct reply-to is RabbitMQ's in 0-9-1."""
    got = client.declare("q").publish(routing_key="q", reply_to=name).get("q")
    assert got is not None and got.properties.reply_to == name


# --- qos ---------------------------------------------------------------------------------------------
@pytest.mark.letter
def test_a_window_in_octets_applies_to_consumers_that_there_are(client: Client) -> None:
    """basic.qos/prefetch-size: one message is always let through where nothing is outstanding."""
    client.declare("q").consume("q").qos(0, size=50)
    assert len(client.fill("q", *[b"nine octs"] * 10).bodies()) == 5
    assert len(client.ack(0, multiple=True).bodies()) == 5
    client.fill("q", b"x" * 53).expect_nothing()
    assert client.ack(0, multiple=True).bodies() == [b"x" * 53]


@pytest.mark.letter
def test_global_prefetch_counts_deliveries_of_all_channels_of_the_connection(client: Client) -> None:
    """basic.qos/global."""
    client.open_channel(2).declare("q").qos(2, global_=True)
    client.consume("q").consume("q", channel=2).fill("q", b"1", b"2", b"3")
    assert sum(frame.type == 3 for frame in client.inbox) == 2


@pytest.mark.letter
@pytest.mark.parametrize("arguments", [{"x-max-length": 1}, {"x-max-length-bytes": 100}], ids=str)
def test_small_message_is_delivered_when_it_pushes_out_one_too_large_for_the_prefetch_size(
    client: Client, arguments: dict[str, int]
) -> None:
    client.qos(0, size=10).declare("long").consume("long")
    client.publish(b"y", routing_key="long").delivery()
    client.declare("q", arguments=arguments).consume("q")
    client.publish(b"x" * 100, routing_key="q").expect_nothing()
    assert client.publish(b"y", routing_key="q").delivery().body == b"y"


# --- ack, reject, recover ----------------------------------------------------------------------------
@pytest.mark.letter
def test_recover_without_requeue_redelivers_to_the_same_consumer_in_order(server: Server) -> None:
    """basic.recover/requeue: zero means the original recipient, in order."""
    client = server.client(channels=2).declare("q").consume("q")
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.consume("q", channel=2).recover(requeue=False)
    again = [client.delivery(), client.delivery()]
    assert [(each.body, each.method.redelivered) for each in again] == [(b"1", True), (b"2", True)]
    client.expect_nothing()


@rule("0-9/basic.recover/02")
def test_there_is_no_recover_in_a_transaction_to_the_letter(spec: Server) -> None:
    client = spec.client().perform(m.TxSelect()).recover(requeue=True)
    assert 400 <= client.expect(m.ChannelClose).reply_code < 500


@rows(
    "properties, text",
    ({"user_id": "other"}, "user_id"),
    ({"expiration": "soon"}, "expiration"),
    ({"headers": {"CC": "k"}}, "CC"),
)
@pytest.mark.letter
def test_publish_with_invalid_user_id_expiration_or_cc_header_closes_the_channel(
    lenient: Server, properties: dict[str, object], text: str
) -> None:
    client = lenient.client().declare("q").publish(routing_key="q", **properties)
    assert text in client.expect_channel_close(406).reply_text


# --- consumer tags -----------------------------------------------------------------------------------
@rule("0-9/domain.consumer-tag/scope", "0-9/basic.consume/consumer-tag-01")
@pytest.mark.parametrize("channel", [1, 2])
@pytest.mark.letter
def test_duplicate_consumer_tag_on_a_connection_closes_it_with_530(server: Server, channel: int) -> None:
    client = server.client(channels=2).declare("q")
    client.consume("q", "t").ends(m.BasicConsume(queue="q", consumer_tag="t"), 530, channel=channel)


@rule("0-9/basic.consume/consumer-tag-02")
def test_a_consumer_is_cancelled_on_its_own_channel_only(server: Server) -> None:
    client = server.client(channels=2).declare("q")
    client.consume("q", "t").perform(m.BasicCancel(consumer_tag="t"), channel=2)
    assert client.declare_ok("q", passive=True).consumer_count == 1
    delivery = client.fill("q", b"1").delivery()
    assert delivery.body == b"1"
    client.ack(delivery.method.delivery_tag, channel=2).expect_channel_close(406, channel=2)


@rule("0-9/domain.consumer-tag/scope")
def test_consumer_tag_can_be_used_elsewhere_and_again_after_cancel_or_close(server: Server) -> None:
    client = server.client(channels=2).declare("q")
    client.consume("q", "t").perform(m.BasicCancel(consumer_tag="t"))
    client.consume("q", "t", channel=2).close_channel(2)
    assert (
        client.consume_ok("q", "t").consumer_tag == server.client().consume_ok("q", "t").consumer_tag == "t"
    )
