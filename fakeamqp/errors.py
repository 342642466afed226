"""The base class of all errors of fakeamqp. Every package may import this module, and it imports none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class FakeAMQPError(Exception):
    """Base class of all errors that fakeamqp raises on purpose; the text says what to do."""

    __module__ = "fakeamqp"


class BrokerError(FakeAMQPError):
    """The broker cannot do this in its present state, or an argument is invalid; the text says what to do."""

    __module__ = "fakeamqp"


class WaitTimeout(FakeAMQPError, AssertionError):
    """A wait timed out; the text shows what the broker holds, and the latest events."""

    __module__ = "fakeamqp"


class ManagementUnavailable(FakeAMQPError):
    """The packages that the HTTP API needs are not installed."""

    __module__ = "fakeamqp"


class UnreadResult(UserWarning):
    """A result with a failure was dropped unread, so the test has not checked it."""

    __module__ = "fakeamqp"


unread_results: list[str] = []
"""The failures of results that were dropped unread, since the current test began."""


class Result:
    """A result that must be read if it tells of a failure. Each access to a public attribute reads it.

    Dropped unread, it warns with `UnreadResult`; the pytest plugin fails the test.
    """

    _is_read = False

    def _failure(self) -> str:
        """The failure, and what to do with the result; "" without one."""
        raise NotImplementedError

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            object.__setattr__(self, "_is_read", True)
        return object.__getattribute__(self, name)

    def __del__(self) -> None:
        if not self._is_read and (failure := self._failure()):
            import warnings

            unread_results.append(failure)
            warnings.warn(failure, UnreadResult, stacklevel=2)


def troubleshooting(section: str) -> str:
    """A line that names the section of the documentation about a symptom."""
    return f"see https://fakeamqp.readthedocs.io/troubleshooting/#{section}"


def check_timeout(timeout: object) -> None:
    """Raise BrokerError if the timeout of a wait is not a number of seconds."""
    # All comparisons with NaN are false.
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise BrokerError(f"timeout={timeout!r} must be a number of seconds, 0 or more")


def printable(text: str) -> str:
    """The text for a log or a terminal: escape sequences that a peer has put into it do nothing."""
    return text if text.isprintable() else repr(text)[1:-1]


def without_login(url: str) -> str:
    """A URL, or what was to be one, for a text that others read: `***` in the place of user and password."""
    scheme, _, rest = url.rpartition("//")
    _, at, address = rest.rpartition("@")
    return f"{scheme}//***@{address}" if at and scheme else f"***@{address}" if at else url


def nearest(name: object, known: Iterable[str]) -> list[str]:
    """The known name that a misspelled one resembles most, in a list; [] if there is none."""
    import difflib  # Imported only for errors.

    return difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)


def near_match(name: object, known: Iterable[str], most: int = 12) -> str:
    """The end of an error about an unknown name: the nearest known name, or up to `most` known names."""
    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not 0 < len(names) <= most:
        return ""
    return f"; there {'are' if len(names) > 1 else 'is only'} {', '.join(map(repr, names))}"
