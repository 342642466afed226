"""Publishing with confirms, many messages at a time, on one connection and one thread.

A task waits only when `maxInFlight` messages are unconfirmed, and at the end of a record batch. If the
connection is lost, a new one replaces it, and the messages that were not confirmed are published again. They
are the same octets, so that their message ids do not change. What is confirmed is not repeated.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pika

from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicReturn
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, PublishError, SparkError
from fakeamqp.spark.property_lists import value_of
from fakeamqp.spark.retries import RetryBudget
from fakeamqp.spark.sink.frames import Frames
from fakeamqp.spark.sink.window import ConfirmWindow

if TYPE_CHECKING:
    from types import TracebackType

    from pika.channel import Channel
    from typing_extensions import Self

    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.sink.messages import Message

_log = logging.getLogger("fakeamqp.spark.sink")

# The number of messages that an error or a log record lists.
_SHOWN = 3
# Hints by the reply code with which the broker closed the channel or connection because of a message, and
# by a word of its text.
_HINTS = (
    (403, "", "The user may not publish to this exchange"),
    (404, "", "Declare the exchange first: the sink does not declare it"),
    (
        406,
        "larger than",
        "The body exceeds max_message_size of the broker, 16 MiB by default since RabbitMQ 4.0",
    ),
    (406, "expiration", "The column expiration must be milliseconds"),
    (406, "user_id", "The column user_id must be the name of the user who publishes"),
    (406, "unacceptable_type", "The headers CC and BCC must be lists"),
    (
        541,
        "",
        "RabbitMQ does this for a header of type DECIMAL in a message to a stream: cast it to STRING",
    ),
)
# Reply codes of a broker that stops, or of an operator who closes connections; of a login that has expired or
# lacks a permission; and of an error of the broker.
_FORCED, _ACCESS, _INTERNAL = 320, (403, 530), 541
# Bytes per write to the transport: enough for efficient writes, and little memory for the second copy.
_UNSENT = 256 << 10


class SinkPublisher:
    """Publishes messages with publisher confirms. The first message opens the connection.

    Args:
        options: the options of the writer.
        decimals: whether messages may have headers of type DECIMAL.

    Attributes:
        confirmed: the number of confirmed messages.
        returned: how often a message was returned, which reached no queue. It is confirmed, too.
        republished: how often a message was published again after a lost connection.
    """

    def __init__(self, options: WriteOptions, decimals: bool = False) -> None:
        self._options = options
        self._decimals = decimals
        self._link: Link | None = None
        self._channel: Channel
        self._window = ConfirmWindow()
        self._batch: Sequence[Message]
        self._start: int  # The last tag before this batch.
        self._refused: list[str] = []
        self._refusals = 0
        self._returns: list[str] = []
        self._blocked: str | None
        self._closed: Any  # The exception with which the broker closed the channel or connection.
        self._since: float  # The time of the last progress.
        self.confirmed: int = 0
        self.returned: int = 0
        self.republished: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self.returned and self._options.on_return == "drop":
            _log.warning("unroutable: %s", _listed(self.returned, self._returns))

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages, and return once the broker has confirmed them all.

        Raises:
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`.
            LoginRefused: the broker refuses the login.
            PublishError: a message was returned or refused, the broker blocks publishers, or it closed the
                channel or connection because of a message.
        """
        retries = RetryBudget(self._options.reconnect_timeout)
        while messages:
            self._batch, self._start = messages, self._window.sent
            try:
                return self._publish()
            except (ConnectionLost, BrokerUnreachable) as error:
                lost = error
            self._close()  # It still handles confirms that are on their way.
            if self._failed():
                raise self._failure()
            messages = [
                message
                for tag, message in enumerate(messages, self._start + 1)
                if not self._window.is_settled(tag)
            ]
            if not messages:
                return
            if len(messages) < len(self._batch):
                retries.succeeded()
            try:
                pause = retries.pause(lost)
            except SparkError as error:
                raise type(error)(f"{error}. {self._so_far()}") from None
            _log.warning("%s. %s; connecting again", lost, self._so_far())
            time.sleep(pause)

    def _publish(self) -> None:
        link, messages = self._connected(), self._batch
        window, most = self._window, self._options.max_in_flight
        self._start, self._since = window.sent, time.monotonic()
        frames = Frames(self._channel.channel_number, link.frame_max, self._options.mandatory)
        sent = 0
        while sent < len(messages):
            self._wait(lambda: window.open < most and link.unsent < _UNSENT and self._blocked is None)
            octets = frames.of(messages[sent : sent + most - window.open], _UNSENT)
            window.sent += len(octets)
            sent += len(octets)
            link.send(b"".join(octets))
            link.turn(0.0)
            self._check()
        self._wait(lambda: not window.open)
        self._check()

    def _close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _connected(self) -> Link:
        """The connection; a new one if the last one has ended."""
        link = self._link
        if link is not None:
            link.turn(0.0)
            if link.lost is None:
                return link
            _log.warning("%s. No message was unconfirmed; connecting again", link.lost)
            self._close()
        link = Link(self._options.connection)
        link.open()
        self._link = link
        self.republished += self._window.open
        self._window, self._blocked, self._closed = ConfirmWindow(), None, None
        channel = self._channel = link.channel()
        channel.add_on_close_callback(self._channel_closed)
        link.receive_returned(channel, self._message_returned)
        channel.connection.add_on_connection_blocked_callback(self._connection_blocked)
        channel.connection.add_on_connection_unblocked_callback(self._connection_unblocked)
        link.call(channel.confirm_delivery, self._answered)
        return link

    def _wait(self, done: Callable[[], bool]) -> None:
        """Run the event loop until `done()` is true.

        Raises:
            ConnectionLost: the connection has ended, or the broker confirmed nothing for `confirmTimeout`
                seconds: a network that is down need not end a connection.
            PublishError: the broker blocked publishers for as long.
        """
        link = self._link
        assert link is not None
        while not done():
            self._check_connection()
            left = self._since + self._options.confirm_timeout - time.monotonic()
            if left <= 0:
                told = f"the broker confirmed nothing for {self._options.confirm_timeout:g} s: "
                waiting = f"{self._window.open} messages are not confirmed"
                if self._blocked is None:
                    raise ConnectionLost(told + waiting)
                raise PublishError(
                    f"{told}it blocks publishers ({self._blocked}), and {waiting}. {self._so_far()}"
                )
            link.turn(left)

    def _check(self) -> None:
        """Raise the error of the messages so far, after waiting for the outstanding confirms.

        Raises:
            ConnectionLost: the connection has ended.
            PublishError: a message was refused, or returned with onReturn=fail.
        """
        self._check_connection()
        if self._failed():
            with suppress(ConnectionLost, PublishError):
                self._wait(lambda: not self._window.open)
            raise self._failure()

    def _failed(self) -> bool:
        return bool(self._refusals or (self._returns and self._options.on_return == "fail"))

    def _failure(self) -> PublishError:
        problems = []
        if self._refusals:
            problems.append(f"the broker refused (nacked) {_listed(self._refusals, self._refused)}")
        if self._returns and self._options.on_return == "fail":
            problems.append(
                f"unroutable: {_listed(self.returned, self._returns)}; onReturn=drop logs and drops them"
            )
        return PublishError(f"{'; '.join(problems)}. {self._so_far()}")

    def _check_connection(self) -> None:
        link = self._link
        assert link is not None
        if link.lost is None:
            return
        closed = self._closed
        if closed is not None and not self._may_pass(closed.reply_code):
            hints = (
                f". {hint}"
                for code, word, hint in _HINTS
                if code == closed.reply_code and word in closed.reply_text
            )
            raise PublishError(f"{link.lost}{next(hints, '')}. {self._so_far()}")
        link.check()

    def _may_pass(self, reply_code: int) -> bool:
        """Whether the broker may accept the same messages on another connection after it closed this one."""
        if reply_code in _ACCESS:
            return self._link is not None and self._link.password_changed
        return reply_code == _FORCED or (reply_code == _INTERNAL and not self._decimals)

    def _so_far(self) -> str:
        sent = self.confirmed + self._refusals + self._window.open
        return f"{self.confirmed} of the {sent} messages that this task has sent were confirmed"

    def _channel_closed(self, _channel: object, error: BaseException) -> None:
        """The end of the channel, also with its connection."""
        by_broker = pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker
        if isinstance(error, by_broker):
            self._closed = error

    def _answered(self, frame: pika.frame.Method[Any]) -> None:
        answer = frame.method
        tags = self._window.settle(answer.delivery_tag, answer.multiple)
        if tags:
            self._since = time.monotonic()
        if isinstance(answer, pika.spec.Basic.Ack):
            self.confirmed += len(tags)
            return
        self._refusals += len(tags)
        for tag in tags[: _SHOWN - len(self._refused)]:
            exchange, routing_key, properties, _ = self._batch[tag - self._start - 1]
            self._refused.append(_described(exchange, routing_key, properties))

    def _message_returned(
        self, _tag: int, _redelivered: bool, payload: bytes, properties: bytes, _body: bytes
    ) -> None:
        self.returned += 1
        if len(self._returns) < _SHOWN:
            method = BasicReturn.decode(payload, RABBITMQ)
            what = _described(method.exchange, method.routing_key, properties)
            self._returns.append(f"{what}: {method.reply_code} {method.reply_text}")

    def _connection_blocked(self, _connection: object, frame: pika.frame.Method[Any]) -> None:
        self._blocked, self._since = frame.method.reason, time.monotonic()
        _log.warning("the broker blocks publishers: %s", self._blocked)

    def _connection_unblocked(self, _connection: object, _frame: object) -> None:
        self._blocked, self._since = None, time.monotonic()


def _described(exchange: str, routing_key: str, properties: bytes) -> str:
    where = f"to exchange {exchange!r} with routing key {routing_key!r}"
    message_id = value_of(properties, "message_id")
    return f"message {message_id.decode(errors='replace')!r} {where}" if message_id else f"a message {where}"


def _listed(count: int, described: Sequence[str]) -> str:
    more = count - len(described)
    return (
        f"{count} message{'s' if count > 1 else ''} ("
        + "; ".join(described)
        + (f"; and {more} more)" if more else ")")
    )
