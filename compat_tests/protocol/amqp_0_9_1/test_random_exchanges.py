"""Exchanges that go by chance: x-random, and x-local-random from RabbitMQ 4.0 on."""

from __future__ import annotations

from collections import Counter

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

KINDS = ("x-random", "x-local-random")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def bench(server: Server, kind: str, queues: int) -> Client:
    client = server.client().declare_exchange("x", kind)
    for number in range(queues):
        client.declare(f"q{number}").bind(f"q{number}", "x")
    return client


def chosen(client: Client, count: int, queues: int) -> list[str]:
    """Which queue got each of so many messages; each is in exactly one."""
    found = []
    for _ in range(count):
        client.publish(exchange="x", routing_key="k")
        [queue] = [f"q{number}" for number in range(queues) if client.empty(f"q{number}")]
        found.append(queue)
    return found


def test_each_message_is_routed_to_one_queue_and_all_queues_get_a_share(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, kind, 3)
    counts = Counter(chosen(client, 300, 3))
    assert set(counts) == {"q0", "q1", "q2"}
    assert min(counts.values()) > 60


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_same_seed_routes_messages_to_same_queues(kind: str) -> None:
    def seeded(seed: int) -> list[str]:
        server = Server("rabbitmq-4.2")
        server.state = BrokerState(server.clock, personality=server.state.personality, seed=seed)
        return chosen(bench(server, kind, 4), 30, 4)

    assert seeded(7) == seeded(7)
    assert seeded(7) != seeded(8)


@pytest.mark.needs("personality rabbitmq-4.2")
def test_generated_queue_names_do_not_depend_on_random_routing(rabbitmq: Server, kind: str) -> None:
    chosen(bench(rabbitmq, kind, 3), 10, 3)
    assert rabbitmq.client().declare_ok().queue == Server("rabbitmq-4.2").client().declare_ok().queue


@pytest.mark.needs("inspection")
def test_cleared_broker_routes_messages_to_same_queues_again(rabbitmq: Server, kind: str) -> None:
    before = chosen(bench(rabbitmq, kind, 4), 20, 4)
    rabbitmq.state.clear()
    rabbitmq.state.populate()
    assert chosen(bench(rabbitmq, kind, 4), 20, 4) == before


def test_only_bound_queue_gets_all_messages(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, kind, 1)
    for _ in range(5):
        client.publish(exchange="x", routing_key="k")
    assert client.count("q0") == 5


def test_mandatory_message_to_random_exchange_without_queues_is_returned(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, kind, 0).publish(exchange="x", mandatory=True)
    assert client.expect_content(m.BasicReturn).method.reply_code == 312


def test_unbound_or_deleted_queue_gets_no_message_of_random_exchange(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, kind, 3).perform(m.QueueUnbind(queue="q0", exchange="x"))
    client.perform(m.QueueDelete(queue="q1"))
    for _ in range(30):
        client.publish(exchange="x")
    assert [client.count("q0"), client.count("q2")] == [0, 30]


def test_message_with_cc_header_is_routed_to_one_queue(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, kind, 3)
    for _ in range(10):
        client.publish(exchange="x", headers={"CC": ["a", "b"]})
    assert sum(client.count(f"q{number}") for number in range(3)) == 10


def test_binding_keys_do_not_select_and_each_binding_raises_the_share_of_its_queue(rabbitmq: Server) -> None:
    client = bench(rabbitmq, "x-random", 0)
    for queue, keys in (("q0", "a"), ("q1", "bcd"), ("q2", "e")):
        client.declare(queue)
        for key in keys:
            client.bind(queue, "x", key)
    client.perform(m.QueueUnbind(queue="q2", exchange="x", routing_key="e"))
    for _ in range(400):
        client.publish(exchange="x", routing_key="z")
    counts = client.count("q0"), client.count("q1")
    assert sum(counts) == 400
    assert 60 < counts[0] < 140


def test_x_random_exchange_routes_to_bound_exchange(rabbitmq: Server) -> None:
    client = bench(rabbitmq, "x-random", 0).declare("q")
    client.bind("q", "amq.fanout").perform(m.ExchangeBind(source="x", destination="amq.fanout"))
    assert client.publish(exchange="x", routing_key="k").count("q") == 1


# --- local random ----------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_x_local_random_exchange_refuses_binding_with_key(rabbitmq: Server) -> None:
    client = bench(rabbitmq, "x-local-random", 1)
    text = "PRECONDITION_FAILED - Non empty binding 'k' key not permitted"
    refused(client, m.QueueBind(queue="q0", exchange="x", routing_key="k"), 406, text)
    refused(client, m.ExchangeBind(source="x", destination="amq.fanout", routing_key="k"), 406, text)
    assert len(rabbitmq.vhost.exchanges["x"].bindings) == 1


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_x_local_random_exchange_refuses_binding_of_exchange(rabbitmq: Server) -> None:
    client = bench(rabbitmq, "x-local-random", 0)
    text = "PRECONDITION_FAILED - Destination not found"
    refused(client, m.ExchangeBind(source="x", destination="amq.fanout"), 406, text)


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_missing_queue_is_reported_before_invalid_key_of_x_local_random(rabbitmq: Server) -> None:
    client = bench(rabbitmq, "x-local-random", 0)
    client.fails(m.QueueBind(queue="nowhere", exchange="x", routing_key="k"), 404)


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_x_local_random_exchange_refuses_quorum_queue_and_stream(rabbitmq: Server, kind: str) -> None:
    client = bench(rabbitmq, "x-local-random", 0)
    client.declare("q", durable=True, arguments={"x-queue-type": kind})
    text = f"PRECONDITION_FAILED - Queue type rabbit_{kind}_queue not valid for this exchange type"
    refused(client, m.QueueBind(queue="q", exchange="x"), 406, text)
    client.perform(m.QueueBind(queue="q", exchange="amq.direct"))
