"""Quorum queues, as programs use them: a poisonous message with pika, a worker's queue with Celery."""

from __future__ import annotations

from typing import Any

import celery
import kombu
import pika
import pytest

from compat_tests.clients.celery_app import SECONDS, shop, worker
from fakeamqp import Broker, WaitTimeout
from fakeamqp.errors import NotDropped

QUORUM = {"x-queue-type": "quorum"}


def test_a_poisonous_message_ends_up_among_the_dead_letters(broker: Broker) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("dead", durable=True, arguments=QUORUM)
        channel.queue_declare(
            "work",
            durable=True,
            arguments={
                **QUORUM,
                "x-delivery-limit": 2,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": "dead",
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            },
        )
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=1)
        channel.basic_publish("", "work", b"poison")
        channel.basic_publish("", "work", b"fine")
        seen = []
        for method, properties, body in channel.consume("work", inactivity_timeout=SECONDS):
            assert method is not None, f"nothing more came after {seen}"
            seen.append((body, (properties.headers or {}).get("x-delivery-count")))
            if body == b"fine":
                channel.basic_ack(method.delivery_tag)
                break
            channel.basic_reject(method.delivery_tag, requeue=True)
        channel.cancel()
        assert seen == [(b"poison", None), (b"poison", 1), (b"poison", 2), (b"fine", None)]
        _, properties, body = channel.basic_get("dead", auto_ack=True)
        assert body == b"poison"
        assert properties.headers["x-death"][0]["reason"] == "delivery_limit"


QUEUES: dict[str, Any] = {
    "task_default_queue": "tasks",
    "task_queues": [kombu.Queue("tasks", durable=True, queue_arguments=QUORUM)],
}


def test_a_celery_worker_finds_out_that_its_queue_shares_no_window(broker: Broker) -> None:
    # Celery looks at its queues (worker_detect_quorum_queues): with one of this type it asks for a prefetch
    # of each consumer's own, since the broker would refuse the shared one that it has otherwise.
    with shop(broker, worker_detect_quorum_queues=True, **QUEUES) as app, worker(app):
        add: celery.Task = app.tasks["shop.add"]
        assert [add.delay(number, 10).get(timeout=SECONDS) for number in range(3)] == [10, 11, 12]
        [consumer] = broker.queue("tasks").wait_for(ready=0, consumers=1).consumers
        assert 0 < consumer.prefetch < 2000
    assert broker.queue("tasks").view().arguments == QUORUM


@pytest.mark.parametrize("name", ["rabbitmq-4.2", "rabbitmq-4.3"])
def test_timeout_names_delivery_counters_of_repeatedly_nacked_message_only_in_4_3(name: str) -> None:
    with (
        Broker(personality=name) as broker,
        pika.BlockingConnection(pika.URLParameters(broker.url)) as connection,
    ):
        channel = connection.channel()
        channel.queue_declare("jobs", durable=True, arguments={**QUORUM, "x-delivery-limit": 3})
        channel.confirm_delivery()
        channel.basic_publish("", "jobs", b"poison")
        for give_back in (channel.basic_reject, *[channel.basic_nack] * 5):
            method, _, _ = channel.basic_get("jobs")
            if method is not None:
                give_back(method.delivery_tag, requeue=True)
        channel.queue_declare("jobs", passive=True)  # The broker has read what came before.
        with pytest.raises(WaitTimeout) as failure:
            broker.wait_for(lambda: broker.queue("jobs").ready > 1, timeout=0.01)
        with pytest.raises(NotDropped) as other:
            broker.expect_dropped(queue="jobs", body=b"poison", timeout=0, count=2)
    hint = (
        "quorum queue 'jobs' redelivers b'poison': its x-acquired-count is 6 and its x-delivery-count 1. "
        "In rabbitmq-4.3 only failed deliveries count towards the delivery limit (3): "
        "basic.reject(requeue=True) and a channel or connection that ends without an ack count, and "
        "basic.nack(requeue=True), basic.recover, the consumer timeout do not. Return it with "
        "basic.reject(requeue=True), or dead-letter it with requeue=False"
    )
    for text in (str(failure.value), str(other.value)):
        assert (hint in text.splitlines()) == (name == "rabbitmq-4.3")


def test_timeout_gives_no_redelivery_hint_for_a_message_nacked_only_once(broker: Broker) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as client:
        channel = client.channel()
        channel.queue_declare("jobs", durable=True, arguments=QUORUM)
        channel.confirm_delivery()
        channel.basic_publish("", "jobs", b"poison")
        for give_back in (channel.basic_nack, *[channel.basic_reject] * 5):
            method, _, _ = channel.basic_get("jobs")
            give_back(method.delivery_tag, requeue=True)
        channel.queue_declare("jobs", passive=True)  # The broker has read what came before.
        with pytest.raises(WaitTimeout) as failure:
            broker.queue("jobs").wait_for(ready=2, timeout=0.01)
    assert "redelivers" not in str(failure.value)
