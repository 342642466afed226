"""Frame groups of 0-9-1: methods with their contents, and heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from fakeamqp.faults.frame_group import HEARTBEAT, UNREAD, FrameGroup, changed_record
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    split_body,
)
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.dialect import Dialect091

PUBLISH = "basic.publish"
CONFIRMS = frozenset(("basic.ack", "basic.nack"))
_DELIVERIES = frozenset(("basic.deliver", "basic.get-ok", "file.deliver", "stream.deliver"))
LARGEST_PAYLOAD = 131_072 - 8
"""In bytes, where no limit was negotiated."""


def first_decoded(grammars: Iterable[Any], decode: Callable[[Any], Any]) -> Any:
    """The result of `decode` with the first grammar that it succeeds with, or None."""
    for grammar in grammars:
        try:
            return decode(grammar)
        except WireError:
            continue
    return None


class MethodGroup091(FrameGroup):
    """See `FrameGroup`."""

    __slots__ = ("_kind", "has_content")

    protocol: Dialect091
    _settling_field: ClassVar[str] = "delivery_tag"

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def payload(self) -> bytes:
        """The encoded method."""
        return self.frames[0][1]

    @property
    def brings_method(self) -> bool:
        """True if its first frame contains a method."""
        return self.frames[0][0] == FRAME_METHOD

    def _read_name(self) -> str:
        kind = (
            self.protocol.methods.get(int.from_bytes(self.payload[:4], "big")) if self.brings_method else None
        )
        self._kind = kind
        self.has_content: bool = kind is not None and kind.HAS_CONTENT
        if self.frames[0][0] == FRAME_HEARTBEAT:
            return HEARTBEAT
        return kind.NAME if kind is not None else ""

    @property
    def index(self) -> int:
        return int.from_bytes(self.payload[:4], "big") if self.name != HEARTBEAT else 0

    @property
    def method(self) -> Any:
        if self._method is UNREAD:
            kind = self._kind
            self._method = kind and first_decoded(
                self.protocol.grammars, lambda grammar: kind.decode(self.payload, grammar.unchecked)
            )
        return self._method

    @property
    def complete(self) -> bool:
        """The header announces the size of the body."""
        if not self.has_content:
            return True
        if len(self.frames) < 2:
            return False
        content = self._read_content()
        return content is None or sum(len(payload) for _, payload in self.frames[2:]) >= content[1]

    def continues_with(self, kind: int, payload: bytes) -> bool:
        """One header frame, then body frames."""
        return kind == (FRAME_CONTENT_HEADER if len(self.frames) == 1 else FRAME_BODY)

    @property
    def header_complete(self) -> bool:
        """The header is one frame."""
        return self.frames[-1][0] == FRAME_CONTENT_HEADER

    @property
    def properties(self) -> Any:
        content = self._read_content()
        return None if content is None else content[0]

    def _read_content(self) -> tuple[Any, int] | None:
        if len(self.frames) < 2 or self.frames[1][0] != FRAME_CONTENT_HEADER:
            return None
        if self._content is UNREAD:
            payload = self.frames[1][1]
            decode = self.protocol.properties_class(self.index >> 16).decode
            found = None
            if len(payload) >= CONTENT_HEADER.size + 2:
                found = first_decoded(
                    self.protocol.grammars,
                    lambda grammar: decode(payload, CONTENT_HEADER.size, grammar.unchecked),
                )
            self._content = None if found is None else (found, CONTENT_HEADER.unpack_from(payload)[2])
        return self._content  # type: ignore[no-any-return]

    @property
    def on_connection(self) -> bool:
        """Channel 0 belongs to the connection."""
        return self.original_channel == 0

    def frames_through(self, part: str) -> int:
        """Method and header are one frame each."""
        return min(len(self.frames), 1 if part == "method" else 2)

    # --- what rules ask -------------------------------------------------------------------------------

    @property
    def _published_to(self) -> str | None:
        return self.method.exchange if self.name == PUBLISH else None

    @property
    def _consumer(self) -> str | None:
        return getattr(self.method, "consumer_tag", None)

    # --- other shapes ---------------------------------------------------------------------------------

    def replace(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """Frames without a change keep their bytes."""
        frames = list(self.frames)
        made = changed_record(self.method, getattr(self.method, "LAYOUT", ()), fields or {})
        if made is not None:
            frames[0] = self.first_frame(made.encode())
        if self.has_content and (properties or body is not None):
            frames[1:] = self._changed_content(properties or {}, body)
        return self._with_frames(frames, channel)

    def first_frame(self, payload: bytes) -> tuple[int, bytes]:
        """The first frame with another method."""
        return FRAME_METHOD, payload

    def changed_properties(self, changes: Mapping[str, Any]) -> Any:
        known = self.properties or self.protocol.properties_class(self.index >> 16)()
        names = {name for name, _ in known.LAYOUT}
        values = {
            name: value(getattr(known, name)) if callable(value) else value
            for name, value in changes.items()
            if name in names
        }
        return known.replace(**values) if values else known

    def _changed_content(self, changes: Mapping[str, Any], body: bytes | None) -> list[tuple[int, bytes]]:
        made = self.changed_properties(changes)
        octets = self.body if body is None else body
        limit = self.port.largest_frame - 8 if self.port.largest_frame else LARGEST_PAYLOAD
        class_id, weight, _ = self._header_numbers()
        header = CONTENT_HEADER.pack(class_id, weight, len(octets)) + made.encode()
        bodies = [(each[0], each[7:-1]) for each in split_body(octets, 0, limit)]
        return [(FRAME_CONTENT_HEADER, header), *self._inner_frames(), *bodies]

    def _header_numbers(self) -> tuple[int, int, int]:
        """Class id, weight and body size of the header; defaults without a header."""
        if len(self.frames) > 1 and len(self.frames[1][1]) >= CONTENT_HEADER.size:
            class_id, weight, size = CONTENT_HEADER.unpack_from(self.frames[1][1])
            return class_id, weight, size
        return self.index >> 16, 0, 0

    def _inner_frames(self) -> list[tuple[int, bytes]]:
        """The frames of contents nested in the content."""
        return []

    def duplicate(self) -> Self:
        """The duplicate of a delivery has its own tag; the duplicate of a publish is not confirmed."""
        if self.name in _DELIVERIES:
            group = self.replace(fields={"delivery_tag": self.port.spare_tag(self.channel)})
        else:
            group = self.replace()
        group.is_duplicate = True
        return group

    def with_method(self, method: Method) -> Self:
        """A copy with another method."""
        return self._with_frames([self.first_frame(method.encode()), *self.frames[1:]])

    # --- what becomes of it ---------------------------------------------------------------------------

    def pass_on(self, *, secured: bool) -> None:
        """The duplicate of a publish is not counted for confirms."""
        port = self.port
        if not secured and self.name == PUBLISH:
            port.receive_unsecured(self.channel, self.data)
        elif self.is_duplicate and self.name == PUBLISH:
            port.receive_duplicate(self.channel, self.data)
        else:
            port.receive(self.data)

    def drop(self, state: ConnectionFaultState) -> None:
        """A dropped publish is counted and never confirmed; the publishes of a dropped confirm neither."""
        port = self.port
        if self.direction == "received" and self.name == PUBLISH:
            tag = self.tag
            if tag is not None and not self.is_duplicate:
                port.drop(self.channel, None)
                self._never_confirmed(state, tag)
        elif self.direction == "received" and self.name == HEARTBEAT:
            port.drop_heartbeat()
        elif self.direction == "sent" and self.name in CONFIRMS and port.channel_open(self.channel):
            self._never_confirmed(state, self.method.delivery_tag)

    def suppressed(self, state: ConnectionFaultState) -> None:
        """The connection may only be silent, and continue."""
        if self.name in CONFIRMS:
            self._never_confirmed(state, self.method.delivery_tag)

    def _never_confirmed(self, state: ConnectionFaultState, tag: int) -> None:
        """No confirm of a later publish may cover this tag."""
        state.never_confirmed(self.channel, tag)
        self.port.confirm_singly(self.channel)

    @property
    def tag(self) -> int | None:
        return self.port.next_publish(self.channel)

    def nack(self, state: ConnectionFaultState) -> Self | None:
        """Refuse a publish; replace the ack of a confirm by a nack. Without confirms the message is lost."""
        if self.direction == "sent":
            return self.with_method(
                m.BasicNack(delivery_tag=self.method.delivery_tag, multiple=self.method.multiple)
            )
        if self.name != PUBLISH or self.tag is None:  # Other publishes are of 0-9.
            state.note(self.port, "no confirms on this channel: the message is lost without an answer")
        elif not self.is_duplicate:
            self.port.nack(self.channel, None)
        return None

    def return_message(self, state: ConnectionFaultState, code: int, text: str) -> None:
        """Send basic.return with the content, and a confirm."""
        method = m.BasicReturn(code, text, self.method.exchange, self.method.routing_key)
        frames = [(FRAME_METHOD, method.encode()), *self.frames[1:]]
        answer = type(self)(self.protocol, self.port, "sent", self.channel, frames)
        answer.generation = state.generations.get(self.channel, 0)
        state.send(state, answer)
        if not self.is_duplicate and self.tag is not None:
            self.port.returned(self.channel, None)
