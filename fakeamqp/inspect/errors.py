"""What can go wrong when a test looks or expects."""

from __future__ import annotations

from collections.abc import Iterable

from fakeamqp.errors import FakeAMQPError

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
    """The queue looked at does not exist; the text names the nearest that does."""


class NoSuchExchange(FakeAMQPError, LookupError):
    """The exchange looked at does not exist; the text names the nearest that does."""


class NoSuchVirtualHost(FakeAMQPError, LookupError):
    """The virtual host looked at does not exist; the text names the nearest that does."""


class NoHistory(FakeAMQPError):
    """The broker keeps no record of what happens to messages, so nobody can tell what did."""


class WaitTimeout(FakeAMQPError, AssertionError):
    """What was waited for did not come about in time; the text says what there was instead."""


class NotAsExpected(FakeAMQPError, AssertionError):
    """What was expected has not happened, or not as often; the text shows the nearest misses."""


class NotPublished(NotAsExpected):
    """What was expected was not published, or not as often; the text shows the nearest misses."""


class NotReturned(NotAsExpected):
    """What was expected was not returned, or not as often; the text shows the nearest misses."""


class NotDeadLettered(NotAsExpected):
    """What was expected was not dead-lettered, or not as often; the text shows the nearest misses."""


class NotDropped(NotAsExpected):
    """What was expected was not dropped, or not as often; the text shows the nearest misses."""


class BadExpectation(FakeAMQPError, TypeError):
    """An expectation that nothing can meet: a misspelled keyword, or a value of the wrong kind."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint that ends an error about an unknown name: `; did you mean 'x'?`, or what there is."""
    import difflib  # Only on the way to an error.

    names = [each for each in known if each]
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not names:
        return "; there is none at all"
    shown = ", ".join(repr(each) for each in names[:10])
    return f"; there are {shown}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")
