"""The domains: what names, tags, flags and counts mean wherever they appear."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

extension = otherwise_in_0_9 = pytest.mark.protocols("0-9-1")


# --- delivery-tag, consumer-tag --------------------------------------------------------------------
@pytest.mark.rule("0-9-1/domain.delivery-tag/channel-local")
def test_ack_of_delivery_tag_on_another_channel_closes_that_channel(server: Server) -> None:
    client = server.client(channels=2).declare("q").publish(routing_key="q")
    tag = client.consume("q", channel=1).delivery(channel=1).method.delivery_tag
    client.fails(
        m.BasicAck(delivery_tag=tag), 406, channel=2, text=f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    )
    client.send(m.BasicAck(delivery_tag=tag), channel=1).declare("q", channel=1)


@pytest.mark.rule("0-9-1/domain.delivery-tag/non-zero#never")
def test_delivery_tags_count_from_one(server: Server) -> None:
    client = server.client(channels=2).declare("q")
    for _ in range(4):
        client.publish(routing_key="q")
    tags = []
    for channel, no_ack in ((1, False), (1, True), (2, False), (1, False)):
        got = client.fetch("q", channel=channel, no_ack=no_ack)
        tags.append((channel, got.method.delivery_tag))
    assert tags == [(1, 1), (1, 2), (2, 1), (1, 3)]


@pytest.mark.rule("0-9-1/domain.consumer-tag/scope")
def test_two_channels_can_use_the_same_consumer_tag(server: Server) -> None:
    client = server.client(channels=2)
    for channel in (1, 2):
        client.declare(f"q{channel}", channel=channel)
        assert client.consume_ok(f"q{channel}", "t", channel=channel).consumer_tag == "t"
    for channel in (1, 2):
        got = client.publish(str(channel).encode(), routing_key=f"q{channel}").delivery(channel=channel)
        assert (got.method.consumer_tag, got.body) == ("t", str(channel).encode())
    client.perform(m.BasicCancel(consumer_tag="t"), channel=1).publish(routing_key="q2").delivery(channel=2)


# --- redelivered -----------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/domain.redelivered/implementation#flag")
@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_unacked_message_of_ended_connection_is_redelivered_with_flag(server: Server, how: str) -> None:
    first = server.client().declare("q").publish(b"m", routing_key="q")
    assert not first.consume("q").delivery().method.redelivered
    if how == "closed":
        first.perform(m.ConnectionClose(reply_code=200), channel=0)
    else:
        first.drop()
    got = server.client().consume("q").delivery()
    assert (got.body, got.method.redelivered) == (b"m", True)


@pytest.mark.rule("0-9-1/domain.redelivered/meaning#same-client")
@pytest.mark.rule("0-9-1/domain.redelivered/meaning#other-client")
def test_redelivered_is_set_after_requeue_for_same_and_for_another_client(server: Server) -> None:
    first, second = server.client(channels=2), server.client()
    first.declare("q").publish(routing_key="q")
    assert not first.publish(routing_key="q").fetch("q").method.redelivered
    first.send(m.BasicReject(delivery_tag=1, requeue=True))
    assert first.fetch("q", channel=2).method.redelivered, "to the client that had it"
    first.send(m.BasicReject(delivery_tag=1, requeue=True), 2)
    second.consume("q")
    assert [second.delivery().method.redelivered for _ in range(2)] == [True, False]


# --- exchange-name, queue-name ---------------------------------------------------------------------
@pytest.mark.deviates("0-9-1/domain.exchange-name/length")
@pytest.mark.rule("0-9-1/domain.exchange-name/length")
@pytest.mark.parametrize(("personality", "longest"), [("spec", 127), ("rabbitmq-4.3", 255)])
def test_exchange_name_longer_than_127_is_refused_only_by_spec(personality: str, longest: int) -> None:
    client = Server(personality).client().declare_exchange("x" * longest)
    if longest < 255:
        client.fails(m.ExchangeDeclare(exchange="x" * (longest + 1), type="direct"), 406)


@pytest.mark.deviates("0-9-1/domain.exchange-name/pattern")
@pytest.mark.rule("0-9-1/domain.exchange-name/pattern")
@pytest.mark.parametrize(("personality", "legal"), [("spec", False), ("rabbitmq-4.3", True)])
@pytest.mark.parametrize("name", ["a b", "a/b", "(x)", "ß"])
def test_exchange_name_outside_the_pattern_is_refused_only_by_spec_personality(
    personality: str, legal: bool, name: str
) -> None:
    client = Server(personality).client().send(m.ExchangeDeclare(exchange=name, type="direct"))
    if legal:
        client.expect(m.ExchangeDeclareOk)
    else:
        client.expect_channel_close(406)


@pytest.mark.deviates("0-9-1/domain.queue-name/length")
@pytest.mark.rule("0-9-1/domain.queue-name/length")
@pytest.mark.parametrize(("personality", "longest"), [("spec", 127), ("rabbitmq-4.3", 255)])
def test_queue_name_longer_than_127_is_refused_only_by_spec(personality: str, longest: int) -> None:
    client = Server(personality).client()
    assert client.declare_ok("q" * longest).queue == "q" * longest
    if longest < 255:
        client.fails(m.QueueDeclare(queue="q" * (longest + 1)), 406)


@pytest.mark.deviates("0-9-1/domain.queue-name/pattern")
@pytest.mark.rule("0-9-1/domain.queue-name/pattern")
@pytest.mark.parametrize(("personality", "legal"), [("spec", False), ("rabbitmq-4.3", True)])
@pytest.mark.parametrize("name", ["a b", "a/b", "(x)", "ß"])
def test_queue_name_outside_pattern_is_refused_only_by_spec(personality: str, legal: bool, name: str) -> None:
    client = Server(personality).client().send(m.QueueDeclare(queue=name))
    if legal:
        assert client.expect(m.QueueDeclareOk).queue == name
    else:
        client.expect_channel_close(406)


@pytest.mark.rule("0-9-1/domain.queue-name/current-queue")
def test_a_blank_queue_name_is_the_queue_last_declared_on_the_channel(server: Server) -> None:
    client = server.client(channels=2).declare("elsewhere", channel=2)
    current = client.declare("before").declare_ok("").queue
    assert client.publish(b"1", routing_key=current).fetch("").body == b"1"
    client.bind("", "amq.fanout").publish(exchange="amq.fanout")
    assert client.call(m.QueuePurge(queue=""), m.QueuePurgeOk).message_count == 1
    tag = client.consume_ok("").consumer_tag
    assert client.publish(b"2", routing_key=current).delivery().body == b"2"
    client.perform(m.BasicCancel(consumer_tag=tag))
    client.perform(m.QueueUnbind(queue="", exchange="amq.fanout", routing_key=""))
    client.perform(m.QueueDelete(queue=""))
    text = f"NOT_FOUND - no queue '{current}' in vhost '/'"
    refused(client, m.BasicGet(queue=""), 404, text)


@pytest.mark.rule("0-9-1/domain.queue-name/no-current-queue")
@rows(
    "method",
    m.BasicGet(),
    m.BasicConsume(),
    m.QueueBind(exchange="amq.fanout"),
    m.QueueUnbind(exchange="amq.fanout"),
    m.QueuePurge(),
    m.QueueDelete(),
    ids=lambda method: method.NAME,
)
def test_a_blank_queue_name_needs_a_declared_queue(server: Server, method: Method) -> None:
    client = server.client(channels=2).declare("q", channel=2)
    refused(client, method, 404, "NOT_FOUND - no previously declared queue")


@pytest.mark.rule("0-9-1/domain.path/not-null#null", "0-9-1/domain.path/not-null#length")
@rows(
    "personality, path, code",
    ("spec", "v" * 128, 530),
    ("spec", "v" * 127, 402),
    ("spec", "", 402),
    ("rabbitmq-4.2", "v" * 128, 530),
    ("rabbitmq-4.2", "", 530),
)
def test_empty_or_too_long_virtual_host_path_is_refused(personality: str, path: str, code: int) -> None:
    client = Server(personality).tuned(channel_max=10, frame_max=131072)
    close = client.ends(m.ConnectionOpen(virtual_host=path), code, channel=0)
    assert (close.class_id, close.method_id) == (10, 40)


# --- no-ack, no-local, no-wait ---------------------------------------------------------------------
@pytest.mark.rule("0-9/domain.no-ack/auto-ack", "0-9/basic/09", "0-9/server-model/ack-removes#delivery")
@pytest.mark.rule("0-9-1/domain.no-ack/dequeue-on-delivery")
def test_no_ack_delivery_is_not_requeued_after_disconnect(server: Server) -> None:
    client = server.client().declare("q").publish(routing_key="q")
    client.publish(routing_key="q").consume("q", no_ack=True).delivery()
    client.drop()
    assert server.client().count("q") == 0


@pytest.mark.rule("0-9-1/domain.no-ack/ack-after-no-ack")
@pytest.mark.parametrize("method", [m.BasicAck, m.BasicReject], ids=lambda method: method.NAME)
def test_ack_or_reject_of_no_ack_delivery_is_refused(client: Client, method: type[m.BasicAck]) -> None:
    client.declare("q").consume("q", no_ack=True)
    tag = client.publish(routing_key="q").delivery().method.delivery_tag
    refused(client, method(delivery_tag=tag), 406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")


@pytest.mark.rule("0-9-1/domain.no-local/own-messages")
def test_no_local_consumer_receives_no_messages_of_its_own_connection(spec: Server) -> None:
    client, other = spec.client(channels=2), spec.client()
    client.declare("q").consume("q", channel=1, no_local=True)
    client.publish(b"own", routing_key="q", channel=1).publish(b"own too", routing_key="q", channel=2)
    other.publish(b"other's", routing_key="q")
    assert client.delivery().body == b"other's"
    client.expect_nothing()


@pytest.mark.deviates("0-9-1/domain.no-local/own-messages", "0-9-1/domain.no-local/other-consumers")
def test_rabbitmq_ignores_no_local(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").consume("q", no_local=True)
    assert client.publish(b"own", routing_key="q").delivery().body == b"own"


@pytest.mark.rule("0-9-1/domain.no-local/other-consumers")
def test_message_withheld_by_no_local_is_delivered_to_another_connection(spec: Server) -> None:
    client, other = spec.client(), spec.client()
    assert client.declare("q").consume("q", no_local=True).publish(b"own", routing_key="q").count("q") == 1
    assert other.consume("q", no_local=True).delivery().body == b"own"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/domain.no-wait/no-reply")
@rows(
    "method",
    m.QueueDeclare(queue="new", no_wait=True),
    m.QueueBind(queue="q", exchange="amq.fanout", no_wait=True),
    m.QueuePurge(queue="q", no_wait=True),
    m.QueueDelete(queue="q", no_wait=True),
    m.ExchangeDeclare(exchange="new", type="fanout", no_wait=True),
    m.ExchangeDelete(exchange="x", no_wait=True),
    pytest.param(m.ExchangeBind(destination="x", source="amq.fanout", no_wait=True), marks=extension),
    pytest.param(m.ExchangeUnbind(destination="x", source="amq.direct", no_wait=True), marks=extension),
    m.BasicConsume(queue="q", consumer_tag="new", no_wait=True),
    m.BasicCancel(consumer_tag="t", no_wait=True),
    pytest.param(m.ConfirmSelect(no_wait=True), marks=extension),
    ids=lambda method: method.NAME,
)
def test_methods_with_no_wait_are_not_answered(client: Client, method: Method) -> None:
    client.declare("q").consume("q", "t").declare_exchange("x", "fanout")
    if method.NAME == "exchange.unbind":
        client.perform(m.ExchangeBind(destination="x", source="amq.direct"))
    client.send(method).perform(m.QueueDeclare(queue="next")).expect_nothing()


@pytest.mark.rule("0-9-1/domain.no-wait/error-still-raised#channel")
@rows(
    "method, code",
    pytest.param(m.QueueBind(queue="q", exchange="missing", no_wait=True), 404, marks=otherwise_in_0_9),
    pytest.param(m.QueueDeclare(queue="q", durable=True, no_wait=True), 406, marks=otherwise_in_0_9),
    (m.QueuePurge(queue="missing", no_wait=True), 404),
    (m.QueueDelete(queue="q", if_empty=True, no_wait=True), 406),
    pytest.param(
        m.ExchangeDeclare(exchange="amq.new", type="fanout", no_wait=True), 403, marks=otherwise_in_0_9
    ),
    (m.ExchangeDelete(exchange="amq.fanout", no_wait=True), 403),
    (m.BasicConsume(queue="missing", no_wait=True), 404),
    ids=lambda value: getattr(value, "NAME", value),
)
def test_errors_of_methods_with_no_wait_close_the_channel(client: Client, method: Method, code: int) -> None:
    client.declare("q").publish(routing_key="q").fails(method, code)


# --- message-count ---------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/domain.no-wait/error-still-raised#connection")
def test_connection_errors_of_methods_with_no_wait_close_the_connection(client: Client) -> None:
    client.declare("q")
    client.consume("q", "t").ends(m.BasicConsume(queue="q", consumer_tag="t", no_wait=True), 530)


@pytest.mark.rule("0-9/queue.declare-ok/message-count", "0-9-1/domain.message-count/ready-only")
def test_message_count_excludes_unacknowledged_messages(client: Client) -> None:
    client.declare("q")
    for _ in range(3):
        client.publish(routing_key="q")
    assert client.fetch("q").method.message_count == 2
    assert client.count("q") == 2
    assert client.send(m.BasicReject(delivery_tag=1, requeue=True)).count("q") == 3


@pytest.mark.rule("0-9-1/domain.message-count/uncommitted-excluded")
def test_message_count_excludes_uncommitted_messages(server: Server) -> None:
    client = server.client(channels=2).declare("q", channel=2).perform(m.TxSelect())
    assert client.publish(routing_key="q").count("q", channel=2) == 0
    assert client.perform(m.TxCommit()).count("q", channel=2) == 1


@pytest.mark.rule("0-9-1/domain.message-count/new-queue-zero")
def test_new_queue_has_no_messages_and_no_consumers(client: Client) -> None:
    declared = client.publish(routing_key="q").declare_ok("q")
    assert (declared.message_count, declared.consumer_count) == (0, 0)


# --- reserved --------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/domain.reserved/reserved-ignored")
def test_reserved_arguments_are_ignored(server: Server) -> None:
    client = server.tuned(channel_max=10, frame_max=131072)
    client.perform(m.ConnectionOpen(virtual_host="/", reserved_1="x", reserved_2=True), channel=0)
    client.perform(m.ChannelOpen(reserved_1="x"))
    client.declare("q", reserved_1=77).bind("q", "amq.fanout", reserved_1=77)
    client.send(m.BasicPublish(reserved_1=77, routing_key="q"))
    client.send_frame(2, 1, bytes((0, 60, 0, 0)) + bytes(8) + b"\x00\x04\x01c")  # cluster-id
    assert client.count("q") == 1
    client.send(m.BasicGet(reserved_1=77, queue="q")).expect_content(m.BasicGetOk)
    client.consume("q", reserved_1=77)
    client.perform(m.QueueUnbind(reserved_1=77, queue="q", exchange="amq.fanout"))
    client.perform(m.QueuePurge(reserved_1=77, queue="q"))
    client.perform(m.QueueDelete(reserved_1=77, queue="q"))
    client.declare_exchange("x", "fanout", reserved_1=77)
    client.perform(m.ExchangeDelete(reserved_1=77, exchange="x"))
