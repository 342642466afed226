"""What the documents say of a server as a whole: what clients see, in which order, and what is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9-1/server-model/visibility")
def test_declared_and_deleted_queue_is_visible_to_other_client_after_the_reply(server: Server) -> None:
    first, second = server.client(), server.client()
    first.declare("q")
    assert second.declare_ok("q", passive=True).message_count == 0
    first.perform(m.QueueDelete(queue="q"))
    second.fails(m.QueueDeclare(queue="q", passive=True), 404)


# --- closure ---------------------------------------------------------------------------------------
def _held_messages_return(server: Server, end: Callable[[Client], None]) -> None:
    """Three messages held by a channel that ends come back in order, marked redelivered."""
    holder, other = server.client(), server.client()
    holder.declare("q")
    for body in (b"1", b"2", b"3", b"4"):
        holder.publish(body, routing_key="q")
    holder.perform(m.BasicQos(prefetch_count=2)).consume("q")
    assert [holder.delivery().body, holder.delivery().body] == [b"1", b"2"]
    assert holder.fetch("q").body == b"3"
    assert other.count("q") == 1
    end(holder)
    again = [other.get("q") for _ in range(4)]
    assert [each and (each.body, each.method.redelivered) for each in again] == [
        (b"1", True),
        (b"2", True),
        (b"3", True),
        (b"4", False),
    ]


@pytest.mark.rule("0-9-1/server-model/closure-requeues#available")
@pytest.mark.rule("0-9-1/server-model/closure-requeues#redelivered")
def test_unacknowledged_messages_of_closed_channel_are_redelivered_in_order(server: Server) -> None:
    _held_messages_return(server, Client.close_channel)


def _channel_exception(client: Client) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.expect(m.ChannelClose)  # Closed from here on, whether close-ok comes or not.


def _connection_exception(client: Client) -> None:
    client.send(m.ChannelOpen()).expect(m.ConnectionClose, 0)


def _connection_close(client: Client) -> None:
    client.perform(m.ConnectionClose(reply_code=200), channel=0)


@rows(
    "end",
    pytest.param(
        Client.close_channel, marks=pytest.mark.rule("0-9-1/server-model/closure-conditions#handshake")
    ),
    pytest.param(
        _channel_exception, marks=pytest.mark.rule("0-9-1/server-model/closure-conditions#exception")
    ),
    pytest.param(
        _connection_exception,
        marks=pytest.mark.rule("0-9-1/server-model/closure-conditions#connection-exception"),
    ),
    pytest.param(
        _connection_close, marks=pytest.mark.rule("0-9-1/server-model/closure-conditions#handshake")
    ),
    pytest.param(Client.drop, marks=pytest.mark.rule("0-9-1/server-model/closure-conditions#socket")),
    ids=["channel.close", "channel exception", "connection exception", "connection.close", "lost socket"],
)
def test_unacknowledged_messages_return_in_each_of_five_ways_to_end_a_channel(
    server: Server, end: Callable[[Client], None]
) -> None:
    _held_messages_return(server, end)


# --- order of effects ------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/server-model/sync-effects-not-early")
def test_first_delivery_follows_consume_ok(client: Client) -> None:
    client.declare("q").publish(routing_key="q").send(m.BasicConsume(queue="q"))
    kinds = [type(frame.method) for frame in client.inbox if frame.method is not None]
    assert kinds == [m.BasicConsumeOk, m.BasicDeliver]


@pytest.mark.rule("0-9-1/server-model/sync-effects-not-early")
def test_a_message_routed_by_a_new_binding_follows_bind_ok(client: Client) -> None:
    client.declare("q").send(m.BasicConsume(queue="q", no_ack=True))
    client.send(m.QueueBind(queue="q", exchange="amq.fanout"))
    client.publish(exchange="amq.fanout").send(m.QueuePurge(queue="q"))
    kinds = [type(frame.method) for frame in client.inbox if frame.method is not None]
    assert kinds == [m.BasicConsumeOk, m.QueueBindOk, m.BasicDeliver, m.QueuePurgeOk]


@pytest.mark.rule("0-9-1/server-model/sync-effects-after-reply")
def test_consume_cancel_and_purge_have_taken_effect_when_they_are_answered(server: Server) -> None:
    client, other = server.client(), server.client()
    tag = client.declare("q").consume_ok("q", no_ack=True).consumer_tag
    other.publish(routing_key="q")
    assert client.bodies() == [b"body"]
    client.perform(m.BasicCancel(consumer_tag=tag))
    other.publish(routing_key="q")
    client.expect_nothing()
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1
    assert client.get("q") is None


@pytest.mark.rule("0-9-1/server-model/order-preserved")
def test_a_thousand_messages_keep_their_order(server: Server) -> None:
    publisher, consumer = server.client(), server.client()
    publisher.declare("q").bind("q", "amq.direct", "k")
    for number in range(500):
        publisher.publish(str(number).encode(), exchange="amq.direct", routing_key="k")
    consumer.consume("q")
    for number in range(500, 1000):
        publisher.publish(str(number).encode(), exchange="amq.direct", routing_key="k")
    got = [consumer.delivery() for _ in range(1000)]
    assert [int(each.body) for each in got] == list(range(1000))
    assert [each.method.delivery_tag for each in got] == list(range(1, 1001))


@pytest.mark.rule("0-9-1/server-model/methods-in-order")
def test_pipelined_methods_are_answered_in_order(client: Client) -> None:
    for number in range(10):
        client.send(m.QueueDeclare(queue=f"q{number}"))
        client.send(m.QueueBind(queue=f"q{number}", exchange="amq.fanout"))
    for number in range(10):
        assert client.expect(m.QueueDeclareOk).queue == f"q{number}"
        client.expect(m.QueueBindOk)
    client.expect_nothing()


# --- messages --------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/server-model/one-client-per-message")
def test_each_message_is_delivered_to_only_one_of_two_consumers(server: Server) -> None:
    first, second = server.client(), server.client()
    first.declare("q").consume("q")
    second.consume("q")
    for number in range(20):
        first.publish(str(number).encode(), routing_key="q")
    got = []
    for client in (first, second):
        while client.inbox:
            got.append(int(client.delivery().body))
    assert sorted(got) == list(range(20))


@pytest.mark.rule("0-9-1/server-model/round-robin")
def test_three_consumers_of_queue_take_turns(server: Server) -> None:
    client = server.client(channels=3).declare("q")
    for channel in (1, 2, 3):
        client.consume("q", f"c{channel}", channel=channel)
    for _ in range(9):
        client.publish(routing_key="q")
    turns = [frame.method.consumer_tag for frame in client.inbox if isinstance(frame.method, m.BasicDeliver)]
    assert turns == ["c1", "c2", "c3"] * 3


@pytest.mark.rule("0-9-1/server-model/copies-identical#identical")
@pytest.mark.rule("0-9-1/server-model/copies-identical#independent")
def test_copies_in_several_queues_are_equal_and_independent(client: Client) -> None:
    for queue in ("q1", "q2"):
        client.declare(queue).bind(queue, "amq.fanout")
    client.publish(b"copy", exchange="amq.fanout", message_id="7", headers={"a": [1, {"b": 2}]})
    first = client.fetch("q1")
    second = client.send(m.BasicReject(delivery_tag=first.method.delivery_tag, requeue=False)).fetch("q2")
    assert (second.body, second.properties) == (first.body, first.properties)
    assert not second.method.redelivered
    assert client.count("q1") == 0


@pytest.mark.rule("0-9-1/server-model/weak-fifo")
def test_second_reader_gets_requeued_message_out_of_order(server: Server) -> None:
    client, other = server.client(), server.client()
    client.declare("q")
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="q")
    one = client.get("q")
    two = other.get("q")
    assert one is not None
    assert two is not None
    assert (one.body, two.body) == (b"1", b"2")
    client.send(m.BasicReject(delivery_tag=1, requeue=True))
    assert other.fetch("q").body == b"1", "the second reader sees 1 after 2"


@pytest.mark.rule("0-9-1/server-model/bindings-die-with-queue")
def test_bindings_are_deleted_with_their_queue(client: Client) -> None:
    client.declare("q").bind("q", "amq.direct", "k")
    client.bind("q", "amq.topic", "#").perform(m.QueueDelete(queue="q"))
    client.declare("q").publish(exchange="amq.direct", routing_key="k")
    assert client.publish(exchange="amq.topic", routing_key="k").count("q") == 0


@pytest.mark.rule("0-9-1/server-model/immediate-handover#consumer")
@pytest.mark.rule("0-9-1/server-model/immediate-handover#stored")
def test_message_is_delivered_to_consumer_at_once_and_queued_without_consumer(client: Client) -> None:
    tag = client.declare("q").consume_ok("q").consumer_tag
    client.publish(routing_key="q").delivery()
    assert client.count("q") == 0
    assert client.perform(m.BasicCancel(consumer_tag=tag)).publish(routing_key="q").count("q") == 1


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/server-model/persistent-survives")
def test_persistent_messages_of_durable_queues_survive_a_restart(server: Server) -> None:
    client = server.client().declare("q", durable=True)
    for number in range(3):
        client.publish(str(number).encode(), routing_key="q", delivery_mode=2, headers={"n": number})
    client.fetch("q")
    again = server.restart().client()
    got = [again.get("q") for _ in range(3)]
    assert [each and (each.body, each.properties.headers) for each in got] == [
        (str(number).encode(), {"n": number}) for number in range(3)
    ]
    assert [each and each.method.redelivered for each in got] == [True, False, False]


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/server-model/non-persistent-may-vanish")
@pytest.mark.parametrize("mode", [1, None])
def test_non_persistent_messages_are_lost_in_a_restart(server: Server, mode: int | None) -> None:
    server.client().declare("q", durable=True).publish(routing_key="q", delivery_mode=mode).drop()
    server.state.restart()
    assert server.client().count("q") == 0


@pytest.mark.rule("0-9-1/server-model/discard-low-priority-first")
def test_full_queue_of_spec_personality_drops_message_of_lowest_priority(spec: Server) -> None:
    client = spec.client().declare("q", arguments={"x-max-length": 3})
    for priority in (5, 9, 1, 1, 9, 0, 7):
        client.publish(bytes((priority,)), routing_key="q", priority=priority)
    got = [client.get("q") for _ in range(3)]
    assert [each and each.body[0] for each in got] == [9, 9, 7]


@pytest.mark.deviates("0-9-1/server-model/discard-low-priority-first")
def test_full_queue_of_rabbitmq_drops_its_head_although_it_has_highest_priority(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", arguments={"x-max-length": 3, "x-max-priority": 9})
    for priority in (5, 9, 1, 1):
        client.publish(bytes((priority,)), routing_key="q", priority=priority)
    got = [client.get("q") for _ in range(3)]
    assert [each and each.body[0] for each in got] == [5, 1, 1]


@pytest.mark.rule("0-9-1/server-model/exchange-never-stores")
def test_message_published_before_binding_is_never_delivered(client: Client) -> None:
    assert client.declare("q").publish(exchange="amq.fanout").bind("q", "amq.fanout").get("q") is None


# --- names and limits ------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/server-model/names-case-sensitive#exchange")
@pytest.mark.rule("0-9-1/server-model/names-case-sensitive#queue")
@pytest.mark.parametrize(
    "method",
    [m.ExchangeDeclare(exchange="amq.Direct", passive=True), m.QueueDeclare(queue="Q", passive=True)],
    ids=["exchange", "queue"],
)
def test_exchange_and_queue_names_are_case_sensitive(client: Client, method: m.Method) -> None:
    client.declare("q").fails(method, 404)


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/server-model/names-conventions#server")
@pytest.mark.rule("0-9-1/server-model/names-conventions#applications")
def test_names_generated_by_server_begin_with_amq_and_clients_may_use_other_names(server: Server) -> None:
    client = server.client()
    assert all(name == "" or name.startswith("amq.") for name in server.vhost.exchanges)
    assert client.declare_ok("").queue.startswith("amq.")
    assert client.consume_ok("").consumer_tag.startswith("amq.")
    for name in ("orders", "a.b", "amqp", "AMQ.mine", "_", "0"):
        client.declare(name).declare_exchange(name)


@pytest.mark.rule("0-9-1/server-model/generous-limits")
def test_server_accepts_four_times_minimum_of_exchanges_queues_bindings_and_consumers(client: Client) -> None:
    for number in range(4 * 16):
        client.declare_exchange(f"x{number}", "fanout")
    for number in range(4 * 256):
        client.declare(f"q{number}")
    for number in range(4 * 16):
        client.bind("q0", f"x{number}").consume("q1", f"c{number}")
    assert client.publish(exchange="x63").count("q0") == 1
    assert client.declare_ok("q1", passive=True).consumer_count == 64
