"""Serial numbers (RFC 1982) and sets of them, and ranges of bytes (types/sequence-*, types/byte-ranges).

Command ids count modulo 2**32, so there is no least one: which of two comes first is asked of their distance.
A set is kept as ranges and never enumerated, since a range of four thousand million ids takes eight bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from struct import Struct
from typing import Final

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError

__all__ = [
    "MODULUS",
    "ByteRanges",
    "SequenceSet",
    "precedes",
    "read_byte_ranges",
    "read_sequence_set",
    "successor",
]

MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31
_LARGEST_SET: Final = 0xFFFF

_read_size = Struct(">H").unpack_from
_pack_size = Struct(">H").pack
_pack_sequence = Struct(">II").pack
_iter_sequence = Struct(">II").iter_unpack
_pack_bytes = Struct(">QQ").pack
_iter_bytes = Struct(">QQ").iter_unpack


def successor(number: int, step: int = 1) -> int:
    """The number that many steps on."""
    return (number + step) % MODULUS


def precedes(one: int, other: int) -> bool:
    """Whether `one` comes before `other`, by less than half of all numbers; half apart neither does."""
    return 0 < (other - one) % MODULUS < _HALF


class _Ranges:
    """Numbers from 0 to below `_LIMIT`, as ascending ranges (inclusive) that neither overlap nor touch."""

    __slots__ = ("_lowers", "_uppers")
    _LIMIT: int

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._lowers: list[int] = []
        self._uppers: list[int] = []
        for lower, upper in ranges:
            self.add_range(lower, upper)

    def add(self, number: int) -> None:
        """Put one number in."""
        uppers = self._uppers
        if uppers and number == uppers[-1] + 1 < self._LIMIT:  # what nearly always happens
            uppers[-1] = number
        else:
            self._add(number, number)

    def add_range(self, lower: int, upper: int) -> None:
        """Put all numbers from `lower` to `upper` in, both included."""
        self._add(lower, upper)

    def _add(self, lower: int, upper: int) -> None:
        if not 0 <= lower <= upper < self._LIMIT:
            raise ValueError(f"no range from {lower} to {upper}")
        lowers, uppers = self._lowers, self._uppers
        first = bisect_right(uppers, lower - 2)  # the first range that overlaps or touches, or comes behind
        last = bisect_right(lowers, upper + 1)  # behind the last that does
        if first < last:
            lower = min(lower, lowers[first])
            upper = max(upper, uppers[last - 1])
        lowers[first:last] = [lower]
        uppers[first:last] = [upper]

    def _remove(self, lower: int, upper: int) -> None:
        lowers, uppers = self._lowers, self._uppers
        first = bisect_right(uppers, lower - 1)
        last = bisect_right(lowers, upper)
        if first >= last:
            return
        kept = []
        if lowers[first] < lower:
            kept.append((lowers[first], lower - 1))
        if uppers[last - 1] > upper:
            kept.append((upper + 1, uppers[last - 1]))
        lowers[first:last] = [each[0] for each in kept]
        uppers[first:last] = [each[1] for each in kept]

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_right(self._lowers, number) - 1
        return place >= 0 and number <= self._uppers[place]

    def __bool__(self) -> bool:
        return bool(self._lowers)

    def __len__(self) -> int:
        return sum(self._uppers) - sum(self._lowers) + len(self._lowers)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._lowers == other._lowers and self._uppers == other._uppers

    __hash__ = None  # type: ignore[assignment]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(first, last) of each range, in order."""
        return tuple(zip(self._lowers, self._uppers, strict=True))

    def __iter__(self) -> Iterator[int]:
        for lower, upper in self.ranges:
            yield from range(lower, upper + 1)

    def clear(self) -> None:
        """Take everything out."""
        self._lowers.clear()
        self._uppers.clear()

    def __repr__(self) -> str:
        inner = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in self.ranges[:20])
        more = ", ..." if len(self._lowers) > 20 else ""
        return f"{type(self).__name__}({inner}{more})"


class SequenceSet(_Ranges):
    """A set of serial numbers.

    `ranges` and iteration begin behind the widest gap, so that a set that runs over the end of all numbers
    and on from 0 comes as one range with an upper end that is numerically lower: (4294967294, 1).
    """

    __slots__ = ()
    _LIMIT = MODULUS

    @classmethod
    def of(cls, *numbers: int) -> SequenceSet:
        """The set of these numbers."""
        made = cls()
        for number in numbers:
            made.add(number)
        return made

    @classmethod
    def between(cls, lower: int, upper: int) -> SequenceSet:
        """The set of all numbers from `lower` to `upper`, both included, over the end if it must be."""
        made = cls()
        made.add_range(lower, upper)
        return made

    def add_range(self, lower: int, upper: int) -> None:
        """Put all numbers from `lower` on to `upper` in, both included; see `between`."""
        if lower <= upper:
            self._add(lower, upper)
        else:
            self._add(lower, MODULUS - 1)
            self._add(0, upper)

    def update(self, other: SequenceSet) -> None:
        """Put all numbers of the other set in."""
        for lower, upper in zip(other._lowers, other._uppers, strict=True):
            self._add(lower, upper)

    def remove(self, other: SequenceSet) -> None:
        """Take all numbers of the other set out."""
        for lower, upper in zip(other._lowers, other._uppers, strict=True):
            self._remove(lower, upper)

    def discard(self, number: int) -> None:
        """Take one number out, if it is there."""
        self._remove(number, number)

    def select(self, known: Collection[int]) -> list[int]:
        """Those of `known` that are in the set, in the order of `known`, however large the set is."""
        lowers, uppers = self._lowers, self._uppers
        if len(lowers) == 1:
            lower, upper = lowers[0], uppers[0]
            if lower == upper:
                return [lower] if lower in known else []
            return [number for number in known if lower <= number <= upper]
        return [number for number in known if number in self]

    def among(self, known: Mapping[int, object]) -> list[int]:
        """As `select`, for ids that are known in serial order; takes as many steps as the smaller of both."""
        if len(self) < len(known):
            return [number for number in self if number in known]
        return self.select(known)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(first, last) of each range, in serial order (types/sequence-set-order)."""
        ranges = super().ranges
        if len(ranges) < 2:
            return ranges
        # A gap before range n is what lies between it and the end of the one before, all the way round.
        gaps = [(lower - self._uppers[n - 1]) % MODULUS for n, lower in enumerate(self._lowers)]
        widest = gaps.index(max(gaps))
        ordered = [*ranges[widest:], *ranges[:widest]]
        for n in range(len(ordered) - 1):
            if ordered[n][1] == MODULUS - 1 and ordered[n + 1][0] == 0:
                ordered[n : n + 2] = [(ordered[n][0], ordered[n + 1][1])]
                break
        return tuple(ordered)

    def __iter__(self) -> Iterator[int]:
        for lower, upper in self.ranges:
            if lower <= upper:
                yield from range(lower, upper + 1)
            else:
                yield from range(lower, MODULUS)
                yield from range(upper + 1)

    def encode(self) -> bytes:
        """Size and pairs. Raises SegmentError for more than 8191 ranges."""
        body = b"".join([_pack_sequence(*each) for each in self.ranges])
        if len(body) > _LARGEST_SET:
            raise SegmentError(f"a sequence-set of {len(body) // 8} ranges is too large")
        return _pack_size(len(body)) + body

    @classmethod
    def decode(cls, octets: bytes) -> SequenceSet:
        """Read a whole set. Raises SegmentError for a wrong size, IllegalValue for a wrong order."""
        found, end = read_sequence_set(octets, 0)
        if end != len(octets):
            raise SegmentError(f"{len(octets) - end} bytes are left over after a sequence-set")
        return found


class ByteRanges(_Ranges):
    """Ranges of bytes, counted from 0; 64 bits, which never wrap."""

    __slots__ = ()
    _LIMIT = 1 << 64

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> ByteRanges:
        """The bytes from the first to the second of each pair, both included."""
        return cls(ranges)

    def update(self, other: ByteRanges) -> None:
        """Put all bytes of the other in."""
        for lower, upper in other.ranges:
            self._add(lower, upper)

    def remove(self, other: ByteRanges) -> None:
        """Take all bytes of the other out."""
        for lower, upper in other.ranges:
            self._remove(lower, upper)

    def encode(self) -> bytes:
        """Size and pairs. Raises SegmentError for more than 4095 ranges."""
        body = b"".join([_pack_bytes(*each) for each in self.ranges])
        if len(body) > _LARGEST_SET:
            raise SegmentError(f"{len(body) // 16} byte-ranges are too many")
        return _pack_size(len(body)) + body

    @classmethod
    def decode(cls, octets: bytes) -> ByteRanges:
        """Read all ranges. Raises SegmentError for a wrong size, IllegalValue for a wrong order."""
        found, end = read_byte_ranges(octets, 0)
        if end != len(octets):
            raise SegmentError(f"{len(octets) - end} bytes are left over after byte-ranges")
        return found


def read_sequence_set(octets: bytes, offset: int) -> tuple[SequenceSet, int]:
    """The set whose size stands at `offset`, and the offset behind it.

    Ranges must ascend, one behind the other from the first on, all within one round. Those that touch are
    merged, those that overlap refused (types/sequence-set).
    """
    start, stop = _pairs(octets, offset, 8, "a sequence-set")
    found = SequenceSet()
    if stop - start == 8:  # nearly always there is one range
        ((lower, upper),) = _iter_sequence(octets[start:stop])
        found.add_range(lower, upper)
        return found, stop
    first = last = None
    behind = 0
    for lower, upper in _iter_sequence(octets[start:stop]):
        if first is None or last is None:
            first, last = lower, lower - 1
        distance = (lower - first) % MODULUS
        if distance < behind or precedes(lower, last):
            raise IllegalValue(f"the ranges of a sequence-set do not ascend at {lower}-{upper}")
        behind = distance + (upper - lower) % MODULUS + 1
        if behind > MODULUS:
            raise IllegalValue(f"the ranges of a sequence-set overlap at {lower}-{upper}")
        found.add_range(lower, upper)
        last = upper
    return found, stop


def read_byte_ranges(octets: bytes, offset: int) -> tuple[ByteRanges, int]:
    """The ranges whose size stands at `offset`, and the offset behind them.

    They must ascend; those that touch are merged (types/byte-ranges-disjoint).
    """
    start, stop = _pairs(octets, offset, 16, "byte-ranges")
    found = ByteRanges()
    behind = 0
    for lower, upper in _iter_bytes(octets[start:stop]):
        if lower < behind or upper < lower:
            raise IllegalValue(f"byte-ranges do not ascend at {lower}-{upper}")
        behind = upper + 1
        found.add_range(lower, upper)
    return found, stop


def _pairs(octets: bytes, offset: int, width: int, what: str) -> tuple[int, int]:
    """Where the pairs begin and end."""
    start = offset + 2
    if start > len(octets):
        raise SegmentError(f"{what} is cut short inside its size")
    size: int = _read_size(octets, offset)[0]
    if size % width:
        raise SegmentError(f"{what} has {size} bytes, which is no multiple of {width}")
    if start + size > len(octets):
        raise SegmentError(f"{what} announces {size} bytes, {len(octets) - start} are left")
    return start, start + size
