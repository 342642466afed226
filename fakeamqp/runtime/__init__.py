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

__all__ = [
    "BadCertificate",
    "CannotListen",
    "ClockError",
    "Engine",
    "EngineError",
    "InterceptError",
    "NothingPending",
    "PortInUse",
    "RealClock",
    "TLSUnavailable",
]
