"""What can be done to a stream of bytes in one direction: delay it, narrow it, chop it, cut it off.

Nothing here changes a byte or the order of two. All times are instants and seconds of the broker's clock.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Literal, Protocol, TypeAlias

from fakeamqp.adapters import protocol_named, protocol_of

__all__ = ["Bandwidth", "Cut", "How", "Latency", "Octets", "Queue", "Slices"]

How: TypeAlias = Literal["fin", "reset", "silence"]
"""How a connection ends: in order, at once by a reset, or without anybody being told."""

# Sums of instants are not exact: less than a nanosecond is no time.
_MARGIN = 1e-9
_FRAME_END = 0xCE
"""What every frame of 0-9-1 ends with; 0-10 has no such mark."""
_PROTOCOL_HEADER = 8
# How often a narrow stream moves on, in seconds, where single bytes do not take longer.
_TICK = 0.05


class Octets:
    """A stream of bytes that waits; what is put in comes out again in pieces of any size."""

    __slots__ = ("_offset", "_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._offset = 0
        #: How many bytes wait.
        self.size = 0

    def put(self, octets: bytes) -> None:
        """Add bytes at the end."""
        if octets:
            self._pieces.append(octets)
            self.size += len(octets)

    def put_back(self, octets: bytes) -> None:
        """Add bytes at the beginning."""
        if octets:
            if self._offset:
                self._pieces[0] = self._pieces[0][self._offset :]
                self._offset = 0
            self._pieces.appendleft(octets)
            self.size += len(octets)

    def take(self, most: int) -> bytes:
        """The first bytes, at most so many."""
        taken: list[bytes] = []
        while most and self._pieces:
            first = self._pieces[0]
            piece = first[self._offset : self._offset + most]
            most -= len(piece)
            self.size -= len(piece)
            self._offset += len(piece)
            if self._offset == len(first):
                self._pieces.popleft()
                self._offset = 0
            taken.append(piece)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def take_piece(self) -> bytes:
        """The first bytes, as they were put in."""
        return self.take(len(self._pieces[0]) - self._offset) if self._pieces else b""

    def clear(self) -> None:
        """Forget what waits."""
        self._pieces.clear()
        self._offset = self.size = 0


class Queue(Protocol):
    """Where bytes wait until their time has come."""

    @property
    def size(self) -> int:
        """How many bytes wait."""

    def put(self, octets: bytes, now: float) -> None:
        """Bytes come at the instant `now`."""

    def take(self, now: float) -> list[bytes]:
        """The bytes that go on at the instant `now`."""

    def take_all(self) -> list[bytes]:
        """All that wait, whatever the time."""

    def due(self) -> float | None:
        """When to call `take` next; None when nothing waits."""


class Latency:
    """Bytes go on so many seconds after they came, give or take some; none overtakes another.

    Args:
        seconds: how long they take.
        jitter: how much longer or shorter it may be.
        random: decides on that.
    """

    def __init__(self, seconds: float, jitter: float, random: Random) -> None:
        self._seconds = seconds
        self._jitter = jitter
        self._random = random
        self._waiting: deque[tuple[float, bytes]] = deque()
        self.size = 0

    def put(self, octets: bytes, now: float) -> None:
        """See `Queue`."""
        seconds = self._seconds
        if self._jitter:
            seconds = max(0.0, seconds + self._random.uniform(-self._jitter, self._jitter))
        # Where the draw would have it overtake what came before, it waits behind that.
        self._waiting.append((now + seconds, octets))
        self.size += len(octets)

    def take(self, now: float) -> list[bytes]:
        """See `Queue`."""
        taken = []
        while self._waiting and self._waiting[0][0] <= now + _MARGIN:
            taken.append(self._waiting.popleft()[1])
            self.size -= len(taken[-1])
        return taken

    def take_all(self) -> list[bytes]:
        """See `Queue`."""
        taken = [octets for _, octets in self._waiting]
        self._waiting.clear()
        self.size = 0
        return taken

    def due(self) -> float | None:
        """See `Queue`."""
        return self._waiting[0][0] if self._waiting else None


class Bandwidth:
    """At most so many bytes a second go on: of those that come at once, number n after n / rate seconds.

    They go in steps of a twentieth of a second, or one by one where that takes longer.

    Args:
        rate: bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._waiting = Octets()
        self._began = 0.0
        self._gone = 0
        self._looked = 0.0

    @property
    def size(self) -> int:
        """See `Queue`."""
        return self._waiting.size

    def put(self, octets: bytes, now: float) -> None:
        """See `Queue`."""
        if not self._waiting.size:
            self._began = self._looked = now
            self._gone = 0
        self._waiting.put(octets)

    def take(self, now: float) -> list[bytes]:
        """See `Queue`."""
        self._looked = max(self._looked, now)
        count = int((now - self._began + _MARGIN) * self._rate + 1e-6) - self._gone
        taken = self._waiting.take(max(0, count))
        self._gone += len(taken)
        return [taken] if taken else []

    def take_all(self) -> list[bytes]:
        """See `Queue`."""
        taken = self._waiting.take(self._waiting.size)
        return [taken] if taken else []

    def due(self) -> float | None:
        """See `Queue`."""
        if not self._waiting.size:
            return None
        ticks = int((self._looked - self._began) / _TICK + 1e-6) + 1
        seconds = max(ticks * _TICK, (self._gone + 1) / self._rate)
        due = self._began + min(seconds, (self._gone + self._waiting.size) / self._rate)
        return max(due, self._looked + _MARGIN)


class Slices:
    """Bytes go on in pieces.

    Args:
        octets: how long a piece may be.
        pause: how many seconds after one piece the next one goes.
    """

    def __init__(self, octets: int, pause: float) -> None:
        self.octets = octets
        self.pause = pause


class Cut:
    """The stream ends after so many bytes, or frames, from here on.

    Frames are found by their sizes. Where the first bytes cannot be the beginning of a frame (or of the
    protocol header), they are taken for the rest of one that began earlier, which does not count.

    Args:
        octets: after how many, or None.
        frames: after how many, or None.
        how: what happens then.
        protocol: what is spoken, as far as that is known; a protocol header that passes says it again.
    """

    def __init__(self, octets: int | None, frames: int | None, how: How, protocol: str | None = None) -> None:
        self.how = how
        #: How much has passed so far: bytes, or frames.
        self.passed = 0
        self._octets = octets
        self._frames = frames
        self._framing = protocol_named(protocol or "0-9-1").framing
        self._header = b""
        self._rest = 0
        self._lost = False

    def admit(self, octets: bytes) -> tuple[int, bool]:
        """How many of these bytes may pass, and whether that was the last."""
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
        """Go on to the end of a frame, of its header or of the bytes, whichever is first."""
        framing = self._framing
        if self._lost:
            end = octets.find(_FRAME_END, position)
            self._lost = end < 0
            return len(octets) if self._lost else end + 1
        if not self._rest:
            of_protocol = (self._header or octets[position : position + 1])[:1] == b"A"
            size = _PROTOCOL_HEADER if of_protocol else framing.header_size
            missing = size - len(self._header)
            self._header += octets[position : position + missing]
            position = min(position + missing, len(octets))
            if not of_protocol and not framing.may_begin(self._header[0]):
                back = len(self._header)
                self._header = b""
                self._lost = True
                return max(0, position - back)
            if len(self._header) < size:
                return position
            header, self._header = self._header, b""
            if of_protocol:
                self._framing = protocol_named(protocol_of(header) or "0-9-1").framing
            else:
                self._rest = framing.length(header) - size
                self.passed += not self._rest
            return position
        count = min(self._rest, len(octets) - position)
        self._rest -= count
        if not self._rest:
            self.passed += 1
        return position + count
