"""The network proxy: it stands between the runtime and a connection, and shapes bytes in both directions.

The runtime sees the proxy as the connection; the connection sees it as the runtime.

    received: transport -> delay buffers -> slices -> cuts -> connection
    sent:     connection -> delay buffers -> slices -> cuts -> transport

Bytes to the client count as unsent until the proxy passes them on, so a slow network causes back-pressure.
Bytes from the client wait in the proxy; above one mebibyte the proxy stops reading. The proxy is above TLS:
it counts and cuts bytes of AMQP.

A muted proxy takes bytes from neither side: they wait in the connection and at the transport. The peer does
not learn what happens to the connection meanwhile.

All methods need the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from fakeamqp.faults.shapers import ByteQueue, Cut, DelayBuffer, SliceShaper

if TYPE_CHECKING:
    from fakeamqp.connection import Connection
    from fakeamqp.dialects import Direction
    from fakeamqp.faults.network import NetworkFault, ProxyRegistry
    from fakeamqp.faults.port import Cancellable, FaultPort
    from fakeamqp.faults.shapers import Shaper

_MOST_HELD = 1024 * 1024


class NetworkProxy:
    """A connection with a simulated network around it. See `fakeamqp.connection.Connection`."""

    on_reset = None

    def __init__(
        self, inner: Connection, notify: Callable[[], object], registry: ProxyRegistry, number: int
    ) -> None:
        self.inner: Connection = inner
        self.number = number
        """Counts the proxies of a broker; it seeds random draws."""
        self.port: FaultPort | None = None
        """Once the protocol of the connection is known."""
        self.notes: list[str] = []
        """What the trace is told as soon as it knows the connection."""
        self._notify = notify
        self._registry = registry
        self._toxics: list[NetworkFault] = []
        self._in = ProxyDirection()
        self._out = ProxyDirection()
        self._directions: dict[Direction, ProxyDirection] = {"received": self._in, "sent": self._out}
        self._mutes: list[NetworkFault] = []
        self._sent_before_mute: list[bytes | memoryview] = []
        """Output of the connection from before the proxy was muted."""
        self._timer: Cancellable | None = None
        self._due: float | None = None
        self._feeding = False
        self.over: bool = False
        """True if a toxic has ended the connection."""
        self._eof_told = False
        self._finished = False
        self._aborted = False
        self._resets = False

    # --- the interface to the runtime -----------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def protocol(self) -> str | None:
        """What the connection speaks, or None before the client's protocol header."""
        return getattr(self.inner, "protocol", None)

    @property
    def finished(self) -> bool:
        """Bytes in the proxy are sent first."""
        if self.over:
            return self._finished
        if not self.inner.finished or self._mutes:
            return False
        if not self._out.plain:
            self._pull()  # The last output of the connection passes the proxy as well.
            self._set_timer()
        return not self._out.held

    @property
    def aborted(self) -> bool:
        """Bytes in the proxy are sent first, except before a reset."""
        if self.over:
            return self._aborted
        inner = self.inner
        return inner.aborted and not self._mutes and (inner.resets or not self._out.held)

    @property
    def resets(self) -> bool:
        return self._resets if self.over else self.inner.resets

    @property
    def reading(self) -> bool:
        if self.over:
            return True
        if self._mutes:
            # Input for a connection that is over is read and discarded, so that the client's end is noticed.
            return self._inner_over
        return self.inner.reading and self._in.held < _MOST_HELD

    @property
    def occupied(self) -> bool:
        return False

    @property
    def paced(self) -> bool:
        return False

    @property
    def _inner_over(self) -> bool:
        return self.inner.finished or self.inner.aborted

    def receive(self, data: bytes) -> None:
        if not data:
            return
        self.refresh()
        if self.over or (self._mutes and self._inner_over):
            return
        self._in.put(self, data, self._registry.context.now())
        self._feed()
        self._set_timer()

    def receive_eof(self) -> None:
        """Received bytes in the proxy arrive at once, unless the proxy is muted."""
        if self._eof_told:
            return
        self._eof_told = True
        self._cancel_timer()
        if not self.over and not self._mutes and (rest := self._in.drain()):
            self.inner.receive(rest)
        self._registry.passed_on(self)
        self.inner.receive_eof()
        self._registry.gone(self)

    def pending(self) -> list[bytes | memoryview]:
        self.refresh()
        self._registry.passed_on(self)
        if self.over:
            self.receive_eof()
            return []
        if self._mutes:
            output, self._sent_before_mute = self._sent_before_mute, []
            return output
        if self._out.plain:
            return self.inner.pending()
        self._pull()
        pieces = self._emit(self._registry.context.now())
        self._set_timer()
        return pieces

    def sent(self, count: int) -> None:
        self.inner.sent(count)

    def next_deadline(self) -> float | None:
        dues = [due for due in (self.inner.next_deadline(), self._due) if due is not None]
        return min(dues, default=None)

    def notified(self, connection: Connection | None = None) -> None:
        """The connection may have output: its delay begins now, not when the turn ends.

        `connection` takes the place of the connection that read the protocol header.
        """
        if connection is not None:
            self.inner = connection
        if self._out.buffers and not self._mutes and not self.over:
            self._pull()
            self._set_timer()

    def unwrap(self) -> Connection | None:
        """Remove the proxy and return its connection; None while it holds bytes or a toxic is in force."""
        self.refresh()
        if self.over or self._toxics or self._feeding or self._sent_before_mute:
            return None
        if self._in.held or self._out.held:
            return None
        self._cancel_timer()
        self._registry.gone(self)
        return self.inner

    # --- toxics -----------------------------------------------------------------------------------------

    def passed(self, toxic: NetworkFault) -> int:
        """How many bytes or frames have passed the cut of this toxic."""
        return sum(
            cut.passed
            for direction in self._directions.values()
            for each, cut in direction.cuts
            if each is toxic
        )

    def refresh(self) -> None:
        """Add and remove toxics until the proxy has those that are in force."""
        if self.over:
            return
        wanted = self._registry.toxics(self)
        if wanted == self._toxics:
            return
        before, self._toxics = self._toxics, list(wanted)
        now = self._registry.context.now()
        for toxic in before:
            if toxic not in wanted:
                self._remove(toxic, now)
        for toxic in wanted:
            if toxic not in before:
                self._add(toxic)
        self._feed()
        self._set_timer()
        self._notify()

    def _add(self, toxic: NetworkFault) -> None:
        for name, direction in self._directions.items():
            shaper = toxic.make_shaper(self, name)
            if shaper is not None:
                direction.add(toxic, shaper)
        if toxic.mutes:
            self._mutes.append(toxic)
            self._cancel_timer()
            if self._out.plain:
                self._sent_before_mute += self.inner.pending()
            toxic.hit(self, 1)
        if toxic.ends is not None:
            self.end(toxic.ends)
            toxic.hit(self, 1)

    def _remove(self, toxic: NetworkFault, now: float) -> None:
        for direction in self._directions.values():
            direction.remove(self, toxic, now)
        if toxic in self._mutes:
            self._mutes.remove(toxic)
            if not self._mutes:
                output, self._sent_before_mute = self._sent_before_mute, []
                for octets in output:
                    self._out.put(self, bytes(octets), now)

    def end(self, how: Literal["fin", "reset"], *, after_output: bool = False) -> None:
        """End the connection for both sides; bytes in the proxy are lost.

        The connection inside learns of it when the turn ends, because it may be inside a call now. With
        `after_output`, bytes that `pending` has returned are sent first, also before a reset.
        """
        if self.over:
            return
        self.over = True
        self._resets = how == "reset"
        self._finished = after_output or not self._resets
        self._aborted = not self._finished
        self._cancel_timer()
        self._in.drain()
        self._out.drain()
        self._mutes.clear()
        self._sent_before_mute.clear()
        self._notify()

    # --- moving bytes ----------------------------------------------------------------------------------

    def _pull(self) -> None:
        """Take the output of the connection into the proxy."""
        now = self._registry.context.now()
        for octets in self.inner.pending():
            self._out.put(self, bytes(octets), now)
        self._out.move(self, now)

    def _feed(self) -> None:
        """Pass the received bytes that are due to the connection."""
        if self._feeding:  # The connection is inside `receive` and has caused this call.
            return
        self._feeding = True
        try:
            now = self._registry.context.now()
            self._in.move(self, now)
            while not self.over and not self._mutes and self._in.may_leave(now):
                piece, cut = self._in.next(self, now)
                if piece:
                    self.inner.receive(piece)
                if cut is not None:
                    self._cut_off(*cut, after_output=False)
        finally:
            self._feeding = False
        self._registry.passed_on(self)

    def _emit(self, now: float) -> list[bytes | memoryview]:
        """The bytes that leave now: one slice if there are slices, otherwise everything that is ready."""
        direction = self._out
        pieces: list[bytes | memoryview] = []
        while not self.over and not self._mutes and direction.may_leave(now):
            piece, cut = direction.next(self, now)
            if piece:
                pieces.append(piece)
            if cut is not None:
                self._cut_off(*cut, after_output=True)
            elif direction.slices:
                break
        if direction.may_leave(now) and not self.over and not self._mutes:
            self._notify()  # Every slice is a write of its own.
        return pieces

    def _cut_off(self, toxic: NetworkFault, cut: Cut, *, after_output: bool) -> None:
        if cut.how == "silence":
            self._mutes.append(toxic)
            self._cancel_timer()
        else:
            self.end(cut.how, after_output=after_output)
        toxic.hit(self, 1)

    # --- the timer --------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Set the timer to the next instant at which bytes are due."""
        if self._mutes or self.over or self._eof_told:
            return
        dues = [due for direction in (self._in, self._out) if (due := direction.due()) is not None]
        due = min(dues, default=None)
        if due == self._due:
            return
        self._cancel_timer()
        if due is not None:
            self._due = due
            label = f"bytes of {self.name} go on"
            self._timer = self._registry.context.call_at(due, self._run_timer, label)

    def _cancel_timer(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()

    def _run_timer(self) -> None:
        self._due = None
        self._feed()
        if self._mutes or self.over:
            return
        now = self._registry.context.now()
        self._pull()
        if self._out.may_leave(now) or self._in.held < _MOST_HELD:
            self._notify()
        self._set_timer()

    def __repr__(self) -> str:
        held = f"received={self._in.held} sent={self._out.held}"
        return f"<NetworkProxy around {self.inner!r} toxics={len(self._toxics)} held {held}>"


class ProxyDirection:
    """The bytes of one direction: delay buffers in a row, then slices, then cuts."""

    def __init__(self) -> None:
        self.buffers: list[tuple[NetworkFault, DelayBuffer]] = []
        self.slices: list[tuple[NetworkFault, SliceShaper]] = []
        self.cuts: list[tuple[NetworkFault, Cut]] = []
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

    def move(self, proxy: NetworkProxy, now: float) -> None:
        """Move on the bytes that are due."""
        for index, (_, buffer) in enumerate(self.buffers):
            for octets in buffer.take(now):
                self.put(proxy, octets, now, index + 1)
        if self._pause_ends is not None and self._pause_ends <= now:
            self._pause_ends = None

    def put(self, proxy: NetworkProxy, octets: bytes, now: float, index: int = 0) -> None:
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

    def next(self, proxy: NetworkProxy, now: float) -> tuple[bytes, tuple[NetworkFault, Cut] | None]:
        """The next piece to leave, and the cut that ends the direction behind it, if any."""
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

    def add(self, toxic: NetworkFault, shaper: Shaper) -> None:
        if isinstance(shaper, SliceShaper):
            self.slices.append((toxic, shaper))
        elif isinstance(shaper, Cut):
            self.cuts.append((toxic, shaper))
        else:
            self.buffers.append((toxic, shaper))

    def remove(self, proxy: NetworkProxy, toxic: NetworkFault, now: float) -> None:
        """Remove a toxic's shaper; the bytes it held move on."""
        for index, (each, buffer) in enumerate(self.buffers):
            if each is toxic:
                for octets in buffer.take_all():
                    self.put(proxy, octets, now, index + 1)
        self.buffers = [each for each in self.buffers if each[0] is not toxic]
        self.slices = [each for each in self.slices if each[0] is not toxic]
        self.cuts = [each for each in self.cuts if each[0] is not toxic]
        if not self.slices:
            self._pause_ends = None

    def drain(self) -> bytes:
        """Take everything that waits, whatever the time."""
        behind = [octets for _, buffer in reversed(self.buffers) for octets in buffer.take_all()]
        return self._ready.take(self._ready.size) + b"".join(behind)
