"""Errors of the management API."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError


class ManagementError(FakeAMQPError):
    """The HTTP server does not start or end; the text says what to do."""

    __module__ = "fakeamqp.errors"


class Refused(Exception):
    """A request that the API refuses, with the status and the body of the answer.

    Args:
        status: of the answer, such as 404.
        error: RabbitMQ's word for the condition, the field `error` of the body.
        reason: the field `reason` of the body: a text, for some requests a JSON object.
        headers: of the answer, besides those that every answer has.
    """

    def __init__(
        self, status: int, error: str, reason: object, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason
        self.headers: dict[str, str] = headers or {}


def bad_request(reason: object) -> Refused:
    """The request is well-formed HTTP, but the broker does not take what it asks for."""
    return Refused(400, "bad_request", reason)


def key_missing(*names: str) -> Refused:
    """Fields of the body are missing."""
    return bad_request("[" + ",".join(f"{{key_missing,{name}}}" for name in names) + "]")


def absent() -> Refused:
    """What the path names does not exist."""
    return Refused(404, "Object Not Found", "Not Found")


def not_found(reason: str) -> Refused:
    """Something that the request needs does not exist."""
    return Refused(404, "not_found", reason)


def not_authorised(reason: str) -> Refused:
    """The user may not do this."""
    return Refused(401, "not_authorised", reason)


def login_failed() -> Refused:
    """The credentials are wrong."""
    return Refused(401, "not_authorized", "Not_Authorized")


def crashed() -> Refused:
    """RabbitMQ has an internal error here, and answers without a body (measured)."""
    return Refused(500, "internal_error", None)
