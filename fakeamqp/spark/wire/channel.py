"""A channel of a client: requests and their answers, and contents, which go to receivers as slices of bytes.

A message is not decoded when it comes: `fakeamqp.spark.rows` decodes what selected columns need, a batch at a
time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    method_frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec import FrameError
from fakeamqp.spark.errors import ChannelClosed, ConnectionLost
from fakeamqp.spark.wire.refusals import Refusal

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.spark.wire.connection import WireConnection

#: A receiver of messages. It is called with the delivery tag, whether the message is redelivered, exchange
#: and routing key (two encoded short strings), the property list (flags and values, encoded) and the body.
Receive: TypeAlias = Callable[[int, bool, bytes, bytes, bytes], None]

_consumer_numbers = count(1)

# The delivery tag and the bit "redelivered"; the size of a body.
_DELIVERY, _SIZE = Struct(">QB"), Struct(">Q")
# Where frames have their payload, the fields behind the ids of a method, and those of a content header.
_PAYLOAD = FRAME_HEADER.size
_ARGUMENTS = _PAYLOAD + 4
_PROPERTIES = _PAYLOAD + CONTENT_HEADER.size
_BODY_SIZE = _PROPERTIES - _SIZE.size
# Where exchange and routing key are in the payload of basic.get-ok; the number of messages follows.
_ROUTE_OF_GET = slice(4 + _DELIVERY.size, -4)
_DELIVER = m.BasicDeliver.INDEX.to_bytes(4, "big")


class WireChannel:
    """A channel, which `WireConnection.channel` opens.

    Methods that wait for an answer raise `ChannelClosed` if the broker closes the channel instead, and
    `ConnectionLost` if a consumer or the connection ends, or if no answer comes in time. While they wait,
    receivers are called. Some take `meanwhile`, which is called whenever something may have come.

    Attributes:
        number: its number.
        lost: why the channel or a consumer on it has ended, if `close` did not end it; otherwise None.
        closed: the reply code and text with which the broker has closed it; None if it has not.
        is_open: whether requests can be sent, as long as the connection is open.
        flowing: False while the broker asks for no more messages with channel.flow.
        confirms: takes the confirms of the broker, basic.ack and basic.nack.
        returned: the receiver of returned messages; instead of exchange and routing key it gets the payload
            of basic.return.
    """

    def __init__(self, connection: WireConnection, number: int, timeout: float) -> None:
        self.connection = connection
        self.number = number
        self.lost: str | None = None
        self.closed: Refusal | None = None
        self.is_open: bool = True
        self.flowing: bool = True
        self.confirms: Callable[[Method], None] | None = None
        self.returned: Receive | None = None
        self._timeout = timeout
        self._answers: deque[Method] = deque()
        self._consumers: dict[bytes, Receive] = {}
        self._got: Receive | None = None
        # The content whose frames are arriving: what its method says, how many bytes are missing, and bytes.
        self._content: tuple[Receive | None, int, bool, bytes] | None = None
        self._properties = b""
        self._missing = 0
        self._parts: list[bytes] = []

    # --- requests -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the channel, if it is open. Its messages are in their queues again when this returns."""
        if self.is_open:
            self.discard()
            self._answers.clear()
            self.send(m.ChannelClose(reply_code=200, reply_text="bye"))
            self.is_open = False
            # The broker answers even if it has closed the channel meanwhile.
            self.connection.wait_for(self._has_answered_close, self._timeout, "close a channel")
            del self.connection.channels[self.number]

    def check(self) -> None:
        """Raise the error that has ended the channel, a consumer on it, or the connection.

        Raises:
            ChannelClosed: the broker has closed the channel.
            ConnectionLost: the broker has cancelled a consumer, or the connection has ended.
        """
        if self.closed is not None:
            raise ChannelClosed(str(self.lost), *self.closed)
        if self.lost is not None:
            raise ConnectionLost(self.lost)
        self.connection.check()
        if not self.is_open:
            raise ConnectionLost("the channel is closed")

    def wait_for(self, done: Callable[[], object], timeout: float, what: str) -> None:
        """Let time pass until a condition holds; see `WireTransport.wait_for`."""
        self.connection.wait_for(done, timeout, what, self.check)

    def send(self, method: Method) -> None:
        """Send a method. On a closed channel it would end the connection, so it is dropped there."""
        if self.is_open:
            self._send(method)

    def _send(self, *methods: Method) -> None:
        self.connection.send(b"".join(method_frame(self.number, method.encode()) for method in methods))

    def call(self, method: Method, meanwhile: Callable[[], object] = lambda: None) -> Any:
        """Send a method, and return the answer."""
        (answer,) = self.call_all([method], meanwhile)
        return answer

    def call_all(
        self, methods: Iterable[Method], meanwhile: Callable[[], object] = lambda: None
    ) -> list[Any]:
        """Send methods together, and return their answers."""
        self.check()
        methods = list(methods)
        self._answers.clear()
        self._send(*methods)

        def answered() -> bool:
            meanwhile()
            return len(self._answers) >= len(methods)

        self.wait_for(answered, self._timeout, f"answer {', '.join(method.NAME for method in methods)}")
        return [*self._answers]

    # --- consuming ------------------------------------------------------------------------------------

    def qos(self, count: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Set the prefetch count of later consumers."""
        self.call(m.BasicQos(prefetch_count=count), meanwhile)

    def consume(self, queue: str, receive: Receive, arguments: dict[str, Any] | None = None) -> str:
        """Open a consumer, and return its tag. Its messages go to `receive` until the channel closes."""
        tag = f"spark-{next(_consumer_numbers)}"  # Short: every delivery has it.
        self._consumers[tag.encode()] = receive
        self.call(m.BasicConsume(queue=queue, consumer_tag=tag, arguments=arguments or {}))
        return tag

    def cancel(self, tag: str) -> None:
        """End a consumer. Its messages stay with the channel."""
        self.call(m.BasicCancel(consumer_tag=tag))

    def discard(self) -> None:
        """Drop messages of the consumers from now on."""
        self._consumers.clear()

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Acknowledge a message, or all up to it."""
        self.send(m.BasicAck(delivery_tag=tag, multiple=multiple))

    def nack(self, tag: int, multiple: bool = False, requeue: bool = True) -> None:
        """Reject a message, or all up to it; tag 0 stands for all."""
        self.send(m.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def get(self, queue: str, receive: Receive) -> int | None:
        """Get one message with basic.get, and return how many are left; None if the queue is empty.

        The message has been received when this returns: a large one comes in many frames after the answer.
        """
        received: list[object] = []

        def receive_all(*content: Any) -> None:
            receive(*content)
            received.append(content)

        self._got = receive_all
        answer = self.call(m.BasicGet(queue=queue))
        if isinstance(answer, m.BasicGetEmpty):
            return None
        while not received:  # The timeout starts again with each piece.

            def more(seen: int = self.connection.received_at) -> bool:
                return bool(received) or self.connection.received_at != seen

            self.wait_for(more, self._timeout, "send the whole message")
        return int(answer.message_count)

    def count(self, queue: str) -> Any:
        """Count a queue's ready messages and its consumers: the answer to a passive declaration."""
        return self.call(m.QueueDeclare(queue=queue, passive=True))

    def settle(self, queue: str) -> int:
        """The number of ready messages of a queue. Deliveries that were due before are here then.

        A channel of RabbitMQ may answer before it sends messages that a queue delivered earlier. The second
        answer comes after those.
        """
        self.count(queue)
        return int(self.count(queue).message_count)

    def _has_answered_close(self) -> bool:
        return any(isinstance(answer, m.ChannelCloseOk) for answer in self._answers)

    # --- what the broker sends ------------------------------------------------------------------------

    def receive_method(self, octets: bytes, start: int, stop: int) -> None:
        """Take a frame with a method: of a content, an answer, or a request of the broker."""
        if not octets.startswith(_DELIVER, start + _PAYLOAD):
            self._receive_other(octets[start + _PAYLOAD : stop - 1])
            return
        at = start + _ARGUMENTS
        tag_end = at + 1 + octets[at]
        receive = self._consumers.get(octets[at + 1 : tag_end])
        tag, bits = _DELIVERY.unpack_from(octets, tag_end)
        self._content = receive, tag, bits & 1 == 1, octets[tag_end + _DELIVERY.size : stop - 1]

    def receive_content(self, kind: int, octets: bytes, start: int, stop: int) -> None:
        """Take a frame of a content header or body.

        Raises:
            FrameError: it does not belong where it is.
        """
        if self._content is None:
            raise FrameError("the broker sent a content header or body that belongs to no method")
        if kind == FRAME_CONTENT_HEADER:
            if self._missing:
                raise FrameError("the broker sent a content header in place of the rest of a body")
            (self._missing,) = _SIZE.unpack_from(octets, start + _BODY_SIZE)
            self._properties = octets[start + _PROPERTIES : stop - 1]
            if self._missing:
                return
            body = b""
        else:
            body = octets[start + _PAYLOAD : stop - 1]
            self._missing -= len(body)
            if self._missing < 0:
                raise FrameError("the broker sent a body that is longer than its content header says")
            if self._missing or self._parts:
                # Joined when it is complete: a large body comes in many frames.
                self._parts.append(body)
                if self._missing:
                    return
                body, self._parts = b"".join(self._parts), []
        receive, tag, redelivered, route = self._content
        self._content = None
        if receive is not None:
            receive(tag, redelivered, route, self._properties, body)

    def _receive_other(self, payload: bytes) -> None:
        method = method_of(payload)
        if isinstance(method, (m.BasicAck, m.BasicNack)):
            if self.confirms is not None:
                self.confirms(method)
        elif isinstance(method, m.BasicReturn):
            self._content = self.returned, 0, False, payload
        elif isinstance(method, m.ChannelClose):
            self._send(m.ChannelCloseOk())
            self.closed = Refusal(method.reply_code, method.reply_text)
            self.lost = f"the broker closed the channel: {method.reply_code} {method.reply_text}"
            if self.is_open:  # Otherwise the answer to `close` is on its way to this number.
                self.is_open = False
                del self.connection.channels[self.number]
        elif isinstance(method, m.BasicCancel):
            if not method.no_wait:  # RabbitMQ closes the connection if it is answered nevertheless.
                self.send(m.BasicCancelOk(consumer_tag=method.consumer_tag))
            self.lost = self.lost or "the broker cancelled a consumer; was its queue deleted?"
        elif isinstance(method, m.ChannelFlow):
            self.flowing = method.active
            self.send(m.ChannelFlowOk(active=method.active))
        else:
            if isinstance(method, m.BasicGetOk):
                self._content = (
                    self._got,
                    method.delivery_tag,
                    method.redelivered,
                    payload[_ROUTE_OF_GET],
                )
            self._answers.append(method)


def method_of(payload: bytes) -> Method:
    """The method in the payload of a frame.

    Raises:
        WireError: it cannot be decoded.
    """
    kind = m.METHODS.get(int.from_bytes(payload[:4], "big"))
    if kind is None:
        raise FrameError(f"the broker sent the unknown method {payload[:4].hex()}")
    return kind.decode(payload, RABBITMQ)
