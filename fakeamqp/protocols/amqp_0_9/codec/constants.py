"""The numbers and names of AMQP 0-9 beside those of 0-9-1; a test holds them equal to spec/amqp-0-9.toml."""

from __future__ import annotations

from typing import Final

from fakeamqp.protocols.amqp_0_9_1.codec import constants as c
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY as FRAME_BODY,
    FRAME_HEARTBEAT as FRAME_HEARTBEAT,
    FRAME_METHOD as FRAME_METHOD,
)

#: What a client sends first, and a server to one whose version it does not speak
PROTOCOL_HEADER: Final = b"\x41\x4d\x51\x50\x01\x01\x00\x09"

FRAME_HEADER: Final = 2
FRAME_OOB_METHOD: Final = 4
FRAME_OOB_HEADER: Final = 5
FRAME_OOB_BODY: Final = 6
FRAME_TRACE: Final = 7
FRAME_REQUEST: Final = 9
FRAME_RESPONSE: Final = 10

#: frame type -> name
FRAME_NAMES: Final[dict[int, str]] = {
    FRAME_METHOD: "method",
    FRAME_HEADER: "header",
    FRAME_BODY: "body",
    FRAME_OOB_METHOD: "oob-method",
    FRAME_OOB_HEADER: "oob-header",
    FRAME_OOB_BODY: "oob-body",
    FRAME_TRACE: "trace",
    FRAME_HEARTBEAT: "heartbeat",
    FRAME_REQUEST: "request",
    FRAME_RESPONSE: "response",
}
FRAME_TYPES: Final = frozenset(FRAME_NAMES)
FRAME_TYPES_0_8: Final = FRAME_TYPES - {FRAME_REQUEST, FRAME_RESPONSE}
#: the types whose payload is transported outside the connection (0-9/oob/format)
OUT_OF_BAND: Final = frozenset((FRAME_OOB_METHOD, FRAME_OOB_HEADER, FRAME_OOB_BODY))

_NOT_DELIVERED = 310
_UNEXPECTED_FRAME = 505

#: reply code -> its name as peers print it
REPLY_NAMES: Final[dict[int, str]] = {
    code: name for code, name in c.REPLY_NAMES.items() if code != _UNEXPECTED_FRAME
} | {_NOT_DELIVERED: "NOT_DELIVERED"}
#: reply codes that end the channel
SOFT_ERRORS: Final = c.SOFT_ERRORS | {_NOT_DELIVERED}
#: reply codes that end the connection
HARD_ERRORS: Final = c.HARD_ERRORS - {_UNEXPECTED_FRAME}
