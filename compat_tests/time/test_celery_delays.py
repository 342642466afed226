"""Celery's delays, moved by the test: native delayed delivery, and ETA tasks that a worker holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
import time_machine

from compat_tests.clients.celery_app import SECONDS, shop, worker
from compat_tests.clients.forgotten import all_transports_closed
from fakeamqp import Broker

QUORUM = {"task_default_queue_type": "quorum", "task_default_exchange_type": "topic"}
"""With quorum queues Celery delays tasks in the broker: through a chain of 28 queues, one for each bit."""


@contextmanager
def workers_time() -> Iterator[time_machine.Traveller]:
    """The time of the app and its worker, which do not live by the broker's clock."""
    with time_machine.travel(datetime.now(timezone.utc), tick=True) as traveller:
        yield traveller


@pytest.mark.parametrize("delay_queues", ["quorum", "classic"])
def test_native_delayed_delivery_comes_by_advance(delay_queues: str) -> None:
    settings = {**QUORUM, "broker_native_delayed_delivery_queue_type": delay_queues}
    with (
        Broker(clock="virtual") as broker,
        workers_time() as traveller,
        shop(broker, **settings) as app,
        worker(app),
    ):
        result = app.tasks["shop.add"].apply_async((1, 2), countdown=3600)
        # 3600 s is 111000010000 in binary: the highest bit is that of 2048 s.
        broker.queue("celery_delayed_11").wait_for(ready=1)
        traveller.shift(3600)
        broker.clock.advance(3599)
        assert broker.queue("celery_delayed_4").ready == 1
        broker.clock.advance(1)
        assert result.get(timeout=SECONDS) == 3


def test_an_eta_task_comes_by_advance() -> None:
    with (
        Broker(clock="virtual") as broker,
        workers_time() as traveller,
        shop(broker, **QUORUM) as app,
        worker(app),
    ):
        eta = datetime.now(timezone.utc) + timedelta(minutes=10)
        result = app.tasks["shop.add"].apply_async((1, 2), eta=eta)
        broker.wait_until_idle()
        traveller.shift(600)
        broker.clock.advance(600)
        assert result.get(timeout=SECONDS) == 3


def test_task_with_countdown_runs_when_time_machine_shifts_the_wall_clock() -> None:
    with (
        Broker(clock="wall") as broker,
        workers_time() as traveller,
        shop(broker, **QUORUM) as app,
        worker(app),
    ):
        result = app.tasks["shop.add"].apply_async((1, 2), countdown=3600)
        broker.queue("celery_delayed_11").wait_for(ready=1)
        traveller.shift(3600)
        assert result.get(timeout=SECONDS) == 3


def test_a_task_delayed_for_years_passes_all_its_queues() -> None:
    with Broker(clock="virtual") as broker, shop(broker, **QUORUM) as app, worker(app):
        seconds = 2**28 - 1  # Every bit is set: eight and a half years.
        app.tasks["shop.add"].apply_async((1, 2), countdown=seconds)
        broker.queue("celery_delayed_27").wait_for(ready=1)
        passed = []
        for level in range(27, -1, -1):
            assert broker.queue(f"celery_delayed_{level}").ready == 1
            broker.clock.advance(2**level)
            passed.append(2**level)
        assert sum(passed) == seconds
        broker.queue("celery").wait_for(unacked=1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_eta_task_held_by_a_worker_is_requeued_after_half_an_hour() -> None:
    """What many have met, up to RabbitMQ 4.2: with classic queues a worker holds an ETA task unacknowledged,
    the broker does not wait for ever, and the worker does not survive it."""
    broker = Broker(clock="virtual", personality="rabbitmq-4.2")
    with broker, all_transports_closed(), shop(broker) as app, worker(app):
        eta = datetime.now(timezone.utc) + timedelta(hours=2)
        app.tasks["shop.add"].apply_async((1, 2), eta=eta)
        broker.queue("celery").wait_for(ready=0, unacked=1)
        broker.clock.advance(1799)
        assert broker.queue("celery").unacked == 1
        broker.clock.advance(1)
        (message,) = broker.queue("celery").wait_for(ready=1, unacked=0).messages
        assert message.redelivered
