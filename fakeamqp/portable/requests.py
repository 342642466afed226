"""Requests to a broker over AMQP 0-9-1, one after the other, each with its answer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.portable.routes import NoAnswer, RequestRefused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_OVERHEAD,
    content_frames,
    method_frame,
)
from fakeamqp.replay.peer import RecordedReply, ReplyAssembler

if TYPE_CHECKING:
    from fakeamqp.portable.routes import BrokerRoute, InProcessLine, SocketLine
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["PortableRequests"]

_CHANNEL = 1
_FRAME_MAX = 131_072


class PortableRequests:
    """One client of a broker, on one connection, which the first request opens, and another one after a loss.

    Calls from several threads wait for each other.

    Args:
        route: the way to the broker.
        virtual_host: the one to open; None opens that of the URL.
    """

    def __init__(self, route: BrokerRoute, virtual_host: str | None = None) -> None:
        self.route = route
        self.virtual_host: str = virtual_host or route.login.virtual_host or "/"
        self._line: InProcessLine | SocketLine | None = None
        self._channel_open = False
        self._confirms = False

    def ask(self, method: Method) -> RecordedReply:
        """Send a method and return its answer.

        Raises:
            RequestRefused: the broker closes the channel or the connection instead.
            NoAnswer: there is no answer, or no broker in this process.
            NoBroker: there is no broker at the URL.
        """
        with self.route.lock:
            self._make_ready()
            return self._exchange(_CHANNEL, method)

    def publish(self, queue: str, properties: BasicProperties, body: bytes) -> None:
        """Publish to a queue, and wait for the confirm.

        Raises:
            RequestRefused: the broker does not confirm the message, or there is no such queue.
            NoAnswer, NoBroker: see `ask`.
        """
        with self.route.lock:
            self._make_ready()
            if not self._confirms:
                self._exchange(_CHANNEL, m.ConfirmSelect())
                self._confirms = True
            limit = _FRAME_MAX - FRAME_OVERHEAD
            method = m.BasicPublish(routing_key=queue, mandatory=True)
            content = content_frames(_CHANNEL, m.BasicPublish.CLASS_ID, properties.encode(), body, limit)
            self._send(b"".join((method_frame(_CHANNEL, method.encode()), *content)))
            returned: Method | None = None
            while not isinstance(answer := self._next(method).method, (m.BasicAck, m.BasicNack)):
                returned = answer
            if returned is not None:
                raise RequestRefused(f"there is no queue {queue!r} to publish to", 312)
            if isinstance(answer, m.BasicNack):
                raise RequestRefused(
                    f"the broker has refused a message for queue {queue!r}: the queue is full"
                )

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self.route.lock:
            if self._line is None:
                return
            try:
                if not self._line.ended:
                    self._exchange(0, m.ConnectionClose(reply_code=200, reply_text="the test has ended"))
            except (NoAnswer, RequestRefused):
                pass  # It is closed.
            finally:
                self._drop()

    # --- the connection -------------------------------------------------------------------------------

    def _make_ready(self) -> None:
        if self._line is not None and self._line.ended:
            self._drop()
        if self._line is None:
            self._open()
        if not self._channel_open:
            self._exchange(_CHANNEL, m.ChannelOpen())
            self._channel_open, self._confirms = True, False

    def _open(self) -> None:
        self._line = self.route.connect()
        self._assembler = ReplyAssembler()
        self._replies: deque[RecordedReply] = deque()
        self._channel_open = False
        login = self.route.login
        start_ok = m.ConnectionStartOk(
            client_properties={
                "product": "fakeamqp",
                "connection_name": "amqp_queue",
                "capabilities": {"authentication_failure_close": True},
            },
            mechanism="PLAIN",
            response=f"\0{login.user}\0{login.password}".encode(),
            locale="en_US",
        )
        try:
            self._send(PROTOCOL_HEADER)
            self._next(m.ConnectionStartOk())
            tune = self._exchange(0, start_ok).method
            assert isinstance(tune, m.ConnectionTune)
            frame_max = min(tune.frame_max or _FRAME_MAX, _FRAME_MAX)
            tune_ok = m.ConnectionTuneOk(channel_max=tune.channel_max, frame_max=frame_max, heartbeat=0)
            self._send(method_frame(0, tune_ok.encode()))
            self._exchange(0, m.ConnectionOpen(virtual_host=self.virtual_host))
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        line, self._line = self._line, None
        self._channel_open = False
        if line is not None:
            line.close()

    # --- frames ---------------------------------------------------------------------------------------

    def _exchange(self, channel: int, method: Method) -> RecordedReply:
        self._send(method_frame(channel, method.encode()))
        return self._next(method)

    def _send(self, octets: bytes) -> None:
        assert self._line is not None
        try:
            self._line.send(octets)
        except NoAnswer:
            self._drop()
            raise

    def _next(self, asked: Method) -> RecordedReply:
        """Receive the next answer; a close is an error."""
        while not self._replies:
            self._receive(asked)
        reply = self._replies.popleft()
        method = reply.method
        if isinstance(method, m.ChannelClose):
            self._channel_open = False
            self._send(method_frame(reply.channel, m.ChannelCloseOk().encode()))
        elif isinstance(method, m.ConnectionClose):
            self._send(method_frame(0, m.ConnectionCloseOk().encode()))
            self._drop()
        else:
            return reply
        raise RequestRefused(
            f"the broker refuses {asked.NAME}: {method.reply_code} {method.reply_text}", method.reply_code
        )

    def _receive(self, asked: Method) -> None:
        assert self._line is not None
        try:
            octets = self._line.receive()
        except NoAnswer as problem:
            self._drop()
            raise NoAnswer(f"{asked.NAME}: {problem}") from None
        if not octets:
            self._drop()
            raise NoAnswer(f"the broker has ended the connection instead of an answer to {asked.NAME}")
        self._replies.extend(self._assembler.read(octets))
