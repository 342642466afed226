from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.needs("restart", "inspection")
@pytest.mark.rule("0-9-1/basic/01", "0-9-1/basic/property-delivery-mode#non-persistent")
@pytest.mark.rule("0-9-1/basic/property-delivery-mode#persistent")
def test_only_persistent_messages_survive_a_restart(server: Server) -> None:
    client = server.client().declare("q", durable=True).publish(b"without a mode", routing_key="q")
    client.publish(b"transient", routing_key="q", delivery_mode=1)
    client.publish(b"persistent", routing_key="q", delivery_mode=2)
    server.restart()
    assert server.client().empty("q") == [b"persistent"]


@pytest.mark.needs("restart", "inspection")
@pytest.mark.rule("0-9-1/basic/01")
def test_restart_deletes_transient_queue_with_its_persistent_message(server: Server) -> None:
    client = server.client().declare("q").publish(b"persistent", routing_key="q", delivery_mode=2)
    client = server.restart().client()
    client.fails(m.QueueDeclare(queue="q", passive=True), 404)


@pytest.mark.rule("0-9-1/basic/02")
def test_all_of_5000_persistent_messages_are_delivered_in_order(client: Client) -> None:
    client.declare("q", durable=True)
    numbers = [b"%d" % number for number in range(5_000)]
    assert client.fill("q", *numbers, delivery_mode=2).count("q") == len(numbers)
    assert client.consume("q", no_ack=True).bodies() == numbers


@pytest.mark.rule("0-9-1/basic/05")
def test_spec_personality_drops_lowest_priority_messages_beyond_max_length(spec: Server) -> None:
    client = spec.client()
    spec.vhost.queues.declare("q", QueueDeclaration(arguments={"x-max-length": 2}))
    for priority in (5, 0, 9, 3):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"9", b"5"]


@pytest.mark.deviates("0-9-1/basic/05")
def test_rabbitmq_drops_messages_at_the_head_of_the_queue_beyond_max_length(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", arguments={"x-max-length": 2, "x-max-priority": 9})
    for priority in (5, 0, 9, 3):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"3", b"0"]


# --- priorities --------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/06")
@pytest.mark.parametrize(("low", "high"), [(0, 9), (4, 5), (0, 5), (4, 9)])
def test_spec_delivers_messages_of_higher_priority_first(spec: Server, low: int, high: int) -> None:
    client = spec.client().declare("q").fill("q", b"1", b"2", priority=low)
    assert client.fill("q", b"urgent", priority=high).empty("q") == [b"urgent", b"1", b"2"]


@pytest.mark.deviates("0-9-1/basic/06")
def test_rabbitmq_orders_by_priority_only_in_queue_with_x_max_priority(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("plain").declare("with", arguments={"x-max-priority": 9})
    for queue in ("plain", "with"):
        client.fill(queue, b"1", b"2", priority=0).fill(queue, b"urgent", priority=9)
    assert client.empty("plain") == [b"1", b"2", b"urgent"]
    assert client.empty("with") == [b"urgent", b"1", b"2"]


def declare_with_priorities(server: Server, client: Client) -> None:
    """A queue with priorities 0 to 9, which every queue has by the documents."""
    rabbitmq = server.state.personality.name.startswith("rabbitmq")
    client.declare("q", arguments={"x-max-priority": 9} if rabbitmq else {})


@pytest.mark.rule("0-9-1/basic/07")
def test_messages_of_ten_priorities_are_delivered_in_descending_order(server: Server) -> None:
    client = server.client()
    declare_with_priorities(server, client)
    for priority in range(10):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"9", b"8", b"7", b"6", b"5", b"4", b"3", b"2", b"1", b"0"]


@pytest.mark.rule("0-9-1/basic/08")
def test_messages_of_equal_priority_keep_order_with_mixed_persistence(server: Server) -> None:
    client = server.client()
    declare_with_priorities(server, client)
    for number in range(6):
        for priority in (0, 4):
            body = b"%d-%d" % (priority, number)
            client.publish(body, routing_key="q", priority=priority, delivery_mode=1 + number % 2)
    assert client.empty("q") == [b"%d-%d" % (priority, n) for priority in (4, 0) for n in range(6)]


@pytest.mark.rule("0-9-1/basic/property-priority#range", "0-9-1/basic/property-priority#absence")
def test_message_without_priority_has_priority_zero(server: Server) -> None:
    client = server.client()
    declare_with_priorities(server, client)
    client.publish(b"one", routing_key="q", priority=1).publish(b"none", routing_key="q")
    client.publish(b"zero", routing_key="q", priority=0).publish(b"nine", routing_key="q", priority=9)
    assert client.empty("q") == [b"nine", b"one", b"none", b"zero"]


@pytest.mark.rule("0-9-1/basic/property-priority#range")
def test_message_priority_above_x_max_priority_counts_as_the_maximum(server: Server) -> None:
    client = server.client()
    declare_with_priorities(server, client)
    client.publish(b"nine", routing_key="q", priority=9).publish(b"beyond", routing_key="q", priority=255)
    client.publish(b"eight", routing_key="q", priority=8)
    assert client.empty("q") == [b"nine", b"beyond", b"eight"]


# --- acknowledgement ---------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/09")
def test_message_delivered_with_no_ack_is_not_requeued_on_disconnect(server: Server) -> None:
    client = server.client().declare("q").fill("q", b"1", b"2", b"3")
    assert client.consume("q", no_ack=True).bodies() == [b"1", b"2", b"3"]
    client.drop()
    assert server.client().count("q") == 0


@pytest.mark.rule("0-9/basic/10", "0-9/server-model/ack-removes#acknowledgement", "0-9-1/basic/10")
def test_unacknowledged_messages_are_redelivered_after_disconnect(server: Server) -> None:
    client = server.client().declare("q").fill("q", b"1", b"2", b"3", b"4")
    assert client.consume("q").bodies() == [b"1", b"2", b"3", b"4"]
    client.ack(1).ack(3).drop()
    other = server.client().consume("q")
    again = [other.delivery(), other.delivery()]
    other.expect_nothing()
    assert [(each.body, each.method.redelivered) for each in again] == [(b"2", True), (b"4", True)]


# --- the methods of the class ------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/grammar#get", "0-9-1/basic/grammar#ok", "0-9-1/basic/grammar#silent")
def test_each_basic_method_gets_its_matching_answer_or_no_answer(client: Client) -> None:
    client.declare("q").perform(m.BasicQos(prefetch_count=10)).call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    for body in (b"1", b"2", b"3", b"4"):
        client.publish(body, routing_key="q").expect_nothing()
    assert client.send(m.BasicGet(queue="q")).expect_content(m.BasicGetOk).body == b"1"
    client.ack(1).expect_nothing()
    assert client.perform(m.BasicConsume(queue="q", consumer_tag="t")).bodies() == [b"2", b"3", b"4"]
    client.perform(m.BasicCancel(consumer_tag="t")).reject(2).expect_nothing()
    client.perform(m.BasicRecover(requeue=True)).expect_nothing()
    client.send(m.BasicRecoverAsync(requeue=True)).expect_nothing()
    assert client.count("q") == 2


@rows(
    "method",
    m.BasicQosOk(),
    m.BasicConsumeOk(consumer_tag="t"),
    m.BasicCancelOk(consumer_tag="t"),
    m.BasicGetEmpty(),
    m.BasicRecoverOk(),
    m.BasicDeliver(consumer_tag="t"),
    m.BasicReturn(),
    m.BasicGetOk(),
    ids=lambda method: method.NAME,
)
def test_basic_method_of_broker_sent_by_client_closes_connection(client: Client, method: m.Method) -> None:
    client.send(method)
    if method.HAS_CONTENT and not client.explained_to:
        client.expect_nothing()  # RabbitMQ waits for the content (measured).
        client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000002 0000")).send_frame(3, 1, b"no")
    if isinstance(method, m.BasicCancelOk) and not client.explained_to:
        client.expect_connection_close(541)  # Since RabbitMQ 4.3 (measured).
        return
    client.expect_connection_close(503, at=(method.CLASS_ID, method.METHOD_ID))


# --- slowing publishers ------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/03")
def test_spec_personality_pauses_clients_with_channel_flow_while_blocked(spec: Server) -> None:
    client = spec.client()
    spec.state.block("low on memory")
    assert client.expect(m.ChannelFlow).active is False
    spec.state.unblock()
    assert client.expect(m.ChannelFlow).active is True


@pytest.mark.needs("settings")
@pytest.mark.deviates("0-9-1/basic/03", "0-9-1/channel.flow/expected-behaviour")
def test_rabbitmq_sends_no_channel_flow_when_blocked(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    rabbitmq.state.block("low on memory")
    client.publish(routing_key="q")
    rabbitmq.state.unblock()
    client.expect_nothing()
