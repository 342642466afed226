"""Long operations: the loop carries them out in slices, and a test's thread never sees a part of one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from compat_tests.unit.runtime.fakes import SECONDS, EchoConnection, Echoes
from fakeamqp.model.operations import Operations
from fakeamqp.model.timers import Timers
from fakeamqp.runtime import RealClock, ThreadEngine, turns
from fakeamqp.runtime.clock.virtual import VirtualClock

STEPS = 1000


class Asks(EchoConnection):
    """A byte `o` asks for an operation of many steps, any other is echoed."""

    operations: Operations
    busy = False
    done = 0
    seen: list[int]
    breaks_at = 0
    at_first: Callable[[], object] | None = None

    def on_data(self, data: bytes) -> None:
        if data == b"o":
            self.operations.run(self.steps(), self)
        else:
            self.seen.append(self.accepted[0].done)
            self.write(data)

    def steps(self) -> Iterator[None]:
        for number in range(STEPS):
            self.done += 1
            if self.at_first is not None and not number:
                self.at_first()
            if self.breaks_at and number == self.breaks_at:
                raise ValueError("a bug")
            yield

    def operations_ended(self) -> None:
        self.write(b"!")

    accepted: list[Asks]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ThreadEngine, Operations, Echoes]]:
    """An engine whose slices have one step each."""
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)
    operations = Operations()
    accept = Echoes(Asks)
    monkeypatch.setattr(Asks, "operations", operations, raising=False)
    monkeypatch.setattr(Asks, "accepted", accept.accepted, raising=False)
    monkeypatch.setattr(Asks, "seen", [], raising=False)
    clock = RealClock()
    engine = ThreadEngine(clock, Timers(clock), accept, operations=operations)
    engine.start()
    yield engine, operations, accept
    engine.stop()


def dial(engine: ThreadEngine) -> socket.socket:
    client = engine.connect_socketpair()
    client.settimeout(SECONDS)
    return client


def test_other_peers_are_served_between_slices(world: tuple[ThreadEngine, Operations, Echoes]) -> None:
    engine, _, accept = world
    with dial(engine) as requester, dial(engine) as other:
        accept.accepted[0].at_first = lambda: other.sendall(b"x")
        requester.sendall(b"o")
        assert other.recv(1) == b"x"
        assert requester.recv(1) == b"!"
    assert Asks.seen[0] < STEPS
    assert engine.turns > STEPS // 2


def test_thread_of_a_test_never_sees_a_part_of_an_operation(
    world: tuple[ThreadEngine, Operations, Echoes],
) -> None:
    engine, operations, accept = world
    with dial(engine) as requester:
        requester.sendall(b"o")
        while not accept.accepted[0].received:
            pass
        with engine:
            assert accept.accepted[0].done in (0, STEPS)
            assert not operations.pending
        assert requester.recv(1) == b"!"


def test_wait_until_never_sees_a_part_of_an_operation(world: tuple[ThreadEngine, Operations, Echoes]) -> None:
    engine, _, accept = world
    seen = []
    with dial(engine) as requester:

        def done() -> bool:
            seen.append(accept.accepted[0].done)
            if len(seen) == 1:
                requester.sendall(b"o")
            return accept.accepted[0].done > 0

        assert engine.wait_until(done, SECONDS)
    assert set(seen) == {0, STEPS}


def test_stop_completes_running_operations(world: tuple[ThreadEngine, Operations, Echoes]) -> None:
    engine, operations, accept = world
    with dial(engine) as requester:
        requester.sendall(b"o")
        while not accept.accepted[0].received:
            pass
        engine.stop()
        assert accept.accepted[0].done == STEPS
        assert not operations.pending
        assert requester.recv(1) == b"!"


def test_exception_in_an_operation_does_not_end_other_operations(
    world: tuple[ThreadEngine, Operations, Echoes],
) -> None:
    engine, _, accept = world
    with dial(engine) as first, dial(engine) as second:
        accept.accepted[0].breaks_at = 100
        first.sendall(b"o")
        second.sendall(b"o")
        assert first.recv(1) == b"!"
        assert second.recv(1) == b"!"
    assert [str(failure) for failure in engine.failures] != []
    assert accept.accepted[0].done == 101
    assert accept.accepted[1].done == STEPS


def test_timers_due_at_the_same_instant_run_in_slices(world: tuple[ThreadEngine, Operations, Echoes]) -> None:
    engine, _, _ = world
    ran: list[int] = []
    with engine:
        due = engine.clock.now()
        for number in range(STEPS):
            engine.timers.call_at(due, lambda number=number: ran.append(number))  # type: ignore[misc]
        turns = engine.turns
    assert engine.wait_until(lambda: len(ran) == STEPS, SECONDS)
    assert ran == list(range(STEPS))
    assert engine.turns - turns > STEPS // 2


def test_advancing_the_clock_completes_timers_and_operations_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)
    operations = Operations()
    clock = VirtualClock()
    timers = Timers(clock)
    engine = ThreadEngine(clock, timers, Echoes(), operations=operations)
    events: list[tuple[str, float]] = []

    def steps(name: str) -> Iterator[None]:
        for _ in range(3):
            events.append((name, clock.now()))
            yield

    engine.start()
    try:
        with engine:
            for name, due in (("b", 2.0), ("a", 1.0), ("c", 2.0)):
                timers.call_at(due, lambda name=name: operations.run(steps(name)))  # type: ignore[misc]
            clock.step_to(5.0)
            assert events == [*[("a", 1.0)] * 3, *[("b", 2.0)] * 3, *[("c", 2.0)] * 3]
    finally:
        engine.stop()
