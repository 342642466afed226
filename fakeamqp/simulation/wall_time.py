"""Wall-clock time that follows simulated time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fakeamqp.simulation.errors import SimulationError

if TYPE_CHECKING:
    from fakeamqp.simulation.loop import SimulatedLoop


def check_available() -> None:
    """Raise SimulationError if neither time-machine nor freezegun is installed."""
    if find_spec("time_machine") is None and find_spec("freezegun") is None:
        raise SimulationError("patch_time=True needs time-machine or freezegun: pip install time-machine")


@contextmanager
def wall_time_follows(loop: SimulatedLoop) -> Iterator[None]:
    """Make `time.time()`, `datetime.now()` and so on return the simulated time."""
    try:
        import time_machine
    except ImportError:
        yield from _frozen(loop)
        return
    traveller: Any = time_machine.travel(loop.wall_time(), tick=False)
    coordinates = traveller.start()
    loop.on_time = lambda now: coordinates.move_to(loop.start + now)
    try:
        with _monotonic_follows(loop):
            yield
    finally:
        loop.on_time = None
        traveller.stop()


@contextmanager
def _monotonic_follows(loop: SimulatedLoop) -> Iterator[None]:
    """Replace the clocks in the module `time` that time-machine leaves alone."""
    real = {name: getattr(time, name) for name in ("monotonic", "perf_counter")}
    real_ns = {name: getattr(time, name) for name in ("monotonic_ns", "perf_counter_ns")}

    def follow(name: str, start: float, unit: float) -> None:
        setattr(time, name, lambda: start + type(start)(loop.time() * unit))

    for name, clock in real.items():
        follow(name, clock(), 1.0)
    for name, clock in real_ns.items():
        follow(name, clock(), 1e9)
    try:
        yield
    finally:
        for name, clock in {**real, **real_ns}.items():
            setattr(time, name, clock)


def _frozen(loop: SimulatedLoop) -> Iterator[None]:
    import freezegun

    freezer = freezegun.freeze_time(
        datetime.fromtimestamp(loop.wall_time(), timezone.utc).replace(tzinfo=None)
    )
    frozen: Any = freezer.start()

    def move(now: float) -> None:
        frozen.move_to(datetime.fromtimestamp(loop.start + now, timezone.utc).replace(tzinfo=None))

    loop.on_time = move
    try:
        yield
    finally:
        loop.on_time = None
        freezer.stop()
