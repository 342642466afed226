"""Sessions of Python's clients of AMQP 0-9-1: each connects to a URL, and does what its users do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import aiormq
import amqp
import kombu
import pika
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

SECONDS = 20


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


def pika_blocking(url: str) -> None:
    """Confirms, a topic exchange, dead letters, a returned message, and two errors of a channel."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.exchange_declare("shop-events", "topic", durable=True)
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "rejected", "x-max-length": 1}
        channel.queue_declare("rejected", durable=True)
        channel.queue_declare("orders", durable=True, arguments={**dead, "x-overflow": "reject-publish"})
        channel.queue_bind("orders", "shop-events", "order.#")
        properties = pika.BasicProperties(
            content_type="application/json",
            delivery_mode=2,
            headers={"authorization": "Bearer abc", "attempt": 1, "tags": ["a", None, True]},
            message_id="m1",
        )
        channel.basic_publish("shop-events", "order.placed", b'{"card": "4242"}', properties)
        with suppress(NackError):
            channel.basic_publish("shop-events", "order.placed", b"too many")
        with suppress(UnroutableError):
            channel.basic_publish("shop-events", "nobody", b"lost", mandatory=True)
        method, _, _ = channel.basic_get("orders")
        taken: list[Any] = []

        def take(channel: Any, method: Any, *content: Any) -> None:
            channel.basic_ack(method.delivery_tag)
            taken.append(content)

        # The consumer waits already: RabbitMQ marks a dead letter that a queue has stored as redelivered.
        tag = channel.basic_consume("rejected", take)
        channel.basic_reject(method.delivery_tag, requeue=False)
        while not taken:
            connection.process_data_events(SECONDS)
        channel.basic_cancel(tag)
        with suppress(ChannelClosedByBroker):
            channel.queue_declare("orders", durable=False)
        channel = connection.channel()
        with suppress(ChannelClosedByBroker):
            channel.basic_get("missing")
        channel = connection.channel()
        for queue in ("orders", "rejected"):
            channel.queue_delete(queue)
        channel.exchange_delete("shop-events")


def pika_select(url: str) -> None:
    """Call-backs: a fanout exchange, a prefetch, a large message, and a cancelled consumer."""

    class Session:
        def __init__(self) -> None:
            self.left = 3
            self.connection: Any = pika.SelectConnection(
                pika.URLParameters(url), on_open_callback=self.opened, on_close_callback=self.closed
            )
            self.loop = self.connection.ioloop
            self.loop.call_later(SECONDS, self.loop.stop)
            self.loop.start()
            self.loop.close()

        def opened(self, connection: Any) -> None:
            connection.channel(on_open_callback=self.declare)

        def declare(self, channel: Any) -> None:
            self.channel = channel
            channel.exchange_declare(
                "news", "fanout", auto_delete=True, callback=lambda _: channel.queue_declare(
                    "", exclusive=True, callback=self.bind
                )
            )  # fmt: skip

        def bind(self, frame: Any) -> None:
            self.queue = frame.method.queue
            self.channel.queue_bind(self.queue, "news", callback=lambda _: self.consume())

        def consume(self) -> None:
            self.channel.basic_qos(prefetch_count=1)
            self.tag = self.channel.basic_consume(self.queue, self.take, callback=lambda _: self.publish())

        def publish(self) -> None:
            for body in (b"one", b"two " * 2000, b"three"):
                self.channel.basic_publish("news", "", body)

        def take(self, channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
            channel.basic_ack(method.delivery_tag)
            self.left -= 1
            if not self.left:
                channel.basic_cancel(self.tag, callback=lambda _: self.connection.close())

        def closed(self, *_: object) -> None:
            self.loop.stop()

    assert Session().left == 0


def aio_pika_client(url: str) -> None:
    """A request and its answer over direct reply-to, a transaction, and priorities."""

    async def session() -> None:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            requests = await channel.declare_queue("questions", auto_delete=True)

            async def answer(message: Any) -> None:
                async with message.process():
                    reply = aio_pika.Message(message.body[::-1], correlation_id=message.correlation_id)
                    await channel.default_exchange.publish(reply, message.reply_to)

            await requests.consume(answer)
            asking = await connection.channel()
            answers: asyncio.Queue[Any] = asyncio.Queue()
            replies = await asking.get_queue("amq.rabbitmq.reply-to", ensure=False)
            await replies.consume(answers.put, no_ack=True)
            request = aio_pika.Message(b"drawer", reply_to="amq.rabbitmq.reply-to", correlation_id="1")
            await asking.default_exchange.publish(request, "questions")
            assert (await asyncio.wait_for(answers.get(), SECONDS)).body == b"reward"
            async with await connection.channel(publisher_confirms=False) as transactional:
                arguments = {"x-max-priority": 5}
                queue = await transactional.declare_queue("ranked", arguments=arguments)
                async with transactional.transaction():
                    for priority in (1, 4):
                        message = aio_pika.Message(b"%d" % priority, priority=priority)
                        await transactional.default_exchange.publish(message, "ranked")
                urgent = await queue.get()
                assert urgent.body == b"4"
                await urgent.ack()
                await queue.purge()
                await queue.delete()

    asyncio.run(session())


def aiormq_client(url: str) -> None:
    """A headers exchange, a message that is requeued, and one that expires."""

    async def session() -> None:
        connection = await aiormq.connect(url)
        channel = await connection.channel()
        await channel.exchange_declare(exchange="sizes", exchange_type="headers")
        expiring = {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "late"}
        await channel.queue_declare("late")
        await channel.queue_declare("short", arguments=expiring)
        await channel.queue_declare("large")
        match = {"x-match": "all", "size": 3, "kind": "order"}
        await channel.queue_bind("large", "sizes", arguments=match)
        properties = aiormq.spec.Basic.Properties(headers={"size": 3, "kind": "order"}, app_id="shop")
        await channel.basic_publish(b"boxes", exchange="sizes", properties=properties)
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        await channel.basic_qos(prefetch_count=1)
        await channel.basic_consume("large", arrived.put, consumer_tag="me")
        message = await asyncio.wait_for(arrived.get(), SECONDS)
        await channel.basic_reject(message.delivery.delivery_tag, requeue=True)
        message = await asyncio.wait_for(arrived.get(), SECONDS)
        assert message.delivery.redelivered
        await channel.basic_ack(message.delivery.delivery_tag)
        await channel.basic_cancel("me")
        await channel.basic_consume("late", arrived.put, no_ack=True)
        await channel.basic_publish(b"milk", routing_key="short")
        message = await asyncio.wait_for(arrived.get(), SECONDS)
        assert message.header.properties.headers["x-first-death-reason"] == "expired"
        for queue in ("large", "short", "late"):
            await channel.queue_delete(queue)
        await channel.exchange_delete("sizes")
        await connection.close()

    asyncio.run(session())


def py_amqp(url: str) -> None:
    """AMQPLAIN, a bound exchange, a transaction that is rolled back, and recovered messages."""
    with amqp.Connection("{}:{}".format(*_address(url)), "guest", "guest") as connection:
        channel = connection.channel()
        channel.exchange_declare("in", "direct", auto_delete=False)
        channel.exchange_declare("out", "fanout", auto_delete=False)
        channel.exchange_bind("out", "in", "all")
        channel.queue_declare("stock", auto_delete=False)
        channel.queue_bind("stock", "out")
        channel.tx_select()
        channel.basic_publish(amqp.Message("undone"), "in", "all")
        channel.tx_rollback()
        headers = {"n": 1, "deep": {"list": [1, "two"]}}
        channel.basic_publish(amqp.Message("done", application_headers=headers), "in", "all")
        channel.tx_commit()
        message = channel.basic_get("stock")
        assert message.body == "done"
        channel.basic_recover(requeue=True)
        again = channel.basic_get("stock")
        channel.basic_ack(again.delivery_tag)
        channel.tx_commit()
        assert channel.basic_get("stock") is None
        channel.queue_delete("stock")
        channel.exchange_unbind("out", "in", "all")
        for exchange in ("in", "out"):
            channel.exchange_delete(exchange)
        channel.close()


def kombu_client(url: str) -> None:
    """A topic exchange, a consumer of two queues, and a simple queue."""
    host, port = _address(url)
    with kombu.Connection(f"pyamqp://guest:guest@{host}:{port}//") as connection:
        events = kombu.Exchange("kombu-events", "topic", durable=True)
        queues = [
            kombu.Queue(name, events, routing_key=key, max_priority=3)
            for name, key in (("paid", "order.paid"), ("every", "order.*"))
        ]
        taken: list[Any] = []

        def take(body: Any, message: Any) -> None:
            taken.append(body)
            message.ack()

        with connection.Consumer(queues, callbacks=[take], tag_prefix="c"):
            producer = connection.Producer(serializer="json")
            for number, key in enumerate(("order.paid", "order.sent")):
                producer.publish(
                    {"id": number}, exchange=events, routing_key=key, declare=[events], priority=2
                )
            while len(taken) < 3:
                connection.drain_events(timeout=SECONDS)
        channel = connection.channel()
        for queue in queues:
            queue(channel).delete()
        events(channel).delete()
        with connection.SimpleQueue("simple") as simple:
            simple.put({"id": 7}, headers={"h": [1, "two"]})
            message = simple.get(timeout=SECONDS)
            message.ack()
        connection.channel().queue_delete("simple")


def celery_worker(url: str) -> None:
    """A worker that does three tasks, one of which is retried, and results over RPC."""
    from compat_tests.clients.celery_app import shop, worker

    class Address:
        host, port = _address(url)

    remote: Any = Address
    with shop(remote, worker_enable_remote_control=False) as app, worker(app):
        assert app.tasks["shop.add"].delay(1, 2).get(timeout=SECONDS) == 3
        with suppress(LookupError):
            app.tasks["shop.fail"].delay().get(timeout=SECONDS)
        assert app.tasks["shop.patient"].delay().get(timeout=SECONDS) == 2


def amqpstorm_client(url: str) -> None:
    """Confirms, a quorum queue, and a consumer that is cancelled with its queue."""
    import amqpstorm

    host, port = _address(url)
    with amqpstorm.Connection(host, "guest", "guest", port=port, timeout=SECONDS) as connection:
        channel = connection.channel()
        channel.confirm_deliveries()
        arguments = {"x-queue-type": "quorum", "x-delivery-limit": 1}
        channel.queue.declare("quorum-orders", durable=True, arguments=arguments)
        properties = {"headers": {"n": 1, "deep": {"list": [1, 2]}}, "correlation_id": "7"}
        assert channel.basic.publish("ö" * 50, "quorum-orders", properties=properties)
        seen: list[Any] = []

        def take(message: Any) -> None:
            seen.append(message)
            message.reject(requeue=not message.redelivered)
            if message.redelivered:
                channel.stop_consuming()

        channel.basic.consume(take, "quorum-orders", consumer_tag="me")
        channel.start_consuming()
        assert [each.redelivered for each in seen] == [False, True]
        channel.queue.delete("quorum-orders")
        channel.close()


SESSIONS: dict[str, Callable[[str], None]] = {
    "pika-blocking": pika_blocking,
    "pika-select": pika_select,
    "aio-pika": aio_pika_client,
    "aiormq": aiormq_client,
    "py-amqp": py_amqp,
    "kombu": kombu_client,
    "celery": celery_worker,
    "amqpstorm": amqpstorm_client,
}
