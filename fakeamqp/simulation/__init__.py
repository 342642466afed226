"""Simulations: one clock and one schedule for the app, its clients and the broker, in one event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.simulation.errors import (
        Deadlock as Deadlock,
        NotSimulated as NotSimulated,
        SimulationError as SimulationError,
        TimeLimit as TimeLimit,
        UnknownHost as UnknownHost,
    )
    from fakeamqp.simulation.exploring import (
        Exploration as Exploration,
        FailingSchedule as FailingSchedule,
        Failure as Failure,
        check as check,
        explore as explore,
    )
    from fakeamqp.simulation.loop import SimulatedLoop as SimulatedLoop
    from fakeamqp.simulation.running import Runner as Runner, current as current, run as run
    from fakeamqp.simulation.schedule import Decision as Decision, Schedule as Schedule
else:
    __getattr__, __dir__ = on_first_use(__name__)
