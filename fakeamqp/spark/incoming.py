"""What a broker sends, cut into frames: contents go to their receivers, everything else to pika.

pika decodes every frame into objects. Here a message is slices of the octets that came:
`fakeamqp.spark.records` decodes what selected columns need, a batch at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from struct import Struct
from typing import TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    BasicDeliver,
    BasicGetEmpty,
    BasicGetOk,
    BasicReturn,
)
from fakeamqp.protocols.base.codec import FrameError

#: A receiver of messages. It is called with the delivery tag, whether the message is redelivered, exchange
#: and routing key (two encoded short strings), the property list (flags and values, encoded) and the body.
Receive: TypeAlias = Callable[[int, bool, bytes, bytes, bytes], None]

_DELIVER, _GET_OK, _GET_EMPTY = BasicDeliver.INDEX, BasicGetOk.INDEX, BasicGetEmpty.INDEX
_RETURN = BasicReturn.INDEX
_KINDS = (FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT)

_read_frame = FRAME_HEADER.unpack_from
_read_count = Struct(">I").unpack_from
# The ids of a method; the delivery tag and the bit "redelivered"; the size of a body.
_IDS, _DELIVERY, _SIZE = Struct(">I"), Struct(">QB"), Struct(">Q")
_PAYLOAD = FRAME_HEADER.size
_ARGUMENTS = _PAYLOAD + _IDS.size
_PROPERTIES = _PAYLOAD + CONTENT_HEADER.size


class Contents:
    """The contents of one channel: their receivers, and the content whose frames are arriving.

    Attributes:
        consumers: the receivers of the channel's consumers, by consumer tag.
        got: the receiver of the answer to basic.get.
        returned: the receiver of returned messages; instead of exchange and routing key it gets the payload
            of basic.return.
        counted: the number of messages that basic.get-ok leaves in the queue; -1 after basic.get-empty.
    """

    __slots__ = ("_method", "_missing", "_parts", "_properties", "consumers", "counted", "got", "returned")

    def __init__(self) -> None:
        self.consumers: dict[bytes, Receive] = {}
        self.got: Receive | None = None
        self.returned: Receive | None = None
        self.counted: int | None = None
        self._method: tuple[Receive | None, int, bool, bytes] | None = None
        self._properties = b""
        self._missing = 0
        self._parts: list[bytes] = []

    def begin(self, octets: bytes, start: int, stop: int) -> bool:
        """Read a method frame that begins a content; return False for any other one."""
        (method,) = _IDS.unpack_from(octets, start + _PAYLOAD)
        at, stop = start + _ARGUMENTS, stop - 1
        if method == _DELIVER:
            tag_end = at + 1 + octets[at]
            receive = self.consumers.get(octets[at + 1 : tag_end])
            at = tag_end
        elif method == _GET_OK:
            receive = self.got
            stop -= 4
            (self.counted,) = _read_count(octets, stop)
        elif method == _RETURN:
            self._method = self.returned, 0, False, octets[start + _PAYLOAD : stop]
            return True
        else:
            if method == _GET_EMPTY:
                self.counted = -1
            return bool(method == _GET_EMPTY)
        tag, bits = _DELIVERY.unpack_from(octets, at)
        self._method = receive, tag, bits & 1 == 1, octets[at + _DELIVERY.size : stop]
        return True

    def go_on(self, kind: int, octets: bytes, start: int, stop: int) -> None:
        """Read a frame of a content header or body.

        Raises:
            FrameError: it does not belong where it is.
        """
        if self._method is None:
            raise FrameError("the broker sent a content header or body that belongs to no method")
        if kind == FRAME_CONTENT_HEADER:
            (self._missing,) = _SIZE.unpack_from(octets, start + _PROPERTIES - _SIZE.size)
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
        receive, tag, redelivered, route = self._method
        self._method = None
        if receive is not None:
            receive(tag, redelivered, route, self._properties, body)


class IncomingRows:
    """Cuts what a connection receives.

    Args:
        forward: takes whole frames for pika, in their order among the contents.

    Attributes:
        channels: the channels whose contents are not for pika, by number.
        taken: the number of octets that pika did not get.
        received_at: when the last octets came, in microseconds since 1970.
    """

    def __init__(self, forward: Callable[[bytes], None]) -> None:
        self._forward = forward
        self._unfinished: list[bytes] = []
        self._missing: int
        self.channels: dict[int, Contents] = {}
        self.taken: int = 0
        self.received_at: int = 0

    def receive(self, octets: bytes) -> None:
        """Cut octets, together with an unfinished frame of earlier ones.

        Raises:
            FrameError: a content does not follow the protocol.
        """
        self.received_at = time.time_ns() // 1000
        if self._unfinished:
            self._unfinished.append(octets)
            self._missing -= len(octets)
            if self._missing > 0:
                return
            octets, self._unfinished = b"".join(self._unfinished), []
        channels = self.channels
        passed_on = start = self._missing = 0
        while start + FRAME_OVERHEAD <= len(octets):
            kind, number, size = _read_frame(octets, start)
            stop = start + FRAME_OVERHEAD + size
            if kind not in _KINDS or (stop <= len(octets) and octets[stop - 1] != FRAME_END):
                start = len(octets)  # Another protocol, or no frame: pika has an error for it.
                break
            if stop > len(octets):
                self._missing = stop - len(octets)
                break
            contents = channels.get(number)
            if contents is not None and kind != FRAME_HEARTBEAT:
                if passed_on < start:
                    self._forward(octets[passed_on:start])
                    passed_on = start
                if kind != FRAME_METHOD:
                    contents.go_on(kind, octets, start, stop)
                    passed_on = stop
                elif contents.begin(octets, start, stop):
                    passed_on = stop
                self.taken += passed_on - start
            start = stop
        if start < len(octets):
            self._unfinished = [octets[start:]]
        if passed_on < start:
            self._forward(octets[passed_on:start])
