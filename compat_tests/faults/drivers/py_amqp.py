"""py-amqp, used directly. It never reconnects by itself."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import amqp

from compat_tests.clients.forgotten import all_transports_closed
from compat_tests.faults.drivers.blocking import TICK, Direct
from compat_tests.faults.observation import InVain, Observation
from compat_tests.faults.scenario import QUEUE, Stage

TITLE = "py-amqp"


def run(stage: Stage) -> Observation:
    with all_transports_closed():
        return _run(stage)


def _run(stage: Stage) -> Observation:
    seen = Observation()
    connection = amqp.Connection(
        f"{stage.host}:{stage.port}",
        heartbeat=stage.scenario.heartbeat,
        connect_timeout=stage.patience,
        read_timeout=stage.patience,
        write_timeout=stage.patience,
        confirm_publish=True,
        on_blocked=lambda _: seen.tell("blocked"),
        on_unblocked=lambda: seen.tell("unblocked"),
    )
    work = _Work(stage, seen, connection)
    try:
        if work.tried("connecting", connection.connect):
            stage.reached("connected")
            work.all()
    finally:
        if connection.connected:
            work.tried("closing", connection.close)
        connection.collect()
    return seen


class _Work(Direct):
    def __init__(self, stage: Stage, seen: Observation, connection: amqp.Connection) -> None:
        super().__init__(stage)
        self.seen, self.connection = seen, connection
        self.channel: Any = None

    def hopeless(self) -> bool:
        return self.seen.gave_up or not (self.connection.connected and self.channel.is_open)

    def declare(self) -> None:
        self.channel = self.connection.channel()
        self.channel.events["basic_return"].add(
            lambda _error, _exchange, _key, message: self.seen.came_back(message.body)
        )
        self.channel.queue_declare(QUEUE, durable=True, auto_delete=False)

    def publish(self, body: str) -> None:
        message = amqp.Message(body.encode(), delivery_mode=2)
        self.channel.basic_publish(message, routing_key=QUEUE, confirm_timeout=self.stage.patience)

    def subscribe(self) -> None:
        self.channel.basic_consume(QUEUE, callback=self.take, on_cancel=lambda _: self.seen.tell("cancelled"))

    def take(self, message: amqp.Message) -> None:
        self.seen.take(message.body, message.delivery_info["redelivered"])
        message.channel.basic_ack(message.delivery_tag)

    def wait(self, times: float) -> None:
        deadline = time.monotonic() + self.stage.patience * times
        while time.monotonic() < deadline:
            with suppress(socket.timeout):
                self.connection.drain_events(timeout=TICK)
            self.connection.heartbeat_tick()
            if self.stage.over():
                return
        raise InVain
