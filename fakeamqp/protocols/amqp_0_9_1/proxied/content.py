"""Contents on their way through a proxy."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, FRAME_BODY, FRAME_CONTENT_HEADER
from fakeamqp.trace.truncation import LONG_BODY, Truncated

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message


class Content:
    """A method whose content is on its way. No more than `most` bytes of the body are kept."""

    __slots__ = ("_bodies", "_left", "_most", "_size", "behind", "frames", "message", "method", "properties")

    def __init__(
        self, method: Any, frames: list[bytes], message: Message | None = None, most: float = inf
    ) -> None:
        self.method: Any = method
        self.frames: list[bytes] = frames
        """Those that wait for the whole content."""
        self.behind: list[bytes] = []
        """What the proxy has to send on the same channel, once the content is whole."""
        self.message: Message | None = message
        """What is filled once the content is whole, if an event of it had to come before."""
        self.properties: bytes = b""
        self._most = most
        self._size = 0
        self._left: int | None = None
        """Bytes of the body that have not come; None before the header."""
        self._bodies: list[bytes] = []

    def add(self, frame_type: int, payload: bytes) -> bool:
        """Add a frame; returns whether the content is whole."""
        if self._left is None:
            if frame_type != FRAME_CONTENT_HEADER or len(payload) < CONTENT_HEADER.size:
                return False
            self._size = self._left = CONTENT_HEADER.unpack_from(payload)[2]
            self.properties = payload[CONTENT_HEADER.size :]
        elif frame_type == FRAME_BODY:
            if self._size - self._left < self._most:
                self._bodies.append(payload)
            self._left -= len(payload)
        return self._left <= 0

    @property
    def body(self) -> bytes:
        bodies = self._bodies
        body = bodies[0] if len(bodies) == 1 else b"".join(bodies)
        return body if self._size <= self._most else Truncated.of(body[:LONG_BODY], self._size)
