"""The numbers and names of AMQP 0-9; a test holds them equal to spec/amqp-0-9.toml."""

from __future__ import annotations

from typing import Final

#: What a client sends first, and a server to one whose version it does not speak
PROTOCOL_HEADER: Final = b"\x41\x4d\x51\x50\x01\x01\x00\x09"
VERSION_MAJOR: Final = 0
VERSION_MINOR: Final = 9
PORT: Final = 5672

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_OOB_METHOD: Final = 4
FRAME_OOB_HEADER: Final = 5
FRAME_OOB_BODY: Final = 6
FRAME_TRACE: Final = 7
FRAME_HEARTBEAT: Final = 8
FRAME_REQUEST: Final = 9
FRAME_RESPONSE: Final = 10
FRAME_MIN_SIZE: Final = 4096
FRAME_END: Final = 206
REPLY_SUCCESS: Final = 200
NOT_DELIVERED: Final = 310
CONTENT_TOO_LARGE: Final = 311
NO_ROUTE: Final = 312
NO_CONSUMERS: Final = 313
CONNECTION_FORCED: Final = 320
INVALID_PATH: Final = 402
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
RESOURCE_LOCKED: Final = 405
PRECONDITION_FAILED: Final = 406
FRAME_ERROR: Final = 501
SYNTAX_ERROR: Final = 502
COMMAND_INVALID: Final = 503
CHANNEL_ERROR: Final = 504
RESOURCE_ERROR: Final = 506
NOT_ALLOWED: Final = 530
NOT_IMPLEMENTED: Final = 540
INTERNAL_ERROR: Final = 541

#: reply code -> its name as peers print it
REPLY_NAMES: Final[dict[int, str]] = {
    200: "REPLY_SUCCESS",
    310: "NOT_DELIVERED",
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}

#: reply codes that end the channel
SOFT_ERRORS: Final = frozenset({310, 311, 312, 313, 403, 404, 405, 406})

#: reply codes that end the connection
HARD_ERRORS: Final = frozenset({320, 402, 501, 502, 503, 504, 506, 530, 540, 541})

CLASS_CONNECTION: Final = 10
CLASS_CHANNEL: Final = 20
CLASS_ACCESS: Final = 30
CLASS_EXCHANGE: Final = 40
CLASS_QUEUE: Final = 50
CLASS_BASIC: Final = 60
CLASS_FILE: Final = 70
CLASS_STREAM: Final = 80
CLASS_TX: Final = 90
CLASS_DTX: Final = 100
CLASS_TUNNEL: Final = 110
CLASS_MESSAGE: Final = 120

#: class id -> name
CLASS_NAMES: Final[dict[int, str]] = {
    10: "connection",
    20: "channel",
    30: "access",
    40: "exchange",
    50: "queue",
    60: "basic",
    70: "file",
    80: "stream",
    90: "tx",
    100: "dtx",
    110: "tunnel",
    120: "message",
}
