"""pika's connections that call back: the way through as a script that waits for one call-back after another.

They never reconnect by themselves. What ends a channel or the connection is handed to a call-back: it counts
as raised at the step during which it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pika
from pika.heartbeat import HeartbeatChecker

from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import BODIES, QUEUE, Stage

__all__ = ["Script", "parameters", "quick_checks"]

_TICK = 0.02

Script_ = Generator[Callable[[Callable[..., None]], Any], Any, None]


def parameters(stage: Stage) -> pika.ConnectionParameters:
    return pika.ConnectionParameters(
        stage.host,
        stage.port,
        heartbeat=stage.scenario.heartbeat,
        socket_timeout=stage.patience,
        stack_timeout=stage.patience,
        blocked_connection_timeout=stage.patience * 0.75,
    )


@contextmanager
def quick_checks() -> Iterator[None]:
    """Between two looks for signs of life pika waits five seconds more than it must; they are saved here."""
    start = HeartbeatChecker._start_check_timer

    def start_quickly(checker: Any) -> None:
        checker._check_interval = checker._timeout
        start(checker)

    with mock.patch.object(HeartbeatChecker, "_start_check_timer", start_quickly):
        yield


class Script:
    """Runs the steps. `later(seconds, call)` and `stop()` are those of the loop.

    A step yields a function that is given the call-back to wait for; `yield` gives what it was called with.
    """

    def __init__(self, stage: Stage, later: Callable[[float, Any], Any], stop: Callable[[], None]) -> None:
        self.stage, self.later, self.stop = stage, later, stop
        self.seen = Observation()
        self.step = "connecting"
        self.connection: Any = None
        self.channel: Any = None
        self.steps = self.work()
        self.turn = 0
        self.ended = False
        self.unconfirmed: dict[int, str] = {}

    # What the connection calls.

    def opened(self, connection: Any) -> None:
        if self.ended:  # The driver has lost its patience.
            return
        self.connection = connection
        connection.add_on_connection_blocked_callback(lambda *_: self.seen.tell("blocked"))
        connection.add_on_connection_unblocked_callback(lambda *_: self.seen.tell("unblocked"))
        self.go()

    def failed(self, connection: Any, reason: BaseException) -> None:
        """It could not be opened, or has been closed."""
        if not (self.ended or isinstance(reason, pika.exceptions.ConnectionClosedByClient)):
            self.end(reason)
        self.ended = True
        self.stop()

    def channel_closed(self, _channel: Any, reason: BaseException) -> None:
        if isinstance(reason, (pika.exceptions.ChannelClosedByClient, pika.exceptions.ConnectionClosed)):
            return  # The connection says it itself.
        if self.connection.is_open:
            self.end(reason)
            self.close()

    # The script.

    def go(self, *given: Any) -> None:
        """Go on until there is something to wait for."""
        self.turn += 1
        turn = self.turn

        def called_back(*given: Any) -> None:
            if self.turn == turn and not self.ended:
                self.go(*given)

        try:
            wait_for = self.steps.send(given) if self.turn > 1 else next(self.steps)
            wait_for(called_back)
        except StopIteration:
            self.close()
        except Exception as error:
            self.end(error)
            self.close()

    def end(self, reason: BaseException) -> None:
        """Note why the step cannot be done."""
        if self.step != "closing" or isinstance(reason, InVain):
            self.seen.troubles.append(trouble(self.step, reason))
        self.turn += 1

    def within(self, seconds: float, what: Callable[[Callable[..., None]], Any]) -> Any:
        """Something to wait for, at most so long."""

        def begin(done: Callable[..., None]) -> None:
            turn = self.turn

            def in_vain() -> None:
                if self.turn == turn and not self.ended:
                    self.end(InVain())
                    self.close()

            self.later(seconds, in_vain)
            what(done)

        return begin

    def until(self, true: Callable[[], bool], times: float = 1) -> Any:
        """Look again and again."""

        def begin(done: Callable[..., None]) -> None:
            turn = self.turn

            def look() -> None:
                if self.turn != turn or self.ended:
                    return
                if true():
                    done()
                else:
                    self.later(_TICK, look)

            look()

        return self.within(self.stage.patience * times, begin)

    def work(self) -> Script_:
        stage, seen = self.stage, self.seen
        stage.reached("connected")
        self.step = "declaring"
        (self.channel,) = yield self.within(
            stage.patience, lambda done: self.connection.channel(on_open_callback=done)
        )
        channel = self.channel
        channel.add_on_close_callback(self.channel_closed)
        channel.add_on_cancel_callback(lambda *_: seen.tell("cancelled"))
        channel.add_on_return_callback(lambda *given: seen.came_back(given[-1]))
        yield self.within(
            stage.patience, lambda done: channel.queue_declare(QUEUE, durable=True, callback=done)
        )
        yield self.within(
            stage.patience, lambda done: channel.confirm_delivery(self.confirmed, callback=done)
        )
        stage.reached("declared")
        self.step = "publishing"
        for number, body in enumerate(BODIES, start=1):
            self.unconfirmed[number] = body
            channel.basic_publish("", QUEUE, body.encode(), pika.BasicProperties(delivery_mode=2))
            if not stage.scenario.together or number == len(BODIES):
                yield self.until(lambda: not self.unconfirmed)
        stage.reached("published")
        self.step = "consuming"
        channel.basic_consume(QUEUE, self.take)
        stage.reached("consuming")
        yield self.until(stage.over)
        if stage.scenario.waits:
            self.step = "waiting"
            stage.reached("waiting")
            yield self.until(stage.over, stage.scenario.patience)

    def confirmed(self, frame: Any) -> None:
        method = frame.method
        first = min(self.unconfirmed, default=0) if method.multiple else method.delivery_tag
        for tag in range(first, method.delivery_tag + 1):
            body = self.unconfirmed.pop(tag, None)
            if body is None:
                continue
            if isinstance(method, pika.spec.Basic.Nack):
                self.seen.tell("nack")
            else:
                self.seen.confirmed.append(body)

    def take(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self.seen.take(body, method.redelivered)
        channel.basic_ack(method.delivery_tag)

    def close(self) -> None:
        """Close; where the broker does not answer, by force."""
        if self.connection is None or not self.connection.is_open:
            return
        self.step = "closing"
        self.connection.close()

        def by_force() -> None:
            if not self.ended:
                self.end(InVain())
                self.ended = True
                self.abort()

        self.later(self.stage.patience, by_force)

    def abort(self) -> None:
        """Drop the transport; the connection then says that it has been closed."""
        error = pika.exceptions.StreamLostError("the driver has no more patience")
        self.connection._terminate_stream(error)
