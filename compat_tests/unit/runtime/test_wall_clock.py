"""What the wall clock's time is made of, with stand-ins for what freezegun and time-machine keep."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from freezegun import freeze_time

from compat_tests.unit.runtime.fakes import Echoes, PortEngine
from fakeamqp.model.operations import Operations
from fakeamqp.model.timers import Timers
from fakeamqp.runtime import RealClock
from fakeamqp.runtime.clock import wall
from fakeamqp.runtime.clock.virtual import VirtualClock
from fakeamqp.runtime.clock.wall import WallClock, read

SECOND = 1_000_000_000


def refuse() -> Any:
    raise AssertionError("nobody may ask this")


class OldTraveller:
    """As time-machine 2 has it."""

    def __init__(self, seconds: int, tick: bool, requested: bool) -> None:
        self._destination_timestamp_ns = seconds * SECOND
        self._tick = tick
        self._requested = requested

    def time_ns(self) -> int:
        if self._tick and not self._requested:
            refuse()
        return self._destination_timestamp_ns + (SECOND if self._tick else 0)


@pytest.mark.parametrize("stack", ["coordinates_stack", "traveller_stack"])
@pytest.mark.parametrize(
    ("tick", "requested", "seconds"), [(False, False, 100), (True, True, 101), (True, False, 100)]
)
def test_time_machine_of_every_version_is_read(
    monkeypatch: pytest.MonkeyPatch, stack: str, tick: bool, requested: bool, seconds: int
) -> None:
    traveller = OldTraveller(100, tick, requested)
    monkeypatch.setitem(sys.modules, "time_machine", SimpleNamespace(**{stack: [object(), traveller]}))
    reading = read()
    assert (reading.controller, reading.wall, reading.runs) == (traveller, seconds * SECOND, tick)


@pytest.mark.parametrize("module", ["freezegun.api", "time_machine"])
def test_partly_imported_time_library_is_ignored(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, SimpleNamespace())
    assert read().controller is None


@pytest.mark.parametrize(
    ("module", "stack"), [("freezegun.api", "freeze_factories"), ("time_machine", "traveller_stack")]
)
def test_time_travel_ended_during_the_reading_is_ignored(
    monkeypatch: pytest.MonkeyPatch, module: str, stack: str
) -> None:
    class Emptied(list[object]):
        def __bool__(self) -> bool:
            return True

    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{stack: Emptied()}))
    assert read().controller is None


def test_reading_without_time_travel_is_the_real_time() -> None:
    before = RealClock().time()
    reading = read()
    assert (reading.controller, reading.runs) == (None, True)
    assert before - 1e-3 <= reading.wall / SECOND <= RealClock().time() + 1e-3


@pytest.mark.parametrize(
    "moment",
    ["1969-12-31 23:59:59.999999", "1970-01-01", "2000-02-29 12:34:56.789012", "9999-12-31 23:59:59"],
)
def test_frozen_moments_are_exact(moment: str) -> None:
    import datetime

    with freeze_time(moment):
        expected = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime(
            1970, 1, 1, tzinfo=datetime.timezone.utc
        )
        assert read().wall == expected // datetime.timedelta(microseconds=1) * 1000


class TestSleeping:
    @pytest.fixture
    def clock(self) -> WallClock:
        return WallClock()

    @pytest.fixture
    def timers(self, clock: WallClock) -> Timers:
        clock.timers = Timers(clock)
        return clock.timers

    def forget_libraries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("freezegun.api", "time_machine"):
            monkeypatch.delitem(sys.modules, name, raising=False)

    def test_sleep_without_timers_has_no_time_limit(self, clock: WallClock, timers: Timers) -> None:
        assert clock.sleep() is None

    def test_sleep_without_time_libraries_lasts_until_the_next_timer(
        self, clock: WallClock, timers: Timers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.forget_libraries(monkeypatch)
        timers.call_at(clock.now() + 100, refuse)
        assert clock.sleep() == 100

    def test_sleep_with_a_time_library_is_limited_to_15_milliseconds(
        self, clock: WallClock, timers: Timers
    ) -> None:
        timers.call_at(clock.now() + 100, refuse)
        assert clock.sleep() == pytest.approx(0.015)
        timers.call_at(clock.now() + 0.01, refuse)
        assert clock.sleep() == pytest.approx(0.01)

    def test_sleep_until_a_housekeeping_timer_is_not_shortened(
        self, clock: WallClock, timers: Timers
    ) -> None:
        timers.call_at(clock.now() + 100, refuse, housekeeping=True)
        assert clock.sleep() == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_time_library_hooks_do_not_block_a_forked_child() -> None:
    clock = WallClock()
    engine = PortEngine(
        clock, Timers(clock), Echoes(), operations=Operations(), transport_timers=Timers(RealClock())
    )
    engine.start()
    try:
        child = os.fork()
        if child == 0:
            try:
                with freeze_time("2024-01-01") as freezer:
                    freezer.tick(60)
                os._exit(0)
            finally:
                os._exit(1)
        _pid, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        engine.stop()
    assert wall._listeners == []


def test_freezegun_loaded_after_the_engine_start_gets_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Factory:
        time_to_freeze = None

        def tick(self) -> None: ...

    original = Factory.__dict__["tick"]
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "freezegun.api")
        clock = WallClock()
        engine = PortEngine(
            clock, Timers(clock), Echoes(), operations=Operations(), transport_timers=Timers(RealClock())
        )
        engine.start()
        try:
            patch.setitem(sys.modules, "freezegun.api", SimpleNamespace(FrozenDateTimeFactory=Factory))
            with engine:
                pass
            assert Factory.__dict__["tick"] is not original
        finally:
            engine.stop()
    assert Factory.__dict__["tick"] is original


def test_autojump_of_the_clock_waits_until_the_broker_is_idle() -> None:
    clock = VirtualClock(0.0)
    timers = Timers(clock)
    engine = PortEngine(
        clock, timers, Echoes(), operations=Operations(), transport_timers=Timers(RealClock())
    )
    engine.start()
    try:
        with engine.connect_socketpair() as client:
            client.settimeout(20)
            ran: list[float] = []
            with engine:
                [connection] = engine.connections
                connection.write(bytes(30_000_000))  # type: ignore[attr-defined]
                timers.call_at(1.0, lambda: ran.append(clock.now()))
                clock.autojump = 0.0
                clock.note_activity()
            turns = engine.turns
            assert engine.wait_until(lambda: engine.turns > turns + 3, 20)
            assert ran == [], "bytes wait to be sent"
            assert engine.wait_until(lambda: clock.sleep(), 5), "it does not spin meanwhile"
            left = 30_000_000
            while left:
                left -= len(client.recv(1_000_000))
            assert engine.wait_until(lambda: ran, 20)
            assert ran == [1.0]
    finally:
        engine.stop()
    assert engine.failures == []
