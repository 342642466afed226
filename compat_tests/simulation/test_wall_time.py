"""Wall-clock time in simulations."""

from __future__ import annotations

import asyncio
import datetime
import sys
import time

import pytest

from fakeamqp import simulation

NEW_YEAR = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


async def two_days() -> list[object]:
    seen: list[object] = []
    for _ in range(2):
        seen.append((datetime.datetime.now(datetime.timezone.utc), time.time(), time.monotonic()))
        await asyncio.sleep(86_400)
    return seen


def check_two_days(seen) -> None:
    (first, first_time, first_monotonic), (second, second_time, second_monotonic) = seen
    assert first == NEW_YEAR
    assert second == NEW_YEAR + DAY
    assert first_time == NEW_YEAR.timestamp()
    assert second_time - first_time == 86_400
    assert second_monotonic - first_monotonic == pytest.approx(86_400)


def test_patched_time_follows_with_time_machine():
    pytest.importorskip("time_machine")
    check_two_days(simulation.run(two_days(), patch_time=True))
    assert datetime.datetime.now(datetime.timezone.utc) > NEW_YEAR + 366 * DAY


def test_patched_time_follows_with_freezegun(monkeypatch):
    pytest.importorskip("freezegun")
    monkeypatch.setitem(sys.modules, "time_machine", None)
    check_two_days(simulation.run(two_days(), patch_time=True))
    assert datetime.datetime.now(datetime.timezone.utc) > NEW_YEAR + 366 * DAY


def test_patched_time_needs_a_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "time_machine", None)
    monkeypatch.setitem(sys.modules, "freezegun", None)
    with pytest.raises(simulation.SimulationError, match="pip install time-machine"):
        simulation.run(two_days(), patch_time=True)


def test_real_time_goes_on_otherwise():
    seen = simulation.run(two_days())
    assert seen[1][1] - seen[0][1] < 3_600


def test_freezegun_inside_of_a_simulation():
    freezegun = pytest.importorskip("freezegun")

    async def main():
        loop = asyncio.get_running_loop()
        with freezegun.freeze_time("2030-01-01") as frozen:
            await asyncio.sleep(3_600)
            assert datetime.datetime.now() == datetime.datetime(2030, 1, 1)
            frozen.tick(60)
            await asyncio.sleep(3_600)
            assert datetime.datetime.now() == datetime.datetime(2030, 1, 1, 0, 1)
        return loop.time()

    assert simulation.run(main()) == 7_200
    with freezegun.freeze_time("2030-01-01"):
        assert simulation.run(asyncio.sleep(5, "slept")) == "slept"


def test_time_machine_inside_of_a_simulation():
    time_machine = pytest.importorskip("time_machine")

    async def main():
        loop = asyncio.get_running_loop()
        with time_machine.travel("2030-01-01T00:00Z", tick=False) as traveller:
            await asyncio.sleep(3_600)
            traveller.shift(60)
            await asyncio.sleep(3_600)
            assert time.time() == 1_893_456_060
        return loop.time()

    assert simulation.run(main()) == 7_200
