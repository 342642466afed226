"""Runs the broker: engines, clocks, transports."""

from __future__ import annotations

from fakeamqp.runtime.clock import RealClock
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
from fakeamqp.runtime.thread.engine import ThreadEngine

__all__ = [
    "BadCertificate",
    "CannotListen",
    "ClockError",
    "EngineError",
    "InterceptError",
    "NothingPending",
    "PortInUse",
    "RealClock",
    "TLSUnavailable",
    "ThreadEngine",
]
