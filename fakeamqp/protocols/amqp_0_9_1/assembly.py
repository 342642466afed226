"""Methods with their contents on a channel that has no use for contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_METHOD,
)
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

__all__ = ["ContentAssembly", "check_content_header", "not_a_body", "not_a_header", "not_a_method"]


def not_a_method() -> ProtocolError:
    """The error for a header or body frame where a method is due."""
    return ProtocolError("unexpected-frame", "expected method frame, got non method frame instead")


def not_a_header() -> ProtocolError:
    """The error for another frame where a content header is due."""
    return ProtocolError(
        "unexpected-frame", "expected content header for class 60, got non content header frame instead"
    )


def not_a_body() -> ProtocolError:
    """The error for another frame where a body is due."""
    return ProtocolError("unexpected-frame", "expected content body, got non content body frame instead")


def check_content_header(personality: Personality, class_id: int, weight: int, size: int) -> None:
    """Check what precedes the properties in a content header.

    Raises:
        ProtocolError: it is for another class, or announces too large a body.
    """
    if weight:
        raise not_a_header()
    if class_id != 60:
        raise ProtocolError(
            personality.content_class_mismatch,
            f"expected content header for class 60, got one for class {class_id} instead",
        )
    largest = personality.largest_content
    if largest and size > largest:
        raise ProtocolError("frame-error", f"content body size {size} exceeds maximum allowed size {largest}")


class ContentAssembly:
    """Puts the frames of one channel together to methods, and discards their contents.

    RabbitMQ does so for every channel that the connection knows, also before it is open and while it is
    closing, and its errors close the connection (measured).

    Args:
        connection: the connection of the channel.
        method: the method whose content is incomplete, if there is one.
        missing: how much of the body is missing; None if the header is.
    """

    def __init__(
        self, connection: Amqp091Connection[Any], method: Method | None = None, missing: int | None = None
    ) -> None:
        self._connection = connection
        self._method = method
        self._missing = missing

    def receive(self, frame_type: int, payload: bytes) -> Method | None:
        """Add a method, header or body frame; return the method that is complete now.

        Raises:
            ProtocolError: another frame is due, or the frame cannot be read.
        """
        method = self._method
        if frame_type == FRAME_METHOD:
            self._connection.method_class(payload)
        else:
            self._connection.check_payload(frame_type, payload)
        if method is None:
            return self._begin(frame_type, payload)
        self._connection.method_index = method.INDEX
        if self._missing is None:
            return self._add_header(method, frame_type, payload)
        if frame_type != FRAME_BODY:
            raise not_a_body()
        return self._add_body(method, len(payload))

    def _begin(self, frame_type: int, payload: bytes) -> Method | None:
        if frame_type != FRAME_METHOD:
            self._connection.method_index = 0
            raise not_a_method()
        method = self._connection.decode(payload)
        if not method.HAS_CONTENT:
            return method
        self._method = method
        return None

    def _add_header(self, method: Method, frame_type: int, payload: bytes) -> Method | None:
        if frame_type != FRAME_CONTENT_HEADER:
            raise not_a_header()
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        check_content_header(self._connection.personality, class_id, weight, size)
        self._missing = size
        return self._complete(method)

    def _add_body(self, method: Method, size: int) -> Method | None:
        assert self._missing is not None
        overrun = self._connection.personality.body_overrun
        if size > self._missing and overrun:
            raise ProtocolError(overrun, "content body frame exceeds remaining content size")
        self._missing -= size
        return self._complete(method)

    def _complete(self, method: Method) -> Method | None:
        if self._missing:
            return None
        self._method = self._missing = None
        return method
