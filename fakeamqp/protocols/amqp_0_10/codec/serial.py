"""Serial numbers (RFC 1982), sets of them, and ranges of bytes (types/sequence-*, types/byte-ranges).

Command ids count modulo 2**32, so there is no least one: the distance of two says which comes first. A set is
kept as ranges and never enumerated, because a range of 2**32 ids takes eight bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError

if TYPE_CHECKING:
    from typing_extensions import Self


MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31
_LARGEST_SET: Final = 0xFFFF

_read_size = Struct(">H").unpack_from
_pack_size = Struct(">H").pack
_SEQUENCE: Final = Struct(">II")
_BYTES: Final = Struct(">QQ")


def successor(number: int, step: int = 1) -> int:
    """The number `step` steps later."""
    return (number + step) % MODULUS


def precedes(one: int, other: int) -> bool:
    """True where `one` precedes `other` by less than half of all numbers; half apart neither does."""
    return 0 < (other - one) % MODULUS < _HALF


class _Ranges:
    """Numbers from 0 to below `_LIMIT`, as ascending ranges (inclusive) that neither overlap nor touch."""

    __slots__ = ("_lowers", "_uppers")
    _LIMIT: ClassVar[int]
    _PAIR: ClassVar[Struct]
    #: how errors call it, and too many of its ranges
    _KIND: ClassVar[str]
    _TOO_MANY: ClassVar[str]

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._lowers: list[int] = []
        self._uppers: list[int] = []
        for lower, upper in ranges:
            self.add_range(lower, upper)

    def add(self, number: int) -> None:
        """Add one number."""
        uppers = self._uppers
        if uppers and number == uppers[-1] + 1 < self._LIMIT:  # nearly always
            uppers[-1] = number
        else:
            self._add(number, number)

    def add_range(self, lower: int, upper: int) -> None:
        """Add all numbers from `lower` to `upper`, both included."""
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

    def update(self, other: Self) -> None:
        """Add all numbers of another one."""
        for lower, upper in zip(other._lowers, other._uppers, strict=True):
            self._add(lower, upper)

    def remove(self, other: Self) -> None:
        """Remove all numbers of another one."""
        for lower, upper in zip(other._lowers, other._uppers, strict=True):
            self._remove(lower, upper)

    @classmethod
    def _extent(cls, octets: bytes, offset: int) -> tuple[int, int]:
        """Where the pairs begin and end, of which the size stands at `offset`."""
        start = offset + 2
        if start > len(octets):
            raise SegmentError(f"{cls._KIND} is cut short inside its size")
        size: int = _read_size(octets, offset)[0]
        if size % cls._PAIR.size:
            raise SegmentError(f"{cls._KIND} has {size} bytes, which is no multiple of {cls._PAIR.size}")
        if start + size > len(octets):
            raise SegmentError(f"{cls._KIND} announces {size} bytes, {len(octets) - start} are left")
        return start, start + size

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

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(first, last) of each range, in order."""
        return tuple(zip(self._lowers, self._uppers, strict=True))

    def __iter__(self) -> Iterator[int]:
        for lower, upper in self.ranges:
            yield from range(lower, upper + 1)

    def encode(self) -> bytes:
        """Size and pairs. Raises SegmentError for more pairs than 65 535 bytes hold."""
        pack = self._PAIR.pack
        body = b"".join([pack(*each) for each in self.ranges])
        if len(body) > _LARGEST_SET:
            raise SegmentError(self._TOO_MANY.format(len(body) // self._PAIR.size))
        return _pack_size(len(body)) + body

    def __repr__(self) -> str:
        inner = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in self.ranges[:20])
        more = ", ..." if len(self._lowers) > 20 else ""
        return f"{type(self).__name__}({inner}{more})"


class SequenceSet(_Ranges):
    """A set of serial numbers.

    `ranges` and iteration begin behind the widest gap. So a run that wraps from the highest number to 0 is a
    range whose upper end is the lower number: (4294967294, 1).
    """

    __slots__ = ()
    _LIMIT, _PAIR = MODULUS, _SEQUENCE
    _KIND, _TOO_MANY = "a sequence-set", "a sequence-set of {} ranges is too large"

    @classmethod
    def of(cls, *numbers: int) -> SequenceSet:
        """The set of these numbers."""
        made = cls()
        for number in numbers:
            made.add(number)
        return made

    @classmethod
    def between(cls, lower: int, upper: int) -> SequenceSet:
        """The set of all numbers from `lower` to `upper`, both included; it wraps where `lower` is higher."""
        made = cls()
        made.add_range(lower, upper)
        return made

    def add_range(self, lower: int, upper: int) -> None:
        """Add all numbers from `lower` to `upper`, both included; see `between`."""
        if lower <= upper:
            self._add(lower, upper)
        else:
            self._add(lower, MODULUS - 1)
            self._add(0, upper)

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
        """As `select`, for ids in serial order; takes as many steps as the smaller of both has numbers."""
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


class ByteRanges(_Ranges):
    """Ranges of bytes, counted from 0; 64 bits, which never wrap."""

    __slots__ = ()
    _LIMIT, _PAIR = 1 << 64, _BYTES
    _KIND, _TOO_MANY = "byte-ranges", "{} byte-ranges are too many"

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> ByteRanges:
        """The bytes from the first to the second of each pair, both included."""
        return cls(ranges)


def read_sequence_set(octets: bytes, offset: int) -> tuple[SequenceSet, int]:
    """The set whose size stands at `offset`, and the offset behind it.

    Ranges must ascend, one behind the other from the first on, all within one round. Those that touch are
    merged, those that overlap refused (types/sequence-set).
    """
    start, stop = SequenceSet._extent(octets, offset)
    found = SequenceSet()
    if stop - start == 8:  # nearly always there is one range
        lower, upper = _SEQUENCE.unpack_from(octets, start)
        found.add_range(lower, upper)
        return found, stop
    first = last = None
    behind = 0
    for lower, upper in _SEQUENCE.iter_unpack(octets[start:stop]):
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
    start, stop = ByteRanges._extent(octets, offset)
    found = ByteRanges()
    behind = 0
    for lower, upper in _BYTES.iter_unpack(octets[start:stop]):
        if lower < behind or upper < lower:
            raise IllegalValue(f"byte-ranges do not ascend at {lower}-{upper}")
        behind = upper + 1
        found.add_range(lower, upper)
    return found, stop
