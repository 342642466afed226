"""One direction of a network proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.network.shapers import ByteQueue, Cut, DelayBuffer, SliceShaper

if TYPE_CHECKING:
    from fakeamqp.faults.network.interfaces import Shaper, Toxic
    from fakeamqp.faults.network.proxy import NetworkProxy

__all__ = ["ProxyDirection"]


class ProxyDirection:
    """The bytes of one direction: delay buffers in a row, then slices, then cuts."""

    def __init__(self) -> None:
        self.buffers: list[tuple[Toxic, DelayBuffer]] = []
        self.slices: list[tuple[Toxic, SliceShaper]] = []
        self.cuts: list[tuple[Toxic, Cut]] = []
        self._ready = ByteQueue()
        self._pause_ends: float | None = None
        """No slice leaves before this instant. None: there is no pause, or it is known to be over."""

    @property
    def held(self) -> int:
        """How many bytes wait."""
        return self._ready.size + sum(buffer.size for _, buffer in self.buffers)

    @property
    def plain(self) -> bool:
        """True if bytes pass unchanged and at once."""
        return not (self.buffers or self.slices or self.cuts or self._ready.size)

    def put(self, proxy: NetworkProxy, octets: bytes, now: float) -> None:
        """Add bytes at the entry."""
        self._enter(0, proxy, octets, now)

    def move(self, proxy: NetworkProxy, now: float) -> None:
        """Move on the bytes that are due."""
        for index, (_, buffer) in enumerate(self.buffers):
            for octets in buffer.take(now):
                self._enter(index + 1, proxy, octets, now)
        if self._pause_ends is not None and self._pause_ends <= now:
            self._pause_ends = None

    def _enter(self, index: int, proxy: NetworkProxy, octets: bytes, now: float) -> None:
        """Put bytes into the buffer at `index`, or behind the last one."""
        if index < len(self.buffers):
            toxic, buffer = self.buffers[index]
            toxic.hit(proxy, len(octets))
            buffer.put(octets, now)
        else:
            self._ready.put(octets)

    def due(self) -> float | None:
        """When to call `move` next. The instant may be past, because time goes on during the call."""
        dues = [due for _, buffer in self.buffers if (due := buffer.due()) is not None]
        if self._ready.size and self._pause_ends is not None:
            dues.append(self._pause_ends)
        return min(dues, default=None)

    def may_leave(self, now: float) -> bool:
        """True if there are bytes at the exit that may leave at this instant."""
        return self._ready.size > 0 and (self._pause_ends is None or self._pause_ends <= now)

    def next(self, proxy: NetworkProxy, now: float) -> tuple[bytes, tuple[Toxic, Cut] | None]:
        """The next piece to leave, and the cut that ends the direction behind it, if any."""
        if not self.may_leave(now):
            return b"", None
        piece = self._next_slice(proxy, now) if self.slices else self._ready.take_piece()
        for toxic, cut in list(self.cuts):
            count, last = cut.admit(piece)
            if last:
                self.cuts.remove((toxic, cut))
                self._ready.put_back(piece[count:])
                return piece[:count], (toxic, cut)
        return piece, None

    def _next_slice(self, proxy: NetworkProxy, now: float) -> bytes:
        piece = self._ready.take(min(each.octets for _, each in self.slices))
        for toxic, _ in self.slices:
            toxic.hit(proxy, 1)
        pause = max(each.pause for _, each in self.slices)
        self._pause_ends = now + pause if pause else None
        return piece

    def add(self, toxic: Toxic, shaper: Shaper) -> None:
        """Add a shaper."""
        if isinstance(shaper, SliceShaper):
            self.slices.append((toxic, shaper))
        elif isinstance(shaper, Cut):
            self.cuts.append((toxic, shaper))
        else:
            self.buffers.append((toxic, shaper))

    def remove(self, proxy: NetworkProxy, toxic: Toxic, now: float) -> None:
        """Remove a toxic's shaper; the bytes it held move on."""
        for index, (each, buffer) in enumerate(self.buffers):
            if each is toxic:
                for octets in buffer.take_all():
                    self._enter(index + 1, proxy, octets, now)
        self.buffers = [each for each in self.buffers if each[0] is not toxic]
        self.slices = [each for each in self.slices if each[0] is not toxic]
        self.cuts = [each for each in self.cuts if each[0] is not toxic]
        if not self.slices:
            self._pause_ends = None

    def drain(self) -> bytes:
        """Take everything that waits, whatever the time."""
        behind = [octets for _, buffer in reversed(self.buffers) for octets in buffer.take_all()]
        return self._ready.take(self._ready.size) + b"".join(behind)
