"""Celery: a worker in a thread of this process, results through the rpc backend."""

from __future__ import annotations

from collections.abc import Iterator

import celery
import pytest

from compat_tests.clients.celery_app import SECONDS, shop, worker
from fakeamqp import Broker


@pytest.fixture
def app(broker: Broker) -> Iterator[celery.Celery]:
    with shop(broker) as app:
        yield app


def test_tasks_and_results(app: celery.Celery, broker: Broker) -> None:
    with worker(app):
        results = [app.tasks["shop.add"].delay(number, 10) for number in range(3)]
        assert [result.get(timeout=SECONDS) for result in results] == [10, 11, 12]
        with pytest.raises(LookupError, match="no such thing"):
            app.tasks["shop.fail"].delay().get(timeout=SECONDS)
        assert app.tasks["shop.patient"].delay().get(timeout=SECONDS) == 2
        # An acknowledgement can lie in the worker's event loop until something else wakes it.
        assert len(app.control.ping(timeout=SECONDS, limit=1)) == 1
        broker.queue("celery").wait_for(ready=0, unacked=0, consumers=1)
    broker.queue("celery").wait_for(consumers=0)
    # Five tasks, one of them three times.
    assert len([each for each in broker.published if each.routing_key == "celery"]) == 7


def test_tasks_wait_for_a_worker(app: celery.Celery, broker: Broker) -> None:
    result = app.tasks["shop.add"].apply_async((1, 2))
    (message,) = broker.queue("celery").wait_for(ready=1).messages
    assert message.headers["task"] == "shop.add"
    with worker(app):
        assert result.get(timeout=SECONDS) == 3
