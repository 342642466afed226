"""The regular expressions of operators: permissions, topic permissions, policies and filters of lists.

They mean what they mean in RabbitMQ, which gives them and the names to PCRE as bytes: `.` is one byte of
UTF-8. `parsing` reads a pattern, `matching` runs it. The work of both has a bound, whatever the pattern and
the text. A search that would take more than `MOST_STEPS` steps finds no match; RabbitMQ has a bound with the
same effect (measured: `^(a?){60}a{60}$` does not match 60 letters a, after 0.5 seconds).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from fakeamqp.model.patterns.matching import Program

__all__ = ["LONGEST_PATTERN", "MOST_STEPS", "InvalidPattern", "compiled", "octets"]

LONGEST_PATTERN = 32_750
"""Bytes. (RabbitMQ: measured, for a pattern of letters. Its bound is in bytes of the compiled pattern.)"""
MOST_STEPS = 50_000
"""The most steps of a search: 10 to 20 milliseconds. Most patterns and names need fewer than 100."""


class InvalidPattern(FakeAMQPError, ValueError):
    """A pattern that is no regular expression, or has parts that only PCRE runs."""

    __module__ = "fakeamqp.errors"

    def __init__(self, problem: str, place: int = 0) -> None:
        super().__init__(f"{problem} (at {place})")
        self.problem = problem
        """What is wrong, without the place; if RabbitMQ refuses the pattern as well, its text."""
        self.place = place
        """The index of the byte, from 0."""


def compiled(pattern: str) -> Program:
    """Compile a pattern, or raise InvalidPattern; `search` of the result runs it on a text."""
    return _short(pattern) if len(pattern) <= _LONGEST_SHORT else _long(pattern)


def _compile(pattern: str) -> Program:
    from fakeamqp.model.patterns.parsing import parsed

    try:
        read = octets(pattern)
    except UnicodeEncodeError as error:
        raise InvalidPattern("an unpaired surrogate has no bytes", error.start) from None
    if len(read) > LONGEST_PATTERN:
        raise InvalidPattern("regular expression is too large", len(read))
    return parsed(read)


# A compiled pattern takes some hundred times the memory of its text.
_LONGEST_SHORT = 1024
_short = lru_cache(maxsize=1024)(_compile)
_long = lru_cache(maxsize=16)(_compile)


def octets(text: str) -> str:
    """A text with one character for each of its bytes in UTF-8; an unpaired surrogate cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")
