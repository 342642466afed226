"""Tests of an app as users write them, which run on fakeamqp and on a real broker; see `test_queues`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aio_pika
import pika
import pytest

from fakeamqp import WaitTimeout
from fakeamqp.portable import RequestRefused

if TYPE_CHECKING:
    from pytest_plugin import MakeQueue


def place_order(url: str, queue: str, order: dict[str, Any]) -> None:
    """A part of the app: publish an order."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        properties = pika.BasicProperties(content_type="application/json", headers={"shop": "north"})
        channel.basic_publish("", queue, json.dumps(order).encode(), properties, mandatory=True)


@contextmanager
def worker(url: str, queue: str, handle: Callable[..., None], prefetch: int = 1) -> Iterator[None]:
    """A part of the app: a worker in a thread."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume(queue, handle)
    thread = threading.Thread(target=channel.start_consuming)
    thread.start()
    try:
        yield
    finally:
        connection.add_callback_threadsafe(channel.stop_consuming)
        thread.join(10)
        connection.close()


def test_an_order_arrives(amqp_url: str, amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    place_order(amqp_url, orders.name, {"apples": 2})
    message = orders.get()
    assert message.json() == {"apples": 2}
    assert message.headers == {"shop": "north"}
    assert message.content_type == "application/json"
    assert not message.redelivered


def test_a_new_queue_is_empty(amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    assert (orders.exists, orders.ready, orders.consumers) == (True, 0, 0)
    assert orders.get_all() == []


def test_messages_stay_in_order(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    orders = amqp_queue("orders")
    for number in range(5):
        pika_channel.basic_publish("", orders.name, str(number).encode())
    orders.wait_for(ready=5)
    assert [message.text for message in orders.get_all()] == ["0", "1", "2", "3", "4"]


def test_a_worker_consumes(amqp_url: str, amqp_queue: MakeQueue) -> None:
    orders, done = amqp_queue("orders"), amqp_queue("done")

    def handle(channel: Any, delivery: Any, _: Any, body: bytes) -> None:
        channel.basic_publish("", done.name, body.upper())
        channel.basic_ack(delivery.delivery_tag)

    with worker(amqp_url, orders.name, handle):
        orders.wait_for(consumers=1)
        orders.publish("two apples")
        assert done.get().body == b"TWO APPLES"
    orders.wait_for(consumers=0, ready=0)


def test_two_workers_are_counted(amqp_url: str, amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    with worker(amqp_url, orders.name, print), worker(amqp_url, orders.name, print):
        orders.wait_for(consumers=2)
        assert orders.consumers == 2
    orders.wait_for(consumers=0)


def test_unacked_messages_of_a_worker_are_not_ready(amqp_url: str, amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    for _ in range(5):
        orders.publish(b"two apples")
    with worker(amqp_url, orders.name, lambda *delivery: None, prefetch=2):
        orders.wait_for(ready=3, consumers=1)
    orders.wait_for(ready=5)
    assert [message.redelivered for message in orders.get_all()] == [True, True, False, False, False]


def test_a_rejected_order_is_dead_lettered(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    dead = amqp_queue("dead")
    orders = amqp_queue(
        "orders", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
    )
    orders.publish(b"two apples", headers={"shop": "north"})
    orders.wait_for(ready=1)
    method, _, _ = pika_channel.basic_get(orders.name)
    pika_channel.basic_reject(method.delivery_tag, requeue=False)
    message = dead.get()
    assert message.body == b"two apples"
    [death] = message.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == (orders.name, "rejected", 1)


def test_an_expired_order_is_dead_lettered(amqp_queue: MakeQueue) -> None:
    dead = amqp_queue("dead")
    orders = amqp_queue(
        "orders",
        arguments={
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": dead.name,
            "x-message-ttl": 1,
        },
    )
    orders.publish(b"two apples")
    assert dead.get().headers["x-first-death-reason"] == "expired"


def test_a_full_queue_keeps_the_newest(amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders", arguments={"x-max-length": 2})
    for body in (b"1", b"2", b"3"):
        orders.publish(body)
    orders.wait_for(ready=2)
    assert [message.body for message in orders.get_all()] == [b"2", b"3"]


def test_a_purged_queue_is_empty(amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    for _ in range(3):
        orders.publish(b"two apples")
    orders.wait_for(ready=3)
    assert orders.purge() == 3
    orders.wait_for(ready=0)


def test_a_topic_selects_orders(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    north = amqp_queue("north", exchange="amq.topic", routing_key="orders.north.*")
    every = amqp_queue("every").bind("amq.topic", "orders.#")
    pika_channel.basic_publish("amq.topic", "orders.north.1", b"n")
    pika_channel.basic_publish("amq.topic", "orders.south.1", b"s")
    assert [every.get().routing_key, every.get().routing_key] == ["orders.north.1", "orders.south.1"]
    message = north.get()
    assert (message.exchange, message.body, north.ready) == ("amq.topic", b"n", 0)


def test_an_answer_comes_to_reply_to(amqp_url: str, amqp_queue: MakeQueue) -> None:
    questions, answers = amqp_queue("questions"), amqp_queue("answers")

    def answer(channel: Any, delivery: Any, properties: Any, body: bytes) -> None:
        told = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, body[::-1], told)
        channel.basic_ack(delivery.delivery_tag)

    with worker(amqp_url, questions.name, answer):
        questions.publish(b"abc", reply_to=answers.name, correlation_id="7")
        message = answers.get()
    assert (message.body, message.correlation_id) == (b"cba", "7")


def test_an_answer_comes_directly(amqp_queue: MakeQueue, pika_connection: Any) -> None:
    questions = amqp_queue("questions")
    channel, answers = pika_connection.channel(), []
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *answer: answers.append(answer[3]), auto_ack=True)
    ask = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="7", priority=3)
    channel.basic_publish("", questions.name, b"abc", ask)
    question = questions.get()
    assert question.reply_to is not None
    assert question.reply_to.startswith("amq.rabbitmq.reply-to.")
    assert question.properties == {"reply_to": question.reply_to, "correlation_id": "7", "priority": 3}
    channel.basic_publish("", question.reply_to, question.body[::-1])
    while not answers:
        pika_connection.process_data_events(1)
    assert answers == [b"cba"]


def test_two_queues_of_an_exchange_of_the_test(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    events = f"{amqp_queue('events').name}-exchange"
    pika_channel.exchange_declare(events, "topic", auto_delete=True)
    errors = amqp_queue("errors", exchange=events, routing_key="*.error")
    every = amqp_queue("every", type="quorum", exchange=events, routing_key="#")
    for key in ("a.info", "b.error"):
        pika_channel.basic_publish(events, key, key.encode())
    every.wait_for(ready=2)
    errors.wait_for(ready=1)
    assert [message.text for message in errors.get_all()] == ["b.error"]
    assert sorted(message.text for message in every.get_all()) == ["a.info", "b.error"]


def test_urgent_orders_come_first(amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders", arguments={"x-max-priority": 5})
    for priority in (1, 5, 3):
        orders.publish(str(priority), priority=priority)
    orders.wait_for(ready=3)
    assert [message.priority for message in orders.get_all()] == [5, 3, 1]


def test_a_stream_is_read_from_its_beginning(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    log = amqp_queue("log", type="stream")
    for number in range(3):
        log.publish(str(number))
    pika_channel.basic_qos(prefetch_count=10)
    bodies = []
    for method, _, body in pika_channel.consume(log.name, arguments={"x-stream-offset": "first"}):
        bodies.append(body)
        pika_channel.basic_ack(method.delivery_tag)
        if len(bodies) == 3:
            break
    assert bodies == [b"0", b"1", b"2"]


def test_an_exclusive_queue_of_the_app_exists(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    own = amqp_queue(pika_channel.queue_declare("", exclusive=True).method.queue, declare=False)
    assert own.exists
    with pytest.raises(RequestRefused, match="RESOURCE_LOCKED"):
        own.wait_for(ready=0)


def test_a_poisonous_order_reaches_its_limit(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    dead = amqp_queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
    orders = amqp_queue("orders", type="quorum", arguments={"x-delivery-limit": 1, **to_dead})
    orders.publish(json={"apples": 2}, message_id="7")
    for _ in range(2):
        orders.wait_for(ready=1)
        method, _, _ = pika_channel.basic_get(orders.name)
        pika_channel.basic_reject(method.delivery_tag, requeue=True)
    message = dead.get()
    assert (message.json(), message.message_id) == ({"apples": 2}, "7")
    assert message.headers["x-death"][0]["reason"] == "delivery_limit"


def test_a_quorum_queue_redelivers(amqp_queue: MakeQueue, pika_channel: Any) -> None:
    orders = amqp_queue("orders", type="quorum")
    orders.publish(b"two apples")
    orders.wait_for(ready=1)
    method, _, _ = pika_channel.basic_get(orders.name)
    pika_channel.basic_nack(method.delivery_tag, requeue=True)
    message = orders.get()
    assert message.redelivered


def test_a_queue_that_the_app_declares(amqp_queue: MakeQueue, pika_connection: Any) -> None:
    name = f"{amqp_queue('app').name}-own"
    own = amqp_queue(name, declare=False)
    assert not own.exists
    channel = pika_connection.channel()
    channel.queue_declare(name, durable=True)
    channel.basic_publish("", name, b"two apples")
    assert own.wait_for(ready=1).get().body == b"two apples"


def test_the_app_breaks_its_connection(amqp_queue: MakeQueue, pika_connection: Any) -> None:
    orders = amqp_queue("orders")
    channel = pika_connection.channel()
    channel.basic_consume(orders.name, lambda *delivery: None)
    orders.wait_for(consumers=1)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare(orders.name, durable=False)
    pika_connection._impl._transport.abort()
    orders.wait_for(consumers=0)


def test_a_wait_without_success_tells_what_it_saw(amqp_queue: MakeQueue) -> None:
    orders = amqp_queue("orders")
    orders.publish(b"two apples")
    orders.wait_for(ready=1)
    with pytest.raises(WaitTimeout, match="exactly 3 ready, exactly 1 consumers, but it has 1 ready and 0"):
        orders.wait_for(ready=3, consumers=1, timeout=0.05)
    orders.purge()
    with pytest.raises(WaitTimeout, match=r"for a message in queue 'orders-.*but it has 0 ready and 0"):
        orders.get(timeout=0.05)


@pytest.mark.asyncio
async def test_a_coroutine_waits(amqp_queue: MakeQueue, aio_pika_connection: Any) -> None:
    orders, done = amqp_queue("orders"), amqp_queue("done")
    channel, acknowledged = await aio_pika_connection.channel(), asyncio.Event()

    async def handle(message: Any) -> None:
        await asyncio.sleep(0)
        await channel.default_exchange.publish(aio_pika.Message(message.body.upper()), done.name)
        await message.ack()
        acknowledged.set()

    await (await channel.get_queue(orders.name)).consume(handle)
    await orders.wait_for.aio(consumers=1)
    orders.publish(b"two apples")
    assert (await done.get.aio()).body == b"TWO APPLES"
    await acknowledged.wait()  # an ack on a closed channel would close the connection
    await channel.close()
    await orders.wait_for.aio(consumers=0, ready=0)
