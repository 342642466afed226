"""Errors of inspection and of assertions, and the counts that tests expect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, Union

from fakeamqp import errors
from fakeamqp.errors import FakeAMQPError


class NoSuchQueue(FakeAMQPError, LookupError):
    """The queue does not exist; the text names the nearest match."""

    __module__ = "fakeamqp.errors"


class NoSuchExchange(FakeAMQPError, LookupError):
    """The exchange does not exist; the text names the nearest match."""

    __module__ = "fakeamqp.errors"


class NoSuchConsumer(FakeAMQPError, LookupError):
    """No consumer has the tag, and the text names the nearest match; or several channels have one."""

    __module__ = "fakeamqp.inspect"


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

    __module__ = "fakeamqp.errors"


class NotReturned(NotAsExpected):
    """The expected messages were not returned; the text shows the nearest misses."""

    __module__ = "fakeamqp.errors"


class NotDeadLettered(NotAsExpected):
    """The expected messages were not dead-lettered; the text shows the nearest misses."""

    __module__ = "fakeamqp.errors"


class NotDropped(NotAsExpected):
    """The expected messages were not dropped; the text shows the nearest misses."""

    __module__ = "fakeamqp.errors"


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


# --- counts -----------------------------------------------------------------------------------------------

Count: TypeAlias = Union[int, "tuple[int, int | None]"]
"""An exact number, or (at least, at most), where at most may be None."""


@dataclass(frozen=True)
class CountRange:
    """The numbers from `least` to `most`, both included; None means no upper limit."""

    least: int
    most: int | None

    @classmethod
    def of(cls, count: Count, name: str = "count") -> CountRange:
        """The range that a test gave; raises BadExpectation if it is neither a number nor a range."""
        # JSON has lists only.
        least, most = count if isinstance(count, (tuple, list)) and len(count) == 2 else (count, count)
        if not _is_number(least) or not (most is None or _is_number(most)):
            raise BadExpectation(
                f"{name}={count!r}: give a number, or (at least, at most) where at most may be None"
            )
        if most is not None and most < least:
            raise BadExpectation(f"{name}={count!r}: nothing is at least {least} and at most {most}")
        return cls(least, most)

    def holds(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    def passed_by(self, count: int) -> bool:
        return self.most is not None and count > self.most

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return f"exactly {self.least}" if self.least == self.most else f"{self.least} to {self.most}"


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
