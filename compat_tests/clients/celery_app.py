"""A Celery app with a few tasks, and a worker for it in a thread of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import celery
import celery.signals
import kombu.pools
from celery.contrib.testing.worker import start_worker

from fakeamqp import Broker

__all__ = ["SECONDS", "shop", "worker"]

SECONDS = 30
"""How long to wait for what ought to happen at once."""


@contextmanager
def shop(broker: Broker, **settings: Any) -> Iterator[celery.Celery]:
    """An app whose broker and result backend are `broker`."""
    url = f"pyamqp://guest:guest@{broker.host}:{broker.port}//"
    app = celery.Celery("shop", broker=url, backend="rpc://", set_as_current=False)
    app.conf.update(task_acks_late=True, **settings)
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
    try:
        yield app
    finally:
        celery.signals.setup_logging.disconnect(_leave_logging_alone)
        with suppress(AttributeError):  # Nobody asked for a result.
            app.backend.result_consumer.stop()
        kombu.pools.reset()
        app.close()


def _leave_logging_alone(**_: object) -> None:
    pass


@contextmanager
def worker(app: celery.Celery) -> Iterator[None]:
    """A worker in a thread of its own, told to shut down at the end as `celery control shutdown` does."""
    with start_worker(app, perform_ping_check=False, pool="solo", shutdown_timeout=SECONDS) as started:
        try:
            yield
        finally:
            app.control.shutdown()
            # Else start_worker() tells it to terminate while it shuts down, and its thread raises both.
            started.blueprint.join(SECONDS)
