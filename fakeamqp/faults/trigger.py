"""When a rule fires: how often, from which call on, and with which probability."""

from __future__ import annotations

from random import Random

__all__ = ["Trigger"]


class Trigger:
    """Counts the frame groups that match a rule, and decides which of them fire it.

    Args:
        random: draws for `probability`.
    """

    def __init__(self, random: Random) -> None:
        self.calls: int = 0
        """How many frame groups matched."""
        self.limit: int | None = None
        """The largest number of hits."""
        self.only: int | None = None
        """The only call that fires; 1 is the first."""
        self.after = 0
        """The number of first calls that do not fire."""
        self.probability: float | None = None
        self._random = random

    def count(self, hits: int) -> bool:
        """Count one call; returns whether the rule fires, which has fired `hits` times so far."""
        self.calls += 1
        return (
            self.calls > self.after
            and (self.only is None or self.calls == self.only)
            and (self.limit is None or hits < self.limit)
            and (self.probability is None or self._random.random() < self.probability)
        )

    @property
    def words(self) -> str:
        """The trigger in words, such as " (after 3)"; "" if every call fires."""
        words = []
        if self.only is not None:
            words.append(f"only number {self.only}")
        if self.after:
            words.append(f"after {self.after}")
        if self.limit is not None:
            words.append("once at most" if self.limit == 1 else f"{self.limit} times at most")
        if self.probability is not None:
            words.append(f"with probability {self.probability:g}")
        return f" ({', '.join(words)})" if words else ""
