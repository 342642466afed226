"""The recorder: the tap that keeps the latest events. It runs on the hot path and decodes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from fakeamqp.dialects import default_protocol, protocol_header, protocol_of
from fakeamqp.trace.truncation import LONG_BODY, Truncated, TruncatedMessage, frames_in

if TYPE_CHECKING:
    from fakeamqp.dialects import Direction
    from fakeamqp.trace.events import Event
    from fakeamqp.trace.timeline import Packed, Trace

_NOT_ONE_ENTRY = frozenset(("refused", "dropped"))
"""Events that change an entry, or that several messages have together."""
_MOST_FAULTS = 100
"""Faults that are kept however many events follow."""

_FRAME_BODY = 3
_TYPE = 0xFF
"""The bits of a frame's kind that are its type; in 0-10 the higher bits are flags."""
_LONG_PAYLOAD = 65_536
_ENTRY = 160
"""Bytes of an entry beside payloads and messages."""
_DECODED = 3
"""Properties are kept as received, and decoded."""
_LARGEST_ENTRY = 5 * LONG_BODY + _ENTRY
"""Bytes of an entry without a long payload: a body, and properties."""
_FEW = 100
_CLOSING_EVENTS = frozenset(("closed", "aborted", "lost", "refused"))


class Named(Protocol):
    """The attributes of a connection that a recorder reads."""

    name: str
    heard_at: float


class RecorderMark(NamedTuple):
    """A moment of a recorder: how often it was cleared, the number of entries since, and the times."""

    clears: int
    entries: int
    instant: float
    wall_time: float | None
    real_time: float = 0.0


class Recorder:
    """Keeps the latest events of one broker. The broker calls it as its tap; see `fakeamqp.model.tap.Tap`.

    Memory is bounded: the recorder keeps at most `capacity` entries, the first 4 KiB of each body, and the
    first 4 KiB of any other payload beyond 64 KiB. Where headers or arguments beyond 4 KiB have more than
    `most_octets` together, the oldest entries are dropped.

    A message passes the tap six times or more, so each method of the tap only stores a plain tuple; see
    `fakeamqp.trace.timeline`.

    `now` is the broker's clock, `time` its wall time in seconds since 1970: without it a trace has none.
    `clock` names the mode of that clock. `real_time` is a clock in real seconds, if that is another one. With
    `whole`, payloads are not truncated; the owner then takes the entries regularly, see `take`.
    """

    confirms_singly = False
    intercepts = False

    __slots__ = (
        "_began",
        "_clock",
        "_entries",
        "_faults",
        "_keep",
        "_long",
        "_most_octets",
        "_now",
        "_peers",
        "_real_began",
        "_real_time",
        "_real_times",
        "_size",
        "_sized_at",
        "_time",
        "_wall_time",
        "_whole",
        "capacity",
        "clears",
        "count",
    )

    def __init__(
        self,
        now: Callable[[], float],
        capacity: int = 10_000,
        *,
        time: Callable[[], float] | None = None,
        clock: str = "real",
        most_octets: int = 32 * 1024 * 1024,
        real_time: Callable[[], float] | None = None,
        whole: bool = False,
    ) -> None:
        self._now = now
        self._whole = whole
        self._most_octets = most_octets
        self._time = time
        self._clock = clock
        self.capacity: int = max(1, capacity)
        self._entries: deque[Packed] = deque(maxlen=self.capacity)
        self._real_time = real_time
        self._real_times: deque[float] = deque(maxlen=self.capacity)
        """The real times of the entries, if the broker's clock is not real."""
        self._keep = self._entries.append if real_time is None else self._keep_with_real_time
        self._faults: deque[tuple[int, Packed, float]] = deque(maxlen=_MOST_FAULTS)
        """The latest faults: serial number, entry, real time. They are kept longer than other entries."""
        self._peers = Peers()
        self.clears: int = 0
        """How often everything was forgotten, and serial numbers began again."""
        self.clear()

    def clear(self) -> None:
        """Forget everything. Times and the short names of connections start again."""
        self.clears += 1
        self._began = self._now()
        self._wall_time = None if self._time is None else self._time()
        self._real_began = 0.0 if self._real_time is None else self._real_time()
        self._entries.clear()
        self._real_times.clear()
        self._faults.clear()
        self.count: int = 0
        """The number of entries so far, those included that are no longer kept."""
        self._long = 0
        """Bytes of long payloads since the entries were looked at."""
        self._size = 0
        self._sized_at = 0
        self._peers.clear()

    def timeline(self, limit: int) -> str:
        """The timeline of the latest events."""
        return self.trace().timeline(limit)

    def set_off(self) -> None:
        """Note the wall time of the beginning: the clock has learned it now."""
        self._wall_time = None if self._time is None else self._time() - (self._now() - self._began)

    def alias(self, connection: str) -> str | None:
        """The short name of a connection, or None if the recorder has seen nothing of it."""
        peer = self._peers.get(connection)
        return None if peer is None else peer[1]

    def mark(self) -> RecorderMark:
        """The present moment, for a trace of what comes later."""
        wall_time = None if self._time is None else self._time()
        real_time = 0.0 if self._real_time is None else self._real_time()
        return RecorderMark(self.clears, self.count, self._now(), wall_time, real_time)

    def trace(self, since: RecorderMark | None = None) -> Trace:
        """The current record, or what came since a mark. Call it while the broker does not run.

        A mark that is older than the last `clear` has no effect.
        """
        from fakeamqp.trace.timeline import Trace

        if since is None or since.clears != self.clears:
            since = RecorderMark(self.clears, 0, self._began, self._wall_time, self._real_began)
        dropped = self.count - len(self._entries)
        first = max(0, since.entries - dropped)
        return Trace(
            tuple(islice(self._entries, first, None)),
            max(0, dropped - since.entries),
            since.instant,
            capacity=self.capacity,
            aliases={name: alias for name, alias, _ in self._peers.values()},
            wall_time=since.wall_time,
            clock=self._clock,
            real_times=tuple(each - since.real_time for each in islice(self._real_times, first, None)),
            faults=[
                (entry, None if self._real_time is None else real_time - since.real_time)
                for serial, entry, real_time in self._faults
                if since.entries <= serial < dropped
            ],
        )

    def entries_from(self, serial: int, most: int | None = None) -> tuple[int, tuple[Packed, ...]]:
        """The entries from a serial number on, or the latest of them. Call it inside the engine.

        Returns the serial number of the first entry, and the entries. The first since `clear` has number 0.
        """
        wanted = min(max(0, self.count - serial), len(self._entries))
        if most is not None:
            wanted = min(wanted, most)
        latest = tuple(islice(reversed(self._entries), wanted))
        return self.count - wanted, latest[::-1]

    def real_times(self, latest: int) -> tuple[float, ...]:
        """The real times of the latest entries; () if the clock is real. Call it inside the engine."""
        times = tuple(islice(reversed(self._real_times), latest))
        return tuple(each - self._real_began for each in times[::-1])

    def take(self) -> tuple[Packed, ...]:
        """The entries, which are no longer kept."""
        entries = tuple(self._entries)
        self._entries.clear()
        return entries

    def events_of(self, entries: Iterable[Packed], real_times: Iterable[float] = ()) -> Iterator[Event]:
        """The events that some of the entries stand for. It needs no lock."""
        from fakeamqp.trace.timeline import events_of

        aliases = {name: alias for name, alias, _ in [*self._peers.values()]}
        return events_of(entries, self._began, aliases, real_times)

    # --- memory ---------------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """More than `size` can be."""
        return self.capacity * _LARGEST_ENTRY + 2 * self._most_octets

    def size(self) -> int:
        """How many bytes the entries take, without messages that are charged to the broker's memory.

        All entries are looked at again once there are half as many new ones.
        """
        if self.count - self._sized_at > max(_FEW, len(self._entries) // 2):
            seen: set[int] = set()
            self._size = sum(_size(entry, seen, charged=False) for entry in self._entries)
            self._sized_at = self.count
        return self._size

    def shrink(self, octets: int) -> None:
        """Drop the oldest entries, until the rest takes at most this many bytes with all of its messages."""
        seen: set[int] = set()
        entries = self._entries
        kept = room = 0
        for entry in reversed(entries):
            room += _size(entry, seen, charged=True)
            if room > octets:
                break
            kept += 1
        while len(entries) > kept:
            entries.popleft()
        while len(self._real_times) > kept:
            self._real_times.popleft()
        self._long = 0
        self._sized_at = -len(entries)  # Have `size` look at them.

    def _keep_with_real_time(self, entry: Packed) -> None:
        assert self._real_time is not None
        self._entries.append(entry)
        self._real_times.append(self._real_time())

    # --- frames and connections -----------------------------------------------------------------------

    def received(self, connection: Named, frame_type: int, channel: int, payload: bytes) -> None:
        if len(payload) > LONG_BODY:
            payload = self._truncated(frame_type, payload)
        self.count += 1
        peer = self._peers[connection.name]
        self._keep(("frame", connection.heard_at, peer, "received", frame_type, channel, payload))

    def sending(self, connection: Named, octets: bytes) -> bytes:
        """Short frames are kept as they are sent, in one piece."""
        peer = self._peers[connection.name]
        if len(octets) > LONG_BODY:
            for frame in frames_in(octets, peer[2]):
                self.frame(connection.name, "sent", *frame)
        else:
            self.count += 1
            self._keep(("frames sent", self._now(), peer, octets))
        return octets

    def frame(
        self, connection: str, direction: Direction, frame_type: int, channel: int, payload: bytes
    ) -> None:
        """Record one frame of the connection of that name."""
        if len(payload) > LONG_BODY:
            payload = self._truncated(frame_type, payload)
        self.count += 1
        peer = self._peers[connection]
        self._keep(("frame", self._now(), peer, direction, frame_type, channel, payload))

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection that reuses the name of an earlier one gets a short name of its own."""
        peer = None if event == "connected" else self._peers.get(connection)
        if peer is None:
            peer = self._peers.add(connection, detail)
        self.count += 1
        entry = ("connection", self._now(), peer, event, detail)
        self._keep(entry)
        if event == "fault":
            real_time = 0.0 if self._real_time is None else self._real_time()
            self._faults.append((self.count - 1, entry, real_time))
        if event in _CLOSING_EVENTS:
            self._peers.close(peer)

    def _truncated(self, frame_type: int, payload: bytes) -> bytes:
        if self._whole:
            return payload
        if frame_type & _TYPE == _FRAME_BODY:
            return Truncated(payload, LONG_BODY)
        # Its message keeps the properties, too. At times, see whether the entries take too much.
        self._long += len(payload)
        if self._long > self._most_octets:
            self.shrink(self._most_octets // 2)
        return Truncated(payload, LONG_BODY) if len(payload) > _LONG_PAYLOAD else payload

    # --- events of the model --------------------------------------------------------------------------

    def event(self, event: str, connection: Named | None, message: Any, *values: object) -> None:
        """An event of the model. Messages that are dropped together have entries of their own."""
        if event in _NOT_ONE_ENTRY:
            if event == "refused":
                self._complete(message, values)
            else:
                self._dropped(message, values)
            return
        if message is not None and len(message.body) > LONG_BODY:
            message = TruncatedMessage(message, LONG_BODY)
        self.count += 1
        peer = None if connection is None else self._peers[connection.name]
        self._keep((event, self._now(), peer, message, values))

    def _complete(self, message: Any, values: tuple[object, ...]) -> None:
        """Queues have refused a message: its outcome replaces the one that its publish has."""
        entries = self._entries
        for place in range(len(entries) - 1, -1, -1):
            event, instant, peer, published, *_ = entries[place]
            if event == "published" and published.number == message.number:
                entries[place] = (event, instant, peer, published, values)
                return

    def _dropped(self, messages: Sequence[Any], values: tuple[object, ...]) -> None:
        self.count += len(messages)
        now = self._now()
        for message in messages[-self.capacity :]:  # Of a million, the others would be dropped at once.
            kept = message if len(message.body) <= LONG_BODY else TruncatedMessage(message, LONG_BODY)
            self._keep(("dropped", now, None, kept, values))


def _size(entry: Packed, seen: set[int], *, charged: bool) -> int:
    """About how many bytes an entry takes; messages count once, those that are charged only if asked for."""
    octets = _ENTRY
    for item in entry:
        if isinstance(item, bytes):
            octets += len(item)
            continue
        if (body := getattr(item, "body", None)) is None or id(item) in seen:
            continue
        seen.add(id(item))
        if charged or getattr(item, "charge", None) is None:
            octets += len(body) + _DECODED * len(getattr(item, "properties_bytes", b""))
    return octets


_MOST_CLOSED = 1000
"""The number of closed connections whose short names are kept. Events about them may still follow."""


Peer: TypeAlias = "tuple[str, str, str]"
"""A connection: its name, its short name such as "c1", and its protocol. A plain tuple; see `entries`."""


class Peers(dict[str, Peer]):
    """Peers by the name of the connection. A lookup adds a connection that is missing."""

    def __init__(self) -> None:
        super().__init__()
        self._added = 0
        self._closed: deque[Peer] = deque()
        self._protocols: dict[str, str] = {}
        """The protocols of the open connections. They outlast `clear`."""

    def __missing__(self, connection: str) -> Peer:
        return self.add(connection)

    def add(self, connection: str, detail: str = "") -> Peer:
        """Give a connection the next short name, also if an earlier connection had the same name.

        `detail` is that of the event "connected", which tells the protocol. Without it the protocol stays.
        """
        header = protocol_header(detail)
        if header:
            self._protocols[connection] = protocol_of(header) or default_protocol().name
        self._added += 1
        protocol = self._protocols.get(connection) or default_protocol().name
        peer = self[connection] = (connection, f"c{self._added}", protocol)
        return peer

    def close(self, peer: Peer) -> None:
        """Mark a connection as closed. Its short name is kept until 1000 more connections have closed."""
        self._closed.append(peer)
        self._protocols.pop(peer[0], None)
        if len(self._closed) > _MOST_CLOSED:
            oldest = self._closed.popleft()
            if self.get(oldest[0]) is oldest:
                del self[oldest[0]]

    def clear(self) -> None:
        """Forget all short names; numbers begin at 1 again."""
        super().clear()
        self._added = 0
        self._closed.clear()
