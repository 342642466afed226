"""The network between the broker and its clients, and what is wrong with it.

Faults here know bytes and connections, no methods. Each is a handle; while one is in force there is a cable
around every connection, which does what the fault says. Without one there is none, and no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fakeamqp.errors import near_match
from fakeamqp.faults.bends import Bandwidth, Cut, Latency, Slices
from fakeamqp.faults.cable import Cable
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle, Handles, Stage
from fakeamqp.faults.keywords import checked

if TYPE_CHECKING:
    from fakeamqp.faults.cable import Bend, Bender, Inner
    from fakeamqp.faults.line import Cancellable, Direction, Linked

__all__ = ["Network", "NetworkFault", "NetworkHost"]

_DIRECTIONS = {
    "both": ("received", "sent"),
    "received": ("received",),
    "sent": ("sent",),
}
_TO_AND_FROM = {"both": "to and from", "received": "from", "sent": "to"}
_ENDS = {"fin": "closed", "reset": "reset", "silence": "silenced"}
_REFUSALS = {
    "port": "dials are refused by the operating system",
    "close": "who dials is let in, and the connection closed at once",
    "reset": "who dials is let in, and the connection reset at once",
}


class NetworkHost(Stage, Protocol):
    """The broker that has this network."""

    @property
    def seed(self) -> int | str | None:
        """The seed that the broker was made with."""

    def now(self) -> float:
        """The instant on the broker's clock, in seconds."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Have something done at an instant of the broker's clock."""

    def linked(self) -> Iterable[Linked]:
        """The open connections, oldest first."""

    def alias(self, name: str) -> str | None:
        """The short name that the trace gives a connection, or None."""

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Put something around every connection, now and later; None takes it off where it is idle."""

    def refuse(self, refusing: bool) -> None:
        """Have the operating system refuse dials, or not any more."""

    def note(self, connection: str, event: str, detail: str) -> None:
        """Have the trace show what has happened to a connection."""


class NetworkFault(Handle):
    """Something that is wrong with the network; see the method of `Network` that made it for its hits."""

    def __init__(
        self,
        wiring: _Wiring,
        target: str | None,
        sentence: str,
        *,
        bend: Callable[[Cable, Direction], Bend | None] = lambda _cable, _direction: None,
        mutes: bool = False,
        silences: bool = False,
        ends: Literal["fin", "reset"] | None = None,
        refuses_port: bool = False,
        unit: str = "",
    ) -> None:
        super().__init__(wiring.host)
        self._wiring = wiring
        self._target = target
        self._sentence = sentence
        self._bend = bend
        self._unit = unit
        self._noted: set[int] = set()
        self._first = 0
        self.mutes = mutes
        self.ends = ends
        self._silences = silences
        self.refuses_port = refuses_port

    @property
    def sentence(self) -> str:
        """See `Handle`."""
        return self._sentence

    @property
    def used(self) -> bool:
        """See `Handle`. Dials that the operating system refuses are seen by nobody here."""
        return self.refuses_port or super().used

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """See `Handle.wait`.

        Raises:
            FaultNotSeen: it has not happened so often.
            FaultError: nobody can tell, since the operating system refuses the dials.
        """
        if self.refuses_port:
            raise FaultError(
                "the operating system refuses these dials and tells nobody; wait for refuse(how='close')"
            )
        super().wait(n, timeout)

    def near_misses(self) -> Iterator[str]:
        """See `Handle`: the connections there are, and how far they have come."""
        for cable in self._wiring.cables:
            called = self._wiring.in_words(cable)
            if not self._is_meant(cable):
                yield f"{called} is not meant"
            elif self._unit:
                yield f"{called}: {cable.passed(self)} {self._unit} so far"

    # --- what cables ask ------------------------------------------------------------------------------

    def concerns(self, cable: Cable) -> bool:
        """Whether it bends this cable, as far as is known by now."""
        return cable.number > self._first and self._is_meant(cable)

    def _is_meant(self, cable: Cable) -> bool:
        target = self._target
        if target is None or target == cable.name:
            return True
        line = cable.line
        return line is not None and target in (line.client_name, self._wiring.host.alias(cable.name))

    def bend(self, cable: Cable, direction: Direction) -> Bend | None:
        """See `Bender`."""
        return self._bend(cable, direction)

    def hit(self, cable: Cable, count: int) -> None:
        """See `Bender`. The first time on a connection goes into the trace."""
        self._count_hit(count)
        if cable.number not in self._noted:
            self._noted.add(cable.number)
            self._wiring.note(cable, self._sentence)
            if self._silences and cable.line is not None:
                cable.line.hold_to_heartbeats()

    def spare(self, number: int) -> None:
        """Leave the cables alone whose number is not above this one."""
        self._first = number

    def spend(self) -> None:
        """It has done what it was to do: it is in force no more."""
        self._removed = True

    def _withdraw(self) -> None:
        self._wiring.withdraw(self)


class _Wiring:
    """The cables of one broker, and the faults in force. To cables: `cable.Surroundings`."""

    def __init__(self, host: NetworkHost, handles: Handles) -> None:
        self.host = host
        self.handles = handles
        self.faults: list[NetworkFault] = []
        self.now = host.now
        self.call_at = host.call_at
        self._cables: dict[Cable, list[str]] = {}
        """The cables there are, and what the trace is to say of each as soon as it knows the connection."""
        self._laid = 0
        self._wrapping = False

    @property
    def cables(self) -> tuple[Cable, ...]:
        """The cables there are, oldest first."""
        return tuple(self._cables)

    def random(self, cable: Cable, direction: str) -> Random:
        """Chance for one direction of one cable, the same in every run."""
        return Random(f"{self.host.seed}/{cable.number}/{direction}")

    # --- faults come and go ---------------------------------------------------------------------------

    def install(self, fault: NetworkFault, *, newcomers: bool = False) -> None:
        """Put a fault in force. `newcomers`: only for connections that come from now on."""
        with self.host:
            self.handles.add(fault)
            if fault.refuses_port:
                self.host.refuse(True)
            self._lay()
            if newcomers:
                fault.spare(self._laid)
            self.faults.append(fault)
            self._refresh()

    def end_now(self, fault: NetworkFault, how: Literal["fin", "reset"]) -> None:
        """End the connections that a fault is about; that is all it does."""
        with self.host:
            self.handles.add(fault)
            self._lay()
            for cable in self.cables:
                if fault.concerns(cable) and not cable.over:
                    fault.hit(cable, 1)
                    cable.end(how)
            fault.spend()
            self._take_up()

    def withdraw(self, fault: NetworkFault) -> None:
        """Take a fault away."""
        if fault in self.faults:
            self.faults.remove(fault)
        if fault.refuses_port and not any(each.refuses_port for each in self.faults):
            self.host.refuse(False)
        self._refresh()
        self._take_up()

    def _lay(self) -> None:
        """Have cables around all connections."""
        if not self._wrapping:
            self._wrapping = True
            self.host.wrap_connections(self._wrap)
        for cable in self.cables:
            self.settled(cable)

    def _take_up(self) -> None:
        """Have none any more, if there is no fault."""
        if self._wrapping and not self.faults:
            self._wrapping = False
            self.host.wrap_connections(None)

    def _wrap(self, inner: Inner, notify: Callable[[], object]) -> Cable:
        self._laid += 1
        cable = Cable(inner, notify, self, self._laid)
        self._cables[cable] = []
        self.settled(cable)
        cable.refresh()
        return cable

    def _refresh(self) -> None:
        for cable in self.cables:
            cable.refresh()

    # --- what cables ask ------------------------------------------------------------------------------

    def benders(self, cable: Cable) -> list[Bender]:
        """See `Surroundings`."""
        return [fault for fault in self.faults if fault.concerns(cable)]

    def settled(self, cable: Cable) -> None:
        """See `Surroundings`."""
        if cable.line is None:
            for linked in self.host.linked():
                if linked.name == cable.name:
                    cable.line = linked.line
                    break
        if cable.line is not None:
            self._tell(cable)

    def gone(self, cable: Cable) -> None:
        """See `Surroundings`."""
        self._tell(cable)
        self._cables.pop(cable, None)

    # --- words ----------------------------------------------------------------------------------------

    def note(self, cable: Cable, sentence: str) -> None:
        """Have the trace say that a fault acts on a connection, as soon as it has introduced it."""
        self._cables.setdefault(cable, []).append(sentence)
        if cable.line is not None:
            self._tell(cable)

    def _tell(self, cable: Cable) -> None:
        notes = self._cables.get(cable)
        if notes:
            told = tuple(notes)
            notes.clear()
            for sentence in told:
                self.host.note(cable.name, "fault", sentence)

    def in_words(self, cable: Cable) -> str:
        """A connection by all its names."""
        names = [self.host.alias(cable.name), None if cable.line is None else cable.line.client_name]
        known = " or ".join(repr(name) for name in names if name)
        return f"connection {cable.name!r}" + (f" ({known})" if known else "")


class Network:
    """What lies between the broker and its clients. Get it from `broker.faults.network`.

    Every method that breaks something returns a `NetworkFault`: `hits`, `wait`, `remove`, `optional`; as a
    context manager it is removed at the end of the block. Several faults work together. All seconds are
    seconds of the broker's clock: on a virtual clock nothing moves until it is advanced.

    Counted and cut are bytes of AMQP: under TLS what is inside of it. Directions are the broker's:
    "received" is from the client, "sent" is to the client. What goes wrong goes wrong for all connections,
    those that are open and those to come; `on` names one. Faults stay in force when the broker restarts.
    """

    def __init__(self, host: NetworkHost, handles: Handles) -> None:
        self._wiring = _Wiring(host, handles)
        self._target: str | None = None

    def on(self, connection: Any) -> Network:
        """The network of one connection only.

        Args:
            connection: its name, its short name in the trace (such as "c1"), the name that the client gives
                itself (client property `connection_name`), or one of `Broker.connections`. What a client
                calls itself is known when it logs in; what comes before that passes as it is.

        Raises:
            FaultError: this cannot name a connection.
        """
        name = connection if isinstance(connection, str) else getattr(connection, "name", None)
        if not isinstance(name, str) or not name:
            raise FaultError(
                f"a connection is named by a str, or is one of broker.connections, not {connection!r}"
            )
        network = Network.__new__(Network)
        network._wiring = self._wiring
        network._target = name
        return network

    # --- slow -----------------------------------------------------------------------------------------

    @checked
    def latency(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> NetworkFault:
        """Bytes take so long to arrive. None is lost, and none overtakes another.

        Its hits are bytes that were delayed, in both directions together.

        Args:
            seconds: on the broker's clock, one way.
            jitter: up to so many seconds more or less, drawn anew whenever bytes come; the broker's seed
                decides.
            direction: "received" (from the client), "sent" (to it) or "both".

        Raises:
            FaultError: an argument is misspelled, negative or no number.
        """
        _check_number("latency", "seconds", seconds, 0)
        _check_number("latency", "jitter", jitter, 0)
        chosen = _directions(direction)

        def bend(cable: Cable, towards: Direction) -> Latency | None:
            if towards not in chosen:
                return None
            return Latency(seconds, jitter, self._wiring.random(cable, towards))

        about = f", give or take {jitter:g} s" if jitter else ""
        return self._install(
            f"bytes {_TO_AND_FROM[direction]} {self._who} take {seconds:g} s{about}", bend=bend
        )

    @checked
    def bandwidth(self, bytes_per_second: float, direction: str = "both") -> NetworkFault:
        """At most so many bytes a second pass, on each connection and in each direction.

        Its hits are bytes that had to queue, in both directions together.

        Args:
            bytes_per_second: on the broker's clock.
            direction: "received" (from the client), "sent" (to it) or "both".

        Raises:
            FaultError: an argument is misspelled, not above zero or no number.
        """
        _check_number("bandwidth", "bytes_per_second", bytes_per_second, 0, open_=True)
        chosen = _directions(direction)

        def bend(_cable: Cable, towards: Direction) -> Bandwidth | None:
            return Bandwidth(bytes_per_second) if towards in chosen else None

        return self._install(
            f"at most {bytes_per_second:g} bytes a second go {_TO_AND_FROM[direction]} {self._who}",
            bend=bend,
        )

    @checked
    def slice(self, octets: int = 1, pause: float = 0.0, direction: str = "both") -> NetworkFault:
        """Bytes come in small pieces: to the client each in a write of its own.

        Its hits are pieces, in both directions together.

        Args:
            octets: how long a piece may be.
            pause: seconds on the broker's clock between one piece and the next.
            direction: "received" (from the client), "sent" (to it) or "both".

        Raises:
            FaultError: an argument is misspelled, negative or no number.
        """
        _check_count("slice", "octets", octets, 1)
        _check_number("slice", "pause", pause, 0)
        chosen = _directions(direction)

        def bend(_cable: Cable, towards: Direction) -> Slices | None:
            return Slices(octets, pause) if towards in chosen else None

        pauses = f", with {pause:g} s between them" if pause else ""
        size = "single bytes" if octets == 1 else f"pieces of {octets} bytes"
        return self._install(
            f"what goes {_TO_AND_FROM[direction]} {self._who} comes in {size}{pauses}", bend=bend
        )

    # --- ends -----------------------------------------------------------------------------------------

    @checked
    def cut_after(
        self,
        bytes: int | None = None,
        frames: int | None = None,
        how: str = "fin",
        direction: str = "sent",
    ) -> NetworkFault:
        """End each connection after exactly so many bytes or frames, counted from now on, or from its start.

        Its hits are connections that were cut. The one way ends with the other: what the broker would have
        answered to the last bytes received does not go out. Slow bytes count when they have arrived.

        Args:
            bytes: bytes that still pass; also amid a frame.
            frames: whole frames that still pass; the protocol header is none.
            how: "fin" closes in order, "reset" by a TCP reset, "silence" says nothing to either side: see
                `silence`.
            direction: "sent" counts what goes to the client, "received" what comes from it.

        Raises:
            FaultError: an argument is misspelled, negative or no number, or there are both, or none.
        """
        if (bytes is None) == (frames is None):
            raise FaultError("say after what to cut: cut_after(bytes=100), or cut_after(frames=3)")
        if bytes is not None:
            _check_count("cut_after", "bytes", bytes, 0)
        else:
            _check_count("cut_after", "frames", frames, 0)
        _check_word("how", how, _ENDS)
        if direction == "both":
            raise FaultError("cut_after() counts one direction: direction='sent', or 'received'")
        (chosen,) = _directions(direction)

        def bend(cable: Cable, towards: Direction) -> Cut | None:
            return Cut(bytes, frames, how, cable.protocol) if towards == chosen else None  # type: ignore[arg-type]

        unit = "bytes" if bytes is not None else "frames"
        return self._install(
            f"{self._who_it_is} {_ENDS[how]} after {bytes if frames is None else frames} {unit} {direction}",
            bend=bend,
            silences=how == "silence",
            unit=f"{unit} {direction}",
        )

    @checked
    def reset(self) -> NetworkFault:
        """End every connection now by a TCP reset: clients get ECONNRESET.

        A socketpair knows no reset: there it is an end of file. Its hits are connections that were reset; it
        does not stay in force.
        """
        return self._end_now("reset")

    @checked
    def disconnect(self) -> NetworkFault:
        """End every connection now, in order but without a word: clients read an end of file.

        Its hits are connections that were ended; it does not stay in force.
        """
        return self._end_now("fin")

    @checked
    def silence(self) -> NetworkFault:
        """Nothing goes in either direction, and nobody is told: connections are half-open.

        What the broker does meanwhile, such as to give a client up for want of heartbeats, the client does
        not see; nor does the broker see that a client has gone. Heartbeats count on these connections from
        now on, whatever the broker's clock. When the handle is removed, all that was held flows. Connections
        end as usual when the broker stops or restarts.

        Its hits are connections that fell silent.
        """
        return self._install(
            f"nothing goes to or from {self._who}, and nobody is told", mutes=True, silences=True
        )

    # --- a broker that does not answer ------------------------------------------------------------------

    @checked
    def hang(self) -> NetworkFault:
        """The broker hangs: it lets clients connect, reads nothing and says nothing.

        Its hits are connections that hang. When the handle is removed it goes on where it stopped, but gives
        up those whose time is over by its clock, such as that for a handshake.
        """
        return self._install(f"the broker hangs: nothing goes to or from {self._who}", mutes=True)

    @checked
    def refuse(self, how: str = "port") -> NetworkFault:
        """Let nobody in; who is connected stays so.

        Its hits are connections that were ended. Dials that the operating system refuses are not seen here,
        so those are not counted, nor waited for; and sockets of `Broker.connect` are let in, since they do
        not dial.

        Args:
            how: "port" has the operating system refuse (ECONNREFUSED); "close" and "reset" take the
                connection and end it at once (with TLS, after its handshake).

        Raises:
            FaultError: an argument is misspelled, or this is the network of one connection.
        """
        _check_word("how", how, _REFUSALS)
        if self._target is not None:
            raise FaultError(
                "nobody knows the name of who dials; use network.refuse(), or on(...).reset() later on"
            )
        if how == "port":
            return self._install(_REFUSALS[how], refuses_port=True)
        ends: Literal["fin", "reset"] = "fin" if how == "close" else "reset"
        return self._install(_REFUSALS[how], ends=ends, newcomers=True)

    # --- all of them ------------------------------------------------------------------------------------

    @property
    def faults(self) -> tuple[NetworkFault, ...]:
        """What is in force here, oldest first."""
        return tuple(
            fault for fault in self._wiring.faults if self._target is None or fault._target == self._target
        )

    def restore(self) -> None:
        """Remove all of it; what was held flows."""
        with self._wiring.host:
            for fault in reversed(self.faults):
                fault.remove()

    def silence_line(self, line: Any) -> NetworkFault:
        """`silence` for one connection, given as its protocol has it; nobody complains if it never happens."""
        fault = self.on(line.name).silence()
        return fault.optional()

    # --- helpers ----------------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return "all clients" if self._target is None else f"connection {self._target!r}"

    @property
    def _who_it_is(self) -> str:
        return "every connection is" if self._target is None else f"connection {self._target!r} is"

    def _install(self, sentence: str, *, newcomers: bool = False, **facts: Any) -> NetworkFault:
        fault = NetworkFault(self._wiring, self._target, sentence, **facts)
        self._wiring.install(fault, newcomers=newcomers)
        return fault

    def _end_now(self, how: Literal["fin", "reset"]) -> NetworkFault:
        fault = NetworkFault(self._wiring, self._target, f"{self._who_it_is} {_ENDS[how]}")
        self._wiring.end_now(fault, how)
        return fault

    def __repr__(self) -> str:
        return f"<Network of {self._who} faults={len(self.faults)}>"


def _directions(direction: str) -> tuple[str, ...]:
    _check_word("direction", direction, _DIRECTIONS)
    return _DIRECTIONS[direction]


def _check_word(name: str, value: object, known: Iterable[str]) -> None:
    known = tuple(known)
    if value not in known:
        words = " or ".join(map(repr, known))
        hint = near_match(value, known)
        raise FaultError(f"{name} is {words}, not {value!r}{hint if 'mean' in hint else ''}")


def _check_number(call: str, name: str, value: object, least: float, *, open_: bool = False) -> None:
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= least
    )
    if not fits or (open_ and value == least):
        above = f"above {least:g}" if open_ else f"from {least:g} on"
        raise FaultError(f"{call}() takes {name} as a number {above}, not {value!r}")


def _check_count(call: str, name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise FaultError(f"{call}() takes {name} as a whole number from {least} on, not {value!r}")
