"""The numbers and names of AMQP 0-9-1 as RabbitMQ speaks it.

A test holds them equal to spec/amqp-0-9-1.toml.
"""

from __future__ import annotations

from typing import Final

#: What a client sends first, and a server to one whose version it does not speak
PROTOCOL_HEADER: Final = b"\x41\x4d\x51\x50\x00\x00\x09\x01"
VERSION_MAJOR: Final = 0
VERSION_MINOR: Final = 9

#: reply code -> its name as peers print it
REPLY_NAMES: Final[dict[int, str]] = {
    200: "REPLY_SUCCESS",
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
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}

#: reply codes that end the channel
SOFT_ERRORS: Final = frozenset({311, 312, 313, 403, 404, 405, 406})

#: reply codes that end the connection
HARD_ERRORS: Final = frozenset({320, 402, 501, 502, 503, 504, 505, 506, 530, 540, 541})
