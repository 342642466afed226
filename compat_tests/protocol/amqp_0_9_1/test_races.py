"""Races of RabbitMQ: what may be late, and what keeps its order. `Late` says how late, in place of a draw."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import declare as declare_quorum
from compat_tests.protocol.amqp_0_9_1.test_confirms import publishes
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.dialects import protocol_names
from fakeamqp.model.races import Races, seeded
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

Racing = Callable[..., Server]


def racing_as(name: str) -> Racing:
    """Makes a broker where some things are late, in seconds: by (kind, what it is about, which one)."""

    def make(late: dict[tuple[str, str, int], float]) -> Server:
        server = Server(name, history=10)
        server.state.races = Races(
            server.state.peer_timers, lambda kind, what, nth: late.get((kind, what, nth), 0.0)
        )
        return server

    return make


@pytest.fixture(params=("rabbitmq-4.3", "rabbitmq-4.0", "spec"))
def racing(request: pytest.FixtureRequest) -> Racing:
    return racing_as(request.param)


@pytest.fixture(params=("rabbitmq-4.3", "rabbitmq-4.0"))
def racing_rabbitmq(request: pytest.FixtureRequest) -> Racing:
    """For consumers with a prefetch of their own, which `spec` does not have."""
    return racing_as(request.param)


def enqueue(nth: int, *, queue: str = "q", channel: int = 1, connection: str = "c1") -> tuple[str, str, int]:
    return "enqueue", f"channel {channel} of {connection} to queue {queue}", nth


def confirm(nth: int, *, channel: int = 1) -> tuple[str, str, int]:
    return "confirm", f"channel {channel} of c1", nth


def declare(client: Client, name: str = "q", channel: int = 1, **flags: Any) -> m.QueueDeclareOk:
    return client.call(m.QueueDeclare(queue=name, **flags), m.QueueDeclareOk, channel)


def count(client: Client, name: str = "q", channel: int = 1) -> int:
    return declare(client, name, channel, passive=True).message_count


def confirming(client: Client, channel: int = 1) -> Client:
    return client.perform(m.ConfirmSelect(), channel=channel)


def consume(client: Client, queue: str = "q", channel: int = 1, tag: str = "t") -> Client:
    return client.perform(m.BasicConsume(queue=queue, consumer_tag=tag, no_ack=True), channel=channel)


def acks(client: Client) -> list[tuple[int, bool]]:
    """The confirms that have come: tag, and whether it is `multiple`."""
    came = [frame.method for frame in client.inbox]
    client.inbox.clear()
    assert all(isinstance(each, m.BasicAck) for each in came)
    return [(each.delivery_tag, each.multiple) for each in came if isinstance(each, m.BasicAck)]


# --- late confirms -----------------------------------------------------------------------------------
@pytest.mark.needs("virtual time", "inspection", "settings")
def test_late_confirm_comes_after_the_reply_to_its_request(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    responder = server.client()
    declare(client)
    consume(responder)
    declare(client, "replies")
    consume(client, "replies").publish(b"request", routing_key="q")
    assert responder.expect_content(m.BasicDeliver).body == b"request"
    client.expect_nothing()
    responder.publish(b"reply", routing_key="replies")
    assert client.expect_content(m.BasicDeliver).body == b"reply"
    server.advance(0.01)
    assert acks(client) == [(1, False)]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_confirms_of_one_queue_keep_their_order(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    declare(client)
    client.publish(routing_key="q").publish(routing_key="q").expect_nothing()
    server.advance(0.01)
    assert acks(client) == [(1, False), (2, False)]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_confirms_of_other_queues_are_sent_before_late_confirm_and_without_multiple(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    declare(client, "q")
    declare(client, "other")
    client.send_bytes(publishes(["q", "other", "other"]))
    assert acks(client) == [(2, False), (3, False)]
    server.advance(0.01)
    assert acks(client) == [(1, False)]


@pytest.mark.needs("inspection", "settings")
def test_call_that_brings_a_late_message_forward_confirms_it_together_with_later_ones(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = confirming(server.client())
    declare(client, "q")
    declare(client, "other")
    purge = client.method_frame(m.QueuePurge(queue="q", no_wait=True))
    client.send_bytes(publishes(["q", "other"]) + purge)
    assert acks(client) == [(2, True)]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_unroutable_message_is_returned_and_confirmed_while_another_confirm_is_late(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    declare(client)
    client.publish(routing_key="q")
    client.publish(routing_key="nowhere", mandatory=True).expect_content(m.BasicReturn)
    assert acks(client) == [(2, False)]
    server.advance(0.01)
    assert acks(client) == [(1, False)]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_confirm_follows_the_arrival_in_all_queues(racing: Racing) -> None:
    server = racing({enqueue(1, queue="a"): 0.01, enqueue(1, queue="b"): 0.02})
    client = confirming(server.client())
    for name in ("a", "b", "c"):
        declare(client, name)
        client.perform(m.QueueBind(queue=name, exchange="amq.fanout"))
    client.publish(exchange="amq.fanout")
    assert [count(client, name) for name in "abc"] == [0, 0, 1]
    server.advance(0.01)
    assert [count(client, name) for name in "abc"] == [1, 0, 1]
    server.advance(0.01)
    assert acks(client) == [(1, False)]
    assert [count(client, name) for name in "abc"] == [1, 1, 1]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_late_confirms_are_not_sent_after_channel_close(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    declare(client)
    client.publish(routing_key="q").perform(m.ChannelClose(reply_code=200))
    server.advance(1)
    client.expect_nothing()


# --- messages that arrive late -----------------------------------------------------------------------
@pytest.mark.needs("virtual time", "inspection", "settings")
def test_passive_declare_reports_the_count_before_a_late_message(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = server.client()
    declare(client)
    client.publish(routing_key="q")
    assert count(client) == 0
    server.advance(0.01)
    assert count(client) == 1


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("call", ["get", "purge", "delete", "consume", "cancel"])
def test_call_of_publishing_channel_to_classic_queue_follows_late_message(racing: Racing, call: str) -> None:
    client = racing({enqueue(1): 0.01}).client()
    declare(client)
    if call == "cancel":
        consume(client)
    client.publish(b"late", routing_key="q")
    if call == "cancel":
        client.send(m.BasicCancel(consumer_tag="t"))
        assert client.expect_content(m.BasicDeliver).body == b"late"
    elif call == "get":
        client.send(m.BasicGet(queue="q", no_ack=True))
        assert client.expect_content(m.BasicGetOk).body == b"late"
    elif call == "purge":
        assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1
    elif call == "delete":
        assert client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk).message_count == 1
    else:
        consume(client)
        assert client.expect_content(m.BasicDeliver).body == b"late"


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_call_of_another_channel_does_not_wait_for_a_late_message(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = server.client(channels=2)
    declare(client)
    client.publish(routing_key="q")
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty, 2)
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk, 2).message_count == 0
    server.advance(0.01)
    assert count(client) == 1


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_get_from_a_quorum_queue_does_not_wait_for_a_late_message_of_its_channel(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = server.client()
    declare_quorum(client, "q")
    client.publish(routing_key="q")
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    server.advance(0.01)
    assert count(client) == 1


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_messages_of_one_channel_keep_their_order_in_a_queue(racing: Racing) -> None:
    server = racing({enqueue(1): 0.02, enqueue(2): 0.01})
    client = server.client()
    consumer = server.client()
    declare(client)
    consume(consumer)
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="q")
    consumer.expect_nothing()
    server.advance(0.02)
    assert [consumer.expect_content(m.BasicDeliver).body for _ in range(3)] == [b"1", b"2", b"3"]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_messages_of_two_channels_overtake_each_other(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = server.client(channels=2)
    consumer = server.client()
    declare(client)
    consume(consumer)
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q", channel=2)
    server.advance(0.01)
    assert [consumer.expect_content(m.BasicDeliver).body for _ in range(2)] == [b"2", b"1"]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_deliveries_of_two_queues_interleave(racing: Racing) -> None:
    server = racing({enqueue(1, queue="a"): 0.01})
    client = server.client()
    consumer = server.client()
    for name in ("a", "b"):
        declare(client, name)
        consume(consumer, name, tag=name)
        client.publish(name.encode(), routing_key=name)
    server.advance(0.01)
    assert [consumer.expect_content(m.BasicDeliver).body for _ in range(2)] == [b"b", b"a"]


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_message_that_arrives_after_channel_close_stays_in_its_queue(racing: Racing) -> None:
    server = racing({enqueue(2, channel=2): 0.01})
    client = server.client(channels=2)
    declare(client)
    consume(client)
    for body in (b"1", b"2"):
        client.publish(body, routing_key="q", channel=2)
    assert client.expect_content(m.BasicDeliver).body == b"1"
    client.call(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
    server.advance(0.01)
    client.expect_nothing()
    assert count(client, channel=2) == 1


@pytest.mark.needs("inspection", "settings")
def test_queue_that_refuses_messages_gets_them_at_once(racing: Racing) -> None:
    server = racing({enqueue(nth): 0.01 for nth in (1, 2)})
    client = confirming(server.client())
    declare(client, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.publish(routing_key="q").publish(routing_key="q")
    ack, nack = (frame.method for frame in client.inbox)
    assert isinstance(ack, m.BasicAck)
    assert isinstance(nack, m.BasicNack)


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_late_message_of_a_deleted_queue_is_dropped_and_confirmed(racing: Racing) -> None:
    server = racing({enqueue(1): 0.01})
    client = confirming(server.client(channels=2))
    declare(client)
    client.publish(routing_key="q").perform(m.QueueDelete(queue="q"), channel=2)
    server.advance(0.01)
    assert acks(client) == [(1, False)]
    assert server.state.outcome_histories is not None
    [dropped] = server.state.outcome_histories.dropped
    assert (dropped.queue, dropped.reason) == ("q", "deleted")


@pytest.mark.needs("inspection", "settings")
def test_transaction_is_not_late_and_arrives_after_earlier_publishes(racing: Racing) -> None:
    server = racing({enqueue(nth): 0.01 for nth in (1, 2)})
    client = server.client()
    declare(client)
    client.publish(b"before", routing_key="q")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(b"within", routing_key="q")
    client.call(m.TxCommit(), m.TxCommitOk)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"before", b"within"]


# --- acks that arrive late ---------------------------------------------------------------------------
def consuming_two_queues(server: Server, kind: str = "classic") -> Client:
    """A client that has the first message of each of the queues a and b, and a prefetch of 1."""
    client = server.client().perform(m.BasicQos(prefetch_count=1))
    for name in ("a", "b"):
        declare(client, name, durable=True, arguments={"x-queue-type": kind})
        for nth in (1, 2):
            client.publish(f"{name}{nth}".encode(), routing_key=name)
        client.perform(m.BasicConsume(queue=name, consumer_tag=name))
        assert client.expect_content(m.BasicDeliver).body == f"{name}1".encode()
    return client


@pytest.mark.needs("virtual time", "inspection", "settings")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_late_ack_lets_another_queue_deliver_first(racing_rabbitmq: Racing, kind: str) -> None:
    server = racing_rabbitmq({("settle", "channel 1 of c1 to queue a", 1): 0.01})
    client = consuming_two_queues(server, kind).send(m.BasicAck(delivery_tag=2, multiple=True))
    assert client.expect_content(m.BasicDeliver).body == b"b2"
    client.expect_nothing()
    server.advance(0.01)
    assert client.expect_content(m.BasicDeliver).body == b"a2"


@pytest.mark.needs("inspection", "settings")
def test_ack_of_a_transaction_is_not_late(racing_rabbitmq: Racing) -> None:
    server = racing_rabbitmq({("settle", "channel 1 of c1 to queue a", 1): 0.01})
    client = consuming_two_queues(server)
    client.perform(m.TxSelect()).send(m.BasicAck(delivery_tag=1)).send(m.TxCommit()).expect(m.TxCommitOk)
    assert client.expect_content(m.BasicDeliver).body == b"a2"


@pytest.mark.needs("inspection", "settings")
def test_late_ack_precedes_a_cancel_of_its_channel(racing_rabbitmq: Racing) -> None:
    server = racing_rabbitmq({("settle", "channel 1 of c1 to queue a", 1): 0.01})
    client = consuming_two_queues(server).send(m.BasicAck(delivery_tag=1))
    assert client.send(m.BasicCancel(consumer_tag="a")).expect_content(m.BasicDeliver).body == b"a2"
    client.expect(m.BasicCancelOk)


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_acknowledged_message_does_not_return_if_its_channel_closes_before_the_ack_arrives(
    racing_rabbitmq: Racing,
) -> None:
    server = racing_rabbitmq({("settle", "channel 1 of c1 to queue a", 1): 0.01})
    client = consuming_two_queues(server)
    client.send(m.BasicAck(delivery_tag=1)).perform(m.ChannelClose(reply_code=200))
    server.advance(0.01)
    assert [each.message.body for each in server.vhost.queues["a"].ready] == [b"a2"]
    assert not server.vhost.queues["a"].unacked


# --- requeues, dead letters, and the ends of channels and connections ---------------------------------
def settled_late(kind: str, queue: str = "q", channel: int = 1) -> tuple[str, str, int]:
    return kind, f"channel {channel} of c1 to queue {queue}", 1


def holding(server: Server, kind: str = "classic", channels: int = 2) -> Client:
    """A client whose channel 1 holds the only message of queue q."""
    client = server.client(channels=channels)
    declare(client, durable=True, arguments={"x-queue-type": kind})
    client.publish(b"m", routing_key="q").send(m.BasicGet(queue="q")).expect_content(m.BasicGetOk)
    return client


RETURNS = (
    m.BasicReject(delivery_tag=1, requeue=True),
    m.BasicNack(delivery_tag=1, requeue=True),
    m.BasicRecoverAsync(requeue=True),
)


@pytest.mark.needs("virtual time", "inspection", "settings")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("method", RETURNS, ids=lambda each: each.NAME)
def test_late_requeue_is_counted_later(racing_rabbitmq: Racing, kind: str, method: Any) -> None:
    server = racing_rabbitmq({settled_late("requeue"): 0.01})
    client = holding(server, kind).send(method)
    assert count(client) == 0
    server.advance(0.01)
    assert count(client) == 1


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(("channel", "found"), [(1, True), (2, False)])
def test_late_requeue_precedes_a_get_of_its_channel_and_not_of_another(
    racing_rabbitmq: Racing, kind: str, channel: int, found: bool
) -> None:
    server = racing_rabbitmq({settled_late("requeue"): 0.01})
    client = holding(server, kind).send(m.BasicReject(delivery_tag=1, requeue=True))
    client.send(m.BasicGet(queue="q"), channel)
    if found:
        assert client.expect_content(m.BasicGetOk, channel).method.redelivered
    else:
        client.expect(m.BasicGetEmpty, channel)


@pytest.mark.needs("virtual time", "inspection", "settings")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_late_requeue_takes_effect_although_its_channel_closes(racing_rabbitmq: Racing, kind: str) -> None:
    server = racing_rabbitmq({settled_late("requeue"): 0.01})
    client = holding(server, kind)
    client.send(m.BasicReject(delivery_tag=1, requeue=True)).perform(m.ChannelClose(reply_code=200))
    server.advance(0.01)
    assert count(client, channel=2) == 1


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_rejected_messages_are_dead_lettered_late_and_in_queue_order(racing_rabbitmq: Racing) -> None:
    server = racing_rabbitmq({("dead-letter", "queue q", 1): 0.01})
    client = server.client()
    declare(client, "dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    declare(client, durable=True, arguments=arguments)
    for body in (b"1", b"2"):
        client.publish(body, routing_key="q")
        client.send(m.BasicGet(queue="q"))
        tag = client.expect_content(m.BasicGetOk).method.delivery_tag
        client.send(m.BasicReject(delivery_tag=tag, requeue=False))
    assert count(client, "dead") == 0
    server.advance(0.01)
    assert [each.message.body for each in server.vhost.queues["dead"].ready] == [b"1", b"2"]


@pytest.mark.needs("inspection", "settings")
def test_message_that_expires_is_not_dead_lettered_late(racing_rabbitmq: Racing) -> None:
    client = racing_rabbitmq({("dead-letter", "queue q", 1): 0.01}).client()
    declare(client, "dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 0}
    declare(client, durable=True, arguments=arguments)
    client.publish(routing_key="q")
    assert count(client, "dead") == 1


@pytest.mark.needs("virtual time", "inspection", "settings")
@pytest.mark.parametrize(
    ("kind", "consumes", "late"),
    [("classic", False, True), ("classic", True, False), ("quorum", False, True), ("quorum", True, True)],
)
@pytest.mark.parametrize("whole", [False, True])
def test_end_of_a_channel_or_its_connection_reaches_a_queue_late(
    racing_rabbitmq: Racing, kind: str, consumes: bool, late: bool, whole: bool
) -> None:
    server = racing_rabbitmq({settled_late("release"): 0.01})
    client, other = server.client(), server.client()
    declare(other, durable=True, arguments={"x-queue-type": kind})
    other.publish(routing_key="q")
    if consumes:
        client.call(m.BasicConsume(queue="q", consumer_tag="t"), m.BasicConsumeOk)
        client.expect_content(m.BasicDeliver)
    else:
        client.send(m.BasicGet(queue="q"))
        client.expect_content(m.BasicGetOk)
    if whole:
        client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
    else:
        client.call(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
    assert count(other) == (0 if late else 1)
    server.advance(0.01)
    assert count(other) == 1
    assert not server.vhost.queues["q"].subscriptions


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_exclusive_queue_is_locked_until_the_late_end_of_its_connection(racing_rabbitmq: Racing) -> None:
    server = racing_rabbitmq({("release", "c1 to queue q", 1): 0.01})
    client, other = server.client(), server.client(channels=2)
    declare(client, exclusive=True)
    client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
    other.fails(m.QueueDeclare(queue="q", durable=True), 405)
    server.advance(0.01)
    assert declare(other, durable=True, channel=2).message_count == 0


@pytest.mark.needs("virtual time", "inspection", "settings")
@pytest.mark.parametrize(("kind", "late"), [("classic", True), ("quorum", False)])
def test_cancel_of_a_deleted_classic_queue_may_come_after_delete_ok_to_another_channel(
    racing_rabbitmq: Racing, kind: str, late: bool
) -> None:
    server = racing_rabbitmq({("cancel", "channel 2 of c1", 1): 0.01})
    client = server.client(channels=2, client_properties={"capabilities": {"consumer_cancel_notify": True}})
    declare(client, durable=True, arguments={"x-queue-type": kind})
    consume(client, channel=2)
    client.send(m.QueueDelete(queue="q"))
    if not late:
        client.expect(m.BasicCancel, 2)
    client.expect(m.QueueDeleteOk)
    server.advance(0.01)
    if late:
        client.expect(m.BasicCancel, 2)


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_nack_does_not_wait_for_the_late_ack_of_its_queue(racing: Racing) -> None:
    server = racing({confirm(1): 0.01})
    client = confirming(server.client())
    declare(client, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    assert client.publish(routing_key="q").publish(routing_key="q").expect(m.BasicNack).delivery_tag == 2
    server.advance(0.01)
    assert client.expect(m.BasicAck).delivery_tag == 1


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_message_of_a_transaction_is_late_only_if_a_consumer_waits_for_it(racing_rabbitmq: Racing) -> None:
    server = racing_rabbitmq({enqueue(1): 0.01, enqueue(1, queue="consumed"): 0.01})
    client = server.client()
    for name in ("q", "consumed"):
        declare(client, name, durable=True)
    consume(client, "consumed")
    client.call(m.TxSelect(), m.TxSelectOk)
    for name in ("q", "consumed"):
        client.publish(routing_key=name)
    client.call(m.TxCommit(), m.TxCommitOk)
    assert count(client) == 1
    client.expect_nothing()
    server.advance(0.01)
    client.expect_content(m.BasicDeliver)


# --- the end of what is late -------------------------------------------------------------------------
@pytest.mark.needs("virtual time", "inspection", "settings")
def test_settle_carries_out_all_late_outcomes_in_their_order(racing: Racing) -> None:
    server = racing({enqueue(1): 0.02, enqueue(1, channel=2): 0.01, confirm(1): 0.01})
    client = confirming(server.client(channels=2))
    declare(client)
    client.publish(b"1", routing_key="q").publish(b"2", routing_key="q", channel=2)
    races = server.state.races
    assert races is not None
    assert races.pending
    races.settle()
    assert not races.pending
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"2", b"1"]
    assert acks(client) == [(1, False)]
    server.advance(1)
    client.expect_nothing()
    assert len(server.vhost.queues["q"].ready) == 2


@pytest.mark.needs("virtual time", "restart", "inspection", "settings")
def test_crash_loses_late_messages_and_restart_keeps_them(racing: Racing) -> None:
    for crash in (False, True):
        server = racing({enqueue(1): 0.01})
        client = confirming(server.client())
        declare(client, durable=True)
        client.publish(routing_key="q", delivery_mode=2)
        server.restart(crash=crash)
        server.advance(1)
        assert len(server.vhost.queues["q"].ready) == (0 if crash else 1)


@pytest.mark.needs("inspection", "settings")
def test_text_of_a_late_outcome_names_kind_channel_and_delay(racing: Racing) -> None:
    server = racing({enqueue(2): 0.01, confirm(1): 0.001})
    client = confirming(server.client())
    declare(client)
    client.publish(routing_key="q").publish(routing_key="q")
    races = server.state.races
    assert races is not None
    assert list(map(str, races.occurred)) == [
        "confirm 1 on channel 1 of c1 is sent 1 ms late",
        "message 2 from channel 1 of c1 to queue q arrives 10 ms late",
    ]


@pytest.mark.needs("inspection", "settings")
def test_draw_names_connection_by_connection_name_of_client(racing: Racing) -> None:
    server = racing({})
    client = server.client(client_properties={"connection_name": "billing"})
    declare(client)
    races = server.state.races
    assert races is not None
    drawn: list[str] = []
    races._draw = lambda _kind, what, _nth: drawn.append(what) or 0.0  # type: ignore[func-returns-value]
    client.publish(routing_key="q")
    assert drawn == ["channel 1 of c1 (billing) to queue q"]


@pytest.mark.needs("own broker")
def test_draws_of_a_seed_do_not_depend_on_earlier_draws() -> None:
    first, second = seeded(7), seeded(7)
    drawn = [first("confirm", "channel 1 of c1", nth) for nth in range(1, 50)]
    for nth in range(20):
        second("enqueue", "channel 2 of c1 to queue q", nth)
    assert [second("confirm", "channel 1 of c1", nth) for nth in range(1, 50)] == drawn
    assert 0.0 in drawn
    assert len(set(drawn)) == 4
    assert [seeded(8)("confirm", "channel 1 of c1", nth) for nth in range(1, 50)] != drawn


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("protocol", [each for each in ("0-9-1", "0-9") if each in protocol_names()])
def test_races_of_40_seeds_lose_no_message_confirm_each_once_and_keep_order(protocol: str) -> None:
    for seed in range(40):
        server = Server("rabbitmq-4.3", protocol=protocol)
        server.state.races = races = Races(server.state.peer_timers, seeded(seed))
        client, consumer = server.client(channels=2), server.client()
        for channel in (1, 2):
            confirming(client, channel)
        for name in ("a", "b"):
            declare(client, name, durable=True)
            client.bind(name, "amq.fanout")
            consumer.perform(m.BasicConsume(queue=name, consumer_tag=name))
        draw = Random(seed)
        published: dict[tuple[int, str], list[bytes]] = {}
        counts = {1: 0, 2: 0}
        written = b""
        for nth in range(60):
            channel, key = draw.choice((1, 2)), draw.choice(("a", "b", "both", "nowhere"))
            body = b"%d %d" % (channel, nth)
            exchange = "amq.fanout" if key == "both" else ""
            method = m.BasicPublish(exchange=exchange, routing_key=key)
            content = content_frames(channel, 60, BasicProperties().encode(), body, 4000)
            written += client.method_frame(method, channel) + b"".join(content)
            counts[channel] += 1
            for queue in "ab":
                if key in (queue, "both"):
                    published.setdefault((channel, queue), []).append(body)
            if draw.random() < 0.5:
                client.send_bytes(written)
                written = b""
                server.advance(draw.choice((0.0, 0.002)))
        client.send_bytes(written)
        races.settle()
        consumed: dict[tuple[int, str], list[bytes]] = {}
        while consumer.inbox:
            content = consumer.expect_content(m.BasicDeliver)
            consumed.setdefault((int(content.body[:1]), content.method.consumer_tag), []).append(content.body)
            consumer.send(m.BasicAck(delivery_tag=content.method.delivery_tag))
        assert consumed == published
        races.settle()
        assert not any(queue.unacked for queue in server.vhost.queues.values())
        confirmed: dict[int, list[int]] = {1: [], 2: []}
        for frame in client.inbox:
            assert isinstance(frame.method, m.BasicAck)
            open_tags = set(range(1, counts[frame.channel] + 1)).difference(confirmed[frame.channel])
            tag = frame.method.delivery_tag
            assert tag in open_tags
            covered = {each for each in open_tags if each <= tag} if frame.method.multiple else {tag}
            confirmed[frame.channel] += covered
        assert {channel: len(tags) for channel, tags in confirmed.items()} == counts


@pytest.mark.needs("virtual time", "inspection", "settings")
def test_channel_close_without_delay_returns_unacked_message_at_once(racing: Racing) -> None:
    server = racing({})
    client = server.client(channels=2)
    declare(client)
    client.fill("q", b"1")
    assert client.get("q") is not None
    client.call(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk)
    assert len(server.vhost.queues["q"].ready) == 1
