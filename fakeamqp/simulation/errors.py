"""Errors of simulations."""

from __future__ import annotations

import socket

from fakeamqp.errors import FakeAMQPError


class SimulationError(FakeAMQPError):
    """A simulation cannot be run like this; the text says what to do."""

    __module__ = "fakeamqp.simulation"


class Deadlock(SimulationError):
    """Nothing is ready, no timer is set, and the main task is not done; the text names who waits for what."""

    __module__ = "fakeamqp.simulation"


class TimeLimit(SimulationError):
    """The simulated time has passed its limit; the text names the tasks and what they wait for."""

    __module__ = "fakeamqp.simulation"


class NotSimulated(SimulationError, NotImplementedError):
    """The loop has no simulation of this: it is something outside of the process, or in another thread."""

    __module__ = "fakeamqp.simulation"


class UnknownHost(SimulationError, socket.gaierror):
    """No such host in the simulated network."""

    __module__ = "fakeamqp.simulation"
