"""Runs the broker: clock, loop thread, transports."""

from __future__ import annotations

from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.engine import Engine
from fakeamqp.runtime.errors import (
    BadCertificate,
    CannotListen,
    ClockError,
    EngineError,
    InterceptError,
    NothingPending,
    PortInUse,
    TLSUnavailable,
)
from fakeamqp.runtime.listener import Listener

__all__ = [
    "BadCertificate",
    "CannotListen",
    "ClockError",
    "Engine",
    "EngineError",
    "InterceptError",
    "Listener",
    "NothingPending",
    "PortInUse",
    "RealClock",
    "TLSUnavailable",
]
