"""Class queue: bind and unbind."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    QueueBind as Bind,
    QueueUnbind as Unbind,
    QueueUnbindOk as UnbindOk,
)

NO_QUEUE = "NOT_FOUND - no queue 'missing' in vhost '/'"
NO_EXCHANGE = "NOT_FOUND - no exchange 'missing' in vhost '/'"
NO_CURRENT_QUEUE = "NOT_FOUND - no previously declared queue"


def arrives(client: Client, exchange: str, routing_key: str = "", **properties: Any) -> int:
    """Publishes one message and counts how many came into queue "q", which is empty again afterwards."""
    client.publish(exchange=exchange, routing_key=routing_key, **properties)
    return client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count


@pytest.fixture
def client(server: Server) -> Client:
    """With a queue "q"."""
    return server.client(channels=0).open_channel(2).declare("q", channel=2).open_channel(1)


# --- bind ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.bind/duplicates#accepted", "0-9-1/queue.bind/duplicates#nothing")
def test_binding_made_twice_routes_once_and_is_removed_by_one_unbind(client: Client) -> None:
    client.bind("q", "amq.direct", "k").bind("q", "amq.direct", "k")
    assert arrives(client, "amq.direct", "k") == 1
    client.perform(Unbind(queue="q", exchange="amq.direct", routing_key="k"))
    assert arrives(client, "amq.direct", "k") == 0


@pytest.mark.rule("0-9/queue.bind/once-per-queue", "0-9-1/queue.bind/unique")
def test_message_matching_several_bindings_of_queue_arrives_once(client: Client) -> None:
    for pattern in ("a.*", "*.b", "#"):
        client.bind("q", "amq.topic", pattern)
    assert arrives(client, "amq.topic", "a.b") == 1


@pytest.mark.rule("0-9-1/queue.bind/unique")
def test_message_routed_by_two_exchanges_arrives_once_in_queue(client: Client) -> None:
    client.declare_exchange("x", "fanout").perform(m.ExchangeBind(source="x", destination="amq.fanout"))
    for exchange in ("x", "amq.fanout"):
        client.bind("q", exchange)
    assert arrives(client, "x") == 1


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/queue.bind/transient-exchange")
@pytest.mark.parametrize("name", ["rabbitmq-4.0", "spec"])
def test_a_durable_queue_may_be_bound_to_a_transient_exchange(name: str) -> None:
    server = Server(name)
    client = server.client()
    client.declare("q", durable=True).declare_exchange("x", "fanout").bind("q", "x")
    assert arrives(client, "x") == 1
    again = server.restart().client().declare_exchange("x", "fanout")
    assert arrives(again, "x") == 0, "the binding went with the exchange"


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9/queue.bind/durable-exchange", "0-9-1/queue.bind/durable-exchange")
def test_bindings_between_durable_queue_and_durable_exchange_survive_a_restart(server: Server) -> None:
    client = server.client().declare("q", durable=True)
    client.declare("transient").declare_exchange("x", "topic", durable=True)
    client.bind("q", "x", "a.*").bind("transient", "x", "b.*")
    client.bind("q", "amq.match", arguments={"x-match": "all", "n": 1}).drop()
    server.state.restart()
    again = server.client()
    assert arrives(again, "x", "a.b") == 1
    assert arrives(again, "x", "b.b") == 0
    assert arrives(again, "amq.match", headers={"n": 1}) == 1
    again.publish(exchange="x", routing_key="b.b", mandatory=True).expect_content(m.BasicReturn)


@pytest.mark.rule("0-9-1/queue.bind/binding-count")
def test_a_queue_may_be_bound_to_twenty_exchanges(client: Client) -> None:
    for number in range(20):
        client.declare_exchange(f"x{number}", "fanout").bind("q", f"x{number}")
    assert sum(arrives(client, f"x{number}") for number in range(20)) == 20


@pytest.mark.rule("0-9-1/queue.bind/queue-queue-known#current", "0-9-1/queue.bind/queue-queue-known#none")
def test_bind_without_queue_name_binds_current_queue_and_fails_without_one(client: Client) -> None:
    refused(client, Bind(queue="", exchange="amq.direct", routing_key="k"), 404, NO_CURRENT_QUEUE)
    client.declare("q").bind("", "amq.direct", "k")
    assert arrives(client, "amq.direct", "k") == 1


@pytest.mark.rule("0-9-1/queue.bind/queue-must-exist")
def test_binding_a_missing_queue_is_refused(client: Client) -> None:
    refused(client, Bind(queue="missing", exchange="amq.direct"), 404, NO_QUEUE)


@pytest.mark.rule("0-9-1/queue.bind/exchange-exchange-existence")
@pytest.mark.protocols("0-9-1")
def test_binding_to_a_missing_exchange_is_refused(client: Client) -> None:
    refused(client, Bind(queue="q", exchange="missing"), 404, NO_EXCHANGE)


def test_missing_exchange_is_named_when_queue_of_bind_is_missing_as_well(client: Client) -> None:
    # RabbitMQ: measured.
    refused(client, Bind(queue="nothing", exchange="missing"), 404, NO_EXCHANGE)


@pytest.mark.rule("0-9-1/exchange/default-access#bind", "0-9-1/queue.bind/exchange-default-exchange")
def test_a_blank_exchange_in_bind_is_the_default_exchange(spec: Server) -> None:
    client = spec.client().declare("q").bind("q", "", "k")
    assert arrives(client, "", "k") == 1
    assert arrives(client, "", "q") == 1


@pytest.mark.deviates("0-9-1/queue.bind/exchange-default-exchange")
def test_rabbitmq_refuses_binding_to_the_default_exchange(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    text = "ACCESS_REFUSED - operation not permitted on the default exchange"
    refused(client, Bind(queue="q", exchange="", routing_key="k"), 403, text)
    refused(client, Bind(queue="q", exchange="", routing_key="q"), 403, text)


@pytest.mark.rule("0-9-1/queue.bind/routing-key-direct-exchange-key-matching")
def test_direct_exchange_routes_message_to_queue_with_equal_binding_key(client: Client) -> None:
    client.bind("q", "amq.direct", "k")
    assert arrives(client, "amq.direct", "k") == 1
    assert arrives(client, "amq.direct", "q") == 0


@pytest.mark.rule("0-9-1/queue.bind/routing-key-shortcut")
def test_bind_without_queue_and_key_uses_name_of_current_queue_as_key(client: Client) -> None:
    name = client.declare_ok("").queue
    client.bind("", "amq.direct", "")
    assert client.publish(exchange="amq.direct", routing_key=name).count(name) == 1
    assert client.publish(exchange="amq.direct", routing_key="").count(name) == 1
    client.perform(Unbind(queue="", exchange="amq.direct", routing_key=""))
    assert client.publish(exchange="amq.direct", routing_key=name).count(name) == 1


@pytest.mark.rule("0-9-1/queue.bind/routing-key-empty")
def test_empty_key_in_bind_with_queue_name_stays_empty(client: Client) -> None:
    client.declare("q").bind("q", "amq.direct", "")
    assert arrives(client, "amq.direct", "") == 1
    assert arrives(client, "amq.direct", "q") == 0


@pytest.mark.rule("0-9-1/queue.bind/arguments")
def test_binding_arguments_select_messages_in_headers_exchange_and_not_in_fanout(client: Client) -> None:
    wanted = {"x-match": "all", "n": 1}
    client.bind("q", "amq.match", arguments=wanted).bind("q", "amq.fanout", arguments=wanted)
    assert arrives(client, "amq.match", headers={"n": 1}) == 1
    assert arrives(client, "amq.match", headers={"n": 2}) == 0
    assert arrives(client, "amq.fanout", headers={"n": 2}) == 1


@pytest.mark.rule("0-9-1/queue.bind/no-wait-silent")
def test_a_bind_with_no_wait_is_not_answered(client: Client) -> None:
    client.send(Bind(queue="q", exchange="amq.direct", routing_key="k", no_wait=True)).expect_nothing()
    assert arrives(client, "amq.direct", "k") == 1
    client.expect_nothing()


@pytest.mark.rule("0-9-1/queue.bind/before-bind-nothing")
def test_message_published_before_the_binding_does_not_arrive(client: Client) -> None:
    client.publish(b"before", exchange="amq.fanout").bind("q", "amq.fanout")
    assert client.publish(b"after", exchange="amq.fanout").fetch("q").body == b"after"
    assert client.get("q") is None


@pytest.mark.rule("0-9-1/queue.bind-ok/confirm#empty", "0-9-1/queue.bind-ok/confirm#follows")
def test_bind_ok_is_empty_and_follows_the_binding(client: Client) -> None:
    client.send(Bind(queue="q", exchange="amq.direct", routing_key="k"))
    assert client.take_frame().payload == bytes((0, 50, 0, 21))
    assert client.publish(exchange="amq.direct", routing_key="k", channel=2).count("q") == 1


def test_binding_made_between_publishes_of_one_key_applies_at_once(client: Client) -> None:
    """What was routed before is remembered per key, and forgotten with each change of a binding."""
    assert arrives(client, "amq.direct", "k") == 0
    client.bind("q", "amq.direct", "k")
    assert arrives(client, "amq.direct", "k") == 1
    client.perform(Unbind(queue="q", exchange="amq.direct", routing_key="k"))
    assert arrives(client, "amq.direct", "k") == 0


# --- unbind ----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.unbind/01")
@pytest.mark.parametrize("key", ["k", "other"])
@pytest.mark.protocols("0-9-1")
def test_spec_personality_refuses_unbinding_of_missing_binding(spec: Server, key: str) -> None:
    # Of the channel: see docs/decisions-0-9-1.md.
    client = spec.client().declare("q").bind("q", "amq.direct", "another")
    client.fails(Unbind(queue="q", exchange="amq.direct", routing_key=key), 404, at=(50, 50))
    client.open_channel()
    assert arrives(client, "amq.direct", "another") == 1


@pytest.mark.deviates("0-9-1/queue.unbind/01")
def test_rabbitmq_confirms_unbinding_of_missing_binding(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q").perform(Unbind(queue="q", exchange="amq.direct", routing_key="k"))


@pytest.mark.rule("0-9-1/queue.unbind/queue-queue-known#current", "0-9-1/queue.unbind/queue-queue-known#none")
def test_unbind_without_queue_name_unbinds_current_queue_and_fails_without_one(client: Client) -> None:
    client.bind("q", "amq.direct", "k")
    refused(client, Unbind(queue="", exchange="amq.direct", routing_key="k"), 404, NO_CURRENT_QUEUE)
    client.declare("q").perform(Unbind(queue="", exchange="amq.direct", routing_key="k"))
    assert arrives(client, "amq.direct", "k") == 0


@pytest.mark.rule("0-9-1/queue.unbind/queue-must-exist")
def test_spec_personality_refuses_unbinding_of_missing_queue(spec: Server) -> None:
    refused(spec.client(), Unbind(queue="missing", exchange="amq.direct"), 404, NO_QUEUE)


@pytest.mark.deviates("0-9-1/queue.unbind/queue-must-exist")
def test_rabbitmq_confirms_unbinding_of_missing_queue(rabbitmq: Server) -> None:
    rabbitmq.client().perform(Unbind(queue="missing", exchange="amq.direct"))


@pytest.mark.rule("0-9-1/queue.unbind/exchange-must-exist")
def test_spec_personality_refuses_unbinding_from_missing_exchange(spec: Server) -> None:
    client = spec.client().declare("q")
    refused(client, Unbind(queue="q", exchange="missing"), 404, NO_EXCHANGE)


@pytest.mark.deviates("0-9-1/queue.unbind/exchange-must-exist")
def test_rabbitmq_confirms_unbinding_from_missing_exchange(rabbitmq: Server) -> None:
    rabbitmq.client().declare("q").perform(Unbind(queue="q", exchange="missing"))


@pytest.mark.rule("0-9-1/queue.unbind/exchange-default-exchange")
def test_a_blank_exchange_in_unbind_is_the_default_exchange(spec: Server) -> None:
    client = spec.client().declare("q")
    client.bind("q", "", "k").perform(Unbind(queue="q", exchange="", routing_key="k"))
    assert arrives(client, "", "k") == 0
    client.send(Unbind(queue="q", exchange="", routing_key="q"))
    client.expect_channel_close(404)  # The automatic binding is none that could be undone.
    client.open_channel()
    assert arrives(client, "", "q") == 1


@pytest.mark.deviates("0-9-1/queue.unbind/exchange-default-exchange")
def test_rabbitmq_refuses_unbinding_from_the_default_exchange(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    text = "ACCESS_REFUSED - operation not permitted on the default exchange"
    refused(client, Unbind(queue="q", exchange="", routing_key="q"), 403, text)
    assert arrives(client, "", "q") == 1


@pytest.mark.rule("0-9-1/queue.unbind/removes#removed", "0-9-1/queue.unbind/removes#others")
def test_unbind_removes_only_the_binding_with_its_key(client: Client) -> None:
    client.bind("q", "amq.direct", "1").bind("q", "amq.direct", "2")
    client.perform(Unbind(queue="q", exchange="amq.direct", routing_key="1"))
    assert arrives(client, "amq.direct", "1") == 0
    assert arrives(client, "amq.direct", "2") == 1


@pytest.mark.rule("0-9-1/queue.unbind/arguments-identify#key")
@pytest.mark.rule("0-9-1/queue.unbind/arguments-identify#arguments")
def test_unbind_removes_only_the_binding_with_same_key_and_arguments(client: Client) -> None:
    one, two = {"x-match": "all", "n": 1}, {"x-match": "all", "n": 2}
    client.bind("q", "amq.match", "k", arguments=one)
    client.bind("q", "amq.match", "k", arguments=two).bind("q", "amq.match", "l", arguments=one)
    reordered = dict(reversed(one.items()))
    client.perform(Unbind(queue="q", exchange="amq.match", routing_key="k", arguments=reordered))
    assert arrives(client, "amq.match", headers={"n": 2}) == 1
    assert arrives(client, "amq.match", headers={"n": 1}) == 1, "by the binding with the other key"
    client.perform(Unbind(queue="q", exchange="amq.match", routing_key="l", arguments=one))
    assert arrives(client, "amq.match", headers={"n": 1}) == 0


@pytest.mark.rule("0-9-1/queue.unbind/no-no-wait")
def test_unbind_with_no_wait_bit_closes_connection_with_501(client: Client) -> None:
    client.bind("q", "amq.direct", "k")
    payload = bytes((0, 50, 0, 50, 0, 0)) + b"\x01q" + b"\x0aamq.direct" + b"\x01k" + bytes(4)
    client.send_frame(1, 1, payload).expect(UnbindOk)
    client.send_frame(1, 1, payload + b"\x01")  # A no-wait bit would stand here.
    client.expect_connection_close(501, at=(50, 50))


@pytest.mark.rule("0-9-1/queue.unbind-ok/confirm#empty", "0-9-1/queue.unbind-ok/confirm#follows")
def test_unbind_ok_is_empty_and_follows_the_removal(client: Client) -> None:
    client.bind("q", "amq.direct", "k").send(Unbind(queue="q", exchange="amq.direct", routing_key="k"))
    assert client.take_frame().payload == bytes((0, 50, 0, 51))
    assert arrives(client, "amq.direct", "k") == 0
