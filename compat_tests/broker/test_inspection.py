"""What a test sees of a running broker, and does to it, with real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat_tests.tools.matrix import rows
from fakeamqp import Broker, BrokerError
from fakeamqp.errors import NotDropped, NotPublished

OPTIONS = {"clock": "virtual", "now": 1_700_000_000}

TO_GRAVE = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "grave"}


def test_expectations_find_returned_dropped_and_dead_lettered_messages(
    broker: Broker, channel: BlockingChannel
) -> None:
    channel.queue_declare("grave")
    channel.queue_declare("q", arguments={"x-message-ttl": 60_000, **TO_GRAVE})
    channel.basic_publish("", "q", b"late")
    channel.basic_publish("", "nowhere", b"lost")
    channel.basic_publish("", "nowhere", b"back", mandatory=True)
    [returned] = broker.expect_returned(reply_code=312, count=1)
    assert (returned.body, returned.channel) == (b"back", channel.channel_number)
    [dropped] = broker.expect_dropped(reason="unroutable", count=1)
    assert dropped.body == b"lost"
    broker.clock.advance(61)
    [dead] = broker.expect_dead_lettered(queue="q", reason="expired", count=1, timeout=0)
    assert (dead.body, dead.queues) == (b"late", ("grave",))
    assert dead.when.timestamp() == 1_700_000_060
    broker.reset()
    assert (len(broker.returned), len(broker.dead_lettered), len(broker.dropped)) == (0, 0, 0)


def test_transient_message_lost_in_a_restart_is_recorded_as_dropped(
    broker: Broker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", durable=True)
    channel.basic_publish("", "q", b"transient")
    broker.queue("q").wait_for(ready=1)
    broker.restart()
    [lost] = broker.expect_dropped(timeout=0)
    assert (lost.body, lost.queue, lost.reason) == (b"transient", "q", "restart")


def test_async_waits_let_other_coroutines_run(broker: Broker, channel: BlockingChannel) -> None:
    async def body() -> None:
        waiting = asyncio.gather(
            broker.expect_published.aio(routing_key="a"),
            broker.expect_dropped.aio(reason="unroutable"),
            broker.wait_for.aio(lambda: broker.published),
            broker.queue("q").wait_for.aio(),
        )
        await asyncio.sleep(0)
        channel.basic_publish("", "a", b"1")
        broker._reader.read(lambda state: state.virtual_host("/").queues.declare("q"))
        published, dropped, seen, queue = await waiting
        assert (len(published), len(dropped), len(seen), queue.name) == (1, 1, 1, "q")
        await broker.wait_until_idle.aio()
        await broker.expect_nothing_published.aio(routing_key="b")
        with pytest.raises(NotDropped):
            await broker.expect_dropped.aio(reason="expired", timeout=0)

    asyncio.run(body())


class TestWaitsThatBlockTheLoopOfTheirClient:
    """A call for threads inside a coroutine says which one to use."""

    HINT = r"so blocked the event loop: clients in this loop could not go on\. Use `await \.\.\.{}\(\.\.\.\)`"

    @rows(
        "wait, awaitable",
        (lambda b: b.queue("q").wait_for(ready=1, timeout=0.01), "wait_for.aio"),
        (lambda b: b.wait_for(lambda: False, timeout=0.01), "wait_for.aio"),
        (lambda b: b.expect_published(timeout=0.01), "expect_published.aio"),
        (lambda b: b.expect_dead_lettered(timeout=0.01), "expect_dead_lettered.aio"),
    )
    def test_blocking_wait_in_a_coroutine_names_the_async_form(
        self, broker: Broker, wait: Callable[[Broker], object], awaitable: str
    ) -> None:
        async def body() -> None:
            wait(broker)

        with pytest.raises(AssertionError, match=self.HINT.format(awaitable)):
            asyncio.run(body())
        with pytest.raises(AssertionError) as failure:
            wait(broker)
        assert "event loop" not in str(failure.value)

    def test_wait_until_idle_in_a_coroutine_names_the_async_form(
        self, broker: Broker, channel: BlockingChannel
    ) -> None:
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *delivery: None)
        broker.publish(
            bytes(30_000_000), routing_key="q"
        )  # More than its socket takes, and it does not read.

        async def body() -> None:
            broker.wait_until_idle(timeout=0.01)

        with pytest.raises(BrokerError, match=self.HINT.format("wait_until_idle.aio")):
            asyncio.run(body())

    def test_timeout_0_and_async_waits_mention_no_event_loop(self, broker: Broker) -> None:
        async def body() -> None:
            with pytest.raises(AssertionError) as failure:
                broker.expect_published(timeout=0)
            assert "event loop" not in str(failure.value)
            with pytest.raises(AssertionError) as failure:
                await broker.expect_published.aio(timeout=0.01)
            assert "event loop" not in str(failure.value)

        asyncio.run(body())


def test_messages_of_the_test_are_excluded_unless_include_own_is_true(
    broker: Broker, channel: BlockingChannel
) -> None:
    broker.publish(b"own", routing_key="a")
    with pytest.raises(NotPublished) as failure:
        broker.expect_published(routing_key="a", timeout=0)
    assert (
        "expected at least 1 published message with\n"
        "    routing_key  'a'\n"
        "but nothing was published\n\n"
        "The test itself published such a message; include_own=True counts what it publishes.\n\n"
        "But once such a message was dropped:\n"
        f"  {broker.dropped[0]!r}"
    ) in str(failure.value)
    broker.expect_nothing_published(routing_key="a")
    assert broker.published == []
    channel.basic_publish("", "a", b"client's")
    [found] = broker.expect_published(routing_key="a", count=1)
    assert found.body == b"client's"
    assert broker.published == [found]

    own, _ = broker.expect_published(routing_key="a", count=2, include_own=True)
    assert (own.body, own.connection) == (b"own", None)
    assert [each.body for each in broker.published.with_own] == [b"own", b"client's"]
    with pytest.raises(NotPublished, match="but 2 of 2 published fit"):
        broker.expect_nothing_published(routing_key="a", include_own=True)


def test_answers_of_a_service_count_as_messages_of_the_test(broker: Broker, channel: BlockingChannel) -> None:
    service = broker.admin.add_service("price", lambda _: b"5")
    channel.basic_publish("amq.system", "price", b"tea", pika.BasicProperties(reply_to="answers"))
    service.wait()
    assert [each.body for each in broker.published] == [b"tea"]
    assert [each.body for each in broker.published.with_own] == [b"tea", b"5"]


def test_async_expectations_exclude_messages_of_the_test(broker: Broker) -> None:
    async def body() -> None:
        broker.publish(b"own", routing_key="a")
        await broker.expect_nothing_published.aio()
        await broker.expect_published.aio(include_own=True)
        with pytest.raises(NotPublished):
            await broker.expect_nothing_published.aio(include_own=True)

    asyncio.run(body())


def test_drops_of_messages_of_the_test_are_included(broker: Broker) -> None:
    broker.publish(b"own", routing_key="nowhere")
    broker.expect_dropped(body=b"own", reason="unroutable")


def test_expectation_of_no_publish_includes_messages_in_transit(
    broker: Broker, channel: BlockingChannel
) -> None:
    for number in range(200):
        channel.basic_publish("", "nowhere", str(number).encode())
    with pytest.raises(NotPublished, match="but 1 of 200 published fits"):
        broker.expect_nothing_published(body="199")


def test_consumers_are_cancelled_by_cancel_consumers_and_queue_deletion(
    broker: Broker, channel: BlockingChannel
) -> None:
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    for name in ("q", "r"):
        channel.queue_declare(name)
        channel.basic_consume(name, lambda *delivery: None, consumer_tag=name)
    assert [each.tag for each in broker.consumers] == ["q", "r"]
    assert broker.queue("q").cancel_consumers() == 1
    assert broker.queue("r").delete() == 0
    while len(cancelled) < 2:
        channel.connection.process_data_events(time_limit=1)
    assert cancelled == ["q", "r"]
    assert [queue.name for queue in broker.queues.of("/")] == ["q"]
    channel.basic_publish("", "q", b"1")
    broker.queue("q").wait_for(ready=1)
    assert broker.queue("q").purge() == 1


def test_explanation_and_topology_agree_with_a_running_broker(
    broker: Broker, channel: BlockingChannel
) -> None:
    channel.exchange_declare("events", "topic")
    channel.queue_declare("orders")
    channel.queue_bind("orders", "events", "order.*")
    explanation = broker.exchange("events", "/").explain("order.placed", {"shop": "north"})
    channel.basic_publish("events", "order.placed", b"1")
    [published] = broker.expect_published()
    assert published.queues == explanation.queues == ("orders",)
    assert str(broker.admin.topology()).splitlines() == [
        'virtual host "/"',
        '  exchange "events" topic',
        '    "order.*" -> queue "orders"',
        '  queue "orders" classic',
    ]
    assert broker.admin.topology("/", counts=True) != broker.admin.topology("/")
