from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.errors import FakeAMQPError
from fakeamqp.inspect import BadExpectation, NoSuchQueue, QueueHandle, WaitTimeout
from fakeamqp.inspect.topology import queue_view

Outside = Callable[..., "object"]


def test_queue_inspector_attributes_show_the_current_state(server: Server, client: Client, outside: Outside):
    queue = QueueHandle(outside(), "orders")
    assert not queue.exists
    client.declare("orders")
    assert queue.exists
    assert (queue.ready, queue.unacked, queue.consumers, queue.messages, queue.bindings) == (0, 0, (), (), ())
    client.bind("orders", "amq.topic", "order.*")
    client.publish(b"one", routing_key="orders")
    client.publish(b"two", routing_key="orders")
    client.get("orders")
    assert (queue.ready, queue.unacked) == (1, 1)
    assert [message.body for message in queue.messages] == [b"two", b"one"]
    assert [binding.source for binding in queue.bindings] == ["amq.topic"]
    client.consume("orders", "tag", no_ack=True)
    assert [consumer.tag for consumer in queue.consumers] == ["tag"]
    assert queue.view() == queue_view(server.state, "orders")


def test_inspecting_a_missing_queue_is_an_error_with_the_near_match(
    server: Server, client: Client, outside: Outside
):
    client.declare("orders")
    queue = QueueHandle(outside(), "order")
    assert repr(queue) == "<queue 'order' does not exist>"
    for look in (
        lambda: queue.ready,
        lambda: queue.unacked,
        lambda: queue.consumers,
        lambda: queue.messages,
        lambda: queue.bindings,
        queue.view,
    ):
        with pytest.raises(NoSuchQueue, match="did you mean 'orders'"):
            look()
    assert not QueueHandle(outside(), "orders", "no such host").exists


def test_queue_inspector_repr_has_the_current_counts(client: Client, outside: Outside):
    queue = QueueHandle(outside(), "orders")
    client.declare("orders")
    client.publish(routing_key="orders")
    assert repr(queue) == "<queue 'orders' ready=1 unacked=0 consumers=0>"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda queue: queue.wait_for(count=3),
            "wait_for(count=3): use ready=3 for the messages that wait in the queue, which are not those "
            "that a worker holds, total=3 for all of them, or wait_until_consumed()",
        ),
        (
            lambda queue: queue.wait_for(3),
            "wait_for(3): which number? Give it by name, such as ready=3",
        ),
        (
            lambda queue: queue.wait_for(redy=3),
            "wait_for knows no number 'redy'; did you mean 'ready'?",
        ),
        (
            lambda queue: asyncio.run(queue.wait_for.aio(count=3)),
            "wait_for(count=3): use ready=3 for the messages that wait in the queue, which are not those "
            "that a worker holds, total=3 for all of them, or wait_until_consumed()",
        ),
        (
            lambda queue: asyncio.run(queue.wait_for.aio(3)),
            "wait_for(3): which number? Give it by name, such as ready=3",
        ),
    ],
)
def test_wait_for_with_an_unnamed_or_unknown_number_is_an_error(outside: Outside, call: Any, text: str):
    with pytest.raises(BadExpectation) as problem:
        call(QueueHandle(outside(), "orders"))
    assert str(problem.value) == text


def test_unacked_message_counts_in_total_and_is_not_consumed(client: Client, outside: Outside):
    client.declare("orders")
    client.publish(routing_key="orders")
    client.publish(routing_key="orders")
    tag = client.get("orders").method.delivery_tag
    queue = QueueHandle(outside(), "orders")
    assert queue.wait_for(ready=1, unacked=1, total=2) == queue.wait_for(total=(2, None))
    client.get("orders")
    assert queue.wait_for(ready=0).unacked == 2
    with pytest.raises(
        WaitTimeout, match=r"waited 0\.01 s for queue 'orders' to have exactly 0 in total, but"
    ):
        queue.wait_for(total=0, timeout=0.01)
    with pytest.raises(
        WaitTimeout, match="to have exactly 0 in total, but there is <queue 'orders' ready=0 "
    ):
        queue.wait_until_consumed(timeout=0.01)
    client.ack(tag + 1, multiple=True)
    assert queue.wait_until_consumed() == queue.wait_for(ready=0, unacked=0, total=0)
    assert asyncio.run(queue.wait_until_consumed.aio()) == queue.view()


def test_message_set_aside_for_a_retry_does_not_count_as_consumed(outside: Outside, client: Client):
    arguments = {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 60_000}
    client.declare("orders", durable=True, arguments=arguments)
    client.publish(routing_key="orders")
    client.reject(client.get("orders").method.delivery_tag, requeue=True)
    queue = QueueHandle(outside(), "orders")
    assert (queue.ready, queue.unacked, queue.set_aside) == (0, 0, 1)
    with pytest.raises(WaitTimeout):
        queue.wait_until_consumed(timeout=0.01)


def test_wait_for_ends_as_soon_as_the_condition_holds(client: Client, outside: Outside):
    look = outside(
        lambda: client.declare("orders"),
        lambda: client.publish(b"1", routing_key="orders"),
        lambda: client.publish(b"2", routing_key="orders"),
        lambda: client.publish(b"3", routing_key="orders"),
    )
    view = QueueHandle(look, "orders").wait_for(ready=2, timeout=7)
    assert (view.ready, [message.body for message in view.messages]) == (2, [b"1", b"2"])
    assert look.timeout == 7
    assert len(look.steps) == 1


def test_wait_for_returns_at_once_if_the_condition_already_holds(client: Client, outside: Outside):
    client.declare("orders")
    assert QueueHandle(outside(), "orders").wait_for(ready=0, unacked=0, consumers=0).name == "orders"


def test_wait_for_without_a_condition_waits_until_the_queue_exists(client: Client, outside: Outside):
    look = outside(lambda: client.declare("other"), lambda: client.declare("orders"))
    assert QueueHandle(look, "orders").wait_for().name == "orders"


def test_wait_for_needs_all_conditions_at_once(client: Client, outside: Outside):
    client.declare("orders")
    look = outside(
        lambda: client.publish(routing_key="orders"),
        lambda: client.publish(routing_key="orders"),
        lambda: client.get("orders"),
        lambda: client.get("orders"),
    )
    view = QueueHandle(look, "orders").wait_for(ready=1, unacked=1, consumers=0)
    assert (view.ready, view.unacked) == (1, 1)
    assert len(look.steps) == 1


def test_wait_for_accepts_a_range_of_counts(client: Client, outside: Outside):
    client.declare("orders")
    look = outside(*[lambda: client.publish(routing_key="orders")] * 5)
    assert QueueHandle(look, "orders").wait_for(ready=(3, None)).ready == 3


def test_wait_for_timeout_shows_actual_counts_messages_and_consumers(client: Client, outside: Outside):
    client.declare("orders")
    client.publish(b"two apples", routing_key="orders")
    client.consume("orders", "worker")
    with pytest.raises(WaitTimeout) as failure:
        QueueHandle(outside(), "orders").wait_for(ready=3, unacked=(2, None), timeout=0.5)
    assert isinstance(failure.value, AssertionError)
    assert isinstance(failure.value, FakeAMQPError)
    first, *rest = str(failure.value).splitlines()
    assert first == (
        "waited 0.5 s for queue 'orders' to have exactly 3 ready, at least 2 unacked, "
        "but there is <queue 'orders' ready=0 unacked=1 consumers=1>"
    )
    assert rest[0] == "  messages:"
    assert rest[1].startswith("    <message b'two apples' ")
    assert rest[2] == "  consumers:"
    assert rest[3].startswith("    <consumer 'worker' ")


def test_wait_for_timeout_shows_only_ten_messages_of_a_long_queue(client: Client, outside: Outside):
    client.declare("orders")
    for _ in range(25):
        client.publish(b"apple", routing_key="orders")
    with pytest.raises(WaitTimeout) as failure:
        QueueHandle(outside(), "orders").wait_for(ready=1)
    assert str(failure.value).count("apple") == 10
    assert "... and 15 more" in str(failure.value)


def test_wait_for_a_missing_queue_times_out_with_the_near_match(client: Client, outside: Outside):
    client.declare("order")
    with pytest.raises(WaitTimeout, match=r"5 s for queue 'orders' to exist, but .* did you mean 'order'"):
        QueueHandle(outside(), "orders").wait_for()


def test_wait_for_refuses_an_invalid_count_before_waiting(outside: Outside):
    look = outside(lambda: pytest.fail("there is nothing to wait for"))
    with pytest.raises(BadExpectation, match="consumers='two'"):
        QueueHandle(look, "orders").wait_for(consumers="two")


def test_wait_for_async_returns_the_view_or_times_out(client: Client, outside: Outside):
    look = outside(lambda: client.declare("orders"))

    async def both() -> str:
        view = await QueueHandle(look, "orders").wait_for.aio(ready=0, timeout=2)
        with pytest.raises(WaitTimeout):
            await QueueHandle(look, "orders").wait_for.aio(consumers=1)
        return view.name

    assert asyncio.run(both()) == "orders"
