"""A failed test, as pages of its broker show it: the assertion, and the source of the test."""

from __future__ import annotations

from typing import Any, NamedTuple


class FailedTest(NamedTuple):
    """Where and how a test failed.

    Attributes:
        test: the id of the test.
        text: the exception in words, over several lines.
        file: the name of the file with the source.
        source: the lines of the test; () if they cannot be read.
        first: the number of the first of these lines in the file.
        line: the number of the line that failed.
        event: the number of the events of the trace before the failure.
    """

    test: str
    text: str
    file: str = ""
    source: tuple[str, ...] = ()
    first: int = 1
    line: int = 0
    event: int = 0

    def to_json(self) -> dict[str, Any]:
        """The JSON form: its fields by name."""
        return self._asdict()
