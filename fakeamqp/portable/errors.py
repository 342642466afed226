"""Errors of portable queues."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["BadQueue", "NoAnswer", "RequestRefused"]


class BadQueue(FakeAMQPError, TypeError):
    """A queue cannot be declared like this: an argument is invalid, or contradicts another one."""

    __module__ = "fakeamqp.portable"


class RequestRefused(FakeAMQPError):
    """The broker refused a request.

    Attributes:
        code: the reply code, such as 404.
    """

    __module__ = "fakeamqp.portable"

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class NoAnswer(FakeAMQPError):
    """There was no answer: the broker does not run, or has closed the connection, or takes too long."""

    __module__ = "fakeamqp.portable"
