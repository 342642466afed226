"""One AMQP connection of a reader or writer, driven step by step by the thread that uses it.

pika's `BlockingConnection` confirms one message at a time and says nothing when a consumer's channel is
closed under it; pika's `SelectConnection` does both well and wants to own its thread. A `Link` is a
SelectConnection whose loop is turned by hand, so that code reads from top to bottom and every end of a
channel is seen. Messages of its consumers do not go through pika, see `fakeamqp.spark.incoming`.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pika
from pika.adapters.select_connection import IOLoop
from pika.adapters.utils.selector_ioloop_adapter import SelectorIOServicesAdapter

from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicGet
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused, UnreadableAnswer
from fakeamqp.spark.incoming import Contents, IncomingRows, Receive
from fakeamqp.spark.login import is_refusal, parameters, password, without_password

if TYPE_CHECKING:
    from types import TracebackType

    from pika.channel import Channel
    from typing_extensions import Self

    from fakeamqp.spark.options import ConnectionOptions

# The maximum time for closing: connection.close waits for its answer at most that long.
_GOODBYE = 2.0
# pika reads 4 KiB at a time by default: 13 small messages.
_READ = 64 << 10
# The level of pika's log before `quiet`, once for each thread in it.
_levels: list[int] = []
_lock = threading.Lock()


class Link:
    """A connection to the first of several brokers that answers. Only its own thread uses it, except `wake`.

    Attributes:
        lost: why the connection or one of its channels ended, if `Link` did not close it; otherwise None.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._loop = IOLoop()
        self._services = _Services(self._loop)
        self._connection: pika.SelectConnection | None = None
        self._closing = False
        self._refused: bool
        self.lost: str | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect and log in.

        Raises:
            BrokerUnreachable: no broker accepts the connection; the text has the reason of each. Or the
                password file cannot be read now, and could be before.
            LoginRefused: all of them refuse it for a reason that stays.
            OptionError: a file of the options cannot be read.
        """
        refusals: dict[str, str] = {}
        self._refused = True
        self._loop.activate_poller()
        try:
            with quiet():
                for url in self._options.urls:
                    said = self._open(url)
                    if said is None:
                        return
                    refusals[without_password(url)] = said
        except BaseException:
            self._release()
            raise
        self._release()
        kind = LoginRefused if self._refused else BrokerUnreachable
        raise kind("cannot connect to " + "; ".join(f"{url}: {said}" for url, said in refusals.items()))

    def channel(self) -> Channel:
        """Open a channel.

        Raises:
            ConnectionLost: if the connection ends before, or the broker does not answer in time.
        """
        assert self._connection is not None
        self.check()
        opened: list[Channel] = []
        channel = self._connection.channel(on_open_callback=opened.append)
        # pika gives the number of a closed channel to the next one.
        self._services.incoming.channels.pop(channel.channel_number, None)
        channel.add_on_close_callback(self._channel_closed)
        self.wait_for(lambda: bool(opened), self._options.connect_timeout, "open a channel")
        return channel

    @property
    def frame_max(self) -> int:
        """The largest frame that was agreed on, in bytes."""
        assert self._connection is not None
        return int(self._connection.params.frame_max)

    @property
    def unsent(self) -> int:
        """The number of bytes that wait to be sent."""
        return int(self._services.transport.get_write_buffer_size())

    def send(self, octets: bytes) -> None:
        """Send whole frames, after the frames that pika has to send already.

        pika does not see them, which is well for methods that it keeps no account of, such as basic.publish.
        """
        if self.lost is None:
            self._services.transport.write(octets)

    def wait_for(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        """Run the loop until a condition holds.

        Raises:
            ConnectionLost: if the connection or a channel ends before, or `timeout` seconds pass.
        """
        deadline = time.monotonic() + timeout
        while not done():
            self.check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise ConnectionLost(f"the broker did not {what} within {timeout:g} s")
            self.turn(left)

    def call(self, method: Callable[..., Any], /, *args: Any, **arguments: Any) -> Any:
        """Call a method of a channel that takes a `callback`, and wait for the answer, which is returned.

        Raises:
            ConnectionLost: as `wait_for`; a channel that the broker closes in answer says why.
        """
        self.check()
        answers: list[Any] = []
        method(*args, callback=answers.append, **arguments)
        self.wait_for(lambda: bool(answers), self._options.connect_timeout, f"answer {method.__name__}")
        return answers[0]

    def consume(
        self, channel: Channel, queue: str, receive: Receive, arguments: dict[str, Any] | None = None
    ) -> str:
        """Open a consumer, and return its tag. Its messages go to `receive` until the channel closes.

        Raises:
            ConnectionLost: as `call`.
        """
        consumers = self._contents(channel).consumers
        tag = f"spark-{uuid.uuid4().hex[:8]}"  # Short: every delivery has it.
        consumers[tag.encode()] = receive
        self.call(channel.basic_consume, queue, _nothing, consumer_tag=tag, arguments=arguments)
        return tag

    def redirect(self, channel: Channel, tag: str, receive: Receive) -> None:
        """Hand the messages of a consumer to another receiver from now on."""
        self._contents(channel).consumers[tag.encode()] = receive

    def receive_returned(self, channel: Channel, receive: Receive) -> None:
        """Hand returned messages to `receive`, which gets the payload of basic.return as the route."""
        self._contents(channel).returned = receive

    def get(self, channel: Channel, queue: str, receive: Receive) -> int | None:
        """Get one message with basic.get, and return how many are left; None if the queue is empty.

        The message has been received when this returns: a large one comes in many frames after the answer.

        Raises:
            ConnectionLost: as `call`.
        """
        contents = self._contents(channel)
        received: list[object] = []

        def receive_all(*content: Any) -> None:
            receive(*content)
            received.append(content)

        def more_since(before: int) -> Callable[[], bool]:
            return lambda: bool(received) or self.received_at != before

        contents.got, contents.counted = receive_all, None
        self.send(method_frame(channel.channel_number, BasicGet(queue=queue).encode()))
        timeout = self._options.connect_timeout
        self.wait_for(lambda: contents.counted is not None, timeout, "answer basic_get")
        if contents.counted == -1:
            return None
        while not received:  # The timeout starts again with each piece.
            self.wait_for(more_since(self.received_at), timeout, "send the whole message")
        return contents.counted

    @property
    def password_changed(self) -> bool:
        """Whether the password file has another password than the one of this connection.

        Raises:
            BrokerUnreachable: the file cannot be read now.
        """
        if self._connection is None or self._options.password_file is None:
            return False
        return bool(password(self._options) != self._connection.params.credentials.password)

    @property
    def received_at(self) -> int:
        """When the broker's last octets came, in microseconds since 1970."""
        return self._services.incoming.received_at

    def check(self) -> None:
        """Raise the error that has ended the connection or a channel.

        Raises:
            UnreadableAnswer: the broker sent something that cannot be read.
            ConnectionLost: the connection or a channel has ended for another reason.
        """
        if self.lost is not None:
            raise (UnreadableAnswer if self._services.unreadable else ConnectionLost)(self.lost)

    @property
    def broker_version(self) -> tuple[int, int]:
        """The first two numbers of the version of RabbitMQ, from the server properties; otherwise 0, 0."""
        told = (self._connection and self._connection.server_properties) or {}
        numbers = re.match(r"(\d+)\.(\d+)", str(told.get("version", "")))
        if told.get("product") != "RabbitMQ" or numbers is None:
            return 0, 0
        return int(numbers[1]), int(numbers[2])

    def close_channel(self, channel: Channel) -> None:
        """Close a channel, if it is open, and wait for the answer: its messages are in their queues again.

        Raises:
            ConnectionLost: as `wait_for`.
        """
        if channel.is_open:
            channel.close()
        self.wait_for(lambda: channel.is_closed, self._options.connect_timeout, "close a channel")

    def discard(self, channel: Channel) -> None:
        """Drop messages of a channel's consumers from now on."""
        self._contents(channel).consumers.clear()

    def turn(self, timeout: float | None = None) -> None:
        """Read, write and run what is due once; wait at most `timeout` seconds for something to happen."""
        if timeout is None:
            self._loop.poll()
        else:
            timer = self._loop.call_later(max(timeout, 0.0), _nothing)
            try:
                self._loop.poll()
            finally:
                self._loop.remove_timeout(timer)
        self._loop.process_timeouts()

    def wake(self) -> None:
        """Wake a waiting `turn`. Any thread may call it."""
        self._loop.add_callback_threadsafe(_nothing)

    def close(self) -> None:
        """Close the connection, wait briefly for the answer, and close the socket. May be called again."""
        connection, self._closing = self._connection, True
        if connection is None:
            return
        if not (connection.is_closing or connection.is_closed):
            with suppress(pika.exceptions.AMQPError):
                connection.close()
        deadline = time.monotonic() + _GOODBYE
        while not connection.is_closed and time.monotonic() < deadline:
            self.turn(deadline - time.monotonic())
        if not connection.is_closed:
            self._let_go()
        self._connection = None
        self._release()

    def _contents(self, channel: Channel) -> Contents:
        return self._services.incoming.channels.setdefault(channel.channel_number, Contents())

    def _open(self, url: str) -> str | None:
        """The reason why the broker of this URL refuses the client; None if it accepts it."""
        outcome: list[str | None] = []
        self.lost = self._services.unreadable = None
        self._connection = pika.SelectConnection(
            parameters(url, self._options),
            on_open_callback=lambda _: outcome.append(None),
            on_open_error_callback=lambda _, error: outcome.append(self._not_opened(error)),
            on_close_callback=self._connection_closed,
            custom_ioloop=self._services,
        )
        deadline = time.monotonic() + self._options.connect_timeout
        while not outcome:
            left = deadline - time.monotonic()
            if left <= 0:
                outcome.append(self._not_opened(f"no answer within {self._options.connect_timeout:g} s"))
                self._let_go()
            else:
                self.turn(left)
        return outcome[0]

    def _not_opened(self, error: BaseException | str) -> str:
        # A new password may be in its file by the next attempt.
        self._refused &= is_refusal(error, password_may_change=self._options.password_file is not None)
        return _in_words(error)

    def _connection_closed(self, _connection: object, error: BaseException) -> None:
        unreadable = self._services.unreadable
        if unreadable is not None:
            self.lost = f"cannot read what the broker sent: {type(unreadable).__name__}: {unreadable}"
        elif not self._closing:
            self.lost = f"the connection to the broker ended: {_in_words(error)}"

    def _channel_closed(self, _channel: object, error: BaseException) -> None:
        by_us = isinstance(error, pika.exceptions.ChannelClosedByClient)
        if not self._closing and self.lost is None and not by_us:
            self.lost = f"the broker closed the channel: {_in_words(error)}"

    def _let_go(self) -> None:
        """Close the socket of a connection whose peer does not answer; pika has no call for that."""
        transport = getattr(self._connection, "_transport", None)
        if transport is not None:
            self._closing = True
            with suppress(Exception):  # pika asserts that it knows why it ends.
                transport.abort()
                self.turn(0)
            self._closing = False

    def _release(self) -> None:
        with suppress(Exception):
            self._loop.deactivate_poller()
        self._loop.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log of pika, which reports each refusal six times with stack traces.

    Several threads may be in it: the last one to leave restores the level.
    """
    logger = logging.getLogger("pika")
    with _lock:
        if not _levels:
            _levels.append(logger.level)
            logger.setLevel(logging.CRITICAL)
        else:
            _levels.append(_levels[0])
    try:
        yield
    finally:
        with _lock:
            level = _levels.pop()
            if not _levels:
                logger.setLevel(level)


class _Services(SelectorIOServicesAdapter):  # type: ignore[misc]  # pika has no types
    """pika's I/O services on a loop, with the transport of the last connection, and what it receives.

    Attributes:
        unreadable: the exception of reading what the broker sent. pika takes it for the end of the socket.
    """

    transport: Any = None
    unreadable: Exception | None = None
    incoming: IncomingRows

    def create_streaming_connection(
        self, protocol_factory: Callable[[], Any], *others: Any, **more: Any
    ) -> object:
        def protocol_of_ours() -> Any:
            protocol = protocol_factory()
            made = protocol.connection_made
            incoming = IncomingRows(protocol.data_received)

            def connection_made(transport: Any) -> None:
                transport._MAX_RECV_BYTES = _READ
                self.transport, self.incoming = transport, incoming
                made(transport)

            def data_received(octets: bytes) -> None:
                try:
                    incoming.receive(octets)
                except Exception as error:
                    self.unreadable = error
                    raise
                # What pika compares to see whether the broker is alive.
                protocol.conn.bytes_received += incoming.taken
                incoming.taken = 0

            protocol.connection_made, protocol.data_received = connection_made, data_received
            return protocol

        return super().create_streaming_connection(protocol_of_ours, *others, **more)


def _in_words(error: BaseException | str) -> str:
    """The text of an exception of pika. Several have none, and wrap the one that has it."""
    if isinstance(error, (pika.exceptions.ConnectionClosed, pika.exceptions.ChannelClosed)):
        return f"{error.reply_code} {error.reply_text}"
    wrapped = getattr(error, "exceptions", None) or getattr(error, "args", ())
    inner = getattr(error, "exception", wrapped[-1] if wrapped else None)
    if isinstance(inner, BaseException):
        return _in_words(inner)
    return str(error) or type(error).__name__


def _nothing(*_: object) -> None:
    """The end of a wait, and what pika calls for messages: it gets none."""
