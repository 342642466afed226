"""How each protocol puts frames into bytes, for those who look at a connection from outside.

A connection cuts what comes by itself. Traces and faults see frames of every protocol; to them a frame is a
kind, a channel and a payload, and a `Framing` knows the rest. The kind is a number:

| Protocol | Kind |
|---|---|
| 0-9-1 | the frame's type: 1 method, 2 content header, 3 content body, 8 heartbeat |
| 0-8 | the same, and 4 to 6 out-of-band, 7 trace |
| 0-9 | the same, and 9 request, 10 response: both hold a method |
| 0-10 | flags and type of the segment, `flags << 8 | type`; types: 0 control, 1 command, 2 header, 3 body |

Of a 0-10 frame that is on the wrong track bit 16 of the kind is set: so it can be written again as it was.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Literal, Protocol, TypeAlias

__all__ = ["PROTOCOLS", "Framing", "Part", "framing_of", "protocol_of"]

Part: TypeAlias = Literal["method", "header", "body", "heartbeat", ""]
"""What a frame holds, whatever its protocol calls that: a method stands for commands and controls as well;
"" is anything that is not known."""


class Framing(Protocol):
    """The frames of one protocol."""

    @property
    def protocol_header(self) -> bytes:
        """The eight bytes that a client of this protocol begins with."""

    @property
    def answer(self) -> bytes:
        """What a server says to that header where it speaks the protocol, before its first frame."""

    @property
    def heartbeat(self) -> bytes:
        """A heartbeat, as a whole frame."""

    @property
    def overhead(self) -> int:
        """How many bytes of a frame are not its payload."""

    @property
    def header_size(self) -> int:
        """How many bytes come before the payload; by then the size of a frame is known."""

    def length(self, header: bytes) -> int:
        """How many bytes a frame has that begins with these `header_size` bytes, these included."""

    def may_begin(self, octet: int) -> bool:
        """Whether a frame can begin with this byte."""

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """Kind, channel, payload and its announced size of each frame.

        Of a last one that is not all there the payload is what there is of it. Whatever the bytes are,
        nothing is raised.
        """

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        """One frame as bytes.

        Raises:
            WireError: a number does not fit its field.
        """

    def part(self, kind: int, payload: bytes) -> Part:
        """What a frame holds."""


_MODULES = {
    "0-9-1": "fakeamqp.protocols.framed.codec.framing",
    "0-10": "fakeamqp.protocols.amqp_0_10.codec.framing",
    "0-9": "fakeamqp.protocols.amqp_0_9.codec.framing",
    "0-8": "fakeamqp.protocols.amqp_0_9.codec.framing_0_8",
}
PROTOCOLS = tuple(_MODULES)
"""The names of the protocols whose frames are known, the most common first."""
_BY_HEADER = {
    b"AMQP\0\0\x09\x01": "0-9-1",
    b"AMQP\1\1\0\x0a": "0-10",
    b"AMQP\1\1\0\x09": "0-9",
    b"AMQP\1\1\x08\0": "0-8",
    b"AMQP\1\1\x09\1": "0-8",
}


@cache
def framing_of(protocol: str) -> Framing:
    """The frames of a protocol; what is needed for that is loaded by the first who asks.

    Raises:
        KeyError: there is no such protocol.
    """
    framing: Framing = import_module(_MODULES[protocol]).FRAMING
    return framing


def protocol_of(protocol_header: bytes) -> str | None:
    """The protocol that a client asks for by these eight bytes; None where it is not known."""
    return _BY_HEADER.get(protocol_header)
