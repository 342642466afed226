"""Errors of the runtime."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = [
    "BadCertificate",
    "CannotListen",
    "ClockError",
    "EngineError",
    "InterceptError",
    "NothingPending",
    "PortInUse",
    "TLSUnavailable",
]


class EngineError(FakeAMQPError):
    """The engine was used in a way that cannot work."""


class ClockError(FakeAMQPError):
    """The clock cannot do that in its mode, or in its present state; the text says what to do instead."""


class NothingPending(ClockError):
    """Time was to move to the next timer, and there is none."""


class CannotListen(FakeAMQPError):
    """The address cannot be listened on."""


class PortInUse(CannotListen):
    """Another socket has the port. Attributes `host` and `port`."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is in use; stop what listens there, name another port, "
            f"or use port=0 to get a free one"
        )
        self.host = host
        self.port = port


class TLSUnavailable(FakeAMQPError):
    """TLS was asked for without a certificate, and the package that makes one is not installed."""


class BadCertificate(FakeAMQPError):
    """A certificate or key cannot be used."""


class InterceptError(FakeAMQPError):
    """An address cannot be intercepted as asked."""
