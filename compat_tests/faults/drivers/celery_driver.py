"""Celery: tasks sent with its retry policy, and a worker in a thread of this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import celery
import celery.signals
import celery.worker.state
import kombu.pools
from celery.contrib.testing.worker import start_worker
from celery.worker.consumer import Consumer

from compat_tests.clients.forgotten import all_transports_closed
from compat_tests.faults.drivers.blocking import TICK, Work
from compat_tests.faults.drivers.kombu_driver import RETRY, all_attempts_failed
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import LATE, QUEUE, Stage

TITLE = "Celery"
_TASK = "orders.note"
LATE_MESSAGE: dict[str, Any] = {
    "body": f'[["{LATE}"], {{}}, {{}}]',
    "headers": {"task": _TASK, "id": LATE, "lang": "py"},
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "correlation_id": LATE,
}


def run(stage: Stage) -> Observation:
    with all_transports_closed():
        work = _Work(stage)
        work.all()
    return work.seen


class _Work(Work):
    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.step = "connecting"
        self.app = self.make_app()

    def make_app(self) -> celery.Celery:
        stage, seen = self.stage, self.seen
        app = celery.Celery(
            "orders", broker=f"pyamqp://guest:guest@{stage.host}:{stage.port}//", set_as_current=False
        )
        app.conf.update(
            broker_connection_max_retries=2,
            broker_connection_retry_on_startup=True,
            broker_connection_timeout=stage.patience,
            broker_heartbeat=stage.scenario.heartbeat or None,
            broker_pool_limit=1,
            broker_transport_options={
                "confirm_publish": True,
                "read_timeout": stage.patience,
                "write_timeout": stage.patience,
                "on_blocked": lambda _: seen.tell("blocked"),
                "on_unblocked": lambda: seen.tell("unblocked"),
            },
            task_acks_late=True,
            task_default_queue=QUEUE,
            task_ignore_result=True,
            task_publish_retry_policy=RETRY,
            worker_cancel_long_running_tasks_on_connection_loss=True,
            worker_enable_remote_control=False,
        )

        @app.task(name=_TASK, shared=False, bind=True)
        def note(task: Any, body: str) -> None:
            seen.take(body, task.request.delivery_info.get("redelivered"))

        app.finalize()
        return app

    def all(self) -> None:
        # With a receiver for this signal Celery leaves logging alone.
        celery.signals.setup_logging.connect(_leave_logging_alone)
        try:
            if self.publish():
                with self.listening():
                    self.consume()
        finally:
            celery.signals.setup_logging.disconnect(_leave_logging_alone)
            with suppress(Exception):
                self.app.pool.force_close_all()
            kombu.pools.reset()
            self.app.close()

    def publish(self) -> bool:
        with self.app.pool.acquire(block=True) as connection:
            if not self.tried("connecting", lambda: connection.ensure_connection(**RETRY)):
                return False
            self.stage.reached("connected")
            queue = self.app.amqp.queues[QUEUE]
            if not self.tried("declaring", lambda: queue(connection.default_channel).declare()):
                return False
            self.stage.reached("declared")
        self.published(self.send, lambda: all_attempts_failed(self.seen))
        self.stage.reached("published")
        return True

    def send(self, body: str) -> None:
        self.app.send_task(_TASK, (body,), confirm_timeout=self.stage.patience)

    def consume(self) -> None:
        self.step = "consuming"
        with start_worker(
            self.app, pool="solo", perform_ping_check=False, shutdown_timeout=self.stage.patience * 20
        ) as self.worker:
            try:
                self.work()
            finally:
                celery.worker.state.should_terminate = 0
                self.wake()

    def work(self) -> None:
        self.stage.reached("consuming")
        if self.wait(5) and self.stage.scenario.waits:
            self.step = "waiting"
            self.stage.reached("waiting")
            self.wait(self.stage.scenario.patience + 4)

    def wake(self) -> None:
        """The worker's loop can sleep for a second while there is something to do, also to stop."""
        self.worker.consumer.hub.call_soon(lambda: None)

    def wait(self, times: float) -> bool:
        deadline = time.monotonic() + self.stage.patience * times
        while time.monotonic() < deadline:
            self.stage.wait_for_change(TICK)
            self.wake()
            if self.stage.over():
                return True
        self.seen.troubles.append(trouble(self.step, InVain()))
        return False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note what the worker says of its connection, which it raises nowhere."""
        lost = Consumer.on_connection_error_after_connected

        def noted(consumer: Any, error: BaseException) -> Any:
            self.seen.troubles.append(trouble(self.step, error))
            return lost(consumer, error)

        class Fatal(logging.Handler):
            def emit(this, record: logging.LogRecord) -> None:
                if record.levelno >= logging.CRITICAL and record.exc_info:
                    self.seen.troubles.append(trouble(self.step, record.exc_info[1]))
                    self.seen.tell("the worker ends")

        handler = Fatal()
        logger = logging.getLogger("celery.worker")
        logger.addHandler(handler)
        try:
            with mock.patch.object(Consumer, "on_connection_error_after_connected", noted):
                yield
        finally:
            logger.removeHandler(handler)


def _leave_logging_alone(**_: object) -> None:
    pass
