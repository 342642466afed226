"""Errors, and the conditions that tell the peer about them.

An error has a scope: a link, a session or the connection. One place for each catches the exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import ModelError
from fakeamqp.protocols.amqp_1_0.codec.composites import Error
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol


class Reply:
    """The conditions that the broker sends."""

    NOT_FOUND = "amqp:not-found"
    UNAUTHORIZED = "amqp:unauthorized-access"
    INVALID_FIELD = "amqp:invalid-field"
    NOT_IMPLEMENTED = "amqp:not-implemented"
    INTERNAL_ERROR = "amqp:internal-error"
    DECODE_ERROR = "amqp:decode-error"
    PRECONDITION_FAILED = "amqp:precondition-failed"
    RESOURCE_DELETED = "amqp:resource-deleted"
    LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
    FRAMING_ERROR = "amqp:connection:framing-error"
    WINDOW_VIOLATION = "amqp:session:window-violation"
    HANDLE_IN_USE = "amqp:session:handle-in-use"
    UNATTACHED_HANDLE = "amqp:session:unattached-handle"
    TRANSFER_LIMIT = "amqp:link:transfer-limit-exceeded"
    MESSAGE_SIZE = "amqp:link:message-size-exceeded"


_CONDITIONS: Final[Mapping[str, str]] = {
    **{"access-refused": Reply.UNAUTHORIZED, "syntax-error": Reply.INVALID_FIELD},
    **{"not-found": Reply.NOT_FOUND, "not-implemented": Reply.NOT_IMPLEMENTED},
    **{"resource-error": Reply.LIMIT_EXCEEDED, "content-too-large": Reply.MESSAGE_SIZE},
    **{name: f"amqp:{name}" for name in ("resource-locked", "precondition-failed")},
    **{name: f"amqp:{name}" for name in ("not-allowed", "resource-deleted")},
}
"""Condition of an error of the model -> condition of 1.0; all others are internal errors."""


class Fault(FakeAMQPError):
    """A frame that cannot be carried out; `condition` is the symbol for the peer, "" for no text."""

    def __init__(self, condition: str, text: str = "", info: Mapping[str, Any] | None = None) -> None:
        super().__init__(text or condition)
        self.condition = condition
        self.text = text
        self.info = info

    @property
    def error(self) -> Error:
        return error(self.condition, self.text, self.info)


class LinkFault(Fault):
    """Refuses or detaches a link."""


class Detached(LinkFault):
    """Detaches a link in every version."""


class EndFault(Fault):
    """Ends the session."""


class SessionCrash(EndFault):
    """Ends the session for what crashes that of RabbitMQ."""

    def __init__(self, text: str) -> None:
        super().__init__(Reply.INTERNAL_ERROR, text)


class CloseFault(Fault):
    """Closes the connection."""


def error(condition: str, text: str = "", info: Mapping[str, Any] | None = None) -> Error:
    """The error with a condition; `info` has strings as keys.

    A name that is not UTF-8 is shown as Latin-1 (RabbitMQ: measured on 4.0.5 and 4.3.6).
    """
    octets = text.encode("utf-8", "surrogateescape")
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        text = octets.decode("latin-1")
    return Error(
        condition=Symbol(condition),
        description=text or None,
        info=None if info is None else {Symbol(name): value for name, value in info.items()},
    )


def condition_of(problem: ModelError) -> str:
    """The condition of 1.0 for an error of the model."""
    return _CONDITIONS.get(problem.condition, Reply.INTERNAL_ERROR)


def shown_text(problem: ModelError) -> str:
    """RabbitMQ's text; that of a locked queue is shorter than in 0-9-1."""
    return problem.text.partition(". It could be originally declared")[0]
