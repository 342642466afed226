"""The numbers and names of AMQP 0-9.

Made from spec/amqp-0-9.toml by spec/generate.py; changes belong there.
"""

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
    0x000A002A: "connection.redirect",
    0x000A0032: "connection.close",
    0x000A0033: "connection.close-ok",
    0x0014000A: "channel.open",
    0x0014000B: "channel.open-ok",
    0x00140014: "channel.flow",
    0x00140015: "channel.flow-ok",
    0x00140028: "channel.close",
    0x00140029: "channel.close-ok",
    0x00140032: "channel.resume",
    0x0014003C: "channel.ping",
    0x00140046: "channel.pong",
    0x00140050: "channel.ok",
    0x001E000A: "access.request",
    0x001E000B: "access.request-ok",
    0x0028000A: "exchange.declare",
    0x0028000B: "exchange.declare-ok",
    0x00280014: "exchange.delete",
    0x00280015: "exchange.delete-ok",
    0x00280016: "exchange.bound",
    0x00280017: "exchange.bound-ok",
    0x0032000A: "queue.declare",
    0x0032000B: "queue.declare-ok",
    0x00320014: "queue.bind",
    0x00320015: "queue.bind-ok",
    0x00320032: "queue.unbind",
    0x00320033: "queue.unbind-ok",
    0x0032001E: "queue.purge",
    0x0032001F: "queue.purge-ok",
    0x00320028: "queue.delete",
    0x00320029: "queue.delete-ok",
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
    0x003C0064: "basic.recover",
    0x003C0066: "basic.recover-sync",
    0x003C0065: "basic.recover-sync-ok",
    0x0046000A: "file.qos",
    0x0046000B: "file.qos-ok",
    0x00460014: "file.consume",
    0x00460015: "file.consume-ok",
    0x0046001E: "file.cancel",
    0x0046001F: "file.cancel-ok",
    0x00460028: "file.open",
    0x00460029: "file.open-ok",
    0x00460032: "file.stage",
    0x0046003C: "file.publish",
    0x00460046: "file.return",
    0x00460050: "file.deliver",
    0x0046005A: "file.ack",
    0x00460064: "file.reject",
    0x0050000A: "stream.qos",
    0x0050000B: "stream.qos-ok",
    0x00500014: "stream.consume",
    0x00500015: "stream.consume-ok",
    0x0050001E: "stream.cancel",
    0x0050001F: "stream.cancel-ok",
    0x00500028: "stream.publish",
    0x00500032: "stream.return",
    0x0050003C: "stream.deliver",
    0x005A000A: "tx.select",
    0x005A000B: "tx.select-ok",
    0x005A0014: "tx.commit",
    0x005A0015: "tx.commit-ok",
    0x005A001E: "tx.rollback",
    0x005A001F: "tx.rollback-ok",
    0x0064000A: "dtx.select",
    0x0064000B: "dtx.select-ok",
    0x00640014: "dtx.start",
    0x00640015: "dtx.start-ok",
    0x006E000A: "tunnel.request",
    0x0078000A: "message.transfer",
    0x00780014: "message.consume",
    0x0078001E: "message.cancel",
    0x00780028: "message.get",
    0x00780032: "message.recover",
    0x0078003C: "message.open",
    0x00780046: "message.close",
    0x00780050: "message.append",
    0x0078005A: "message.checkpoint",
    0x00780064: "message.resume",
    0x0078006E: "message.qos",
    0x007801F4: "message.ok",
    0x007801FE: "message.empty",
    0x00780208: "message.reject",
    0x00780212: "message.offset",
}
