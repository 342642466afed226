from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.unit.faults.server import FaultServer
from fakeamqp.model.access import Permission
from fakeamqp.model.personality import personality
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def select(client: Client, channel: int = 1) -> None:
    client.call(m.TxSelect(), m.TxSelectOk, channel)


def commit(client: Client, channel: int = 1) -> None:
    client.call(m.TxCommit(), m.TxCommitOk, channel)


def rollback(client: Client, channel: int = 1) -> None:
    client.call(m.TxRollback(), m.TxRollbackOk, channel)


# --- the class ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/tx/atomic-single-queue#together")
def test_other_client_sees_publishes_only_after_commit(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    one.fill("q", b"old")
    select(one)
    one.get("q")
    one.fill("q", *[b"new"] * 10)
    one.ack(1)
    assert other.count("q") == 0
    commit(one)
    assert other.count("q") == 10
    one.drop()
    assert other.empty("q") == [b"new"] * 10


@pytest.mark.rule("0-9-1/tx/atomic-single-queue#nothing")
def test_lost_connection_rolls_back_the_transaction(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    one.fill("q", b"old")
    select(one)
    one.get("q")
    one.fill("q", *[b"new"] * 10)
    one.ack(1)
    one.drop()
    assert other.empty("q") == [b"old"]


@pytest.mark.rule("0-9-1/tx/covers-publish-ack#publish", "0-9-1/tx/covers-publish-ack#ack")
def test_a_rollback_undoes_publishes_and_acks(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"old")
    select(client)
    client.get("q")
    client.ack(1)
    client.fill("q", b"new")
    rollback(client)
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"old"]


@pytest.mark.rule("0-9-1/tx/not-deliveries")
def test_consumer_gets_deliveries_during_a_transaction(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"1")
    select(client)
    client.consume("q")
    assert client.bodies() == [b"1"]
    client.open_channel(2)
    client.publish(b"2", routing_key="q", channel=2)
    assert client.bodies() == [b"2"]


@pytest.mark.rule("0-9-1/tx/optional-class")
def test_tx_select_is_answered_with_select_ok(client: Client) -> None:
    client.send(m.TxSelect())
    client.expect(m.TxSelectOk)


@pytest.mark.rule("0-9-1/tx/per-channel")
def test_other_channels_are_not_transacted(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    select(client, channel=1)
    client.publish(b"transacted", routing_key="q", channel=1)
    client.publish(b"at once", routing_key="q", channel=2)
    assert client.empty("q", channel=2) == [b"at once"]
    client.fails(m.TxCommit(), 406, channel=2)


# --- select ------------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/tx.select/sets-mode")
def test_publish_after_tx_select_takes_effect_at_commit(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    one.fill("q", b"before")
    select(one)
    one.fill("q", b"after")
    assert other.count("q") == 1
    commit(one)
    assert other.count("q") == 2


@pytest.mark.rule("0-9-1/tx.select/repeatable#repeated")
def test_repeated_tx_select_keeps_pending_publishes(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"pending")
    select(client)
    assert client.count("q") == 0
    commit(client)
    assert client.empty("q") == [b"pending"]


@pytest.mark.rule("0-9-1/tx.select-ok/confirm")
def test_select_ok_has_no_fields(client: Client) -> None:
    client.send(m.TxSelect())
    assert client.take_frame().payload == b"\x00\x5a\x00\x0b"


@pytest.mark.needs("personality of choices")
def test_transaction_is_limited_to_10000_uncommitted_publishes_since_4_3() -> None:
    """RabbitMQ: measured on 4.3.6; 4.0.5 has no limit."""
    assert personality("rabbitmq-4.3").most_uncommitted_publishes == 10_000
    assert personality("rabbitmq-4.0").most_uncommitted_publishes == 0
    for most in (0, 3):
        client = Server(replace(personality("rabbitmq-4.3"), most_uncommitted_publishes=most)).client()
        client.declare("q")
        select(client)
        client.fill("q", b"1", b"2", b"3")
        if not most:
            client.fill("q", b"4")
            commit(client)
            continue
        commit(client)
        client.fill("q", b"1", b"2", b"3")
        client.publish(b"4", routing_key="q")
        close = client.expect_channel_close(406)
        assert "transaction has reached the maximum of 3 uncommitted publishes" in close.reply_text
        client.call(m.ChannelOpen(), m.ChannelOpenOk)
        assert client.count("q") == 3


# --- commit ------------------------------------------------------------------------------------------


@pytest.mark.rule("0-9/tx.commit/needs-select")
@pytest.mark.rule("0-9-1/tx.select/repeatable#first")
@pytest.mark.rule("0-9-1/tx.commit/transacted")
def test_committing_without_select_is_refused(client: Client) -> None:
    close = client.fails(m.TxCommit(), 406)
    assert close.reply_text == "PRECONDITION_FAILED - channel is not transactional"
    assert (close.class_id, close.method_id) == (90, 20)


@pytest.mark.rule("0-9-1/tx.commit/publishes")
def test_commit_publishes_in_order(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"1", b"2", b"3")
    commit(client)
    assert client.empty("q") == [b"1", b"2", b"3"]


@pytest.mark.rule("0-9-1/tx.commit/acks")
def test_acks_take_effect_at_commit(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"acknowledged", b"not")
    select(client)
    client.get("q")
    client.get("q")
    client.ack(1)
    commit(client)
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"not"]


@pytest.mark.rule("0-9-1/tx.commit/new-transaction")
def test_the_next_transaction_begins_with_the_commit(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"first")
    commit(client)
    client.fill("q", b"second")
    rollback(client)
    commit(client)
    assert client.empty("q") == [b"first"]


@pytest.mark.rule("0-9-1/tx.commit/empty")
def test_commit_of_empty_transaction_succeeds(client: Client) -> None:
    select(client)
    client.send(m.TxCommit())
    assert client.take_frame().payload == b"\x00\x5a\x00\x15"


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/tx.commit-ok/failure")
def test_a_commit_that_fails_closes_the_channel(server: Server) -> None:
    client = server.client()
    server.vhost.queues.declare(
        "q", QueueDeclaration(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    )
    select(client)
    client.fill("q", b"1", b"2")
    close = client.fails(m.TxCommit(), 406)
    assert close.reply_text == "PRECONDITION_FAILED - partial tx completion"
    assert (close.class_id, close.method_id) == (90, 20)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/tx.commit-ok/failure")
def test_transaction_with_publish_to_missing_exchange_is_not_committed(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"possible")
    client.publish(exchange="missing")
    close = client.fails(m.TxCommit(), 404)
    assert (close.class_id, close.method_id) == (60, 40)
    client.expect_nothing()
    client.open_channel()
    assert client.count("q") == 0


# --- rollback ----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9/tx.rollback/needs-select")
@pytest.mark.rule("0-9-1/tx.select/repeatable#first")
@pytest.mark.rule("0-9-1/tx.rollback/transacted")
def test_rolling_back_without_select_is_refused(client: Client) -> None:
    close = client.fails(m.TxRollback(), 406)
    assert close.reply_text == "PRECONDITION_FAILED - channel is not transactional"
    assert (close.class_id, close.method_id) == (90, 30)


@pytest.mark.needs("own broker")
@pytest.mark.rule("0-9-1/tx.rollback-ok/failure")
def test_rollback_that_fails_by_a_fault_closes_the_channel(server: Server) -> None:
    """A rollback of this broker does not fail by itself: see docs/decisions.md."""
    server = FaultServer(server.state.personality, protocol=server.protocol)
    client = server.client()
    client.declare("q")
    client.fill("q", b"kept")
    select(client)
    client.consume("q")
    client.ack(client.delivery().method.delivery_tag)
    client.fill("q", b"lost")
    server.faults.on("tx.rollback").close_channel(506, "the log cannot be read").once()
    close = client.fails(m.TxRollback(), 506)
    assert close.reply_text.endswith("the log cannot be read")
    assert (close.class_id, close.method_id) == (90, 30)
    client.expect_nothing()
    client.open_channel()
    assert client.empty("q") == [b"kept"], "the end of the channel has rolled back"
    select(client)
    rollback(client)


@pytest.mark.rule("0-9-1/tx.rollback/discards-publishes")
def test_rolled_back_publishes_are_discarded(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"1", b"2")
    client.send(m.TxRollback())
    assert client.take_frame().payload == b"\x00\x5a\x00\x1f"
    assert client.count("q") == 0
    commit(client)
    assert client.count("q") == 0


@pytest.mark.rule("0-9-1/tx.rollback/undoes-acks#outstanding", "0-9-1/tx.rollback/undoes-acks#again")
@pytest.mark.parametrize("how", [m.BasicAck, m.BasicReject, m.BasicNack], ids=lambda each: each.NAME)
@pytest.mark.protocols("0-9-1")
def test_rollback_makes_settled_delivery_unacknowledged_again_under_its_tag(
    client: Client, how: type[m.Method]
) -> None:
    client.declare("q")
    client.fill("q", b"1", b"2", b"3")
    select(client)
    for _ in range(3):
        client.get("q")
    client.send(how(delivery_tag=2))
    rollback(client)
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    client.ack(2, multiple=True)  # Tag order is as it was.
    commit(client)
    client.expect_nothing()
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"3"]


@pytest.mark.rule("0-9-1/tx.rollback/no-redelivery")
def test_rollback_does_not_redeliver_messages_until_recover(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"m")
    select(client)
    client.consume("q")
    assert client.bodies() == [b"m"]
    client.ack(1)
    rollback(client)
    client.expect_nothing()
    client.call(m.BasicRecover(requeue=True), m.BasicRecoverOk)
    again = client.delivery()
    assert (again.body, again.method.redelivered) == (b"m", True)


@pytest.mark.rule("0-9-1/tx.rollback/new-transaction")
def test_the_next_transaction_begins_with_the_rollback(client: Client) -> None:
    client.declare("q")
    select(client)
    client.fill("q", b"first")
    rollback(client)
    client.fill("q", b"second")
    assert client.count("q") == 0
    commit(client)
    assert client.empty("q") == [b"second"]


# --- when things are decided -------------------------------------------------------------------------


def test_a_publish_to_a_missing_exchange_fails_at_once(client: Client) -> None:
    select(client)
    client.publish(exchange="missing")
    close = client.expect_channel_close(404)
    assert close.reply_text == "NOT_FOUND - no exchange 'missing' in vhost '/'"


def test_message_in_transaction_is_routed_at_publish_and_not_at_commit(client: Client) -> None:
    client.declare("q")
    client.call(m.ExchangeDeclare(exchange="x", type="fanout"), m.ExchangeDeclareOk)
    client.bind("q", "x")
    select(client)
    client.publish(b"m", exchange="x")
    client.call(m.ExchangeDelete(exchange="x"), m.ExchangeDeleteOk)
    commit(client)
    got = client.get("q")
    assert got is not None
    assert (got.body, got.method.exchange) == (b"m", "x")


def test_queue_bound_after_publish_in_transaction_does_not_get_the_message(client: Client) -> None:
    client.declare("q")
    select(client)
    client.publish(b"m", exchange="amq.fanout")
    client.bind("q", "amq.fanout")
    commit(client)
    assert client.count("q") == 0


def test_message_to_queue_deleted_before_commit_is_lost_in_spec_personality(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    select(client)
    client.publish(b"m", routing_key="q", mandatory=True)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.declare("q")
    commit(client)
    assert client.count("q") == 0


def with_lost_queue(name: str, kind: str = "classic") -> tuple[Client, Client]:
    """A client whose transaction publishes to q, q2 and q, and another that has deleted q."""
    server = Server(name)
    client, other = server.client(), server.client()
    client.declare("q", durable=True, arguments={"x-queue-type": kind})
    client.declare("q2", durable=True)
    select(client)
    for body, key in ((b"1", "q"), (b"2", "q2")):
        client.publish(body, routing_key=key, mandatory=True)
    other.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
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
@pytest.mark.parametrize(
    ("virtual_host", "queue", "text"),
    [
        ("/", "q", '{not_found,{resource,<<"/">>,queue,<<"q">>}}'),
        ("/", "a" * 12, "{not_found,\n" + " " * 31 + '{resource,<<"/">>,queue,<<"aaaaaaaaaaaa">>}}'),
        pytest.param(
            "my-vhost",
            "a" * 27,
            "{not_found,\n"
            + " " * 31
            + '{resource,<<"my-vhost">>,queue,\n'
            + " " * 35
            + f'<<"{"a" * 27}">>}}}}',
            marks=pytest.mark.needs("settings"),
        ),
    ],
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
    client = server.client(virtual_host=virtual_host)
    client.declare(queue)
    select(client)
    client.publish(b"m", routing_key=queue)
    client.call(m.QueueDelete(queue=queue), m.QueueDeleteOk)
    close = client.ends(m.TxCommit(), 506)
    assert close.reply_text == f"RESOURCE_ERROR - failed to deliver message: {text}"


@pytest.mark.parametrize(
    "name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"]
)
def test_redeclared_queue_gets_no_message_published_before_deletion(name: str) -> None:
    client, other = with_lost_queue(name)  # Measured on 4.0.5 and 4.3.6.
    other.declare("q")
    client.fails(m.TxCommit(), 406)
    assert (other.count("q"), other.count("q2")) == (0, 1)


def test_an_unroutable_message_is_returned_before_commit_ok(client: Client) -> None:
    select(client)
    client.publish(b"m", routing_key="nowhere", mandatory=True)
    client.expect_nothing()
    client.send(m.TxCommit())
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (312, b"m")
    client.expect(m.TxCommitOk)


def test_unroutable_message_is_not_returned_after_rollback(client: Client) -> None:
    select(client)
    client.publish(b"m", routing_key="nowhere", mandatory=True)
    rollback(client)
    client.expect_nothing()


def test_immediate_message_needs_a_consumer_at_commit(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    select(client)
    client.publish(b"early", routing_key="q", immediate=True)
    client.send(m.TxCommit())
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (313, b"early")
    client.expect(m.TxCommitOk)
    client.publish(b"in time", routing_key="q", immediate=True)
    client.consume("q")
    client.send(m.TxCommit())
    assert client.delivery().body == b"in time"
    client.expect(m.TxCommitOk)


# --- settlements -------------------------------------------------------------------------------------


def test_requeue_takes_effect_at_commit(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"m")
    select(client)
    client.get("q")
    client.reject(1, requeue=True)
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    commit(client)
    assert client.count("q") == 1


def test_a_multiple_nack_requeues_in_order_at_commit(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q")
    client.fill("q", b"1", b"2")
    select(client)
    client.get("q")
    client.get("q")
    client.nack(0, multiple=True)
    commit(client)
    again = [client.get("q"), client.get("q")]
    assert [(each.body, each.method.delivery_tag, each.method.redelivered) for each in again if each] == [
        (b"1", 3, True),
        (b"2", 4, True),
    ]


def test_settlements_take_effect_at_commit_in_the_order_of_their_methods(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.fill("q", b"1", b"2", b"3")
    select(client)
    for _ in range(3):
        client.get("q")
    client.reject(3)
    client.ack(2)
    client.reject(1)
    assert client.count("dead") == 0
    commit(client)
    assert client.empty("dead") == [b"3", b"1"]


def test_uncommitted_ack_does_not_free_prefetch(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"1", b"2")
    select(client)
    client.qos(1)
    client.consume("q")
    assert client.bodies() == [b"1"]
    client.ack(1)
    client.expect_nothing()
    client.send(m.TxCommit())
    client.expect(m.TxCommitOk)
    assert client.delivery().body == b"2"


def test_closed_channel_rolls_back_its_transaction(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"1", b"2")
    select(client)
    client.get("q")
    client.get("q")
    client.ack(2)
    client.fill("q", b"new")
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"1", b"2"]


# --- and confirms ------------------------------------------------------------------------------------


def test_tx_select_on_confirming_channel_is_refused_with_406(client: Client) -> None:
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    close = client.fails(m.TxSelect(), 406)
    assert close.reply_text == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"
    assert (close.class_id, close.method_id) == (90, 10)


def test_confirm_select_on_transacted_channel_is_refused_with_406(client: Client) -> None:
    select(client)
    close = client.fails(m.ConfirmSelect(), 406)
    assert close.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    assert (close.class_id, close.method_id) == (85, 10)
