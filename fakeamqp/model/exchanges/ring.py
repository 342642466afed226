"""A ring of buckets that is divided among members by weight."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Ring"]

T = TypeVar("T")

_SHORT = 64
"""A ring with up to this number of places is not cleared of empty ones."""


class Ring(Generic[T]):
    """Each member owns as many consecutive buckets as its weight, in the order in which members were added.

    The weights are in a Fenwick tree over the members' places: `add`, `remove` and `owner` cost the logarithm
    of the number of places. A removed member leaves an empty place, with no buckets, until such places are
    the majority.
    """

    __slots__ = ("_members", "_owned", "_sums", "buckets")

    def __init__(self) -> None:
        self.buckets: int = 0
        """How many there are."""
        self._members: list[T | None] = []
        self._owned: dict[T, tuple[int, int]] = {}
        """By member, its place, counted from 1, and its weight."""
        self._sums = [0]
        """By place, the sum of the weights of as many places up to it as the lowest set bit of its number."""

    def __contains__(self, member: T) -> bool:
        return member in self._owned

    def __len__(self) -> int:
        return len(self._owned)

    def add(self, member: T, weight: int) -> None:
        """Give a new member its buckets at the end."""
        self._members.append(member)
        place = len(self._members)
        self._owned[member] = (place, weight)
        self.buckets += weight
        total = weight
        before = place - 1
        while before > place - (place & -place):
            total += self._sums[before]
            before -= before & -before
        self._sums.append(total)

    def remove(self, member: T) -> None:
        """Take the buckets of a member away; those behind them move forwards."""
        place, weight = self._owned.pop(member)
        self._members[place - 1] = None
        self.buckets -= weight
        while place < len(self._sums):
            self._sums[place] -= weight
            place += place & -place
        if len(self._members) > max(_SHORT, 2 * len(self._owned)):
            owned = self._owned
            self.clear()
            for each, (_, its_weight) in owned.items():
                self.add(each, its_weight)

    def clear(self) -> None:
        """Remove all members."""
        self.buckets = 0
        self._members = []
        self._owned = {}
        self._sums = [0]

    def owner(self, bucket: int) -> T:
        """The member that owns a bucket; buckets count from 0."""
        place = 0
        step = 1 << len(self._members).bit_length()
        while step := step >> 1:
            if place + step < len(self._sums) and self._sums[place + step] <= bucket:
                place += step
                bucket -= self._sums[place]
        member = self._members[place]
        assert member is not None
        return member
