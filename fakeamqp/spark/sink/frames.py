"""The frames of a message: method, content header and body, joined.

pika creates three objects and does three writes per message. This module encodes the frames itself, and one
write sends many messages: 100 000 messages of 90 bytes with four properties cost the publishing thread 0.2 s
of processor time instead of 1.1 s (0.6 s if only the writes are joined), and the broker far fewer reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_OVERHEAD,
    header_frame,
    method_frame,
    split_body,
)
from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicPublish
from fakeamqp.spark.errors import PublishError

if TYPE_CHECKING:
    from fakeamqp.spark.sink.messages import Message


class Frames:
    """Encodes the messages that are published on a channel.

    Args:
        channel: its number.
        frame_max: the largest frame, in bytes.
        mandatory: whether the broker returns messages that reach no queue.
    """

    def __init__(self, channel: int, frame_max: int, mandatory: bool) -> None:
        self._channel = channel
        self._limit = frame_max - FRAME_OVERHEAD
        self._mandatory = mandatory
        self._methods: dict[tuple[str, str], bytes] = {}

    def of(self, messages: Iterable[Message], most: int) -> list[bytes]:
        """The frames of each message, until they have `most` bytes together; at least those of one message.

        Raises:
            PublishError: the properties of a message do not fit in a frame.
        """
        made: list[bytes] = []
        size = 0
        for exchange, routing_key, properties, body in messages:
            if CONTENT_HEADER.size + len(properties) > self._limit:
                raise PublishError(
                    f"a message to exchange {exchange!r} with routing key {routing_key!r} cannot be sent: "
                    f"its properties have {len(properties)} bytes, and a frame holds at most {self._limit}"
                )
            method = self._methods.get((exchange, routing_key)) or self._method(exchange, routing_key)
            header = header_frame(self._channel, BasicPublish.CLASS_ID, len(body), properties)
            octets = b"".join((method, header, *split_body(body, self._channel, self._limit)))
            made.append(octets)
            size += len(octets)
            if size >= most:
                break
        return made

    def _method(self, exchange: str, routing_key: str) -> bytes:
        publish = BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=self._mandatory)
        octets = self._methods[exchange, routing_key] = method_frame(self._channel, publish.encode())
        return octets
