"""The errors of the model, by condition.

A model error has a condition (a name for which every AMQP version has a code) and a text in RabbitMQ's form.
The protocol adds the reply code, the scope and the ids of the failing method.
"""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.errors import FakeAMQPError

__all__ = [
    "AccessRefused",
    "AuthenticationFailed",
    "ChannelCrash",
    "CommandInvalid",
    "ContentRefused",
    "ContentTooLarge",
    "IllegalArgument",
    "IllegalState",
    "InternalError",
    "InvalidArgument",
    "InvalidPath",
    "ModelError",
    "NotAllowed",
    "NotFound",
    "NotImplementedHere",
    "PreconditionFailed",
    "ResourceDeleted",
    "ResourceError",
    "ResourceLocked",
    "SyntaxFault",
]


class ModelError(FakeAMQPError):
    """A request that the model refuses; `condition` is the protocols' name for the reason.

    `ends_connection` overrides the default scope (channel or connection) of the condition's reply code.
    """

    condition: ClassVar[str] = "internal-error"

    def __init__(self, text: str, *, ends_connection: bool | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.ends_connection = ends_connection


class ContentTooLarge(ModelError):
    """The message is larger than the broker accepts."""

    condition = "content-too-large"


class InvalidPath(ModelError):
    """The virtual host does not exist (the condition in the specifications)."""

    condition = "invalid-path"


class AccessRefused(ModelError):
    """The user, or the nature of the entity, does not permit the request."""

    condition = "access-refused"


class AuthenticationFailed(AccessRefused):
    """The user does not exist, or the password is wrong.

    `why` is for the log and the trace only: a client must not learn which of the two it is.
    """

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why: str = why or text


class NotFound(ModelError):
    """The entity does not exist."""

    condition = "not-found"


class ResourceLocked(ModelError):
    """Another connection owns the entity."""

    condition = "resource-locked"


class PreconditionFailed(ModelError):
    """The entity exists, but not in the state that the request requires."""

    condition = "precondition-failed"


class IllegalState(ModelError):
    """The request is not permitted in the current state (0-10)."""

    condition = "illegal-state"


class IllegalArgument(ModelError):
    """An argument has a value that is never valid (0-10)."""

    condition = "illegal-argument"


class InvalidArgument(ModelError):
    """An argument has a value that is not valid here and now (0-10)."""

    condition = "invalid-argument"


class ResourceDeleted(ModelError):
    """The entity of the request has been deleted meanwhile (0-10)."""

    condition = "resource-deleted"


class SyntaxFault(ModelError):
    """An argument has an illegal value."""

    condition = "syntax-error"


class CommandInvalid(ModelError):
    """The request is invalid in the current state, or names a type that does not exist."""

    condition = "command-invalid"


class ResourceError(ModelError):
    """A limit of the broker is reached."""

    condition = "resource-error"


class NotAllowed(ModelError):
    """The request is prohibited."""

    condition = "not-allowed"


class NotImplementedHere(ModelError):
    """The broker does not implement this; it refuses instead of pretending."""

    condition = "not-implemented"


class ContentRefused(NotImplementedHere):
    """An exchange does not take contents of this class; an error of the channel, unlike the base class."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ends_connection=False)


class InternalError(ModelError):
    """An internal error of the broker, or a feature that the personality denies."""

    condition = "internal-error"


class ChannelCrash(InternalError):
    """RabbitMQ crashes here: it closes the connection without an explanation.

    The text is not sent to the client; it is shown in the test process only.
    """
