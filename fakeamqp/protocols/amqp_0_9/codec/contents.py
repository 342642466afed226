"""Contents of 0-9: a header with the number of child contents, the child contents, then the body.

    content = header child-content* body-frame*          (0-9/content/child-contents)

A child is a content like any other, with children of its own. `content_frames` writes a content,
`ContentAssembler` puts one together from its frames.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_HEADER
from fakeamqp.protocols.amqp_0_9.codec.properties import FileProperties, StreamProperties, TunnelProperties
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, body_pieces, frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.base.codec import FieldError, FrameError, add_piece

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties

#: Contents may nest this deep; deeper ones are refused with FieldError. The protocol names no limit, Python's
#: stack does.
MAX_DEPTH = 100

#: class id -> the properties of its contents
PROPERTIES: Final[dict[int, type[Properties]]] = {
    kind.CLASS_ID: kind for kind in (BasicProperties, FileProperties, StreamProperties, TunnelProperties)
}


class ContentHeader(NamedTuple):
    """The payload of a content header frame (0-9/content/header-layout); `weight` counts child contents."""

    class_id: int
    weight: int
    size: int
    properties: bytes


class Content(NamedTuple):
    """A complete content: `properties` are flags and values."""

    class_id: int
    properties: bytes
    body: bytes = b""
    children: tuple[Content, ...] = ()


def decode_header(payload: bytes) -> ContentHeader:
    """Read a content header; raises FrameError if it is too short. The properties are not decoded."""
    least = CONTENT_HEADER.size + 2
    if len(payload) < least:
        raise FrameError(f"a content header has at least {least} bytes, got {len(payload)}")
    class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
    return ContentHeader(class_id, weight, size, payload[CONTENT_HEADER.size :])


def encode_header(header: ContentHeader) -> bytes:
    """The payload of a content header frame. Raises FieldError if a number does not fit its field."""
    class_id, weight, size, properties = header
    try:
        return CONTENT_HEADER.pack(class_id, weight, size) + properties
    except struct.error:
        raise FieldError(f"{header!r:.200}: number out of range") from None


def content_frames(
    channel: int,
    class_id: int,
    properties: bytes,
    body: bytes,
    limit: int,
    children: Sequence[tuple[int, bytes, bytes, Sequence[Any]]] = (),
    depth: int = 1,
) -> list[bytes | memoryview]:
    """The frames of one content; `limit` bounds the payload of a body frame. Large bodies are in pieces.

    A child is a tuple of class id, properties, body and children.

    Raises:
        FieldError: a number does not fit its field, contents nest too deep, or `limit` is below 1.
    """
    if depth > MAX_DEPTH:
        raise _too_deep()
    header = encode_header(ContentHeader(class_id, len(children), len(body), properties))
    frames: list[bytes | memoryview] = [frame(FRAME_HEADER, channel, header)]
    for child_class, child_properties, child_body, inner in children:
        frames += content_frames(channel, child_class, child_properties, child_body, limit, inner, depth + 1)
    return frames + body_pieces(body, channel, limit)


def _too_deep() -> FieldError:
    return FieldError(f"contents nest deeper than {MAX_DEPTH} levels")


class _Level:
    """A content whose header has been received."""

    __slots__ = ("body", "children", "header", "missing")

    def __init__(self, header: ContentHeader) -> None:
        self.header = header
        self.children: list[Content] = []
        self.body: list[bytes | bytearray] = []
        self.missing = header.size

    @property
    def wants_child(self) -> bool:
        return len(self.children) < self.header.weight

    @property
    def is_whole(self) -> bool:
        return not self.wants_child and not self.missing


class ContentAssembler:
    """Puts one content together. After an error, and once the content is whole, it takes no more frames."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    @property
    def header(self) -> ContentHeader | None:
        """The header of the outermost content; None until it has been received."""
        return self._levels[0].header if self._levels else None

    @property
    def body_so_far(self) -> bytes:
        """The part of the outermost content's body that has been received."""
        return b"".join(self._levels[0].body) if self._levels else b""

    @property
    def wants_header(self) -> bool:
        """True when the next frame must be a content header, of the outermost content or of a child."""
        return not self._levels or self._levels[-1].wants_child

    @property
    def at_the_body(self) -> bool:
        """True when only the body of the outermost content is missing."""
        return len(self._levels) == 1 and not self._levels[0].wants_child

    def add_header(self, payload: bytes) -> Content | None:
        """Add a content header; returns the content if it is now complete.

        Raises:
            FrameError: it is too short, or a body was expected.
            FieldError: contents nest too deep.
        """
        header = decode_header(payload)
        if self._levels and not self._levels[-1].wants_child:
            raise FrameError(
                f"a content header came where {self._levels[-1].missing} bytes of a body were due"
            )
        if len(self._levels) >= MAX_DEPTH:
            raise _too_deep()
        self._levels.append(_Level(header))
        return self._settle()

    def add_body(self, payload: bytes) -> Content | None:
        """Add a body frame; returns the content if it is now complete.

        Raises:
            FrameError: a header was expected, or the body is longer than announced.
        """
        if not self._levels or self._levels[-1].wants_child:
            raise FrameError("a body came where a content header was due")
        level = self._levels[-1]
        if len(payload) > level.missing:
            excess = len(payload) - level.missing
            raise FrameError(f"{excess} bytes came beyond the {level.header.size} that were announced")
        level.missing -= len(payload)
        add_piece(level.body, payload)
        return self._settle()

    def _settle(self) -> Content | None:
        """Move complete children into their parents; returns the outermost content if it is complete."""
        levels = self._levels
        while levels[-1].is_whole:
            level = levels.pop()
            body = b"".join(level.body)
            content = Content(level.header.class_id, level.header.properties, body, tuple(level.children))
            if not levels:
                return content
            levels[-1].children.append(content)
        return None
