"""Class queue of 0-9, where its text or its clients want something else than 0-9-1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


# --- declare -----------------------------------------------------------------------------------------
@rule("0-9/domain.queue-name/characters")
@pytest.mark.parametrize("name", ["q_1", "A", "x" * 127])
def test_names_of_queues_have_digits_letters_and_underscores(client: Client, name: str) -> None:
    assert client.declare_ok(name).queue == name


@rule("0-9/queue.declare/queue-reserved-prefix")
@pytest.mark.letter
def test_reserved_names_are_refused(client: Client) -> None:
    client.ends(m.QueueDeclare(queue="amq.mine"), 530)


@rule("0-9/queue.declare/durable-pre-existence")
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.letter
def test_redeclare_of_a_queue_ignores_durable(server: Server, client: Client, durable: bool) -> None:
    client.declare("q", durable=durable).declare("q", durable=not durable)
    assert server.vhost.queues["q"].durable is durable


@rule("0-9/queue.declare/exclusive-02", "0-9/queue.declare/exclusive-consume")
@pytest.mark.deviates("0-9/queue.declare/exclusive-02")
@pytest.mark.parametrize("exclusive", [False, True])
def test_declare_of_exclusive_queue_of_another_connection_is_refused(server: Server, exclusive: bool) -> None:
    """It closes the connection, but the channel where clients in the field expect that."""
    owner, other = server.client(), server.client()
    owner.declare("q", exclusive=True)
    other.send(m.QueueDeclare(queue="q", exclusive=exclusive))
    if server.is_spec:
        other.expect_connection_close(504)
    else:
        other.expect_channel_close(405)


@rule("0-9/queue.declare/exclusive-consume")
def test_an_exclusive_queue_is_consumed_from_by_its_own_connection(connect: Callable[..., Client]) -> None:
    owner, other = connect(), connect()
    owner.declare("q", exclusive=True).consume("q")
    other.fails(m.BasicConsume(queue="q"), 405)


@rule("0-9/queue.declare/exclusive-implies-auto-delete")
def test_spec_exclusive_queue_is_deleted_with_its_last_consumer(spec: Server) -> None:
    client = spec.client()
    tag = client.declare("q", exclusive=True).consume_ok("q").consumer_tag
    client.perform(m.BasicCancel(consumer_tag=tag)).fails(m.QueueDeclare(queue="q", passive=True), 404)


@pytest.mark.deviates("0-9/queue.declare/exclusive-implies-auto-delete")
def test_an_exclusive_queue_goes_with_its_connection(lenient: Server) -> None:
    """Clients in the field consume from one again and again."""
    client, other = lenient.client(), lenient.client()
    tag = client.declare("q", exclusive=True).consume_ok("q").consumer_tag
    client.perform(m.BasicCancel(consumer_tag=tag)).consume("q").drop()
    other.fails(m.QueueDeclare(queue="q", passive=True), 404)


@pytest.mark.letter
def test_the_owner_may_declare_its_exclusive_queue_without_the_flag(client: Client) -> None:
    assert client.declare("q", exclusive=True).fill("q", b"1").declare_ok("q").message_count == 1


# --- bind, unbind ------------------------------------------------------------------------------------
@rule("0-9/queue.bind/failure", "0-9/queue.bind/queue-queue-existence")
@rule("0-9/queue.bind/exchange-exchange-existence")
@pytest.mark.deviates("0-9/queue.bind/failure")
@pytest.mark.parametrize(
    "method",
    [m.QueueBind(queue="q", exchange="missing"), m.QueueBind(queue="missing", exchange="amq.direct")],
    ids=["exchange", "queue"],
)
def test_bind_of_a_missing_queue_or_exchange_is_refused_with_404(server: Server, method: m.QueueBind) -> None:
    """It closes the connection, but the channel where clients in the field expect that."""
    client = server.client().declare("q").send(method)
    if server.is_spec:
        client.expect_connection_close(404)
    else:
        client.expect_channel_close(404)


@rule("0-9/queue.bind/transient-exchange")
def test_a_durable_queue_is_not_bound_to_a_transient_exchange_to_the_letter(spec: Server) -> None:
    client = spec.client().declare_exchange("x")
    client.declare("transient").bind("transient", "x")
    client.declare("durable", durable=True).ends(m.QueueBind(queue="durable", exchange="x"), 530)


@rule("0-9/queue.bind/internal-exchange")
@pytest.mark.letter
def test_bind_to_an_internal_exchange_closes_the_connection_with_530(client: Client) -> None:
    client.declare_exchange("x", internal=True).declare("q").ends(m.QueueBind(queue="q", exchange="x"), 530)


@pytest.mark.letter
def test_the_default_exchange_may_be_bound_to(client: Client) -> None:
    client.declare("q").bind("q", "", "k").publish(routing_key="k")
    assert client.publish(routing_key="q").empty("q") == [b"body", b"body"]
    client.perform(m.QueueUnbind(queue="q", exchange="", routing_key="k"))
    assert client.publish(routing_key="k").empty("q") == []


@rows(
    "queue, exchange",
    pytest.param("missing", "amq.direct", marks=rule("0-9/queue.unbind/queue-02")),
    pytest.param("q", "missing", marks=rule("0-9/queue.unbind/exchange-03")),
)
@pytest.mark.letter
def test_unbind_of_missing_queue_or_exchange_is_refused(client: Client, queue: str, exchange: str) -> None:
    client.declare("q").fails(m.QueueUnbind(queue=queue, exchange=exchange), 404)


# --- blank names -------------------------------------------------------------------------------------
@rows(
    "method",
    pytest.param(
        m.QueueBind(exchange="amq.direct", routing_key="k"), marks=rule("0-9/queue.bind/queue-empty-queue")
    ),
    pytest.param(m.QueuePurge(), marks=rule("0-9/queue.purge/queue-01")),
    pytest.param(m.QueueDelete(), marks=rule("0-9/queue.delete/queue-01")),
    pytest.param(m.BasicConsume(), marks=rule("0-9/basic.consume/queue-01")),
    pytest.param(m.BasicGet(), marks=rule("0-9/basic.get/queue-01")),
    ids=lambda method: method.NAME,
)
@pytest.mark.letter
def test_blank_queue_name_without_declare_on_channel_closes_connection_with_530(
    server: Server, method: m.QueuePurge
) -> None:
    server.client(channels=2).declare("q", channel=2).ends(method, 530)


# --- purge, delete -----------------------------------------------------------------------------------
@rule("0-9/queue.purge/01", "0-9/queue.purge/no-undo")
def test_purged_durable_messages_are_absent_after_restart(server: Server, client: Client) -> None:
    client.declare("q", durable=True).fill("q", b"1", b"2", delivery_mode=2)
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 2
    assert client.get("q") is None
    server.restart()
    assert server.client().get("q") is None


@rule("0-9/queue.purge/02")
def test_purge_leaves_unacknowledged_messages_of_a_transaction(client: Client) -> None:
    client.declare("q").perform(m.TxSelect())
    assert client.fill("q", b"1").perform(m.TxCommit()).get("q") is not None
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 0
    assert client.close_channel().open_channel().empty("q") == [b"1"]


@rows(
    "method",
    pytest.param(m.QueuePurge(queue="missing"), marks=rule("0-9/queue.purge/queue-02")),
    pytest.param(m.QueueDelete(queue="missing"), marks=rule("0-9/queue.delete/queue-02")),
    pytest.param(m.QueueDelete(queue="missing", if_empty=True), marks=rule("0-9/queue.delete/queue-02")),
    ids=["purge", "delete", "if-empty"],
)
@pytest.mark.letter
def test_purge_or_delete_of_missing_queue_fails_with_404(client: Client, method: m.QueueDelete) -> None:
    client.fails(method, 404)


# --- bindings that are not there ---------------------------------------------------------------------
@rule("0-9/queue.unbind/01")
def test_spec_unbind_of_a_missing_binding_closes_the_connection_with_404(spec: Server) -> None:
    client = spec.client()
    client.declare("q").ends(m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="k"), 404)


# --- limits ------------------------------------------------------------------------------------------
@rows(
    "consume, reply",
    pytest.param(m.FileConsume, m.FileConsumeOk, marks=rule("0-9/file.consume/01")),
    pytest.param(m.StreamConsume, m.StreamConsumeOk, marks=rule("0-9/stream.consume/01")),
    ids=["file", "stream"],
)
def test_a_queue_has_many_consumers_of_any_class(
    client: Client, consume: type[m.FileConsume], reply: type[m.FileConsumeOk]
) -> None:
    client.declare("q")
    tags = {client.call(consume(queue="q"), reply).consumer_tag for _ in range(20)}
    assert len(tags) == 20
    assert client.declare_ok("q").consumer_count == 20


# --- queues of other types, which RabbitMQ has -------------------------------------------------------
@pytest.mark.parametrize("kind", ["stream", "quorum"])
@pytest.mark.parametrize("for_connection", [False, pytest.param(True, marks=pytest.mark.letter)])
def test_basic_prefetch_limits_deliveries_from_stream_and_quorum_queues(
    client: Client, kind: str, for_connection: bool
) -> None:
    client.declare("q", durable=True, arguments={"x-queue-type": kind})
    client.fill("q", b"1", b"2", b"3").qos(2, global_=for_connection)
    options = {"x-stream-offset": "first"} if kind == "stream" else {}
    assert client.perform(m.BasicConsume(queue="q", filter=options)).bodies() == [b"1", b"2"]
    assert client.ack(1).bodies() == [b"3"]


def test_quorum_queue_accepts_consumers_of_file_and_message_with_prefetch(client: Client) -> None:
    client.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    client.perform(m.FileQos(prefetch_count=1)).perform(m.FileConsume(queue="q"))
    requester = Requester(client)
    requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    requester.consume("q")


# --- rights ------------------------------------------------------------------------------------------
@rows(
    "method, needed, kind, name",
    (m.QueueDeclare(queue="new"), "configure", "queue", "new"),
    (m.QueueDelete(queue="q"), "configure", "queue", "q"),
    (m.QueuePurge(queue="q"), "read", "queue", "q"),
    (m.QueueBind(queue="q", exchange="x", routing_key="k"), "write", "queue", "q"),
    (m.QueueUnbind(queue="q", exchange="x", routing_key="k"), "write", "queue", "q"),
    (m.BasicGet(queue="q"), "read", "queue", "q"),
    (m.BasicConsume(queue="q"), "read", "queue", "q"),
    (m.FileConsume(queue="q"), "read", "queue", "q"),
    (m.StreamConsume(queue="q"), "read", "queue", "q"),
    (m.ExchangeDeclare(exchange="new", type="direct"), "configure", "exchange", "new"),
    (m.ExchangeDelete(exchange="x"), "configure", "exchange", "x"),
    ids=lambda each: getattr(each, "NAME", None),
)
def test_refusal_for_missing_permission_names_the_queue_or_exchange(
    server: Server, method: m.Method, needed: str, kind: str, name: str
) -> None:
    server.client().declare("q").declare_exchange("x")
    others = {"configure": ".*", "write": ".*", "read": ".*"} | {needed: "^$"}
    server.state.access.add(User("ann", "secret", (), {"/": Permission(**others)}))
    client = server.client(user="ann", password="secret").send(method)
    assert f"access to {kind} '{name}' in vhost '/'" in client.expect_channel_close(403).reply_text
