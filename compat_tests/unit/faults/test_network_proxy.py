"""Proxies without sockets: whatever the toxics, bytes stay the same and in order, and none is lost.

The connection inside is played by hand, and so are the transport (`Transport`) and the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.tools.matrix import cases
from fakeamqp.faults import Faults
from fakeamqp.faults.errors import FaultError, UnusedFault
from fakeamqp.faults.network import Network
from fakeamqp.faults.network_proxy import NetworkProxy
from fakeamqp.faults.shapers import Bandwidth, Latency
from fakeamqp.model.timers import Timers

MIB = 1024 * 1024
HEADER = b"AMQP\x00\x00\x09\x01"


def a_frame(payload: bytes, kind: int = 1) -> bytes:
    return bytes([kind, 0, 1]) + len(payload).to_bytes(4, "big") + payload + b"\xce"


class ManualClock:
    holds_peers = holds_newcomers = True

    def __init__(self) -> None:
        self.instant = 0.0
        #: Whether time passes while one looks at the clock, as it does in reality.
        self.step = 0.0

    def now(self) -> float:
        self.instant += self.step
        return self.instant

    def time(self) -> float:
        return self.instant

    def heading(self) -> float:
        return self.instant


@dataclass(eq=False)
class Inner:
    """A connection that says what it is told to say, and remembers what it hears."""

    name: str = "here -> there"
    finished: bool = False
    reading: bool = True
    aborted: bool = False
    resets: bool = False
    pieces: list[bytes] = field(default_factory=list)
    output: list[bytes] = field(default_factory=list)
    unsent: int = 0
    eofs: int = 0
    notify: Callable[[], object] = lambda: None
    end_turn: Callable[[], object] = lambda: None

    @property
    def received(self) -> bytes:
        return b"".join(self.pieces)

    def receive(self, data: bytes) -> None:
        assert not self.eofs, "bytes after the end"
        self.pieces.append(data)

    def receive_eof(self) -> None:
        self.eofs += 1

    def pending(self) -> list[bytes]:
        output, self.output = self.output, []
        return output

    def sent(self, count: int) -> None:
        self.unsent -= count

    def next_deadline(self) -> float | None:
        return None

    def say(self, *pieces: bytes) -> None:
        self.output += pieces
        self.unsent += sum(map(len, pieces))
        self.notify()
        self.end_turn()


@dataclass
class Port:
    name: str
    client_name: str | None = None
    held_to_heartbeats: bool = False

    def enforce_heartbeats(self) -> None:
        self.held_to_heartbeats = True


@dataclass
class Connected:
    name: str
    fault_port: Port


class Transport:
    """Does with a proxy what `runtime.connection_driver.ConnectionDriver` does, and keeps each write."""

    def __init__(self, proxy: NetworkProxy | None = None) -> None:
        self.proxy: Any = proxy
        self.dirty = False
        self.writes: list[bytes] = []
        self.state = "open"

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def notify(self, connection: object = None) -> None:
        self.proxy.notified(connection) if isinstance(self.proxy, NetworkProxy) else None
        self.dirty = True

    def flush(self) -> None:
        """Write until there is nothing more to write for now."""
        while self.dirty and self.state != "closed":
            self.dirty = False
            if not self.proxy.aborted:
                data = b"".join(self.proxy.pending())
                if data:
                    self.writes.append(data)
                    self.proxy.sent(len(data))
            if self.proxy.aborted:
                self.close("reset" if self.proxy.resets else "closed")
            elif self.proxy.finished and not self.dirty:
                self.close("reset" if self.proxy.resets else "fin")

    def close(self, how: str) -> None:
        self.state = how
        self.proxy.receive_eof()
        self.dirty = False


class Context:
    """A broker with its clock and connections, as the network sees it."""

    seed = 7

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.now = self.clock.now
        self.connected: list[Connected] = []
        self.notes: list[tuple[str, str, str]] = []
        self.refusing = False
        self.wrap: Any = None
        self.plugs: list[tuple[Inner, Transport]] = []
        self.faults = Faults(self)
        self.network = self.faults.network
        self.depth = 0

    def __enter__(self) -> Context:
        self.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self.flush()

    def next_tap(self) -> None:
        return None

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Any:
        return self.timers.call_at(due, callback, label)

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        return bool(predicate())

    def span(self, timeout: float) -> str:
        return f"{timeout:g} s"

    def report(self) -> str:
        return ""

    def connections(self) -> list[Connected]:
        return self.connected

    def alias(self, name: str) -> str | None:
        return next((f"c{n}" for n, (inner, _) in enumerate(self.plugs, 1) if inner.name == name), None)

    def wrap_connections(self, wrap: Any) -> None:
        self.wrap = wrap
        for inner, transport in self.plugs:
            if wrap is not None and transport.proxy is inner:
                transport.proxy = wrap(inner, transport.notify)
        self.flush()

    def refuse(self, refusing: bool) -> None:
        self.refusing = refusing

    def note(self, connection: str, event: str, detail: str) -> None:
        self.notes.append((connection, event, detail))

    # --- by hand

    def plug(
        self, name: str = "here -> there", client_name: str | None = None, *, connected: bool = True
    ) -> tuple[Inner, Transport]:
        """A client connects; `connected`: it has said what it speaks."""
        inner = Inner(name)
        transport = Transport()
        inner.notify, inner.end_turn = transport.notify, self.flush
        transport.proxy = inner
        self.plugs.append((inner, transport))
        if connected:
            self.connected.append(Connected(name, Port(name, client_name)))
        if self.wrap is not None:
            transport.proxy = self.wrap(inner, transport.notify)
        self.flush()
        return inner, transport

    def flush(self) -> None:
        """The turn ends."""
        if self.depth:
            return
        for _, transport in self.plugs:
            transport.flush()
            if self.wrap is None and isinstance(transport.proxy, NetworkProxy):
                transport.proxy = transport.proxy.unwrap() or transport.proxy

    def advance(self, seconds: float) -> None:
        """Time passes, and stops at every timer on the way."""
        end = self.clock.instant + seconds
        while (due := self.timers.next_due()) is not None and due <= end + 1e-9:
            self.clock.instant = max(self.clock.instant, due)
            self.timers.run_due()
        self.clock.instant = max(self.clock.instant, end)
        self.flush()

    def send(self, transport: Transport, data: bytes) -> None:
        """The client sends, and the runtime reads as long as the connection lets it."""
        assert transport.proxy.reading
        transport.proxy.receive(data)
        self.flush()


@pytest.fixture
def context() -> Context:
    return Context()


# --- nothing is changed, lost or overtaken -----------------------------------------------------------


INSTALLS: dict[str, Callable[[Network, Any], Any]] = {
    "latency": lambda network, draw: network.latency(
        draw(st.sampled_from([0, 0.1, 1.0])), jitter=draw(st.sampled_from([0, 0.05, 3.0]))
    ),
    "bandwidth": lambda network, draw: network.bandwidth(draw(st.sampled_from([0.5, 3, 7.3, 100, 1e6]))),
    "slice": lambda network, draw: network.slice(
        draw(st.integers(1, 20)), pause=draw(st.sampled_from([0, 0.01, 1]))
    ),
    "silence": lambda network, draw: network.silence(),
    "hang": lambda network, draw: network.hang(),
}


@given(data=st.data())
def test_bytes_arrive_unchanged_and_in_order_with_any_network_faults(data: st.DataObject) -> None:
    context = Context()
    inner, transport = context.plug()
    said = heard = b""
    installed: list[Any] = []
    steps = st.sampled_from(["install", "remove", "say", "send", "advance"])
    for step in data.draw(st.lists(steps, max_size=30), "steps"):
        if step == "install":
            name = data.draw(st.sampled_from(sorted(INSTALLS)), "fault")
            installed.append(INSTALLS[name](context.network, data.draw))
        elif step == "remove" and installed:
            installed.pop(data.draw(st.integers(0, len(installed) - 1), "which")).remove()
        elif step == "say":
            pieces = data.draw(st.lists(st.binary(min_size=1, max_size=30), max_size=4), "said")
            said += b"".join(pieces)
            inner.say(*pieces)
        elif step == "send" and transport.proxy.reading:
            octets = data.draw(st.binary(min_size=1, max_size=40), "sent")
            heard += octets
            context.send(transport, octets)
        elif step == "advance":
            context.advance(data.draw(st.sampled_from([0.01, 0.3, 1, 30]), "seconds"))
        assert said.startswith(transport.written)
        assert heard.startswith(inner.received)
        assert inner.unsent == len(said) - len(transport.written)
    context.network.restore()
    assert (transport.written, inner.received) == (said, heard)
    assert transport.proxy is inner, "the proxy has come off"
    assert len(context.timers) == 0


@given(
    octets=st.binary(min_size=1, max_size=300),
    sizes=st.lists(st.integers(1, 50), min_size=1),
    n=st.integers(1, 60),
)
def test_slices_are_separate_writes_of_the_given_size(octets: bytes, sizes: list[int], n: int) -> None:
    context = Context()
    inner, transport = context.plug()
    context.network.slice(n)
    inner.say(octets)
    assert [len(each) for each in transport.writes] == [n] * (len(octets) // n) + [len(octets) % n] * (
        len(octets) % n > 0
    )
    context.send(transport, octets)
    assert [len(each) for each in inner.pieces] == [len(each) for each in transport.writes]
    assert inner.received == transport.written == octets


# --- slow ------------------------------------------------------------------------------------------


def test_latency_delays_bytes_by_its_seconds(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.latency(2.0)
    inner.say(b"down")
    context.send(transport, b"up")
    context.advance(1.0)
    inner.say(b"later")
    context.advance(0.999)
    inner.say(b" still")
    context.send(transport, b" again")
    assert (transport.written, inner.received) == (b"", b"")
    context.advance(0.001)
    assert (transport.written, inner.received) == (b"down", b"up")
    assert inner.unsent == 11
    context.advance(1.0)
    assert transport.written == b"downlater"
    assert fault.hits == 23


def test_proxy_has_one_timer_for_the_earliest_due_bytes(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(5, direction="received")
    context.network.latency(1, direction="sent")
    context.send(transport, b"up")
    inner.say(b"down")
    assert (len(context.timers), context.timers.next_due()) == (1, 1.0)


@pytest.mark.parametrize(("direction", "expected"), [("sent", (b"", b"up")), ("received", (b"down", b""))])
def test_latency_in_one_direction_does_not_delay_the_opposite_direction(
    context: Context, direction: str, expected: tuple[bytes, bytes]
) -> None:
    inner, transport = context.plug()
    context.network.latency(1, direction=direction)
    inner.say(b"down")
    context.send(transport, b"up")
    assert (transport.written, inner.received) == expected


def test_latency_of_an_answer_counts_from_its_own_time_within_a_clock_advance(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(1.0)
    context.timers.call_at(5.0, lambda: inner.say(b"at five"))
    context.advance(6.0)
    assert transport.written == b"at five"


def test_jitter_of_latency_is_drawn_by_the_seed() -> None:
    def arrivals(seed: int) -> list[float]:
        context = Context()
        context.seed = seed
        inner, transport = context.plug()
        context.network.latency(1.0, jitter=0.5, direction="received")
        times = []
        for _ in range(5):
            before = context.clock.instant
            context.send(transport, b"x")
            due = context.timers.next_due()
            assert due is not None
            times.append(round(due - before, 6))
            context.advance(due - before)
        assert inner.received == b"xxxxx"
        return times

    assert arrivals(1) == arrivals(1)
    assert arrivals(1) != arrivals(2)
    assert arrivals(1)[:2] == [0.738787, 0.675467], "the same in every release"
    assert all(0.5 <= each <= 1.5 for each in arrivals(1))
    assert len(set(arrivals(1))) == 5


def test_bandwidth_limits_the_bytes_per_second(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.bandwidth(100)
    inner.say(b"x" * 250)
    for seconds, expected in [(0, 0), (1, 100), (0.5, 150), (1, 250), (10, 250)]:
        context.advance(seconds)
        assert len(transport.written) == expected
    assert fault.hits == 250
    # Nothing is saved up while nothing is sent.
    inner.say(b"y" * 60)
    context.advance(0.5)
    assert len(transport.written) == 300
    # What comes behind others takes its turn.
    inner.say(b"z" * 90)
    context.advance(0.5)
    assert len(transport.written) == 350
    context.advance(0.5)
    assert len(transport.written) == 400


def test_slices_are_sent_with_the_given_pause_between_them(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.slice(2, pause=1.0)
    inner.say(b"abcde")
    context.send(transport, b"fgh")
    assert (transport.writes, inner.pieces) == ([b"ab"], [b"fg"])
    context.advance(1)
    assert (transport.writes, inner.pieces) == ([b"ab", b"cd"], [b"fg", b"h"])
    context.advance(1)
    assert transport.writes == [b"ab", b"cd", b"e"]
    assert fault.hits == 5


def test_pause_between_slices_ends_with_the_last_slice_fault(context: Context) -> None:
    inner, transport = context.plug()
    faults = [context.network.slice(2, pause=10.0), context.network.slice(3, pause=10.0)]
    inner.say(b"abcde")
    context.send(transport, b"fghi")
    faults[1].remove()
    assert (transport.written, inner.received) == (b"ab", b"fg")
    faults[0].remove()
    assert (transport.written, inner.received) == (b"abcde", b"fghi")


@pytest.mark.parametrize("step", [0.00003, 0.0001, 0.0004])
def test_no_byte_is_lost_while_the_clock_moves_during_calls(context: Context, step: float) -> None:
    inner, transport = context.plug()
    context.clock.step = step
    context.network.slice(3, pause=0.0002)
    context.network.latency(0.0001)
    context.network.bandwidth(100_000)
    inner.say(b"abcdefghijklmnopqrst")
    context.send(transport, b"ABCDEFGHIJKLMNOPQRST")
    for _ in range(200):
        context.advance(0.0001)
    assert transport.writes[0] == b"abc"
    assert (transport.written, inner.received) == (b"abcdefghijklmnopqrst", b"ABCDEFGHIJKLMNOPQRST")


def test_latency_bandwidth_slices_and_a_cut_work_together(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(10)
    context.network.bandwidth(1)
    context.network.slice(2)
    context.network.cut_after(bytes=5)
    inner.say(b"abcdefgh")
    context.advance(12)
    assert transport.written == b"ab"
    context.advance(3)
    assert (transport.written, transport.state, inner.eofs) == (b"abcde", "fin", 1)


def test_removed_latency_passes_its_bytes_in_order(context: Context) -> None:
    inner, transport = context.plug()
    slow = context.network.latency(5)
    inner.say(b"first ")
    context.send(transport, b"one ")
    slower = context.network.latency(50)
    inner.say(b"second")
    context.send(transport, b"two")
    slow.remove()
    assert transport.written == b""
    slower.remove()
    assert (transport.written, inner.received) == (b"first second", b"one two")


# --- back-pressure -----------------------------------------------------------------------------------


def test_bytes_held_by_several_faults_arrive_in_order_before_eof(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(5)
    context.network.bandwidth(1)
    context.send(transport, b"abc")
    context.advance(6)
    context.send(transport, b"de")
    assert inner.received == b"a"
    transport.proxy.receive_eof()
    assert (inner.received, inner.eofs) == (b"abcde", 1)


def test_proxy_with_held_bytes_is_not_removed(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.latency(5)
    inner.say(b"down")
    with context:
        fault.remove()
        assert transport.proxy.unwrap() is None
    assert (transport.written, transport.proxy) == (b"down", inner)


def test_connection_gets_no_more_bytes_within_its_receive_call(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.slice(1)
    busy = False

    def receive(data: bytes) -> None:
        nonlocal busy
        assert not busy
        busy = True
        inner.pieces.append(data)
        fault.remove()
        busy = False

    inner.receive = receive  # type: ignore[method-assign]
    context.send(transport, b"abc")
    assert inner.pieces == [b"a", b"bc"]


def test_reading_stops_when_a_mebibyte_is_held(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(1)
    context.send(transport, b"x" * (MIB - 1))
    context.send(transport, b"x")
    assert not transport.proxy.reading
    transport.dirty = False
    context.timers.clock.instant = 1.0  # type: ignore[attr-defined]
    context.timers.run_due()
    assert transport.proxy.reading and transport.dirty, "the runtime is told to read on"
    assert len(inner.received) == MIB


def test_proxy_of_a_connection_that_does_not_read_does_not_read(context: Context) -> None:
    inner, transport = context.plug()
    context.network.slice(1)
    inner.reading = False
    assert not transport.proxy.reading


# --- cuts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("pieces", [[b"abcde", b"fghij"], [b"a"] * 10, [b"abcdefghij"]])
def test_cut_passes_exactly_the_given_number_of_bytes(
    context: Context, how: str, count: int, pieces: list[bytes]
) -> None:
    inner, transport = context.plug()
    inner.say(b"before")
    fault = context.network.cut_after(bytes=count, how=how)
    for piece in pieces:
        inner.say(piece)
    assert transport.written == b"before" + b"".join(pieces)[:count]
    cut = count <= 10
    assert (transport.state, inner.eofs, fault.hits) == ((how, 1, 1) if cut else ("open", 0, 0))


@pytest.mark.parametrize("count", range(6))
def test_cut_of_received_bytes_passes_the_given_number_and_no_answer(context: Context, count: int) -> None:
    inner, transport = context.plug()
    fault = context.network.cut_after(bytes=count, direction="received")
    transport.proxy.receive(b"abcde")
    inner.say(b"an answer")
    assert (inner.received, inner.eofs, fault.hits) == (b"abcde"[:count], 1, 1)
    assert (transport.written, transport.state) == (b"", "fin")


def test_a_cut_counts_on_each_connection_from_installation_or_its_start(context: Context) -> None:
    first, on_first = context.plug("one")
    first.say(b"not counted")
    fault = context.network.cut_after(bytes=3)
    second, on_second = context.plug("two")
    for inner in (first, second):
        inner.say(b"ab")
    assert fault.hits == 0
    second.say(b"cd")
    assert (on_first.state, on_second.state, on_second.written) == ("open", "fin", b"abc")
    assert fault.hits == 1


@given(
    frames=st.lists(st.binary(max_size=20), min_size=1, max_size=6),
    count=st.integers(0, 6),
    cuts=st.lists(st.integers(1, 9)),
    header=st.booleans(),
    rest=st.sampled_from([b"", b"\x00rest of a frame\xce", b"\xce"]),
)
def test_cut_counts_frames_in_pieces_of_any_size(
    frames: list[bytes], count: int, cuts: list[int], header: bool, rest: bytes
) -> None:
    context = Context()
    inner, transport = context.plug()
    fault = context.network.cut_after(frames=count, direction="received")
    start = (HEADER if header else b"") + (b"" if header else rest)
    stream = start + b"".join(map(a_frame, frames))
    position = 0
    for size in [*cuts, len(stream)]:
        if transport.state == "open" and position < len(stream):
            context.send(transport, stream[position : position + size])
            position += size
    passed = start + b"".join(map(a_frame, frames[:count]))
    if count <= len(frames):
        assert fault.hits == 1
        assert inner.received == (passed if count else b"")
    else:
        assert (fault.hits, inner.received) == (0, stream)


def test_cut_does_not_count_bytes_between_frames_as_a_frame(context: Context) -> None:
    inner, transport = context.plug()
    context.network.cut_after(frames=2, direction="received")
    passed = a_frame(b"1") + b"\x00no frame\xce" + a_frame(b"2")
    context.send(transport, passed + a_frame(b"3"))
    assert inner.received == passed


def test_reset_after_a_cut_waits_for_the_bytes_that_pass(context: Context) -> None:
    inner, transport = context.plug()
    context.network.cut_after(bytes=3, how="reset")
    inner.output = [b"abcdef"]
    proxy = transport.proxy
    assert proxy.pending() == [b"abc"]
    assert (proxy.finished, proxy.aborted, proxy.resets) == (True, False, True)
    assert proxy.reading, "so that the end of the client is noticed"


def test_silent_cut_holds_the_remaining_bytes_until_removed(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.cut_after(bytes=3, how="silence")
    inner.say(b"abcdef")
    assert (transport.written, transport.state, inner.eofs) == (b"abc", "open", 0)
    assert not transport.proxy.reading
    assert context.connected[0].fault_port.held_to_heartbeats
    fault.remove()
    assert transport.written == b"abcdef"


# --- ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "state"), [("reset", "reset"), ("disconnect", "fin")])
def test_reset_and_disconnect_end_the_named_connection_at_once(
    context: Context, call: str, state: str
) -> None:
    inner, transport = context.plug("one", "billing")
    _, other = context.plug("two")
    fault = getattr(context.network.on("billing"), call)()
    assert (transport.state, inner.eofs, fault.hits) == (state, 1, 1)
    assert fault.removed
    assert other.state == "open"
    assert context.network.faults == ()
    later, transport = context.plug("three", "billing")
    assert (transport.state, later.eofs, transport.proxy) == ("open", 0, later)


@pytest.mark.parametrize("how", ["fin", "reset"])
def test_connection_gets_eof_after_its_receive_call_returns(context: Context, how: Any) -> None:
    inner, transport = context.plug()
    context.network.slice(2)
    eofs = []

    def receive(data: bytes) -> None:
        transport.proxy.end(how)
        eofs.append(inner.eofs)

    inner.receive = receive  # type: ignore[method-assign]
    context.send(transport, b"abcd")
    assert (eofs, inner.eofs, transport.state) == ([0], 1, how)


def test_delayed_bytes_to_the_broker_arrive_before_eof(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(5)
    context.send(transport, b"last words")
    transport.proxy.receive_eof()
    transport.proxy.receive_eof()
    assert (inner.received, inner.eofs) == (b"last words", 1)
    assert len(context.timers) == 0


@pytest.mark.parametrize("end", ["finished", "aborted"])
def test_delayed_bytes_to_the_client_are_sent_before_the_end(context: Context, end: str) -> None:
    inner, transport = context.plug()
    context.network.latency(5)
    inner.say(b"goodbye")
    setattr(inner, end, True)
    inner.notify()
    context.flush()
    assert transport.state == "open"
    context.advance(5)
    assert transport.written == b"goodbye"
    assert transport.state == {"finished": "fin", "aborted": "closed"}[end]


@pytest.mark.parametrize("direction", ["sent", "received"])
def test_proxy_is_not_finished_before_its_last_output_has_passed(context: Context, direction: str) -> None:
    inner, transport = context.plug()
    context.network.latency(5, direction=direction)
    inner.output, inner.finished = [b"goodbye"], True
    delayed = direction == "sent"
    assert transport.proxy.finished is not delayed
    assert transport.proxy.pending() == ([] if delayed else [b"goodbye"])


# --- silence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["silence", "hang"])
def test_silence_and_hang_hold_all_bytes_until_removed(context: Context, call: str) -> None:
    inner, transport = context.plug()
    fault = getattr(context.network, call)()
    inner.say(b"down")
    context.advance(100)
    assert (transport.written, transport.proxy.reading, inner.unsent, fault.hits) == (b"", False, 4, 1)
    fault.remove()
    assert transport.proxy.reading
    assert (transport.written, inner.unsent) == (b"down", 0)


@pytest.mark.parametrize("end", ["finished", "aborted"])
def test_silenced_client_does_not_see_the_end_of_its_connection(context: Context, end: str) -> None:
    inner, transport = context.plug()
    fault = context.network.silence()
    inner.say(b"connection.close")
    setattr(inner, end, True)
    inner.notify()
    context.flush()
    assert (transport.state, transport.written) == ("open", b"")
    assert transport.proxy.reading, "so that the end of the client is noticed"
    context.send(transport, b"to a connection that is no more")
    fault.remove()
    assert inner.received == b""
    assert transport.state == {"finished": "fin", "aborted": "closed"}[end]
    assert transport.written == (b"connection.close" if end == "finished" else b"")


def test_bytes_from_before_a_silence_are_sent(context: Context) -> None:
    inner, transport = context.plug()
    with context:
        inner.say(b"before")
        fault = context.network.silence()
        inner.say(b" after")
    assert transport.written == b"before"
    fault.remove()
    assert transport.written == b"before after"


def test_silence_removed_at_once_loses_no_bytes(context: Context) -> None:
    inner, transport = context.plug()
    with context:
        inner.say(b"before")
        context.network.silence().remove()
        inner.say(b" after")
    assert (transport.written, transport.proxy) == (b"before after", inner)


def test_output_from_before_a_silence_is_delayed_by_a_later_latency(context: Context) -> None:
    inner, transport = context.plug()
    with context:
        inner.say(b"before")
        silence = context.network.silence()
        context.network.latency(1)
        silence.remove()
    assert transport.written == b""
    context.advance(1)
    assert transport.written == b"before"


def test_silence_enforces_heartbeats_and_hang_does_not(context: Context) -> None:
    context.plug("one", "billing")
    context.plug("two", "shipping")
    context.network.on("shipping").hang()
    context.network.on("billing").silence()
    assert [each.fault_port.held_to_heartbeats for each in context.connected] == [True, False]


def test_bytes_pass_after_both_of_two_silences_are_removed(context: Context) -> None:
    inner, transport = context.plug()
    first, second = context.network.silence(), context.network.hang()
    inner.say(b"x")
    first.remove()
    assert transport.written == b""
    second.remove()
    assert transport.written == b"x"


def test_delayed_bytes_are_held_during_a_silence(context: Context) -> None:
    inner, transport = context.plug()
    context.network.latency(1)
    inner.say(b"down")
    context.send(transport, b"up")
    silence = context.network.silence()
    context.advance(5)
    assert (transport.written, inner.received) == (b"", b"")
    silence.remove()
    assert (transport.written, inner.received) == (b"down", b"up")


# --- for one connection only ---------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["two", "c2", "billing", Connected("two", Port("two"))])
def test_network_fault_finds_a_connection_by_each_of_its_names(context: Context, said: object) -> None:
    first, on_first = context.plug("one", "shipping")
    second, on_second = context.plug("two", "billing")
    context.network.on(said).silence()
    for inner in (first, second):
        inner.say(b"x")
    assert (on_first.written, on_second.written) == (b"x", b"")


def test_network_fault_applies_after_a_client_has_told_its_name(context: Context) -> None:
    inner, transport = context.plug("one")
    fault = context.network.on("billing").latency(1)
    inner.say(b"at once ")
    context.connected[0].fault_port.client_name = "billing"
    inner.say(b"later")
    assert (transport.written, fault.hits) == (b"at once ", 5)
    context.advance(1)
    assert transport.written == b"at once later"


# --- handles -------------------------------------------------------------------------------------------


def test_port_is_refused_until_the_last_refusal_is_removed(context: Context) -> None:
    first, second = context.network.refuse(), context.network.refuse("port")
    assert context.refusing
    first.remove()
    assert context.refusing
    second.remove()
    assert not context.refusing
    assert first.used
    with pytest.raises(FaultError, match="cannot count them"):
        first.wait()


@pytest.mark.parametrize(("how", "state"), [("close", "fin"), ("reset", "reset")])
def test_refusal_ends_new_connections_and_keeps_existing_connections(
    context: Context, how: str, state: str
) -> None:
    inner, transport = context.plug("one")
    with context.network.refuse(how) as fault:
        refused, on_refused = context.plug("two")
        assert (on_refused.state, refused.eofs, fault.hits) == (state, 1, 1)
        assert (transport.state, inner.eofs) == ("open", 0)
    assert context.plug("three")[1].state == "open"


def test_trace_notes_a_network_fault_once_per_connection(context: Context) -> None:
    inner, transport = context.plug("one")
    fault = context.network.latency(1)
    for _ in range(3):
        inner.say(b"x")
        context.send(transport, b"y")
        context.advance(1)
    assert context.notes == [("one", "fault", str(fault))]


def test_trace_notes_a_network_fault_when_the_connection_is_known(context: Context) -> None:
    context.network.latency(1)
    _, transport = context.plug("one")
    lines, context.connected = context.connected, []
    transport.proxy.port = None
    context.send(transport, HEADER)
    assert context.notes == []
    context.connected = lines
    context.advance(1)
    assert [name for name, *_ in context.notes] == ["one"]


def test_trace_notes_a_refused_connection(context: Context) -> None:
    fault = context.network.refuse("close")
    context.plug("one", connected=False)
    assert context.notes == [("one", "fault", str(fault))]


def test_proxy_is_removed_with_the_last_network_fault(context: Context) -> None:
    inner, transport = context.plug()
    fault = context.network.slice(1)
    assert isinstance(transport.proxy, NetworkProxy)
    fault.remove()
    assert transport.proxy is inner
    assert context.network._registry.proxies == ()


def test_restore_of_one_connection_keeps_general_network_faults(context: Context) -> None:
    context.plug("one", "billing")
    general = context.network.latency(1)
    context.network.on("billing").slice(1)
    assert [str(each) for each in context.network.on("billing").faults] == [
        "the stream to and from connection 'billing' comes in single bytes"
    ]
    context.network.on("billing").restore()
    assert context.network.faults == (general,)
    context.network.restore()
    assert context.network.faults == ()


def test_verify_reports_unused_network_faults_with_their_near_misses(context: Context) -> None:
    inner, _ = context.plug("one", "biling")
    context.network.on("billing").reset()
    context.network.on("shipping").latency(1).optional()
    context.network.cut_after(bytes=100)
    inner.say(b"x" * 40)
    with pytest.raises(UnusedFault) as caught:
        context.faults.verify()
    assert str(caught.value).splitlines() == [
        "2 faults were installed and never happened (call .optional() on those that need not happen):",
        "  - connection 'billing' is reset",
        "    near miss: connection 'one' ('c1' or 'biling') is another connection",
        "  - every connection is closed after 100 bytes sent",
        "    near miss: connection 'one' ('c1' or 'biling'): 40 bytes sent so far",
        "see https://fakeamqp.readthedocs.io/troubleshooting/#the-fault-never-fired",
    ]
    inner.say(b"x" * 60)
    with pytest.raises(UnusedFault, match="a fault was"):
        context.faults.verify()
    context.faults.clear()
    context.faults.verify()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda n: n.latency(0.2), "bytes to and from all clients take 0.2 s"),
        (
            lambda n: n.on("a").latency(1, jitter=0.5, direction="sent"),
            "bytes to connection 'a' take 1 s, give or take 0.5 s",
        ),
        (
            lambda n: n.bandwidth(1000, direction="received"),
            "at most 1000 bytes a second go from all clients",
        ),
        (
            lambda n: n.slice(5, pause=1),
            "the stream to and from all clients comes in pieces of 5 bytes, with 1 s between them",
        ),
        (lambda n: n.cut_after(frames=2, how="reset"), "every connection is reset after 2 frames sent"),
        (lambda n: n.on("a").disconnect(), "connection 'a' is closed"),
        (lambda n: n.silence(), "no bytes pass to or from all clients, and neither side is told"),
        (lambda n: n.hang(), "the broker hangs: no bytes pass to or from all clients"),
        (lambda n: n.refuse(), "connections are refused by the operating system"),
    ],
)
def test_network_fault_is_described_by_a_sentence(
    context: Context, call: Callable[[Network], object], sentence: str
) -> None:
    assert str(call(context.network)) == sentence


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda n: n.cut_after(bytes=1, how="rst"), "did you mean 'reset'"),
        (lambda n: n.cut_after(bytes=1, direction="send"), "did you mean 'sent'"),
        (lambda n: n.cut_after(bytes=1, direction="both"), "one direction"),
        (lambda n: n.cut_after(), "where to cut"),
        (lambda n: n.cut_after(bytes=1, frames=1), "where to cut"),
        (lambda n: n.cut_after(bytes=-1), "whole number from 0 on, not -1"),
        (lambda n: n.cut_after(frames=1.5), "whole number"),
        (lambda n: n.cut_after(byte=1), "no argument 'byte'; did you mean 'bytes'"),
        (lambda n: n.latency(-1), "seconds as a number from 0 on, not -1"),
        (lambda n: n.latency(float("nan")), "not nan"),
        (lambda n: n.latency(1, jitter="a"), "jitter"),
        (lambda n: n.latency(1, direction="recieved"), "did you mean 'received'"),
        (lambda n: n.latency(1, jiter=1), "did you mean 'jitter'"),
        (lambda n: n.bandwidth(0), "above 0, not 0"),
        (lambda n: n.slice(0), "whole number from 1 on"),
        (lambda n: n.slice(1, pause=-1), "pause"),
        (lambda n: n.refuse("prot"), "did you mean 'port'"),
        (lambda n: n.on("a").refuse(), "has no name yet"),
        (lambda n: n.on(3), "named by a str"),
        (lambda n: n.reset(how="fin"), "takes none"),
        (lambda n: n.silence().wait(0), "at least one"),
    ],
)
def test_invalid_argument_of_a_network_fault_is_an_error_that_explains_it(
    context: Context, call: Callable[[Network], object], text: str
) -> None:
    with pytest.raises(FaultError, match=text):
        call(context.network)


def test_throttled_stream_moves_in_steps_or_in_single_bytes_at_low_rates() -> None:
    """Each row: what goes at this instant, and when the next bytes are due."""
    with cases() as case:
        for rate, steps in (
            (100.0, ((0.0, 0, 10.05), (0.05, 5, 10.1), (0.12, 7, 10.15), (0.29, 17, 10.3), (0.3, 1, None))),
            (2.0, ((0.0, 0, 10.5), (0.4, 0, 10.5), (0.5, 1, 11.0), (14.5, 28, 25.0), (99.0, 1, None))),
        ):
            shaper = Bandwidth(rate)
            assert shaper.due() is None
            shaper.put(bytes(29), 10.0)
            shaper.put(b"x", 10.0)
            left = 30
            for after, count, due in steps:
                with case(rate, after):
                    assert sum(map(len, shaper.take(10.0 + after))) == count
                    left -= count
                    assert shaper.size == left
                    assert shaper.due() == (None if due is None else pytest.approx(due))
            shaper.put(b"xy", 200.0)
            assert shaper.due() == pytest.approx(200.0 + max(0.0, min(2 / rate, max(0.05, 1 / rate))))
            assert shaper.take_all() == [b"xy"] and shaper.take_all() == [] and shaper.size == 0


@pytest.mark.parametrize("direction", ["received", "sent"])
def test_a_removed_network_fault_has_no_further_effect(context: Context, direction: str) -> None:
    """While another one stays in force."""
    inner, transport = context.plug()
    context.network.cut_after(bytes=MIB)
    expected = b""
    for make in (
        lambda: context.network.latency(5, direction=direction),
        lambda: context.network.bandwidth(1, direction=direction),
        lambda: context.network.slice(1, 5, direction=direction),
        lambda: context.network.cut_after(bytes=30, direction=direction),
        lambda: context.network.cut_after(frames=2, direction=direction),
        lambda: context.network.hang(),
        lambda: context.network.silence(),
    ):
        fault = make()
        for removed in (False, True):
            if removed:
                fault.remove()
            piece = a_frame(b"x" * 20)
            expected += piece
            inner.say(piece) if direction == "sent" else transport.proxy.receive(piece)
        assert (transport.written if direction == "sent" else inner.received) == expected, fault
        assert (transport.state, transport.proxy.over) == ("open", False), fault


def test_latency_counts_its_bytes_anew_after_all_were_taken() -> None:
    buffer = Latency(1.0, 0.0, Random(1))
    buffer.put(b"abc", 0.0)
    assert buffer.take_all() == [b"abc"]
    assert buffer.size == 0
    buffer.put(b"de", 0.0)
    assert buffer.size == 2


def test_end_of_a_client_cancels_the_timer_of_its_delayed_bytes() -> None:
    context = Context()
    context.network.latency(5)
    inner, transport = context.plug()
    transport.proxy.receive(HEADER)
    assert len(list(context.timers.pending())) == 1
    transport.proxy.receive_eof()
    assert list(context.timers.pending()) == []
    assert inner.received == HEADER
