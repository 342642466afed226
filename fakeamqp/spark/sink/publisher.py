"""Publishing with confirms, many messages at a time, on one channel and one thread.

A task waits only when `maxInFlight` messages are unconfirmed, and at the end of a record batch. If the
connection is lost, another one replaces it, and the messages that were not confirmed are published again.
They are the same bytes, so that their message ids do not change. Confirmed messages are not published again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicAck, BasicNack, BasicReturn, ConfirmSelect
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, PublishError, SparkError
from fakeamqp.spark.rows.identity import message_id_of
from fakeamqp.spark.sink.messages import Message, frames
from fakeamqp.spark.sink.window import ConfirmWindow
from fakeamqp.spark.wire.pool import lend
from fakeamqp.spark.wire.retries import RetryBudget

if TYPE_CHECKING:
    from types import TracebackType

    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.wire.channel import WireChannel

_log = logging.getLogger("fakeamqp.spark.sink")

# The number of messages that an error or a log record lists.
_SHOWN = 3
# Hints by the reply code with which the broker closed the channel or connection because of a message, and
# by a word of its text.
_HINTS = (
    (403, "", "The user may not publish to this exchange"),
    (404, "", "Declare the exchange first: the sink does not declare it"),
    (406, "larger than", "The body exceeds max_message_size, 16 MiB by default since RabbitMQ 4.0"),
    (406, "expiration", "The column expiration must be milliseconds"),
    (406, "user_id", "The column user_id must be the name of the user who publishes"),
    (406, "unacceptable_type", "The headers CC and BCC must be lists"),
    (541, "", "RabbitMQ does this for a header of type DECIMAL in a message to a stream: cast it to STRING"),
)
# Reply codes of a broker that stops, or of an operator who closes connections; of a login that has expired or
# lacks a permission; and of an error of the broker.
_FORCED, _ACCESS, _INTERNAL = 320, (403, 530), 541
# Bytes per write to the transport: many messages, because a write for each costs three times the processor
# time, and the broker far more reads; and little memory for the second copy.
_UNSENT = 256 << 10


class SinkPublisher(AbstractContextManager["SinkPublisher"]):
    """Publishes messages with publisher confirms. The first message borrows a connection of the process.

    Args:
        options: the options of the writer.
        decimals: whether messages may have headers of type DECIMAL.

    Attributes:
        confirmed: the number of confirmed messages.
        returned: the messages that reached no queue. They are confirmed, too.
        republished: how often a message was published again after a lost connection.
    """

    def __init__(self, options: WriteOptions, decimals: bool = False) -> None:
        self._options = options
        self._decimals = decimals
        self._lent = ExitStack()  # The connection.
        self._channel: WireChannel | None = None
        self._waiting: deque[Message] = deque()
        self._window: ConfirmWindow[Message] = ConfirmWindow()
        self._since: float  # The time of the last progress.
        self._refused = Listed()
        self.returned: Listed = Listed()
        self.confirmed: int = 0
        self.republished: int = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back(error)
        if self.returned.count and self._options.on_return == "drop":
            _log.warning("unroutable: %s", self.returned)

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages, and return once the broker has confirmed them all.

        Raises:
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`.
            LoginRefused: the broker refuses the login.
            PublishError: a message was returned or refused, the broker blocks publishers, or it closed the
                channel or connection because of a message.
        """
        self._waiting.extend(messages)
        try:
            self._publish_all()
        except SparkError as error:
            raise type(error)(f"{error}. {self._so_far()}") from None

    def _publish_all(self) -> None:
        retries = RetryBudget(self._options.reconnect_timeout)
        while self._waiting or self._window:
            confirmed = self.confirmed
            lost: ConnectionLost | BrokerUnreachable | None = None
            try:
                self._publish()
            except (ConnectionLost, BrokerUnreachable) as error:
                lost = error
                self._give_back(error)
            if problems := self._problems():
                raise PublishError("; ".join(problems))
            if lost is None or not (self._waiting or self._window):
                return
            if self.confirmed > confirmed:
                retries.succeeded()
            pause = retries.pause(lost)
            _log.warning("%s. %s; connecting again", lost, self._so_far())
            time.sleep(pause)

    def _publish(self) -> None:
        """Publish what waits, until the broker refuses a message, and wait for the confirms."""
        channel = self._connected()
        connection, window, waiting = channel.connection, self._window, self._waiting
        most, mandatory = self._options.max_in_flight, self._options.mandatory
        self._since = time.monotonic()

        def may_send() -> bool:
            return len(window) < most and connection.unsent < _UNSENT and _stop_of(channel) is None

        while waiting and not self._problems():
            self._wait(channel, may_send)
            octets: list[bytes] = []
            size = 0
            for message in islice(waiting, most - len(window)):
                octets.append(frames(message, channel, mandatory))
                size += len(octets[-1])
                if size >= _UNSENT:
                    break
            window.add([waiting.popleft() for _ in octets])
            connection.send(b"".join(octets))
            connection.turn(0.0)
        self._wait(channel, lambda: not window)

    def _connected(self) -> WireChannel:
        """The channel; one of another connection if the last one has ended, with its messages to do again."""
        if self._channel is not None:
            try:
                self._channel.connection.turn(0.0)
                self._channel.check()
                return self._channel
            except ConnectionLost as error:
                _log.warning("%s. No message was unconfirmed; connecting again", error)
                self._give_back(error)
        connection = self._lent.enter_context(lend(self._options.connection))
        channel = connection.channel()
        channel.confirms, channel.returned = self._answered, self._message_returned
        channel.call(ConfirmSelect())
        self._waiting.extendleft(reversed(self._window.values()))
        self.republished += len(self._window)
        self._window, self._channel = ConfirmWindow(), channel
        return channel

    def _give_back(self, error: BaseException | None) -> None:
        """Give the connection back; or close it after an error, and handle confirms that are on their way."""
        channel, lent = self._channel, self._lent
        self._channel, self._lent = None, ExitStack()
        if channel is not None and error is None:
            try:
                channel.close()
            except ConnectionLost as lost:  # Everything was confirmed before.
                error = lost
        lent.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def _wait(self, channel: WireChannel, done: Callable[[], bool]) -> None:
        """Let time pass until `done()` is true.

        Raises:
            ConnectionLost: the connection has ended, or the broker confirmed nothing for `confirmTimeout`
                seconds: a network that is down need not end a connection.
            PublishError: the broker blocked publishers for as long, or closed the channel or connection
                because of a message.
        """
        stopped: str | None = None
        while True:
            self._check_channel(channel)
            if done():
                return
            if stopped != (stopped := _stop_of(channel)):
                self._since = time.monotonic()
                if stopped is not None:
                    _log.warning("the broker blocks publishers: %s", stopped)
            left = self._since + self._options.confirm_timeout - time.monotonic()
            if left <= 0:
                why = "" if stopped is None else f"it blocks publishers ({stopped}), and "
                raise (ConnectionLost if stopped is None else PublishError)(
                    f"the broker confirmed nothing for {self._options.confirm_timeout:g} s: {why}"
                    f"{len(self._window)} messages are not confirmed"
                )
            channel.connection.turn(left)

    def _check_channel(self, channel: WireChannel) -> None:
        try:
            channel.check()
        except ConnectionLost as error:
            code, text = channel.closed or channel.connection.closed or (_FORCED, "")
            if code in _ACCESS:
                passes = channel.connection.password_changed
            else:
                passes = code == _FORCED or (code == _INTERNAL and not self._decimals)
            if passes:  # Another connection may accept the same messages.
                raise
            hints = [hint for each, word, hint in _HINTS if each == code and word in text]
            raise PublishError(". ".join([str(error), *hints])) from None

    def _problems(self) -> list[str]:
        """What the broker has refused or returned; a returned message counts with onReturn=fail."""
        problems = []
        if self._refused.count:
            problems.append(f"the broker refused (nacked) {self._refused}")
        if self.returned.count and self._options.on_return == "fail":
            problems.append(f"unroutable: {self.returned}; onReturn=drop logs and drops them")
        return problems

    def _so_far(self) -> str:
        sent = self.confirmed + self._refused.count + len(self._window)
        return f"{self.confirmed} of the {sent} messages that this task has sent were confirmed"

    def _answered(self, answer: Method) -> None:
        """Handle basic.ack or basic.nack."""
        assert isinstance(answer, (BasicAck, BasicNack))
        settled = self._window.settle(answer.delivery_tag, answer.multiple)
        if settled:
            self._since = time.monotonic()
        if isinstance(answer, BasicAck):
            self.confirmed += len(settled)
        else:
            for exchange, routing_key, properties, _ in settled:
                self._refused.add(exchange, routing_key, properties)

    def _message_returned(
        self, _tag: int, _redelivered: bool, payload: bytes, properties: bytes, _body: bytes
    ) -> None:
        said = BasicReturn.decode(payload, RABBITMQ)
        why = f": {said.reply_code} {said.reply_text}"
        self.returned.add(said.exchange, said.routing_key, properties, why)


def _stop_of(channel: WireChannel) -> str | None:
    """Why the broker takes no messages now; None if it does."""
    return channel.connection.blocked if channel.flowing else "channel.flow"


class Listed:
    """Messages that an error or a log record lists.

    Attributes:
        count: their number.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self._first: list[str] = []

    def add(self, exchange: str, routing_key: str, properties: bytes, why: str = "") -> None:
        """Add a message; `why` follows it."""
        self.count += 1
        if len(self._first) < _SHOWN:
            message_id = message_id_of(properties)
            what = f"message {message_id!r}" if message_id else "a message"
            self._first.append(f"{what} to exchange {exchange!r} with routing key {routing_key!r}{why}")

    def __str__(self) -> str:
        more = self.count - len(self._first)
        shown = [*self._first, *([f"and {more} more"] if more else [])]
        return f"{self.count} message{'s' if self.count > 1 else ''} ({'; '.join(shown)})"
