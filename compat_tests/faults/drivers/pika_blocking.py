"""pika's BlockingConnection, used as its documentation does. It never reconnects by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pika

from compat_tests.faults.drivers.blocking import TICK, Direct
from compat_tests.faults.drivers.pika_callbacks import parameters, quick_checks
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import QUEUE, Stage

TITLE = "pika BlockingConnection"


def run(stage: Stage) -> Observation:
    with quick_checks():
        return _run(stage)


def _run(stage: Stage) -> Observation:
    seen = Observation()
    try:
        connection = pika.BlockingConnection(parameters(stage))
    except Exception as error:
        seen.troubles.append(trouble("connecting", error))
        return seen
    try:
        stage.reached("connected")
        connection.add_on_connection_blocked_callback(lambda *_: seen.tell("blocked"))
        connection.add_on_connection_unblocked_callback(lambda *_: seen.tell("unblocked"))
        _Work(stage, seen, connection).all()
    finally:
        _close(connection, seen, stage.patience)
    return seen


class _Work(Direct):
    def __init__(self, stage: Stage, seen: Observation, connection: Any) -> None:
        super().__init__(stage)
        self.seen, self.connection = seen, connection
        self.channel: Any = None

    def hopeless(self) -> bool:
        return self.seen.gave_up or not self.channel.is_open

    def tried(self, step: str, do: Callable[[], object]) -> bool:
        patience = self.stage.patience * (self.stage.scenario.patience if step == "waiting" else 1)

        def bounded() -> None:
            with bound(self.connection, patience + 1):
                do()

        return super().tried(step, bounded)

    def declare(self) -> None:
        with bound(self.connection, self.stage.patience):
            self.channel = self.connection.channel()
            self.channel.add_on_cancel_callback(lambda *_: self.seen.tell("cancelled"))
            self.channel.queue_declare(QUEUE, durable=True)
            self.channel.confirm_delivery()

    def publish(self, body: str) -> None:
        properties = pika.BasicProperties(delivery_mode=2)
        with bound(self.connection, self.stage.patience):
            self.channel.basic_publish("", QUEUE, body.encode(), properties)

    def subscribe(self) -> None:
        self.channel.basic_consume(QUEUE, self.take)

    def take(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self.seen.take(body, method.redelivered)
        channel.basic_ack(method.delivery_tag)

    def wait(self, times: float) -> None:
        rounds = int(self.stage.patience * times / TICK)
        for _ in range(rounds):
            self.connection.process_data_events(time_limit=TICK)
            if self.channel.is_closed:
                raise self.channel._impl._closing_reason
            if self.stage.over():
                return
        raise InVain


@contextmanager
def bound(connection: Any, seconds: float) -> Iterator[None]:
    """Blocking calls run the loop of the connection beneath: what a timer there raises ends them."""

    def end() -> None:
        raise InVain

    loop = connection._impl.ioloop
    if connection.is_closed:
        yield
        return
    timer = loop.call_later(seconds, end)
    try:
        yield
    finally:
        if connection.is_open:
            loop.remove_timeout(timer)


def _close(connection: Any, seen: Observation, patience: float) -> None:
    """Close, by force where the broker does not answer."""
    if connection.is_open:
        try:
            with bound(connection, patience):
                connection.close()
        except Exception as error:
            seen.troubles.append(trouble("closing", error))
    below = connection._impl
    if not below.is_closed:
        below._terminate_stream(pika.exceptions.StreamLostError("the driver has no more patience"))
        while not below.is_closed:
            below.ioloop.poll()
            below.ioloop.process_timeouts()
    with suppress(Exception):
        connection._cleanup()
