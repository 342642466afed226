"""What can go wrong in the model, by condition.

A model error knows its condition (the word every AMQP version has a code for) and a text in the
shape RabbitMQ uses. The protocol adds the reply code, the scope and the ids of the failing method.
"""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.errors import FakeAMQPError

__all__ = [
    "AccessRefused",
    "AuthenticationFailed",
    "CommandInvalid",
    "ConnectionForced",
    "ContentTooLarge",
    "Crash",
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
    """A request that the model refuses; `condition` is the protocol's word for the reason.

    `ends_connection` overrides the scope that the condition's reply code has by default.
    """

    condition: ClassVar[str] = "internal-error"

    def __init__(self, text: str, *, ends_connection: bool | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.ends_connection = ends_connection


class ContentTooLarge(ModelError):
    """The message is larger than the broker takes."""

    condition = "content-too-large"


class ConnectionForced(ModelError):
    """The operator closes the connection."""

    condition = "connection-forced"


class InvalidPath(ModelError):
    """The virtual host does not exist (the documents' condition for it)."""

    condition = "invalid-path"


class AccessRefused(ModelError):
    """The user, or the nature of the entity, does not permit the request."""

    condition = "access-refused"


class AuthenticationFailed(AccessRefused):
    """Nobody knows this user with this secret."""


class NotFound(ModelError):
    """The entity does not exist."""

    condition = "not-found"


class ResourceLocked(ModelError):
    """Another connection owns the entity."""

    condition = "resource-locked"


class PreconditionFailed(ModelError):
    """The entity is there, but not in the state the request demands."""

    condition = "precondition-failed"


class IllegalState(ModelError):
    """The request comes at a point where it is not permitted (0-10)."""

    condition = "illegal-state"


class IllegalArgument(ModelError):
    """An argument has a value that nobody could act on (0-10)."""

    condition = "illegal-argument"


class InvalidArgument(ModelError):
    """An argument has a value that cannot be acted on here and now (0-10)."""

    condition = "invalid-argument"


class ResourceDeleted(ModelError):
    """What the request was about has been deleted meanwhile (0-10)."""

    condition = "resource-deleted"


class SyntaxFault(ModelError):
    """An argument holds an illegal value."""

    condition = "syntax-error"


class CommandInvalid(ModelError):
    """The request makes no sense at this point, or names a kind of thing that does not exist."""

    condition = "command-invalid"


class ResourceError(ModelError):
    """A limit of the broker is reached."""

    condition = "resource-error"


class NotAllowed(ModelError):
    """The request is prohibited in this manner."""

    condition = "not-allowed"


class NotImplementedHere(ModelError):
    """The broker does not do this: it says so rather than pretend."""

    condition = "not-implemented"


class InternalError(ModelError):
    """A fault of the broker itself, or a feature that the personality denies."""

    condition = "internal-error"


class Crash(InternalError):
    """RabbitMQ fails here for no reason of its own; it ends the connection and does not say why.

    The text is for whoever reads the error in the test's own process.
    """
