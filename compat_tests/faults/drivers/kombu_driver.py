"""kombu: publishing with `retry=True`, consuming with `ConsumerMixin`, which both reconnect."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import kombu
import kombu.mixins
from kombu.exceptions import OperationalError
from kombu.utils.limits import TokenBucket

from compat_tests.clients.forgotten import all_transports_closed
from compat_tests.faults.drivers.blocking import TICK, Work
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import QUEUE, Stage

TITLE = "kombu"
RETRY: dict[str, Any] = {"max_retries": 2, "interval_start": 0.05, "interval_step": 0, "interval_max": 0.05}


def run(stage: Stage) -> Observation:
    with all_transports_closed():
        work = _Work(stage)
        try:
            work.all()
        finally:
            with suppress(Exception):
                work.connection.release()
    return work.seen


def all_attempts_failed(seen: Observation) -> bool:
    return seen.troubles[-1].name == OperationalError.__name__


class _Work(Work):
    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.queue = kombu.Queue(QUEUE, durable=True)
        self.connection = kombu.Connection(
            f"pyamqp://guest:guest@{stage.host}:{stage.port}//",
            connect_timeout=stage.patience,
            heartbeat=stage.scenario.heartbeat,
            transport_options={
                "confirm_publish": True,
                "read_timeout": stage.patience,
                "write_timeout": stage.patience,
                "on_blocked": lambda _: self.seen.tell("blocked"),
                "on_unblocked": lambda: self.seen.tell("unblocked"),
            },
        )

    def all(self) -> None:
        if not self.tried("connecting", lambda: self.connection.ensure_connection(**RETRY)):
            return
        self.stage.reached("connected")
        if not self.tried("declaring", self.declare):
            return
        self.stage.reached("declared")
        producer = kombu.Producer(self.connection, on_return=self.came_back)
        self.published(lambda body: self.publish(producer, body), lambda: all_attempts_failed(self.seen))
        self.stage.reached("published")
        # A connection of its own for consuming, as ConsumerMixin makes one; this is done with.
        self.tried("closing", self.connection.release)
        consumer = _Consumer(self.stage, self.seen, self.connection.clone(), self.queue)
        self.tried("consuming", consumer.run)
        if consumer.error is not None:
            self.seen.troubles.append(trouble(consumer.step, consumer.error))

    def came_back(self, _error: Any, _exchange: str, _routing_key: str, message: Any) -> None:
        self.seen.came_back(message.body)

    def declare(self) -> None:
        self.queue(self.connection.default_channel).declare()

    def publish(self, producer: kombu.Producer, body: str) -> None:
        producer.publish(
            body,
            routing_key=QUEUE,
            delivery_mode=2,
            retry=True,
            retry_policy=RETRY,
            confirm_timeout=self.stage.patience,
        )


class _Consumer(kombu.mixins.ConsumerMixin):
    """Consumes until the stage says that it is over, or patience is."""

    connect_max_retries = 2
    restart_limit = TokenBucket(100, capacity=100)

    def __init__(
        self, stage: Stage, seen: Observation, connection: kombu.Connection, queue: kombu.Queue
    ) -> None:
        self.stage, self.seen, self.connection, self.queue = stage, seen, connection, queue
        self.step = "consuming"
        self.deadline = time.monotonic() + stage.patience
        self.error: BaseException | None = None
        self.current: kombu.Connection | None = None

    def run(self) -> None:
        super().run(safety_interval=TICK)

    def get_consumers(self, Consumer: Any, channel: Any) -> list[Any]:
        return [Consumer([self.queue], on_message=self.take)]

    def on_consume_ready(self, connection: Any, channel: Any, consumers: Any, **_: Any) -> None:
        self.current = connection
        self.stage.reached("consuming")

    def on_iteration(self) -> None:
        if self.stage.over():
            if self.step == "consuming" and self.stage.scenario.waits:
                self.step = "waiting"
                self.deadline = time.monotonic() + self.stage.patience * self.stage.scenario.patience
                self.stage.reached("waiting")
            else:
                self.should_stop = True
        elif time.monotonic() > self.deadline:
            self.error = InVain()
            self.should_stop = True

    def take(self, message: Any) -> None:
        self.seen.take(message.body, message.delivery_info["redelivered"])
        message.ack()

    def on_connection_error(self, exc: BaseException, interval: float) -> None:
        pass

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        try:
            yield from super().consume(*args, **kwargs)
        except TimeoutError:
            raise
        except Exception as error:
            # `run` takes it, warns, and begins anew.
            self.seen.troubles.append(trouble(self.step, error))
            if time.monotonic() > self.deadline:
                self.should_stop = True
            raise
