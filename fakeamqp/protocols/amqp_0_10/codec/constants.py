"""The numbers and names of AMQP 0-10.

Made from spec/amqp-0-10.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

#: What a client sends first, and a server that accepts it sends back
PROTOCOL_HEADER: Final = b"\x41\x4d\x51\x50\x01\x01\x00\x0a"
VERSION_MAJOR: Final = 0
VERSION_MINOR: Final = 10
PORT: Final = 5672

MIN_MAX_FRAME_SIZE: Final = 4096
#: Credit without end
INFINITE_CREDIT: Final = 0xFFFFFFFF

CLASS_CONNECTION: Final = 1
CLASS_SESSION: Final = 2
CLASS_EXECUTION: Final = 3
CLASS_MESSAGE: Final = 4
CLASS_TX: Final = 5
CLASS_DTX: Final = 6
CLASS_EXCHANGE: Final = 7
CLASS_QUEUE: Final = 8
CLASS_FILE: Final = 9
CLASS_STREAM: Final = 10

#: class code -> name
CLASS_NAMES: Final[dict[int, str]] = {
    1: "connection",
    2: "session",
    3: "execution",
    4: "message",
    5: "tx",
    6: "dtx",
    7: "exchange",
    8: "queue",
    9: "file",
    10: "stream",
}


class SegmentType(IntEnum):
    """The values of segment-type."""

    CONTROL = 0
    COMMAND = 1
    HEADER = 2
    BODY = 3


class Track(IntEnum):
    """The values of track."""

    CONTROL = 0
    COMMAND = 1


class CloseCode(IntEnum):
    """The values of connection.close-code."""

    NORMAL = 200
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    FRAMING_ERROR = 501


class DetachCode(IntEnum):
    """The values of session.detach-code."""

    NORMAL = 0
    SESSION_BUSY = 1
    TRANSPORT_BUSY = 2
    NOT_ATTACHED = 3
    UNKNOWN_IDS = 4


class ErrorCode(IntEnum):
    """The values of execution.error-code."""

    UNAUTHORIZED_ACCESS = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    RESOURCE_DELETED = 408
    ILLEGAL_STATE = 409
    COMMAND_INVALID = 503
    RESOURCE_LIMIT_EXCEEDED = 506
    NOT_ALLOWED = 530
    ILLEGAL_ARGUMENT = 531
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541
    INVALID_ARGUMENT = 542


class AcceptMode(IntEnum):
    """The values of message.accept-mode."""

    EXPLICIT = 0
    NONE = 1


class AcquireMode(IntEnum):
    """The values of message.acquire-mode."""

    PRE_ACQUIRED = 0
    NOT_ACQUIRED = 1


class RejectCode(IntEnum):
    """The values of message.reject-code."""

    UNSPECIFIED = 0
    UNROUTABLE = 1
    IMMEDIATE = 2


class DeliveryMode(IntEnum):
    """The values of message.delivery-mode."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class DeliveryPriority(IntEnum):
    """The values of message.delivery-priority."""

    LOWEST = 0
    LOWER = 1
    LOW = 2
    BELOW_AVERAGE = 3
    MEDIUM = 4
    ABOVE_AVERAGE = 5
    HIGH = 6
    HIGHER = 7
    VERY_HIGH = 8
    HIGHEST = 9


class FlowMode(IntEnum):
    """The values of message.flow-mode."""

    CREDIT = 0
    WINDOW = 1


class CreditUnit(IntEnum):
    """The values of message.credit-unit."""

    MESSAGE = 0
    BYTE = 1


class XaStatus(IntEnum):
    """The values of dtx.xa-status."""

    XA_OK = 0
    XA_RBROLLBACK = 1
    XA_RBTIMEOUT = 2
    XA_HEURHAZ = 3
    XA_HEURCOM = 4
    XA_HEURRB = 5
    XA_HEURMIX = 6
    XA_RDONLY = 7


class ReturnCode(IntEnum):
    """The values of file.return-code."""

    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
