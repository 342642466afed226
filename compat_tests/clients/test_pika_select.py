"""pika's SelectConnection: everything by call-backs on its own loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pika
import pytest

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20


class App:
    """Opens a connection and a channel, hands the channel to `work`, and runs until `finish`."""

    def __init__(self, work: Callable[[App, Any], None]) -> None:
        self.work = work
        self.closed_with: BaseException | None = None
        self.connection: Any = None
        self.loop: Any = None

    def run(self, parameters: pika.ConnectionParameters) -> BaseException:
        """Why the connection ended."""
        self.connection = pika.SelectConnection(
            parameters,
            on_open_callback=self.opened,
            on_open_error_callback=self.closed,
            on_close_callback=self.closed,
        )
        self.loop = self.connection.ioloop
        self.loop.call_later(SECONDS, lambda: self.closed(self.connection, TimeoutError()))
        self.loop.start()
        self.loop.close()
        assert self.closed_with is not None
        return self.closed_with

    def opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=lambda channel: self.work(self, channel))

    def finish(self) -> None:
        self.connection.close()

    def closed(self, _connection: Any, reason: BaseException) -> None:
        self.closed_with = reason
        self.loop.stop()


class RoundTrip:
    """Declare, bind, publish with a confirm, consume, acknowledge, delete, be cancelled."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, app: App, channel: Any) -> None:
        self.app, self.channel = app, channel
        channel.confirm_delivery(lambda frame: self.note("confirm", frame.method.delivery_tag))
        channel.add_on_return_callback(lambda _c, method, _p, body: self.note(method.reply_text, body))
        channel.add_on_cancel_callback(lambda frame: self.cancelled(frame.method.consumer_tag))
        channel.exchange_declare("events", "fanout", callback=self.declared)

    def note(self, *what: Any) -> None:
        self.seen.append(what)

    def declared(self, _frame: Any) -> None:
        self.channel.queue_declare("orders", callback=self.bind)

    def bind(self, _frame: Any) -> None:
        self.channel.queue_bind("orders", "events", callback=self.publish)

    def publish(self, _frame: Any) -> None:
        self.channel.basic_publish("", "nowhere", b"lost", mandatory=True)
        self.channel.basic_publish("events", "", b"kept")
        self.channel.basic_consume("orders", self.received, consumer_tag="me")

    def received(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self.note("delivery", body, method.redelivered)
        if method.redelivered:
            channel.basic_ack(method.delivery_tag)
            channel.queue_delete("orders")
        else:
            channel.basic_reject(method.delivery_tag)

    def cancelled(self, tag: str) -> None:
        self.note("cancel", tag)
        self.app.finish()

    def check(self) -> None:
        # Confirms come in their own time, several in one or each for itself, but never before the return.
        confirms = [each for each in self.seen if each[0] == "confirm"]
        assert confirms in ([("confirm", 1), ("confirm", 2)], [("confirm", 2)])
        assert self.seen[0] == ("NO_ROUTE", b"lost")
        assert [each for each in self.seen[1:] if each not in confirms] == [
            ("delivery", b"kept", False),
            ("delivery", b"kept", True),
            ("cancel", "me"),
        ]


def test_from_connect_to_cancel(reach: Reach) -> None:
    ssl_options = reach.context and pika.SSLOptions(reach.context, reach.host)
    trip = RoundTrip()
    reason = App(trip).run(pika.ConnectionParameters(reach.host, reach.port, ssl_options=ssl_options))
    assert isinstance(reason, pika.exceptions.ConnectionClosedByClient)
    trip.check()


def test_a_wrong_password(broker: Broker) -> None:
    parameters = pika.ConnectionParameters(
        broker.host, broker.port, credentials=pika.PlainCredentials("guest", "wrong")
    )
    reason = App(lambda _app, _channel: pytest.fail("got in")).run(parameters)
    assert "403" in str(reason) and "ACCESS_REFUSED" in str(reason)


def test_blocked_and_unblocked(broker: Broker) -> None:
    told: list[str] = []

    def work(app: App, channel: Any) -> None:
        def unblocked(*_: Any) -> None:
            told.append("unblocked")
            app.finish()

        def blocked(_: Any, frame: Any) -> None:
            told.append(frame.method.reason)
            alarm.remove()

        app.connection.add_on_connection_blocked_callback(blocked)
        app.connection.add_on_connection_unblocked_callback(unblocked)
        alarm = broker.faults.disk_alarm()
        channel.basic_publish("", "nowhere", b"")

    App(work).run(pika.ConnectionParameters(broker.host, broker.port))
    assert told == ["low on disk", "unblocked"]


def test_a_channel_error(broker: Broker) -> None:
    def work(app: App, channel: Any) -> None:
        def closed(_: Any, reason: Any) -> None:
            codes.append(reason.reply_code)
            app.finish()

        channel.add_on_close_callback(closed)
        channel.basic_publish("no-such-exchange", "", b"")

    codes: list[int] = []
    App(work).run(pika.ConnectionParameters(broker.host, broker.port))
    assert codes == [404]
