"""A cable: stands around a connection and bends the bytes that go in and out.

To the runtime it is the connection, to the connection it is the runtime. In each direction there is a lane:

    received: transport -> queues -> slices -> cut -> connection
    sent:     connection -> queues -> slices -> cut -> transport

Bytes sent wait where the connection still counts them as unsent, so that a slow network holds the broker
back; bytes received wait here, and when a mebibyte of them does, nothing more is read. A cable lies above
TLS: what it counts and cuts are the bytes of AMQP.

Muted, it takes nothing from either side: bytes wait in the connection, and at the transport. What becomes of
the connection meanwhile is not told to the peer.

All methods need the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from fakeamqp.faults.bends import Bandwidth, Cut, Latency, Octets, Queue, Slices

if TYPE_CHECKING:
    from fakeamqp.faults.line import Cancellable, Direction

__all__ = ["Bender", "Cable", "Inner", "Surroundings"]

_MOST_HELD = 1024 * 1024

Bend: TypeAlias = "Latency | Bandwidth | Slices | Cut"


class Inner(Protocol):
    """The connection inside: `protocols.Connection`."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def finished(self) -> bool: ...  # noqa: D102

    @property
    def reading(self) -> bool: ...  # noqa: D102

    @property
    def aborted(self) -> bool: ...  # noqa: D102

    @property
    def resets(self) -> bool: ...  # noqa: D102

    def receive(self, data: bytes) -> None: ...  # noqa: D102

    def receive_eof(self) -> None: ...  # noqa: D102

    def pending(self) -> list[bytes]: ...  # noqa: D102

    def sent(self, count: int) -> None: ...  # noqa: D102

    def next_deadline(self) -> float | None: ...  # noqa: D102


class Bender(Protocol):
    """A fault, as far as cables have to do with it."""

    @property
    def mutes(self) -> bool:
        """Whether nothing passes while it is in force."""

    @property
    def ends(self) -> Literal["fin", "reset"] | None:
        """How the connection ends at once, if it does."""

    def bend(self, cable: Cable, direction: Direction) -> Bend | None:
        """What it does to one direction of one cable; asked once."""

    def hit(self, cable: Cable, count: int) -> None:
        """It has happened on this cable."""


class Surroundings(Protocol):
    """Where cables lie: the clock, and what bends them."""

    def now(self) -> float:
        """The instant on the broker's clock."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Have something done at an instant of the broker's clock."""

    def benders(self, cable: Cable) -> list[Bender]:
        """What bends this cable now, oldest first."""

    def settled(self, cable: Cable) -> None:
        """The cable has passed something on: what is known of its connection may have changed."""

    def gone(self, cable: Cable) -> None:
        """The cable has been taken off, or its connection is over."""


class _Lane:
    """One direction of a cable."""

    def __init__(self) -> None:
        self.queues: list[tuple[Bender, Queue]] = []
        self.slices: list[tuple[Bender, Slices]] = []
        self.cuts: list[tuple[Bender, Cut]] = []
        self._ready = Octets()
        self._pause_ends: float | None = None
        """Before this instant no further slice goes. None: there is no pause, or it was seen to be over."""

    @property
    def held(self) -> int:
        """How many bytes wait."""
        return self._ready.size + sum(queue.size for _, queue in self.queues)

    @property
    def plain(self) -> bool:
        """Whether bytes pass as they are, at once."""
        return not (self.queues or self.slices or self.cuts or self._ready.size)

    def put(self, cable: Cable, octets: bytes, now: float) -> None:
        """Bytes come in at the beginning."""
        if self.queues:
            bender, queue = self.queues[0]
            bender.hit(cable, len(octets))
            queue.put(octets, now)
        else:
            self._ready.put(octets)

    def move(self, cable: Cable, now: float) -> None:
        """Move on what may go on at this instant."""
        for index, (_, queue) in enumerate(self.queues):
            for octets in queue.take(now):
                self._after(index, cable, octets, now)
        if self._pause_ends is not None and self._pause_ends <= now:
            self._pause_ends = None

    def _after(self, index: int, cable: Cable, octets: bytes, now: float) -> None:
        if index + 1 < len(self.queues):
            bender, queue = self.queues[index + 1]
            bender.hit(cable, len(octets))
            queue.put(octets, now)
        else:
            self._ready.put(octets)

    def due(self) -> float | None:
        """When to call `move` next; it may be in the past, since time passes while one looks at the clock."""
        dues = [due for _, queue in self.queues if (due := queue.due()) is not None]
        if self._ready.size and self._pause_ends is not None:
            dues.append(self._pause_ends)
        return min(dues, default=None)

    def may_go(self, now: float) -> bool:
        """Whether there is something at the end that may leave at this instant."""
        return self._ready.size > 0 and (self._pause_ends is None or self._pause_ends <= now)

    def next(self, cable: Cable, now: float) -> tuple[bytes, tuple[Bender, Cut] | None]:
        """The next piece to leave, and what cuts the lane off behind it."""
        if not self.may_go(now):
            return b"", None
        if self.slices:
            piece = self._ready.take(min(each.octets for _, each in self.slices))
            for bender, _ in self.slices:
                bender.hit(cable, 1)
            pause = max(each.pause for _, each in self.slices)
            self._pause_ends = now + pause if pause else None
        else:
            piece = self._ready.take_piece()
        for bender, cut in list(self.cuts):
            count, last = cut.admit(piece)
            if last:
                self.cuts.remove((bender, cut))
                self._ready.put_back(piece[count:])
                return piece[:count], (bender, cut)
        return piece, None

    def add(self, bender: Bender, bend: Bend) -> None:
        """One more thing that bends it."""
        if isinstance(bend, Slices):
            self.slices.append((bender, bend))
        elif isinstance(bend, Cut):
            self.cuts.append((bender, bend))
        else:
            self.queues.append((bender, bend))

    def remove(self, cable: Cable, bender: Bender, now: float) -> None:
        """One thing less; what it held goes on."""
        for index, (each, queue) in enumerate(self.queues):
            if each is bender:
                for octets in queue.take_all():
                    self._after(index, cable, octets, now)
        self.queues = [each for each in self.queues if each[0] is not bender]
        self.slices = [each for each in self.slices if each[0] is not bender]
        self.cuts = [each for each in self.cuts if each[0] is not bender]
        if not self.slices:
            self._pause_ends = None

    def drain(self) -> bytes:
        """All that waits, whatever the time."""
        behind = [octets for _, queue in reversed(self.queues) for octets in queue.take_all()]
        return self._ready.take(self._ready.size) + b"".join(behind)


class Cable:
    """A connection with a network around it. See `fakeamqp.connection.Connection`.

    Args:
        inner: the connection.
        notify: makes the runtime look at the cable when the turn ends.
        surroundings: the clock, and what bends the cable.
        number: counts the cables of a broker, for what is random.
    """

    def __init__(
        self, inner: Inner, notify: Callable[[], object], surroundings: Surroundings, number: int
    ) -> None:
        self.inner = inner
        self.number = number
        #: The connection in terms of its protocol, once there is one: `fault_port.FramedFaultPort`.
        self.line: Any = None
        self._notify = notify
        self._surroundings = surroundings
        self._benders: list[Bender] = []
        self._lanes: dict[Direction, _Lane] = {"received": _Lane(), "sent": _Lane()}
        self._in = self._lanes["received"]
        self._out = self._lanes["sent"]
        self._mutes: list[Bender] = []
        self._parting: list[bytes] = []
        """What the connection had said before it was muted."""
        self._timer: Cancellable | None = None
        self._due: float | None = None
        self._feeding = False
        self._over = False
        self._eof_told = False
        self._finished = False
        self._aborted = False
        self._resets = False

    # --- what the runtime sees ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See `Connection`."""
        return self.inner.name

    @property
    def protocol(self) -> str | None:
        """What the connection speaks, once its client has said it."""
        chosen = getattr(self.inner, "chosen", self.inner)
        return getattr(chosen, "protocol", None)

    @property
    def finished(self) -> bool:
        """See `Connection`. What is still on the way is sent first."""
        if self._over:
            return self._finished
        if not self.inner.finished or self._mutes:
            return False
        if not self._out.plain:
            self._pull()  # its last words are on the way as well
            self._arm()
        return not self._out.held

    @property
    def aborted(self) -> bool:
        """See `Connection`. What is still on the way is sent first, but for a reset."""
        if self._over:
            return self._aborted
        inner = self.inner
        return inner.aborted and not self._mutes and (inner.resets or not self._out.held)

    @property
    def resets(self) -> bool:
        """See `Connection`."""
        return self._resets if self._over else self.inner.resets

    @property
    def reading(self) -> bool:
        """See `Connection`."""
        if self._over:
            return True
        if self._mutes:
            # What comes for a connection that is no more is thrown away, so that its end is noticed.
            return self.inner.finished or self.inner.aborted
        return self.inner.reading and self._in.held < _MOST_HELD

    def receive(self, data: bytes) -> None:
        """See `Connection`."""
        if not data:
            return
        self.refresh()
        if self._over or (self._mutes and (self.inner.finished or self.inner.aborted)):
            return
        self._in.put(self, data, self._surroundings.now())
        self._feed()
        self._arm()

    def receive_eof(self) -> None:
        """See `Connection`. What was on the way to the broker arrives at once, unless the cable is muted."""
        if self._eof_told:
            return
        self._eof_told = True
        self._disarm()
        if not self._over and not self._mutes and (rest := self._in.drain()):
            self.inner.receive(rest)
        self._surroundings.settled(self)
        self.inner.receive_eof()
        self._surroundings.gone(self)

    def pending(self) -> list[bytes]:
        """See `Connection`."""
        self.refresh()
        self._surroundings.settled(self)
        if self._over:
            self.receive_eof()
            return []
        if self._mutes:
            parting, self._parting = self._parting, []
            return parting
        lane = self._out
        if lane.plain:
            return self.inner.pending()
        self._pull()
        pieces = self._emit(lane, self._surroundings.now())
        self._arm()
        return pieces

    def sent(self, count: int) -> None:
        """See `Connection`."""
        self.inner.sent(count)

    def next_deadline(self) -> float | None:
        """See `Connection`."""
        dues = [due for due in (self.inner.next_deadline(), self._due) if due is not None]
        return min(dues, default=None)

    def notified(self) -> None:
        """The connection may have something to send: take it in its time, not when the turn ends."""
        if self._out.queues and not self._mutes and not self._over:
            self._pull()
            self._arm()

    def unwrap(self) -> Inner | None:
        """Come off: the connection inside. None where something is held, or bends the cable."""
        self.refresh()
        if self._over or self._benders or self._feeding or self._parting:
            return None
        if self._in.held or self._out.held:
            return None
        self._disarm()
        self._surroundings.gone(self)
        return self.inner

    # --- what faults do -------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether a fault has ended it."""
        return self._over

    def passed(self, bender: Bender) -> int:
        """How much has passed the cut that this fault is to make, in its units."""
        return sum(cut.passed for lane in self._lanes.values() for each, cut in lane.cuts if each is bender)

    def refresh(self) -> None:
        """Bend as is wanted now."""
        if self._over:
            return
        wanted = self._surroundings.benders(self)
        if wanted == self._benders:
            return
        before, self._benders = self._benders, list(wanted)
        now = self._surroundings.now()
        for bender in before:
            if bender not in wanted:
                self._take_off(bender, now)
        for bender in wanted:
            if bender not in before:
                self._put_on(bender)
        self._feed()
        self._arm()
        self._notify()

    def _put_on(self, bender: Bender) -> None:
        for direction, lane in self._lanes.items():
            bend = bender.bend(self, direction)
            if bend is not None:
                lane.add(bender, bend)
        if bender.mutes:
            self._mute(bender)
            if self._out.plain:
                self._parting += self.inner.pending()
            bender.hit(self, 1)
        if bender.ends is not None:
            self.end(bender.ends)
            bender.hit(self, 1)

    def _take_off(self, bender: Bender, now: float) -> None:
        for lane in self._lanes.values():
            lane.remove(self, bender, now)
        if bender in self._mutes:
            self._mutes.remove(bender)
            if not self._mutes:
                parting, self._parting = self._parting, []
                for octets in parting:
                    self._out.put(self, octets, now)

    def _mute(self, bender: Bender) -> None:
        self._mutes.append(bender)
        self._disarm()

    def end(self, how: Literal["fin", "reset"], *, after_output: bool = False) -> None:
        """End the connection for both sides; what was on the way is lost.

        The connection inside learns of it when the turn ends, since it may be at work.

        Args:
            how: in order, or by a reset.
            after_output: what `pending` has handed out goes first, also where a reset follows.
        """
        if self._over:
            return
        self._over = True
        self._resets = how == "reset"
        self._finished = after_output or not self._resets
        self._aborted = not self._finished
        self._disarm()
        self._in.drain()
        self._out.drain()
        self._mutes.clear()
        self._parting.clear()
        self._notify()

    # --- the lanes ------------------------------------------------------------------------------------

    def _pull(self) -> None:
        now = self._surroundings.now()
        for octets in self.inner.pending():
            self._out.put(self, octets, now)
        self._out.move(self, now)

    def _feed(self) -> None:
        """Hand the connection what has arrived by now."""
        if self._feeding:  # the connection is at work, and something it did has led here
            return
        self._feeding = True
        try:
            lane = self._in
            now = self._surroundings.now()
            lane.move(self, now)
            while not self._over and not self._mutes and lane.may_go(now):
                piece, cut = lane.next(self, now)
                if piece:
                    self.inner.receive(piece)
                if cut is not None:
                    self._cut_off(*cut, after_output=False)
        finally:
            self._feeding = False
        self._surroundings.settled(self)

    def _emit(self, lane: _Lane, now: float) -> list[bytes]:
        """What leaves now: one slice where there are slices, otherwise all that is ready."""
        pieces: list[bytes] = []
        while not self._over and not self._mutes and lane.may_go(now):
            piece, cut = lane.next(self, now)
            if piece:
                pieces.append(piece)
            if cut is not None:
                self._cut_off(*cut, after_output=True)
            elif lane.slices:
                break
        if lane.may_go(now) and not self._over and not self._mutes:
            self._notify()  # every slice is a write of its own
        return pieces

    def _cut_off(self, bender: Bender, cut: Cut, *, after_output: bool) -> None:
        if cut.how == "silence":
            self._mute(bender)
        else:
            self.end(cut.how, after_output=after_output)
        bender.hit(self, 1)

    def _arm(self) -> None:
        """Set the timer to when something moves by itself next."""
        if self._mutes or self._over or self._eof_told:
            return
        dues = [due for lane in (self._in, self._out) if (due := lane.due()) is not None]
        due = min(dues, default=None)
        if due == self._due:
            return
        self._disarm()
        if due is not None:
            self._due = due
            self._timer = self._surroundings.call_at(due, self._move, f"bytes of {self.name} go on")

    def _disarm(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _move(self) -> None:
        self._timer = None
        self._due = None
        self._feed()
        if self._mutes or self._over:
            return
        now = self._surroundings.now()
        self._pull()
        if self._out.may_go(now) or self._in.held < _MOST_HELD:
            self._notify()
        self._arm()

    def __repr__(self) -> str:
        held = f"received={self._in.held} sent={self._out.held}"
        return f"<Cable around {self.inner!r} bends={len(self._benders)} held {held}>"
