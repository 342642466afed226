"""ack, nack and reject."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def take(client: Client, queue: str, count: int) -> Client:
    """Get messages without acknowledging them; their tags are 1 and up on a new channel."""
    for _ in range(count):
        assert client.get(queue) is not None
    return client


def filled(client: Client, *bodies: bytes) -> Client:
    return client.declare("q").fill("q", *bodies)


def returned(client: Client) -> list[bytes]:
    """What goes back to the queue when the channel closes, with all that waited there."""
    client.close_channel().open_channel()
    return client.empty("q")


# --- ack ---------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9/basic.ack/multiple-01")
@pytest.mark.rule("0-9-1/basic.ack/multiple-exists#outstanding", "0-9-1/basic.ack/multiple-exists#at-once")
@pytest.mark.parametrize("transacted", [False, True], ids=["plain", "transacted"])
@pytest.mark.parametrize("multiple", [False, True], ids=["single", "multiple"])
@pytest.mark.parametrize("tag", [3, 9, 2**64 - 1])
def test_ack_of_unknown_delivery_tag_closes_the_channel_with_406(
    client: Client, tag: int, multiple: bool, transacted: bool
) -> None:
    filled(client, b"1", b"2")
    if transacted:
        client.perform(m.TxSelect())
    take(client, "q", 2).ack(tag, multiple=multiple)
    client.expect_channel_close(406, text=f"PRECONDITION_FAILED - unknown delivery tag {tag}", at=(60, 80))


@pytest.mark.rule("0-9-1/basic.ack/multiple-exists#outstanding", "0-9-1/basic.ack/multiple-exists#at-once")
@pytest.mark.parametrize("transacted", [False, True], ids=["plain", "transacted"])
@pytest.mark.parametrize("multiple", [False, True], ids=["single", "multiple"])
def test_second_ack_of_one_delivery_tag_closes_the_channel_with_406(
    client: Client, multiple: bool, transacted: bool
) -> None:
    filled(client, b"1", b"2")
    if transacted:
        client.perform(m.TxSelect())
    take(client, "q", 2).ack(2, multiple=multiple).expect_nothing()
    client.ack(2, multiple=multiple)
    assert client.expect_channel_close(406).reply_text == "PRECONDITION_FAILED - unknown delivery tag 2"


@pytest.mark.rule("0-9-1/basic.ack/multiple-exists#outstanding")
def test_ack_of_delivery_tag_covered_by_a_multiple_ack_is_refused(client: Client) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.ack(2, multiple=True).ack(1, multiple=True).expect_channel_close(406)


def test_ack_of_delivery_tag_on_another_channel_is_refused(client: Client) -> None:
    take(filled(client, b"1"), "q", 1)
    client.open_channel(2).ack(1, channel=2).expect_channel_close(406, channel=2)
    client.ack(1, channel=1).expect_nothing()


def test_ack_of_message_from_no_ack_get_is_refused(client: Client) -> None:
    assert filled(client, b"1").get("q", no_ack=True) is not None
    client.ack(1).expect_channel_close(406)


def test_ack_of_delivery_to_no_ack_consumer_is_refused(client: Client) -> None:
    assert filled(client, b"1").consume("q", no_ack=True).delivery().method.delivery_tag == 1
    client.ack(1).expect_channel_close(406)


@pytest.mark.rule("0-9-1/basic.ack/single")
def test_ack_without_multiple_acknowledges_one_message(client: Client) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.ack(2)
    assert returned(client) == [b"1", b"3"]


@pytest.mark.rule("0-9-1/basic.ack/multiple-up-to")
def test_ack_with_multiple_acknowledges_all_messages_up_to_the_delivery_tag(client: Client) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.ack(2, multiple=True)
    assert returned(client) == [b"3"]


@pytest.mark.rule("0-9-1/domain.delivery-tag/non-zero#all", "0-9-1/basic.ack/multiple-zero")
def test_ack_of_tag_zero_with_multiple_acknowledges_all_messages(client: Client) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.ack(0, multiple=True)
    assert returned(client) == []


@pytest.mark.rule("0-9-1/basic.ack/zero-none-outstanding")
def test_ack_of_tag_zero_with_multiple_is_accepted_without_unacknowledged_messages(client: Client) -> None:
    client.ack(0, multiple=True).expect_nothing()
    client.declare("q")


@pytest.mark.rule("0-9-1/basic.ack/zero-single")
def test_ack_of_tag_zero_without_multiple_is_refused(client: Client) -> None:
    take(filled(client, b"1"), "q", 1)
    client.ack(0)
    assert client.expect_channel_close(406).reply_text == "PRECONDITION_FAILED - unknown delivery tag 0"
    assert client.open_channel().empty("q") == [b"1"], "the message was not settled"


@pytest.mark.needs("restart", "inspection")
@pytest.mark.rule("0-9-1/basic.ack/removes-message")
def test_acknowledged_message_does_not_return_after_disconnect_or_restart(server: Server) -> None:
    client = server.client().declare("q", durable=True).fill("q", b"1", b"2", delivery_mode=2)
    take(client, "q", 2).ack(1).drop()
    client = server.client()
    assert client.count("q") == 1
    server.restart()
    assert server.client().empty("q") == [b"2"]


@pytest.mark.rule("0-9-1/basic.ack/covers-get-and-deliver#deliver")
@pytest.mark.rule("0-9-1/basic.ack/covers-get-and-deliver#get")
def test_multiple_ack_covers_messages_of_deliver_and_get(client: Client) -> None:
    assert filled(client, b"1", b"2").qos(1).consume("q").delivery().method.delivery_tag == 1
    take(client, "q", 1).ack(2, multiple=True).expect_nothing()
    assert returned(client) == []


@pytest.mark.rule("0-9-1/basic.ack/frees-window")
def test_with_prefetch_1_each_ack_releases_the_next_message(client: Client) -> None:
    filled(client, b"1", b"2", b"3").qos(1).consume("q")
    for tag, body in enumerate((b"1", b"2", b"3"), 1):
        assert client.bodies() == [body]
        client.ack(tag)
    client.expect_nothing()


# --- reject ------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/basic.reject/01#processed")
@pytest.mark.deviates("0-9-1/basic.reject/01#cut-off")
def test_message_can_be_rejected_before_all_of_its_bytes_are_sent(server: Server) -> None:
    client, other = server.client(), server.client()
    client.declare("q")
    body = b"x" * 500_000
    client.fill("q", body).send(m.BasicConsume(queue="q", no_wait=True, consumer_tag="t"))
    under_way = client.connection.pending()  # Written, and the transport takes its time.
    client.reject(1)
    assert not server.vhost.queues["q"].unacked
    other.send(m.QueueDelete(queue="q"))
    assert other.expect(m.QueueDeleteOk).message_count == 0, "others see it at once"
    client.connection.sent(sum(map(len, under_way)))
    # All of the content is sent, so nothing need be said about a missing rest.
    assert b"".join(under_way).count(b"x") == len(body)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.reject/02")
def test_message_rejected_with_requeue_can_be_received_elsewhere(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    take(filled(one, b"m"), "q", 1)
    one.reject(1, requeue=True)
    assert other.count("q") == 1
    assert other.fetch("q").body == b"m"


@pytest.mark.rule("0-9-1/basic.reject/requeue-01#same-client", "0-9-1/basic.reject/requeue-01#others")
def test_spec_personality_does_not_return_requeued_message_to_channel_that_rejected_it(spec: Server) -> None:
    client = spec.client(channels=2).declare("q").consume("q", "picky")
    assert client.fill("q", b"m").delivery().method.consumer_tag == "picky"
    client.reject(1, requeue=True).expect_nothing()
    assert client.count("q") == 1
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)  # Not by get either, on this channel.
    client.fill("q", b"next")  # And it does not hold up what follows.
    assert client.bodies() == [b"next"]

    delivery = client.consume("q", "other", channel=2).delivery(channel=2)
    assert (delivery.body, delivery.method.redelivered) == (b"m", True)


@pytest.mark.rule("0-9-1/basic.reject/requeue-01#same-client")
def test_spec_does_not_return_message_requeued_in_transaction_to_same_channel(spec: Server) -> None:
    client = spec.client().declare("q")
    assert client.fill("q", b"m").perform(m.TxSelect()).consume("q").bodies() == [b"m"]
    client.reject(1, requeue=True).perform(m.TxCommit()).expect_nothing()
    assert client.count("q") == 1


@pytest.mark.deviates("0-9-1/basic.reject/requeue-01#others", "0-9-1/basic.reject/requeue-01#same-client")
def test_rabbitmq_may_redeliver_requeued_message_to_the_same_consumer(rabbitmq: Server) -> None:
    one, other = rabbitmq.client(), rabbitmq.client()
    one.declare("q").qos(1).consume("q", "1")
    assert one.fill("q", b"m").delivery().method.delivery_tag == 1
    other.consume("q", "2")
    again = one.nack(1).delivery()
    assert (again.method.consumer_tag, again.method.delivery_tag, again.method.redelivered) == ("1", 2, True)
    other.expect_nothing()


@pytest.mark.rule("0-9-1/basic.reject/requeue-true")
def test_message_rejected_with_requeue_is_delivered_with_redelivered_set(client: Client) -> None:
    take(filled(client, b"m"), "q", 1)
    got = client.reject(1, requeue=True).open_channel(2).fetch("q", channel=2)
    assert (got.body, got.method.redelivered) == (b"m", True)


@pytest.mark.rule("0-9/basic.reject/requeue-false", "0-9-1/basic.reject/requeue-false#discarded")
def test_message_rejected_without_requeue_is_discarded(client: Client) -> None:
    take(filled(client, b"m"), "q", 1)
    client.reject(1)
    assert returned(client) == []


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/basic.reject/requeue-false#dead-lettered")
def test_message_rejected_without_requeue_is_dead_lettered_to_exchange_of_queue(server: Server) -> None:
    client = server.client().declare("dead")
    server.vhost.queues.declare(
        "q", QueueDeclaration(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    )
    client.fill("q", b"m")
    assert take(client, "q", 1).reject(1).empty("dead") == [b"m"]


@pytest.mark.rule("0-9-1/basic.reject/unknown-tag")
@pytest.mark.parametrize("requeue", [False, True])
@pytest.mark.parametrize("tag", [0, 99])
def test_reject_of_unknown_delivery_tag_is_refused_with_406(client: Client, tag: int, requeue: bool) -> None:
    take(filled(client, b"m"), "q", 1)
    client.reject(tag, requeue=requeue)
    client.expect_channel_close(406, text=f"PRECONDITION_FAILED - unknown delivery tag {tag}", at=(60, 90))


@pytest.mark.rule("0-9-1/basic.reject/requeue-position")
def test_message_rejected_with_requeue_returns_to_the_head_of_the_queue(client: Client) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 1)
    assert client.reject(1, requeue=True).open_channel(2).empty("q", channel=2) == [b"1", b"2", b"3"]


# --- nack (RabbitMQ: documented extension) -----------------------------------------------------------
@rows("tag, multiple, left", (2, False, [b"1", b"3"]), (2, True, [b"3"]), (0, True, []))
def test_nack_without_requeue_discards_one_message_or_all_up_to_the_tag(
    client: Client, tag: int, multiple: bool, left: list[bytes]
) -> None:
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.nack(tag, multiple=multiple, requeue=False).expect_nothing()
    assert returned(client) == left


def test_nack_of_tag_zero_with_multiple_is_accepted_without_unacknowledged_messages(client: Client) -> None:
    client.nack(0, multiple=True).expect_nothing()
    client.declare("q")


@pytest.mark.parametrize("multiple", [False, True], ids=["single", "multiple"])
def test_nack_of_unknown_delivery_tag_closes_the_channel_with_406(client: Client, multiple: bool) -> None:
    take(filled(client, b"1"), "q", 1)
    client.nack(7, multiple=multiple)
    client.expect_channel_close(406, text="PRECONDITION_FAILED - unknown delivery tag 7", at=(60, 120))


def marked(client: Client, queue: str = "q", channel: int = 1) -> list[str]:
    """All that is ready; an r after what was delivered before."""
    found = []
    while (content := client.get(queue, no_ack=True, channel=channel)) is not None:
        found.append(content.body.decode() + "r" * content.method.redelivered)
    return found


@rows(
    "settle, expected",
    ([(3, True)], ["1r", "2r", "3r", "4", "5"]),
    ([(1, False)], ["1r", "4", "5"]),
    ([(2, False), (1, False)], ["1r", "2r", "4", "5"]),
    ([(3, False), (1, False), (2, False)], ["1r", "2r", "3r", "4", "5"]),
)
def test_messages_requeued_by_nack_return_to_their_original_positions(
    rabbitmq: Server, settle: list[tuple[int, bool]], expected: list[str]
) -> None:
    client = rabbitmq.client()
    take(filled(client, b"1", b"2", b"3", b"4", b"5"), "q", 3)
    for tag, multiple in settle:
        client.nack(tag, multiple=multiple)
    assert marked(client) == expected


def test_requeued_messages_precede_messages_published_later(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    take(filled(client, b"1", b"2", b"3"), "q", 3)
    client.nack(2).fill("q", b"new").nack(0, multiple=True)
    assert marked(client) == ["1r", "2r", "3r", "new"]


@pytest.mark.parametrize("how", ["channel", "connection", "recover"])
def test_close_disconnect_and_recover_requeue_messages_in_their_places(rabbitmq: Server, how: str) -> None:
    holder, other = rabbitmq.client(channels=2), rabbitmq.client()
    take(filled(holder, b"1", b"2", b"3", b"4", b"5"), "q", 3)
    if how == "channel":
        holder.close_channel()
    elif how == "connection":
        holder.drop()
    else:
        holder.perform(m.BasicRecover(requeue=True))
    assert marked(other) == ["1r", "2r", "3r", "4", "5"]


def test_requeued_messages_keep_their_positions_within_their_priority(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", arguments={"x-max-priority": 5})
    client.publish(b"low", routing_key="q", priority=1).publish(b"high 1", routing_key="q", priority=5)
    client.publish(b"high 2", routing_key="q", priority=5)
    take(client, "q", 3)
    client.nack(3).nack(2).nack(1)
    assert marked(client) == ["high 1r", "high 2r", "lowr"]


def test_messages_requeued_by_multiple_nack_are_redelivered_in_order(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    assert filled(client, b"1", b"2").consume("q").bodies() == [b"1", b"2"]
    client.nack(2, multiple=True)
    again = [client.delivery(), client.delivery()]
    client.expect_nothing()
    assert [(each.body, each.method.delivery_tag, each.method.redelivered) for each in again] == [
        (b"1", 3, True),
        (b"2", 4, True),
    ]


# --- messages of a deleted queue ---------------------------------------------------------------------
@pytest.mark.parametrize("settle", [m.BasicAck, m.BasicReject, m.BasicNack], ids=lambda each: each.NAME)
def test_delivery_of_deleted_queue_can_be_settled_only_once(client: Client, settle: type[m.Method]) -> None:
    take(filled(client, b"m"), "q", 1)
    client.perform(m.QueueDelete(queue="q")).send(settle(delivery_tag=1)).expect_nothing()
    client.fails(settle(delivery_tag=1), 406)


def test_requeued_message_of_deleted_queue_does_not_return_to_new_queue_of_same_name(client: Client) -> None:
    take(filled(client, b"m"), "q", 1)
    assert client.perform(m.QueueDelete(queue="q")).declare("q").reject(1, requeue=True).count("q") == 0
