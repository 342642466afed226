"""py-amqp, used directly. It never reconnects by itself."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import amqp

from compat_tests.clients.forgotten import all_transports_closed
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import BODIES, QUEUE, Stage

TITLE = "py-amqp"
_TICK = 0.02


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
        work.all()
    finally:
        if connection.connected:
            work.tried("closing", connection.close)
        connection.collect()
    return seen


class _Work:
    def __init__(self, stage: Stage, seen: Observation, connection: amqp.Connection) -> None:
        self.stage, self.seen, self.connection = stage, seen, connection
        self.channel: Any = None

    def all(self) -> None:
        if not self.tried("connecting", self.connection.connect):
            return
        self.stage.reached("connected")
        if not self.tried("declaring", self.declare):
            return
        self.stage.reached("declared")
        for body in BODIES:
            if self.tried("publishing", lambda body=body: self.publish(body)):
                self.seen.confirmed.append(body)
            elif self.seen.gave_up or not (self.connection.connected and self.channel.is_open):
                return
        self.stage.reached("published")
        if self.tried("consuming", self.consume) and self.stage.scenario.waits:
            self.stage.reached("waiting")
            self.tried("waiting", lambda: self.wait(self.stage.scenario.patience))

    def tried(self, step: str, do: Any) -> bool:
        try:
            do()
        except Exception as error:
            self.seen.troubles.append(trouble(step, error))
            return False
        return True

    def declare(self) -> None:
        self.channel = self.connection.channel()
        self.channel.events["basic_return"].add(
            lambda _error, _exchange, _key, message: self.seen.came_back(message.body)
        )
        self.channel.queue_declare(QUEUE, durable=True, auto_delete=False)

    def publish(self, body: str) -> None:
        message = amqp.Message(body.encode(), delivery_mode=2)
        self.channel.basic_publish(message, routing_key=QUEUE, confirm_timeout=self.stage.patience)

    def consume(self) -> None:
        self.channel.basic_consume(QUEUE, callback=self.take, on_cancel=lambda _: self.seen.tell("cancelled"))
        self.stage.reached("consuming")
        self.wait(1)

    def take(self, message: amqp.Message) -> None:
        self.seen.take(message.body, message.delivery_info["redelivered"])
        message.channel.basic_ack(message.delivery_tag)

    def wait(self, times: float) -> None:
        deadline = time.monotonic() + self.stage.patience * times
        while time.monotonic() < deadline:
            with suppress(socket.timeout):
                self.connection.drain_events(timeout=_TICK)
            self.connection.heartbeat_tick()
            if self.stage.over():
                return
        raise InVain
