"""Errors, and the codes that tell the peer about them.

An exception of a command ends its session with an error code (execution.exception/correlates); an error of
frames, controls or the connection closes the connection with a close code. One place for each of the two
catches the exceptions and fills in the ids of the failing command.
"""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import ModelError
from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode, ErrorCode
from fakeamqp.protocols.base.codec import WireError

_ERROR_CODES: dict[str, ErrorCode] = {
    **{code.name.lower().replace("_", "-"): code for code in ErrorCode},
    "access-refused": ErrorCode.UNAUTHORIZED_ACCESS,
    "invalid-path": ErrorCode.NOT_FOUND,
    "resource-error": ErrorCode.RESOURCE_LIMIT_EXCEEDED,
    "content-too-large": ErrorCode.RESOURCE_LIMIT_EXCEEDED,
    "syntax-error": ErrorCode.ILLEGAL_ARGUMENT,
    "connection-forced": ErrorCode.INTERNAL_ERROR,
}
"""Condition -> what ends a session: mostly the code of that name."""

_CLOSE_CODES: dict[str, CloseCode] = {
    "framing-error": CloseCode.FRAMING_ERROR,
    "command-invalid": CloseCode.FRAMING_ERROR,
    "illegal-argument": CloseCode.FRAMING_ERROR,
    "invalid-path": CloseCode.INVALID_PATH,
    "not-found": CloseCode.INVALID_PATH,
}
"""Condition -> what ends a connection; everything else is the operator's will."""


class SessionFault(FakeAMQPError):
    """A command that cannot be carried out; `condition` names the error code.

    `field` is the Python name of the wrong field; None where no field is wrong.
    """

    def __init__(self, condition: str, text: str, field: str | None = None) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text
        self.field = field


class ConnectionFault(FakeAMQPError):
    """The peer has broken a rule of the connection itself; `condition` names the close code.

    `silent` ends the transport without connection.close.
    """

    def __init__(self, condition: str, text: str, *, silent: bool = False) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text
        self.silent = silent


def error_code(problem: SessionFault | ModelError | WireError) -> ErrorCode:
    """The code of the execution.exception for this problem."""
    return _ERROR_CODES.get(problem.condition, ErrorCode.INTERNAL_ERROR)


def close_code(problem: ConnectionFault | ModelError | WireError) -> CloseCode:
    """The code of the connection.close for this problem."""
    return _CLOSE_CODES.get(problem.condition, CloseCode.CONNECTION_FORCED)


def short_text(text: str, longest: int = 255) -> str:
    """As much of `text` as fits into a str8."""
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) <= longest:
        return text
    return octets[: longest - 3].decode("utf-8", "ignore") + "..."
