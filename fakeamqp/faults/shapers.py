"""Shapers: they delay, throttle, slice or cut the bytes of one direction of a connection.

No shaper changes a byte or the order of bytes. Times are seconds and instants of the broker's clock.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from fakeamqp.dialects import Dialect, default_protocol, protocol_named, protocol_of

How: TypeAlias = Literal["fin", "reset", "silence"]
"""How a connection ends: with FIN, with a TCP reset, or half-open ("silence": no bytes in either direction).
"""
DelayBuffer: TypeAlias = "Latency | Bandwidth"
"""A shaper that keeps bytes until they are due."""
Shaper: TypeAlias = "DelayBuffer | SliceShaper | Cut"

# Sums of instants are inexact: a difference below a nanosecond counts as none.
_MARGIN = 1e-9
_FRAME_END = 0xCE
"""The last byte of every 0-9-1 frame. 0-10 has no such byte."""
_PROTOCOL_HEADER = 8
# The step of a throttled stream in seconds, unless a single byte takes longer.
_TICK = 0.05


class ByteQueue:
    """A queue of bytes. Bytes leave in order, in pieces of any size. `size` is how many wait."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[memoryview] = deque()
        self.size: int = 0

    def put(self, octets: bytes) -> None:
        """Add bytes at the end."""
        if octets:
            self._pieces.append(memoryview(octets))
            self.size += len(octets)

    def put_back(self, octets: bytes) -> None:
        """Add bytes at the beginning."""
        if octets:
            self._pieces.appendleft(memoryview(octets))
            self.size += len(octets)

    def take(self, most: int) -> bytes:
        """Take at most `most` bytes from the beginning."""
        taken: list[memoryview] = []
        while most and self._pieces:
            piece = self._pieces.popleft()
            if len(piece) > most:
                self._pieces.appendleft(piece[most:])
                piece = piece[:most]
            most -= len(piece)
            self.size -= len(piece)
            taken.append(piece)
        return b"".join(taken)

    def take_piece(self) -> bytes:
        """Take the first piece as it was put in."""
        return self.take(len(self._pieces[0])) if self._pieces else b""


class Latency:
    """Delays bytes. They stay in order. `jitter` is the largest deviation from the delay."""

    def __init__(self, seconds: float, jitter: float, random: Random) -> None:
        self._seconds = seconds
        self._jitter = jitter
        self._random = random
        self._waiting: deque[tuple[float, bytes]] = deque()
        self.size: int = 0

    def put(self, octets: bytes, now: float) -> None:
        seconds = self._seconds
        if self._jitter:
            seconds = max(0.0, seconds + self._random.uniform(-self._jitter, self._jitter))
        # Bytes with a shorter delay still wait behind the bytes before them.
        self._waiting.append((now + seconds, octets))
        self.size += len(octets)

    def take(self, now: float) -> list[bytes]:
        taken = []
        while self._waiting and self._waiting[0][0] <= now + _MARGIN:
            taken.append(self._waiting.popleft()[1])
            self.size -= len(taken[-1])
        return taken

    def take_all(self) -> list[bytes]:
        taken = [octets for _, octets in self._waiting]
        self._waiting.clear()
        self.size = 0
        return taken

    def due(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None


class Bandwidth:
    """Throttles octets: of those that arrive together, number n leaves after n / rate seconds.

    Bytes leave in steps of 1/20 second, or one by one if the rate is below 20 bytes per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._waiting = ByteQueue()
        self._began = 0.0
        self._gone = 0
        self._looked = 0.0

    @property
    def size(self) -> int:
        return self._waiting.size

    def put(self, octets: bytes, now: float) -> None:
        if not self._waiting.size:
            self._began = self._looked = now
            self._gone = 0
        self._waiting.put(octets)

    def take(self, now: float) -> list[bytes]:
        self._looked = max(self._looked, now)
        count = int((now - self._began + _MARGIN) * self._rate + 1e-6) - self._gone
        taken = self._waiting.take(max(0, count))
        self._gone += len(taken)
        return [taken] if taken else []

    def take_all(self) -> list[bytes]:
        taken = self._waiting.take(self._waiting.size)
        return [taken] if taken else []

    def due(self) -> float | None:
        if not self._waiting.size:
            return None
        ticks = int((self._looked - self._began) / _TICK + 1e-6) + 1
        seconds = max(ticks * _TICK, (self._gone + 1) / self._rate)
        due = self._began + min(seconds, (self._gone + self._waiting.size) / self._rate)
        return max(due, self._looked + _MARGIN)


class SliceShaper(NamedTuple):
    """Splits the stream into pieces of `octets` bytes at most, with `pause` seconds between them."""

    octets: int
    pause: float


class Cut:
    """Ends the stream after a number of bytes or frames, counted from now on.

    Frames are found by their sizes. If the first bytes cannot begin a frame or a protocol header, they count
    as the rest of a frame that began earlier; that frame is not counted. A protocol header that passes
    overrides `protocol`.
    """

    def __init__(self, octets: int | None, frames: int | None, how: How, protocol: str | None = None) -> None:
        self.how = how
        self.passed: int = 0
        """The number of bytes or frames that have passed."""
        self._octets = octets
        self._frames = frames
        self._dialect = _dialect(protocol)
        self._header = b""
        self._rest = 0
        self._lost = False

    def admit(self, octets: bytes) -> tuple[int, bool]:
        """How many of these bytes may pass, and whether the stream ends behind them."""
        if self._octets is not None:
            count = min(self._octets - self.passed, len(octets))
            self.passed += count
            return count, self.passed == self._octets
        assert self._frames is not None
        position = 0
        while self.passed < self._frames and position < len(octets):
            position = self._walk(octets, position)
        return (position, True) if self.passed == self._frames else (len(octets), False)

    def _walk(self, octets: bytes, position: int) -> int:
        """Advance to the end of a frame, of its header or of the bytes, whichever comes first."""
        dialect = self._dialect
        if self._lost:
            end = octets.find(_FRAME_END, position)
            self._lost = end < 0
            return len(octets) if self._lost else end + 1
        if not self._rest:
            of_protocol = (self._header or octets[position : position + 1])[:1] == b"A"
            size = _PROTOCOL_HEADER if of_protocol else dialect.header_size
            missing = size - len(self._header)
            self._header += octets[position : position + missing]
            position = min(position + missing, len(octets))
            if not of_protocol and not dialect.may_begin(self._header[0]):
                back = len(self._header)
                self._header = b""
                self._lost = True
                return max(0, position - back)
            if len(self._header) < size:
                return position
            header, self._header = self._header, b""
            if of_protocol:
                self._dialect = _dialect(protocol_of(header))
            else:
                self._rest = dialect.length(header) - size
                self.passed += not self._rest
            return position
        count = min(self._rest, len(octets) - position)
        self._rest -= count
        if not self._rest:
            self.passed += 1
        return position + count


def _dialect(protocol: str | None) -> Dialect:
    """The dialect of a protocol; that of the most common one if it is unknown."""
    return (default_protocol() if protocol is None else protocol_named(protocol)).dialect
