"""Errors of portable queues."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["BadQueue", "NotAnswered", "Refused"]


class BadQueue(FakeAMQPError, TypeError):
    """An argument is misspelled, or asks for what AMQP alone cannot do; the text says what to do instead."""

    __module__ = "fakeamqp.portable"


class Refused(FakeAMQPError):
    """The broker refused a request.

    Attributes:
        code: the reply code, such as 404.
    """

    __module__ = "fakeamqp.portable"

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class NotAnswered(FakeAMQPError):
    """There was no answer: the broker does not run, or has closed the connection, or takes too long."""

    __module__ = "fakeamqp.portable"
