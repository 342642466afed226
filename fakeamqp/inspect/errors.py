"""Errors of inspection and of assertions."""

from __future__ import annotations

from collections.abc import Iterable

from fakeamqp import errors
from fakeamqp.errors import FakeAMQPError, WaitTimeout

__all__ = [
    "BadExpectation",
    "NoHistory",
    "NoSuchExchange",
    "NoSuchQueue",
    "NoSuchVirtualHost",
    "NotAsExpected",
    "NotDeadLettered",
    "NotDropped",
    "NotPublished",
    "NotReturned",
    "WaitTimeout",
    "nearest",
]


class NoSuchQueue(FakeAMQPError, LookupError):
    """The queue does not exist; the text names the nearest match."""

    __module__ = "fakeamqp"


class NoSuchExchange(FakeAMQPError, LookupError):
    """The exchange does not exist; the text names the nearest match."""

    __module__ = "fakeamqp"


class NoSuchVirtualHost(FakeAMQPError, LookupError):
    """The virtual host does not exist; the text names the nearest match."""

    __module__ = "fakeamqp.inspect"


class NoHistory(FakeAMQPError):
    """The broker was created with `history=0` and keeps no record of messages."""

    __module__ = "fakeamqp.inspect"


class NotAsExpected(FakeAMQPError, AssertionError):
    """The expected messages are missing, or their number differs; the text shows the nearest misses."""

    __module__ = "fakeamqp"


class NotPublished(NotAsExpected):
    """The expected messages were not published; the text shows the nearest misses."""

    __module__ = "fakeamqp"


class NotReturned(NotAsExpected):
    """The expected messages were not returned; the text shows the nearest misses."""

    __module__ = "fakeamqp"


class NotDeadLettered(NotAsExpected):
    """The expected messages were not dead-lettered; the text shows the nearest misses."""

    __module__ = "fakeamqp"


class NotDropped(NotAsExpected):
    """The expected messages were not dropped; the text shows the nearest misses."""

    __module__ = "fakeamqp"


class BadExpectation(FakeAMQPError, TypeError):
    """An invalid expectation: a misspelled keyword, or a value of the wrong type."""

    __module__ = "fakeamqp.inspect"


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: `; did you mean 'x'?`, or the known names."""
    names = [each for each in known if each]
    near = errors.nearest(name, names)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not names:
        return "; there is none at all"
    shown = ", ".join(repr(each) for each in names[:10])
    return f"; there are {shown}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")
