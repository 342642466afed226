"""Celery: a worker in a thread of this process, results through the rpc backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import celery
import celery.signals
import kombu.pools
import pytest
from celery.contrib.testing.worker import start_worker

from fakeamqp import Broker

SECONDS = 30


@pytest.fixture
def app(broker: Broker) -> Iterator[celery.Celery]:
    url = f"pyamqp://guest:guest@{broker.host}:{broker.port}//"
    app = celery.Celery("shop", broker=url, backend="rpc://", set_as_current=False)
    app.conf.update(task_acks_late=True)
    # With a receiver for this signal Celery leaves logging alone; else it silences the tests that come after.
    celery.signals.setup_logging.connect(_leave_logging_alone)

    def add(x: int, y: int) -> int:
        return x + y

    def fail() -> None:
        raise LookupError("no such thing")

    def patient(self: Any) -> int:
        if self.request.retries < 2:
            raise self.retry()
        return int(self.request.retries)

    app.task(name="shop.add", shared=False)(add)
    app.task(name="shop.fail", shared=False)(fail)
    app.task(name="shop.patient", shared=False, bind=True, max_retries=2, default_retry_delay=0)(patient)
    app.finalize()
    yield app
    celery.signals.setup_logging.disconnect(_leave_logging_alone)
    app.backend.result_consumer.stop()
    kombu.pools.reset()
    app.close()


def _leave_logging_alone(**_: object) -> None:
    pass


@contextmanager
def worker(app: celery.Celery) -> Iterator[None]:
    """A worker in a thread of its own, told to shut down at the end as `celery control shutdown` does."""
    with start_worker(app, perform_ping_check=False, pool="solo", shutdown_timeout=SECONDS):
        yield
        app.control.shutdown()


def test_tasks_and_results(app: celery.Celery, broker: Broker) -> None:
    with worker(app):
        results = [app.tasks["shop.add"].delay(number, 10) for number in range(3)]
        assert [result.get(timeout=SECONDS) for result in results] == [10, 11, 12]
        with pytest.raises(LookupError, match="no such thing"):
            app.tasks["shop.fail"].delay().get(timeout=SECONDS)
        assert app.tasks["shop.patient"].delay().get(timeout=SECONDS) == 2
        # An acknowledgement can lie in the worker's event loop until something else wakes it.
        assert len(app.control.ping(timeout=SECONDS, limit=1)) == 1
        broker.queue("celery").wait_for(count=0, unacked=0, consumers=1)
    broker.queue("celery").wait_for(consumers=0)
    # Five tasks, one of them three times.
    assert len([each for each in broker.published if each.routing_key == "celery"]) == 7


def test_tasks_wait_for_a_worker(app: celery.Celery, broker: Broker) -> None:
    result = app.tasks["shop.add"].apply_async((1, 2))
    (message,) = broker.queue("celery").wait_for(count=1).messages
    assert message.headers["task"] == "shop.add"
    with worker(app):
        assert result.get(timeout=SECONDS) == 3
