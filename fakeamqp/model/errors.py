"""The errors of the model, by condition.

A model error has a condition (a name for which every AMQP version has a code) and a text in RabbitMQ's form.
The protocol adds the reply code, the scope and the ids of the failing method.
"""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.errors import FakeAMQPError


class ModelError(FakeAMQPError):
    """A request that the model refuses; `condition` is the protocols' name for the reason.

    `ends_connection` overrides the default scope (channel or connection) of the condition's reply code.
    """

    __module__ = "fakeamqp.errors"

    condition: ClassVar[str] = "internal-error"

    def __init_subclass__(cls, condition: str = "") -> None:
        cls.condition = condition or cls.condition

    def __init__(self, text: str, *, ends_connection: bool | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.ends_connection = ends_connection


class ContentTooLarge(ModelError, condition="content-too-large"):
    """The message is larger than the broker accepts."""

    __module__ = "fakeamqp.errors"


class InvalidPath(ModelError, condition="invalid-path"):
    """The virtual host does not exist (the condition in the specifications)."""

    __module__ = "fakeamqp.errors"


class AccessRefused(ModelError, condition="access-refused"):
    """The user, or the nature of the entity, does not permit the request."""

    __module__ = "fakeamqp.errors"


class AuthenticationFailed(AccessRefused):
    """The user does not exist, or the password is wrong.

    `why` is for the log and the trace only: a client must not learn which of the two it is.
    """

    __module__ = "fakeamqp.errors"

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why: str = why or text


class NotFound(ModelError, condition="not-found"):
    """The entity does not exist."""

    __module__ = "fakeamqp.errors"


class ResourceLocked(ModelError, condition="resource-locked"):
    """Another connection owns the entity."""

    __module__ = "fakeamqp.errors"


class PreconditionFailed(ModelError, condition="precondition-failed"):
    """The entity exists, but not in the state that the request requires."""

    __module__ = "fakeamqp.errors"


class IllegalState(ModelError, condition="illegal-state"):
    """The request is not permitted in the current state (0-10)."""

    __module__ = "fakeamqp.errors"


class IllegalArgument(ModelError, condition="illegal-argument"):
    """An argument has a value that is never valid (0-10)."""

    __module__ = "fakeamqp.errors"


class InvalidArgument(ModelError, condition="invalid-argument"):
    """An argument has a value that is not valid here and now (0-10)."""

    __module__ = "fakeamqp.errors"


class ResourceDeleted(ModelError, condition="resource-deleted"):
    """The entity of the request has been deleted meanwhile (0-10)."""

    __module__ = "fakeamqp.errors"


class SyntaxFault(ModelError, condition="syntax-error"):
    """An argument has an illegal value."""

    __module__ = "fakeamqp.errors"


class CommandInvalid(ModelError, condition="command-invalid"):
    """The request is invalid in the current state, or names a type that does not exist."""

    __module__ = "fakeamqp.errors"


class ResourceError(ModelError, condition="resource-error"):
    """A limit of the broker is reached."""

    __module__ = "fakeamqp.errors"


class NotAllowed(ModelError, condition="not-allowed"):
    """The request is prohibited."""

    __module__ = "fakeamqp.errors"


class NotImplementedHere(ModelError, condition="not-implemented"):
    """The broker does not implement this; it refuses instead of pretending."""

    __module__ = "fakeamqp.errors"


class ContentRefused(NotImplementedHere):
    """An exchange does not take contents of this class; an error of the channel, unlike the base class."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ends_connection=False)


class InternalError(ModelError, condition="internal-error"):
    """An internal error of the broker, or a feature that the personality denies."""

    __module__ = "fakeamqp.errors"


class ChannelCrash(InternalError):
    """RabbitMQ crashes here: it closes the connection without an explanation.

    The text is not sent to the client; it is shown in the test process only.
    """
