"""The numbers and names of AMQP 0-9-1 as RabbitMQ speaks it.

Made from spec/amqp-0-9-1.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from typing import Final

#: What a client sends first, and a server to one whose version it does not speak
PROTOCOL_HEADER: Final = b"\x41\x4d\x51\x50\x00\x00\x09\x01"
VERSION_MAJOR: Final = 0
VERSION_MINOR: Final = 9
PORT: Final = 5672

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
FRAME_MIN_SIZE: Final = 4096
FRAME_END: Final = 206
REPLY_SUCCESS: Final = 200
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
UNEXPECTED_FRAME: Final = 505
RESOURCE_ERROR: Final = 506
NOT_ALLOWED: Final = 530
NOT_IMPLEMENTED: Final = 540
INTERNAL_ERROR: Final = 541

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

CLASS_CONNECTION: Final = 10
CLASS_CHANNEL: Final = 20
CLASS_ACCESS: Final = 30
CLASS_EXCHANGE: Final = 40
CLASS_QUEUE: Final = 50
CLASS_BASIC: Final = 60
CLASS_CONFIRM: Final = 85
CLASS_TX: Final = 90

#: class id -> name
CLASS_NAMES: Final[dict[int, str]] = {
    10: "connection",
    20: "channel",
    30: "access",
    40: "exchange",
    50: "queue",
    60: "basic",
    85: "confirm",
    90: "tx",
}

#: class id << 16 | method id -> name
METHOD_NAMES: Final[dict[int, str]] = {
    0x000A000A: "connection.start",
    0x000A000B: "connection.start-ok",
    0x000A0014: "connection.secure",
    0x000A0015: "connection.secure-ok",
    0x000A001E: "connection.tune",
    0x000A001F: "connection.tune-ok",
    0x000A0028: "connection.open",
    0x000A0029: "connection.open-ok",
    0x000A0032: "connection.close",
    0x000A0033: "connection.close-ok",
    0x000A003C: "connection.blocked",
    0x000A003D: "connection.unblocked",
    0x000A0046: "connection.update-secret",
    0x000A0047: "connection.update-secret-ok",
    0x0014000A: "channel.open",
    0x0014000B: "channel.open-ok",
    0x00140014: "channel.flow",
    0x00140015: "channel.flow-ok",
    0x00140028: "channel.close",
    0x00140029: "channel.close-ok",
    0x001E000A: "access.request",
    0x001E000B: "access.request-ok",
    0x0028000A: "exchange.declare",
    0x0028000B: "exchange.declare-ok",
    0x00280014: "exchange.delete",
    0x00280015: "exchange.delete-ok",
    0x0028001E: "exchange.bind",
    0x0028001F: "exchange.bind-ok",
    0x00280028: "exchange.unbind",
    0x00280033: "exchange.unbind-ok",
    0x0032000A: "queue.declare",
    0x0032000B: "queue.declare-ok",
    0x00320014: "queue.bind",
    0x00320015: "queue.bind-ok",
    0x0032001E: "queue.purge",
    0x0032001F: "queue.purge-ok",
    0x00320028: "queue.delete",
    0x00320029: "queue.delete-ok",
    0x00320032: "queue.unbind",
    0x00320033: "queue.unbind-ok",
    0x003C000A: "basic.qos",
    0x003C000B: "basic.qos-ok",
    0x003C0014: "basic.consume",
    0x003C0015: "basic.consume-ok",
    0x003C001E: "basic.cancel",
    0x003C001F: "basic.cancel-ok",
    0x003C0028: "basic.publish",
    0x003C0032: "basic.return",
    0x003C003C: "basic.deliver",
    0x003C0046: "basic.get",
    0x003C0047: "basic.get-ok",
    0x003C0048: "basic.get-empty",
    0x003C0050: "basic.ack",
    0x003C005A: "basic.reject",
    0x003C0064: "basic.recover-async",
    0x003C006E: "basic.recover",
    0x003C006F: "basic.recover-ok",
    0x003C0078: "basic.nack",
    0x0055000A: "confirm.select",
    0x0055000B: "confirm.select-ok",
    0x005A000A: "tx.select",
    0x005A000B: "tx.select-ok",
    0x005A0014: "tx.commit",
    0x005A0015: "tx.commit-ok",
    0x005A001E: "tx.rollback",
    0x005A001F: "tx.rollback-ok",
}
