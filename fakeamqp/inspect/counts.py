"""Expected counts: a number or a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from fakeamqp.inspect.errors import BadExpectation

__all__ = ["Count", "CountRange"]

Count: TypeAlias = Union[int, "tuple[int, int | None]"]
"""An exact number, or (at least, at most), where at most may be None."""


@dataclass(frozen=True)
class CountRange:
    """The numbers from `least` to `most`, both included; None means no upper limit."""

    least: int
    most: int | None

    @classmethod
    def of(cls, count: Count, name: str = "count") -> CountRange:
        """The range that a test gave.

        Raises:
            BadExpectation: it is neither a number nor a range.
        """
        least, most = count if isinstance(count, tuple) and len(count) == 2 else (count, count)
        if not _is_number(least) or not (most is None or _is_number(most)):
            raise BadExpectation(
                f"{name}={count!r}: give a number, or (at least, at most) where at most may be None"
            )
        assert isinstance(least, int)
        assert most is None or isinstance(most, int)
        if most is not None and most < least:
            raise BadExpectation(f"{name}={count!r}: nothing is at least {least} and at most {most}")
        return cls(least, most)

    def holds(self, count: int) -> bool:
        """Whether `count` is in the range."""
        return self.least <= count and (self.most is None or count <= self.most)

    def passed_by(self, count: int) -> bool:
        """Whether `count` is above the range."""
        return self.most is not None and count > self.most

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return f"exactly {self.least}" if self.least == self.most else f"{self.least} to {self.most}"


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
