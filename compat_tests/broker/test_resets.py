"""Entities that a reset removes or keeps, and a broker that was not started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pika
import pika.exceptions
import pytest

from compat_tests.tools.matrix import rows
from fakeamqp import Broker, BrokerError, WaitTimeout
from fakeamqp.errors import DefinitionsError, NoSuchExchange, NoSuchQueue

OPTIONS = {"definitions": {"queues": [{"name": "first", "vhost": "/"}]}}

LOST = (
    "{} existed until the last reset; load_definitions(..., keep=True) loads definitions that outlast resets"
)


def definitions(*queues: str) -> dict[str, Any]:
    """Definitions of queues, of exchanges bound to them, of a policy, and of users with a virtual host."""
    return {
        "users": [{"name": "app", "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "north"}],
        "permissions": [
            {"user": name, "vhost": "north", "configure": "", "write": "", "read": ""}
            for name in ("app", "guest")
        ],
        "policies": [
            {"name": "limits", "vhost": "/", "pattern": "^(orders|own)$", "definition": {"max-length": 1000}}
        ],
        "exchanges": [{"name": "events", "vhost": "/", "type": "topic", "durable": True}],
        "queues": [{"name": name, "vhost": "/", "durable": True} for name in queues],
        "bindings": [
            {
                "source": source,
                "vhost": "/",
                "destination": name,
                "destination_type": "queue",
                "routing_key": "#",
            }
            for name in queues
            for source in ("events", "amq.topic")
        ],
    }


def names(broker: Broker) -> list[str]:
    return [queue.name for queue in broker.queues.of("/")]


def test_kept_definitions_are_restored_after_resets_in_call_order(broker: Broker) -> None:
    given = definitions("orders")
    broker.load_definitions(given, keep=True)
    broker.load_definitions(definitions("invoices"), keep=True)
    broker.load_definitions(definitions("once"))
    given["queues"].clear()  # The broker has a copy.
    for _ in range(2):
        broker.publish(b"", exchange="events", routing_key="a")
        broker.reset()
        assert names(broker) == ["first", "orders", "invoices"]
        assert [broker.queue(name).ready for name in names(broker)] == [0, 0, 0]
        assert broker.exchange("events").explain("a").queues == ("orders", "invoices")
        assert broker.admin.virtual_hosts == ("/", "north")


def test_definitions_kept_twice_are_stored_once(broker: Broker) -> None:
    broker.load_definitions(definitions("orders"), keep=True)
    broker.load_definitions(definitions("invoices"), keep=True)
    broker.load_definitions(definitions("orders"), keep=True)
    assert broker._kept == [definitions("invoices"), definitions("orders")]


def test_invalid_definitions_are_not_kept(broker: Broker) -> None:
    with pytest.raises(DefinitionsError):
        broker.load_definitions({"queus": []}, keep=True)
    broker.reset()
    assert names(broker) == ["first"]


@pytest.mark.parametrize("lacking", ["virtual host", "queue", "deleted queue"])
def test_definitions_that_need_entities_removed_by_a_reset_are_not_kept(broker: Broker, lacking: str) -> None:
    queue = {"name": "late", "vhost": "/", "durable": True}
    binding = {"source": "amq.fanout", "vhost": "/", "destination": "late", "destination_type": "queue"}
    if lacking == "virtual host":
        broker.admin.add_virtual_host("shop")
        given: dict[str, Any] = {"queues": [{"name": "a", "vhost": "shop"}]}
    elif lacking == "queue":
        broker.load_definitions({"queues": [queue]})
        given = {"bindings": [binding]}
    else:
        broker.load_definitions({"queues": [queue]}, keep=True)
        broker.queue("late").delete()
        given = {"queues": [{**queue, "arguments": {"x-max-length": 1}}]}
    with pytest.raises(
        DefinitionsError, match=r"are loaded, but cannot be kept: after a reset, .*; a reset removes"
    ):
        broker.load_definitions(given, keep=True)
    broker.reset()
    assert set(names(broker)) <= {"first", "late"}


@pytest.mark.parametrize("crash", [False, True])
def test_kept_definitions_are_restored_after_a_non_durable_restart(broker: Broker, crash: bool) -> None:
    broker.load_definitions(definitions("orders"), keep=True)
    broker.load_definitions(definitions("once"))
    broker.restart(crash=crash, durable=False)
    assert names(broker) == ["first", "orders"]
    broker.stop()
    broker.start()
    assert names(broker) == ["first", "orders"]


def test_missing_queue_or_exchange_error_mentions_the_reset(broker: Broker) -> None:
    broker.load_definitions(definitions("orders"))
    broker.reset()
    with pytest.raises(NoSuchQueue) as failure:
        _ = broker.queue("orders").ready
    assert str(failure.value).splitlines()[1] == LOST.format("queue 'orders'")
    with pytest.raises(NoSuchExchange) as other:
        broker.exchange("events").view()
    assert str(other.value).splitlines()[1] == LOST.format("exchange 'events'")
    with pytest.raises(WaitTimeout) as waited:
        broker.queue("orders").wait_for(timeout=0.01)
    assert str(waited.value).count(LOST.format("queue 'orders'")) == 1
    with pytest.raises(NoSuchQueue) as unknown:
        _ = broker.queue("order").ready
    assert "existed" not in str(unknown.value)


def declare_passively(channel: Any) -> None:
    channel.queue_declare("orders", passive=True)


MISSES: list[tuple[Callable[[Any], object], str]] = [
    (declare_passively, "queue 'orders'"),
    (lambda channel: channel.exchange_declare("events", passive=True), "exchange 'events'"),
    (lambda channel: channel.basic_consume("orders", print), "queue 'orders'"),
    (lambda channel: channel.basic_get("orders"), "queue 'orders'"),
    (lambda channel: channel.queue_purge("orders"), "queue 'orders'"),
    (lambda channel: channel.queue_bind("orders", "amq.topic", "a"), "queue 'orders'"),
    (lambda channel: channel.basic_publish("", "orders", b""), "queue 'orders'"),
    (lambda channel: channel.basic_publish("", "orders", b"", mandatory=True), "queue 'orders'"),
    (lambda channel: channel.basic_publish("events", "a", b""), "exchange 'events'"),
    (lambda channel: channel.basic_publish("amq.topic", "a", b""), "bindings of exchange 'amq.topic'"),
    (lambda channel: channel.queue_declare("orders"), "policy 'limits'"),
    (lambda channel: channel.exchange_declare("own"), "policy 'limits'"),
]


@pytest.mark.parametrize(("miss", "what"), MISSES)
def test_wait_timeout_names_the_entity_missing_since_the_reset(
    broker: Broker, miss: Callable[[Any], object], what: str
) -> None:
    broker.load_definitions(definitions("orders"))
    broker.reset()
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        try:
            miss(channel)
        except (pika.exceptions.ChannelClosedByBroker, pika.exceptions.UnroutableError) as error:
            assert "reset" not in str(error)  # A client sees what RabbitMQ sends.
    with pytest.raises(WaitTimeout) as failure:
        broker.wait_for(lambda: False, timeout=0.01)
    assert LOST.format(what) in str(failure.value).splitlines()
    with pytest.raises(AssertionError, match="existed until the last reset"):
        broker.expect_published(routing_key="nothing", timeout=0)
    broker.reset()
    with pytest.raises(WaitTimeout) as later:
        broker.wait_for(lambda: False, timeout=0.01)
    assert "existed" not in str(later.value)


@rows(
    "url, again, what",
    ("app:x@{}/north", [], "user 'app'"),
    ("guest:guest@{}/north", [], "virtual host 'north'"),
    ("guest:guest@{}/north", [{"name": "north"}], "permissions of user 'guest' in virtual host 'north'"),
)
def test_wait_timeout_names_the_login_failure_caused_by_the_reset(
    broker: Broker, url: str, again: list[dict[str, str]], what: str
) -> None:
    broker.load_definitions(definitions())
    broker.reset()
    broker.load_definitions({"vhosts": again})
    parameters = pika.URLParameters("amqp://" + url.format(f"127.0.0.1:{broker.port}"))
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(parameters)
    with pytest.raises(WaitTimeout) as failure:
        broker.wait_for(lambda: False, timeout=0.01)
    assert LOST.format(what) in str(failure.value).splitlines()


def test_missing_queue_error_mentions_an_earlier_reset(broker: Broker) -> None:
    broker.load_definitions(definitions("orders"))
    broker.reset()
    broker.reset()
    with pytest.raises(NoSuchQueue, match="queue 'orders' existed until an earlier reset; "):
        _ = broker.queue("orders").ready


NOT_STARTED: list[Callable[[Broker], object]] = [
    lambda broker: broker.queue("x").ready,
    lambda broker: broker.queue("x").exists,
    lambda broker: broker.queue("x").delete(),
    lambda broker: broker.queue("x").view(),
    lambda broker: broker.queue("x").wait_for(ready=1),
    lambda broker: broker.queue("x").wait_until_consumed(),
    lambda broker: asyncio.run(broker.queue("x").wait_for.aio(ready=1)),
    lambda broker: broker.exchange("x").view(),
    lambda broker: broker.admin.topology("x"),
    lambda broker: broker.wait_for(lambda: broker.connections),
    lambda broker: asyncio.run(broker.wait_for.aio(lambda: broker.connections)),
    lambda broker: broker.wait_until_idle(),
    lambda broker: asyncio.run(broker.wait_until_idle.aio()),
    lambda broker: broker.expect_published(),
    lambda broker: broker.expect_published(timeout=0),
    lambda broker: broker.expect_nothing_published(),
    lambda broker: broker.expect_no_findings(),
    lambda broker: broker.faults.on("basic.ack").drop().wait(),
    lambda broker: broker.admin.add_service("s", print).wait(),
    lambda broker: broker.url,
    lambda broker: broker.port,
    lambda broker: broker.tls,
    lambda broker: broker.admin.management_url,
    lambda broker: broker.admin.inspector_url,
    lambda broker: broker.connect(),
    lambda broker: broker.intercept("rabbit:5672"),
    lambda broker: broker.restart(),
]


@pytest.mark.parametrize("use", NOT_STARTED)
def test_use_of_a_broker_before_its_start_is_an_error(use: Callable[[Broker], object]) -> None:
    with pytest.raises(BrokerError, match=r"^the broker is not started: use it as a context manager"):
        use(Broker(tls=True, management=True))


def test_queues_of_definitions_can_be_read_before_the_start() -> None:
    broker = Broker(definitions=definitions("orders"))
    broker.publish(b"", routing_key="orders")
    assert broker.queue("orders").ready == 1
    assert broker.wait_for(lambda: broker.queue("orders").ready == 1)
    assert repr(broker.queue("x")) == "<queue 'x' does not exist>"


def test_wait_timeout_mentions_the_stopped_broker(broker: Broker) -> None:
    broker.stop()
    with pytest.raises(WaitTimeout, match="\nthe broker is stopped\n"):
        broker.queue("first").wait_for(ready=1)
