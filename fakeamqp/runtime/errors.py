"""Errors of the runtime, and the record of bugs of the broker."""

from __future__ import annotations

from typing import NamedTuple

from fakeamqp.errors import FakeAMQPError


class EngineError(FakeAMQPError):
    """The engine cannot do this in its present state, or on this thread."""

    __module__ = "fakeamqp.errors"


class SelectorFull(EngineError):
    """The selector of the loop cannot watch another socket."""

    def __init__(self) -> None:
        super().__init__(
            "this loop waits with select(), which takes only descriptors below 1024 (Windows: 512 sockets); "
            "close some, or use a loop with another selector"
        )


class ClockError(FakeAMQPError):
    """The clock cannot do this in its mode or its present state; the text says what to do instead."""

    __module__ = "fakeamqp.errors"


class NothingPending(ClockError):
    """There is no pending timer to move the time to."""

    __module__ = "fakeamqp.errors"


class CannotListen(FakeAMQPError):
    """The broker cannot listen on this address."""

    __module__ = "fakeamqp.errors"


class PortInUse(CannotListen):
    """Another socket uses the port.

    Attributes:
        host: the address.
        port: the port.
    """

    __module__ = "fakeamqp.errors"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is in use; stop the program that listens there, choose another port, "
            f"or use port=0 to get a free one"
        )
        self.host = host
        self.port = port


class TLSUnavailable(FakeAMQPError):
    """TLS needs a certificate, and the package that creates one is not installed."""

    __module__ = "fakeamqp.errors"


class BadCertificate(FakeAMQPError):
    """A certificate or key cannot be used."""

    __module__ = "fakeamqp.errors"


class InterceptError(FakeAMQPError):
    """An address cannot be intercepted, or a connection to it cannot be redirected."""

    __module__ = "fakeamqp.errors"


class Failures(list["BrokerFailure"]):
    """Exceptions caused by bugs of the broker, in order. Empty, whatever peers do."""

    _told = 0

    def untold(self) -> list[BrokerFailure]:
        """Those recorded since the last call."""
        begin, self._told = self._told, len(self)
        return self[begin:]

    def record(self, activity: str, error: BaseException) -> None:
        import logging  # Imported only for bugs.

        self.append(BrokerFailure(activity, error))
        log = logging.getLogger("fakeamqp.runtime")
        log.error("bug in fakeamqp: %s: %r", activity, error, exc_info=error)


class BrokerFailure(NamedTuple):
    """An exception caused by a bug of the broker. Peers cannot cause one, whatever they send."""

    activity: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.activity}: {self.error!r}"
