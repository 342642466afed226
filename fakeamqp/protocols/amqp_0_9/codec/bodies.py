"""The body of a message.transfer: its bytes, or the name of a reference that collects them.

One byte distinguishes the two, a long string follows (0-9/domain.content/union).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec.fields import WireType, check_bytes, skipped, skipped_string
from fakeamqp.protocols.base.codec import FieldError, FrameError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.record import Reader, Writer
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

_INLINE, _REFERENCE = 0, 1


class Body(NamedTuple):
    """The body of a transfer: `octets` are the body itself or the name of a reference."""

    octets: bytes = b""
    by_reference: bool = False


NO_BODY = Body()


def decode_body(payload: bytes, offset: int) -> tuple[Body, int]:
    """The body at `offset`, and where it ends. Raises IndexError if it is cut short, or FieldError."""
    kind = payload[offset]
    if kind not in (_INLINE, _REFERENCE):
        raise FieldError(f"a body is inline ({_INLINE}) or a reference ({_REFERENCE}), not {kind}")
    start = offset + 5
    end = start + int.from_bytes(payload[offset + 1 : start], "big")
    if end > len(payload):
        raise IndexError(end)
    return Body(payload[start:end], kind == _REFERENCE), end


def encode_body(body: Body) -> bytes:
    """The bytes of a body."""
    kind = _REFERENCE if body.by_reference else _INLINE
    return b"".join((bytes((kind,)), len(body.octets).to_bytes(4, "big"), body.octets))


class BodyType(WireType):
    """The wire type of a body. Only 0-9 has it."""

    __slots__ = ()

    name = "content"
    prefix = 5

    def read(self, reader: Reader, target: str) -> None:
        reader.value("decode_body(payload, {position})", target, decode_body=decode_body)

    def write(self, writer: Writer, value: str) -> None:
        writer.value(f"encode_body({value})", encode_body=encode_body)

    def skip(self, octets: bytes, offset: int, grammar: Grammar) -> int:
        try:
            return decode_body(octets, offset)[1]
        except IndexError:
            raise FrameError(
                f"the body at offset {offset} is cut short, the payload ends at {len(octets)}"
            ) from None

    def measure(self, octets: bytes, offset: int) -> int:
        return skipped_string(octets, skipped(octets, offset, 1), 4)

    def check(self, value: Any) -> None:
        check_bytes(value.octets)


TransferBody: TypeAlias = Annotated[Body, BodyType()]
