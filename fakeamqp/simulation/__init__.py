"""Simulations: one clock and one schedule for the app, its clients and the broker, in one event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.simulation.errors import Deadlock, NotSimulated, SimulationError, TimeLimit, UnknownHost
    from fakeamqp.simulation.exploring import Exploration, FailingSchedule, Failure, check, explore
    from fakeamqp.simulation.loop import SimulatedLoop
    from fakeamqp.simulation.running import Runner, current, run
    from fakeamqp.simulation.schedule import Decision, Schedule
else:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.simulation.errors": (
                "Deadlock",
                "NotSimulated",
                "SimulationError",
                "TimeLimit",
                "UnknownHost",
            ),
            "fakeamqp.simulation.exploring": (
                "Exploration",
                "FailingSchedule",
                "Failure",
                "check",
                "explore",
            ),
            "fakeamqp.simulation.loop": ("SimulatedLoop",),
            "fakeamqp.simulation.running": ("Runner", "current", "run"),
            "fakeamqp.simulation.schedule": ("Decision", "Schedule"),
        },
    )

__all__ = [
    "Deadlock",
    "Decision",
    "Exploration",
    "FailingSchedule",
    "Failure",
    "NotSimulated",
    "Runner",
    "Schedule",
    "SimulatedLoop",
    "SimulationError",
    "TimeLimit",
    "UnknownHost",
    "check",
    "current",
    "explore",
    "run",
]
