from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from compat_tests.unit.faults.server import FaultServer
from fakeamqp.model.access import Permission
from fakeamqp.model.personality import personality
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def select(client: Client, channel: int = 1) -> Client:
    return client.perform(m.TxSelect(), channel=channel)


def commit(client: Client, channel: int = 1) -> Client:
    return client.perform(m.TxCommit(), channel=channel)


def rollback(client: Client, channel: int = 1) -> Client:
    return client.perform(m.TxRollback(), channel=channel)


# --- the class ---------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/tx/atomic-single-queue#together")
def test_other_client_sees_publishes_only_after_commit(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").fill("q", b"old")
    select(one).get("q")
    one.fill("q", *[b"new"] * 10).ack(1)
    assert other.count("q") == 0
    commit(one)
    assert other.count("q") == 10
    one.drop()
    assert other.empty("q") == [b"new"] * 10


@pytest.mark.rule("0-9-1/tx/atomic-single-queue#nothing")
def test_lost_connection_rolls_back_the_transaction(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").fill("q", b"old")
    select(one).get("q")
    one.fill("q", *[b"new"] * 10).ack(1).drop()
    assert other.empty("q") == [b"old"]


@pytest.mark.rule("0-9-1/tx/covers-publish-ack#publish", "0-9-1/tx/covers-publish-ack#ack")
def test_a_rollback_undoes_publishes_and_acks(client: Client) -> None:
    client.declare("q").fill("q", b"old")
    select(client).get("q")
    client.ack(1).fill("q", b"new")
    assert rollback(client).close_channel().open_channel().empty("q") == [b"old"]


@pytest.mark.rule("0-9-1/tx/not-deliveries")
def test_consumer_gets_deliveries_during_a_transaction(client: Client) -> None:
    client.declare("q").fill("q", b"1")
    assert select(client).consume("q").bodies() == [b"1"]
    assert client.open_channel(2).publish(b"2", routing_key="q", channel=2).bodies() == [b"2"]


@pytest.mark.rule("0-9-1/tx/optional-class")
def test_tx_select_is_answered_with_select_ok(client: Client) -> None:
    client.send(m.TxSelect()).expect(m.TxSelectOk)


@pytest.mark.rule("0-9-1/tx/per-channel")
def test_other_channels_are_not_transacted(server: Server) -> None:
    client = select(server.client(channels=2).declare("q"), channel=1)
    client.publish(b"transacted", routing_key="q", channel=1)
    assert client.publish(b"at once", routing_key="q", channel=2).empty("q", channel=2) == [b"at once"]
    client.fails(m.TxCommit(), 406, channel=2)


# --- select ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/tx.select/sets-mode")
def test_publish_after_tx_select_takes_effect_at_commit(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").fill("q", b"before")
    select(one).fill("q", b"after")
    assert other.count("q") == 1
    commit(one)
    assert other.count("q") == 2


@pytest.mark.rule("0-9-1/tx.select/repeatable#repeated")
def test_repeated_tx_select_keeps_pending_publishes(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"pending")
    assert select(client).count("q") == 0
    assert commit(client).empty("q") == [b"pending"]


@pytest.mark.rule("0-9-1/tx.select-ok/confirm")
def test_select_ok_has_no_fields(client: Client) -> None:
    assert client.send(m.TxSelect()).take_frame().payload == b"\x00\x5a\x00\x0b"


@pytest.mark.needs("personality of choices")
def test_transaction_is_limited_to_10000_uncommitted_publishes_since_4_3() -> None:
    """RabbitMQ: measured on 4.3.6; 4.0.5 has no limit."""
    assert personality("rabbitmq-4.3").most_uncommitted_publishes == 10_000
    assert personality("rabbitmq-4.0").most_uncommitted_publishes == 0
    for most in (0, 3):
        client = Server(replace(personality("rabbitmq-4.3"), most_uncommitted_publishes=most)).client()
        client.declare("q")
        select(client).fill("q", b"1", b"2", b"3")
        if not most:
            client.fill("q", b"4")
            commit(client)
            continue
        commit(client).fill("q", b"1", b"2", b"3")
        close = client.publish(b"4", routing_key="q").expect_channel_close(406)
        assert "transaction has reached the maximum of 3 uncommitted publishes" in close.reply_text
        assert client.perform(m.ChannelOpen()).count("q") == 3


# --- commit ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9/tx.commit/needs-select", "0-9-1/tx.select/repeatable#first")
@pytest.mark.rule("0-9-1/tx.commit/transacted")
def test_committing_without_select_is_refused(client: Client) -> None:
    client.fails(m.TxCommit(), 406, text="PRECONDITION_FAILED - channel is not transactional")


@pytest.mark.rule("0-9-1/tx.commit/publishes")
def test_commit_publishes_in_order(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"1", b"2", b"3")
    assert commit(client).empty("q") == [b"1", b"2", b"3"]


@pytest.mark.rule("0-9-1/tx.commit/acks")
def test_acks_take_effect_at_commit(client: Client) -> None:
    client.declare("q").fill("q", b"acknowledged", b"not")
    select(client).get("q")
    client.get("q")
    client.ack(1)
    assert commit(client).close_channel().open_channel().empty("q") == [b"not"]


@pytest.mark.rule("0-9-1/tx.commit/new-transaction")
def test_the_next_transaction_begins_with_the_commit(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"first")
    commit(client).fill("q", b"second")
    rollback(client)
    assert commit(client).empty("q") == [b"first"]


@pytest.mark.rule("0-9-1/tx.commit/empty")
def test_commit_of_empty_transaction_succeeds(client: Client) -> None:
    assert select(client).send(m.TxCommit()).take_frame().payload == b"\x00\x5a\x00\x15"


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/tx.commit-ok/failure")
def test_a_commit_that_fails_closes_the_channel(server: Server) -> None:
    client = server.client()
    server.vhost.queues.declare(
        "q", QueueDeclaration(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    )
    select(client).fill("q", b"1", b"2")
    client.fails(m.TxCommit(), 406, text="PRECONDITION_FAILED - partial tx completion")
    client.expect_nothing()


@pytest.mark.rule("0-9-1/tx.commit-ok/failure")
def test_transaction_with_publish_to_missing_exchange_is_not_committed(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"possible").publish(exchange="missing").fails(m.TxCommit(), 404, at=(60, 40))
    client.expect_nothing()
    assert client.open_channel().count("q") == 0


# --- rollback ----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9/tx.rollback/needs-select", "0-9-1/tx.select/repeatable#first")
@pytest.mark.rule("0-9-1/tx.rollback/transacted")
def test_rolling_back_without_select_is_refused(client: Client) -> None:
    client.fails(m.TxRollback(), 406, text="PRECONDITION_FAILED - channel is not transactional")


@pytest.mark.needs("own broker")
@pytest.mark.rule("0-9-1/tx.rollback-ok/failure")
def test_rollback_that_fails_by_a_fault_closes_the_channel(server: Server) -> None:
    """A rollback of this broker does not fail by itself: see docs/decisions-0-9-1.md."""
    server = FaultServer(server.state.personality, protocol=server.protocol)
    client = server.client().declare("q").fill("q", b"kept")
    select(client)
    client.consume("q").ack(client.delivery().method.delivery_tag).fill("q", b"lost")
    server.faults.on("tx.rollback").close_channel(506, "the log cannot be read").once()
    close = client.fails(m.TxRollback(), 506)
    assert close.reply_text.endswith("the log cannot be read")
    assert (close.class_id, close.method_id) == (90, 30)
    client.expect_nothing()
    assert client.open_channel().empty("q") == [b"kept"], "the end of the channel has rolled back"
    select(client)
    rollback(client)


@pytest.mark.rule("0-9-1/tx.rollback/discards-publishes")
def test_rolled_back_publishes_are_discarded(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"1", b"2")
    assert client.send(m.TxRollback()).take_frame().payload == b"\x00\x5a\x00\x1f"
    assert client.count("q") == 0
    assert commit(client).count("q") == 0


@pytest.mark.rule("0-9-1/tx.rollback/undoes-acks#outstanding", "0-9-1/tx.rollback/undoes-acks#again")
@pytest.mark.parametrize("how", [m.BasicAck, m.BasicReject, m.BasicNack], ids=lambda each: each.NAME)
@pytest.mark.protocols("0-9-1")
def test_rollback_makes_settled_delivery_unacked_under_its_tag(client: Client, how: type[m.Method]) -> None:
    client.declare("q").fill("q", b"1", b"2", b"3")
    select(client)
    for _ in range(3):
        client.get("q")
    client.send(how(delivery_tag=2))
    rollback(client).call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    client.ack(2, multiple=True)  # Tag order is as it was.
    commit(client).expect_nothing()
    assert client.close_channel().open_channel().empty("q") == [b"3"]


@pytest.mark.rule("0-9-1/tx.rollback/no-redelivery")
def test_rollback_does_not_redeliver_messages_until_recover(client: Client) -> None:
    client.declare("q").fill("q", b"m")
    assert select(client).consume("q").bodies() == [b"m"]
    client.ack(1)
    rollback(client).expect_nothing()
    again = client.perform(m.BasicRecover(requeue=True)).delivery()
    assert (again.body, again.method.redelivered) == (b"m", True)


@pytest.mark.rule("0-9-1/tx.rollback/new-transaction")
def test_the_next_transaction_begins_with_the_rollback(client: Client) -> None:
    client.declare("q")
    select(client).fill("q", b"first")
    assert rollback(client).fill("q", b"second").count("q") == 0
    assert commit(client).empty("q") == [b"second"]


# --- when things are decided -------------------------------------------------------------------------
def test_a_publish_to_a_missing_exchange_fails_at_once(client: Client) -> None:
    select(client).publish(exchange="missing")
    client.expect_channel_close(404, text="NOT_FOUND - no exchange 'missing' in vhost '/'")


def test_message_in_transaction_is_routed_at_publish_and_not_at_commit(client: Client) -> None:
    client.declare("q").declare_exchange("x", "fanout").bind("q", "x")
    select(client).publish(b"m", exchange="x").perform(m.ExchangeDelete(exchange="x"))
    got = commit(client).fetch("q")
    assert (got.body, got.method.exchange) == (b"m", "x")


def test_queue_bound_after_publish_in_transaction_does_not_get_the_message(client: Client) -> None:
    client.declare("q")
    select(client).publish(b"m", exchange="amq.fanout").bind("q", "amq.fanout")
    assert commit(client).count("q") == 0


def test_message_to_queue_deleted_before_commit_is_lost_in_spec_personality(spec: Server) -> None:
    client = spec.client().declare("q")
    select(client).publish(b"m", routing_key="q", mandatory=True).perform(m.QueueDelete(queue="q"))
    client.declare("q")
    assert commit(client).count("q") == 0


def with_lost_queue(name: str, kind: str = "classic") -> tuple[Client, Client]:
    """A client whose transaction publishes to q, q2 and q, and another that has deleted q."""
    server = Server(name)
    client, other = server.client(), server.client()
    client.declare("q", durable=True, arguments={"x-queue-type": kind}).declare("q2", durable=True)
    select(client)
    for body, key in ((b"1", "q"), (b"2", "q2")):
        client.publish(body, routing_key=key, mandatory=True)
    other.perform(m.QueueDelete(queue="q"))
    return client, other


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0"])
def test_commit_to_deleted_classic_queue_closes_channel_with_406_up_to_4_0(name: str) -> None:
    client, other = with_lost_queue(name)  # Measured on 4.0.5.
    close = client.fails(m.TxCommit(), 406)
    assert (close.reply_text, close.class_id, close.method_id) == (
        "PRECONDITION_FAILED - partial tx completion",
        90,
        20,
    )
    assert other.count("q2") == 1
    client, _ = with_lost_queue(name, "quorum")
    commit(client)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("name", ["rabbitmq-4.2", "rabbitmq-4.3"])
def test_commit_to_deleted_queue_closes_connection_with_506_since_4_2(name: str, kind: str) -> None:
    client, other = with_lost_queue(name, kind)  # Measured on 4.3.6; 4.2.9 by its tagged source.
    close = client.ends(m.TxCommit(), 506)
    assert (close.reply_text, close.class_id, close.method_id) == (
        'RESOURCE_ERROR - failed to deliver message: {not_found,{resource,<<"/">>,queue,<<"q">>}}',
        90,
        20,
    )
    assert other.count("q2") == 0


@pytest.mark.needs("personality rabbitmq-4.3")
@rows(
    "virtual_host, queue, text",
    ("/", "q", '{not_found,{resource,<<"/">>,queue,<<"q">>}}'),
    ("/", "a" * 12, "{not_found,\n" + " " * 31 + '{resource,<<"/">>,queue,<<"aaaaaaaaaaaa">>}}'),
    pytest.param(
        "my-vhost",
        "a" * 27,
        "{not_found,\n" + " " * 31 + '{resource,<<"my-vhost">>,queue,\n' + " " * 35 + f'<<"{"a" * 27}">>}}}}',
        marks=pytest.mark.needs("settings"),
    ),
    ids=["one line", "two", "three"],
)
def test_text_of_commit_to_deleted_queue_has_line_breaks_of_erlang(
    virtual_host: str, queue: str, text: str
) -> None:
    # Measured on 4.3.6.
    server = Server("rabbitmq-4.3")
    if virtual_host != "/":
        server.state.add_virtual_host(virtual_host)
        server.state.access.users["guest"].permissions[virtual_host] = Permission()
    client = server.client(virtual_host=virtual_host).declare(queue)
    select(client).publish(b"m", routing_key=queue).perform(m.QueueDelete(queue=queue))
    client.ends(m.TxCommit(), 506, text=f"RESOURCE_ERROR - failed to deliver message: {text}")


@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
def test_redeclared_queue_gets_no_message_published_before_deletion(name: str) -> None:
    client, other = with_lost_queue(name)  # Measured on 4.0.5 and 4.3.6.
    other.declare("q")
    client.fails(m.TxCommit(), 406)
    assert (other.count("q"), other.count("q2")) == (0, 1)


def test_an_unroutable_message_is_returned_before_commit_ok(client: Client) -> None:
    select(client).publish(b"m", routing_key="nowhere", mandatory=True).expect_nothing()
    returned = client.send(m.TxCommit()).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (312, b"m")
    client.expect(m.TxCommitOk)


def test_unroutable_message_is_not_returned_after_rollback(client: Client) -> None:
    select(client).publish(b"m", routing_key="nowhere", mandatory=True)
    rollback(client).expect_nothing()


def test_immediate_message_needs_a_consumer_at_commit(spec: Server) -> None:
    client = select(spec.client().declare("q")).publish(b"early", routing_key="q", immediate=True)
    returned = client.send(m.TxCommit()).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (313, b"early")
    client.expect(m.TxCommitOk)
    client.publish(b"in time", routing_key="q", immediate=True).consume("q")
    assert client.send(m.TxCommit()).delivery().body == b"in time"
    client.expect(m.TxCommitOk)


# --- settlements -------------------------------------------------------------------------------------
def test_requeue_takes_effect_at_commit(client: Client) -> None:
    client.declare("q").fill("q", b"m")
    select(client).get("q")
    client.reject(1, requeue=True).call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    assert commit(client).count("q") == 1


def test_a_multiple_nack_requeues_in_order_at_commit(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").fill("q", b"1", b"2")
    select(client).get("q")
    client.get("q")
    client.nack(0, multiple=True)
    commit(client)
    again = [client.get("q"), client.get("q")]
    assert [(each.body, each.method.delivery_tag, each.method.redelivered) for each in again if each] == [
        (b"1", 3, True),
        (b"2", 4, True),
    ]


def test_settlements_take_effect_at_commit_in_the_order_of_their_methods(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.fill("q", b"1", b"2", b"3")
    select(client)
    for _ in range(3):
        client.get("q")
    assert client.reject(3).ack(2).reject(1).count("dead") == 0
    assert commit(client).empty("dead") == [b"3", b"1"]


def test_uncommitted_ack_does_not_free_prefetch(client: Client) -> None:
    client.declare("q").fill("q", b"1", b"2")
    assert select(client).qos(1).consume("q").bodies() == [b"1"]
    client.ack(1).expect_nothing()
    client.send(m.TxCommit()).expect(m.TxCommitOk)
    assert client.delivery().body == b"2"


def test_closed_channel_rolls_back_its_transaction(client: Client) -> None:
    client.declare("q").fill("q", b"1", b"2")
    select(client).get("q")
    client.get("q")
    client.ack(2).fill("q", b"new").close_channel()
    assert client.open_channel().empty("q") == [b"1", b"2"]


# --- and confirms ------------------------------------------------------------------------------------
def test_tx_select_on_confirming_channel_is_refused_with_406(client: Client) -> None:
    client.perform(m.ConfirmSelect())
    client.fails(m.TxSelect(), 406, text="PRECONDITION_FAILED - cannot switch from confirm to tx mode")


def test_confirm_select_on_transacted_channel_is_refused_with_406(client: Client) -> None:
    select(client)
    client.fails(m.ConfirmSelect(), 406, text="PRECONDITION_FAILED - cannot switch from tx to confirm mode")
