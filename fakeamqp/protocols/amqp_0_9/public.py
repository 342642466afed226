"""The API `Broker.amqp_0_9`: realms, tunnel handlers, out-of-band transports, trace frames, coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from fakeamqp.errors import FakeAMQPError
from fakeamqp.inspect import WaitTimeout, remark
from fakeamqp.inspect.frozen import frozen
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.coordinator import Coordinator
from fakeamqp.protocols.amqp_0_9.realms import Realms
from fakeamqp.protocols.amqp_0_9.registrations import (
    MemoryTransport,
    OutOfBandTransport,
    Registrations,
    TraceFrame,
    Tunnel,
    TunnelRequest,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime import Engine

__all__ = [
    "Amqp09",
    "BadRegistration",
    "Coordinator",
    "MemoryTransport",
    "OutOfBandTransport",
    "Registration",
    "TraceFrame",
    "TunnelRequest",
]

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST_NAME = 255


class BadRegistration(FakeAMQPError):
    """A registration is invalid; the text says why."""


class Registration:
    """A handler or transport that the broker uses until `remove` is called; also a context manager.

    `error` is the first exception that it raised when the broker called it. `wait` raises it, and with the
    pytest plugin it fails the test.
    """

    def __init__(self, engine: Engine, state: BrokerState, what: str) -> None:
        self._engine = engine
        self._state = state
        self._what = what
        self._calls = 0
        self._removed = False
        self._error_told = False
        self.error: BaseException | None = None
        self._withdraw: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        state = "removed" if self._removed else "in use"
        return f"<Registration: {self._what}; {state}, calls={self._calls}>"

    @property
    def calls(self) -> int:
        """The number of calls from the broker."""
        return self._calls

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the broker has called it `n` times since the registration.

        Args:
            n: the number of calls.
            timeout: real seconds to wait.

        Raises:
            WaitTimeout: the broker called it less often.
            Exception: the exception that it raised, if any.
        """
        seen = self._engine.wait_until(lambda: self._calls >= n or self._failed, timeout)
        self.raise_error()
        if not seen:
            with self._engine:
                text = f"{self._what} was called {self._calls} times in {timeout:g} s, and not {n}"
                raise WaitTimeout(text + remark(self._state))

    def raise_error(self) -> None:
        """Raise `error`, unless it was raised before."""
        if self._failed:
            self._error_told = True
            assert self.error is not None
            raise self.error

    def remove(self) -> None:
        """Remove the registration from the broker. A second call has no effect."""
        with self._engine:
            if not self._removed:
                self._removed = True
                self._withdraw()

    @property
    def _failed(self) -> bool:
        return self.error is not None and not self._error_told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def guard(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap `function`, so that its exceptions are kept for the test and close the connection."""

        def guarded(*args: P.args, **keywords: P.kwargs) -> T:
            self._calls += 1
            try:
                return function(*args, **keywords)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # of whatever kind: pytest has some of its own
                self.error = self.error or error
                raise InternalError(f"{self._what} has failed: {error!r}") from error

        return guarded

    def until_removed(self, withdraw: Callable[[], object]) -> Self:
        """Set the function that `remove` calls."""
        self._withdraw = withdraw
        return self


class _GuardedTransport:
    """A registered transport, with guarded methods."""

    def __init__(self, registration: Registration, transport: OutOfBandTransport) -> None:
        self.take = registration.guard(transport.take)
        self.put = registration.guard(transport.put)


class Amqp09:
    """Registrations for AMQP 0-9. The methods are thread-safe; the engine calls the handlers."""

    def __init__(self, engine: Engine, state: BrokerState) -> None:
        self._engine = engine
        self._state = state
        self._registrations: list[Registration] = []

    def add_realm(self, name: str, *, users: Iterable[str] | None = None, virtual_host: str = "/") -> None:
        """Add an access realm to a virtual host, or change its users.

        All tickets of clients expire. Realms have an effect only if tickets are checked, as in personality
        "spec". The realm "/data" always exists.

        Args:
            name: such as "/admin".
            users: the names of the users that can get tickets for the realm; None for all users.
            virtual_host: the name of the virtual host.

        Raises:
            BadRegistration: the name is empty or too long for a frame.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        _check_name("a realm", name)
        with self._engine:
            self._state.virtual_host(virtual_host).extensions[Realms].add(name, users)

    def coordinator(self, virtual_host: str = "/") -> Coordinator:
        """Return a coordinator for the distributed transactions (dtx) of clients in a virtual host.

        Args:
            virtual_host: the name of the virtual host.

        Raises:
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        with self._engine:
            self._state.virtual_host(virtual_host)
        return Coordinator(self._engine, self._state, virtual_host)

    def tunnel(self, proxy_name: str, handler: Callable[[TunnelRequest], object]) -> Registration:
        """Register a handler of tunnel requests for a proxy; without a handler the broker refuses them (540).

        tunnel.request has no answer. To send something to the client, a handler can publish with the broker.
        If it raises an exception, the client gets an internal error (541).

        Args:
            proxy_name: the proxy's name; * matches any text and ? any one character. A request without a name
                is for the proxy "". If several handlers match, the first registered gets the request. A
                request with the property broadcast goes to all handlers.
            handler: called with each request, for example the `append` of a list.

        Raises:
            BadRegistration: the name is not a str, or the handler is not callable.
        """
        _check_text("a proxy", proxy_name)
        registration = self._new(f"the handler of tunnel proxy {proxy_name!r}", handler)

        def handle(request: TunnelRequest) -> None:
            meta_data, headers = frozen(request.meta_data), frozen(request.headers)
            handler(replace(request, meta_data=meta_data, headers=headers))

        tunnel = Tunnel(proxy_name, registration.guard(handle))
        return self._add(registration, self._state.extensions[Registrations].tunnels, tunnel)

    def on_trace_frame(self, handler: Callable[[TraceFrame], object]) -> Registration:
        """Register a handler of the trace frames that clients send; without a handler they are discarded.

        Args:
            handler: called with each frame, for example the `append` of a list.

        Raises:
            BadRegistration: the handler is not callable.
        """
        registration = self._new("the handler of trace frames", handler)
        return self._add(
            registration, self._state.extensions[Registrations].trace_handlers, registration.guard(handler)
        )

    def out_of_band(self, name: str, transport: OutOfBandTransport) -> Registration:
        """Register a transport for the out-of-band frames of channels that are opened with its name.

        On such a channel a client can send the frames of methods and contents out-of-band: the frames have no
        payload, and the transport has the payloads. The broker sends contents and their methods out-of-band.

        Args:
            name: the name in the field out-of-band of channel.open.
            transport: such as a `MemoryTransport`; all channels that name it share it.

        Raises:
            BadRegistration: the name is empty, too long for a frame or in use, or `transport` has no `take`
                and `put`.
        """
        _check_name("an out-of-band transport", name)
        for method in ("take", "put"):
            if not callable(getattr(transport, method, None)):
                raise BadRegistration(
                    f"an out-of-band transport needs `take` and `put`; {transport!r} lacks `{method}`"
                )
        with self._engine:
            transports = self._state.extensions[Registrations].transports
            if name in transports:
                raise BadRegistration(
                    f"an out-of-band transport {name!r} is registered already; remove it first"
                )
            registration = Registration(self._engine, self._state, f"the out-of-band transport {name!r}")
            transports[name] = _GuardedTransport(registration, transport)
            self._registrations.append(registration)
        return registration.until_removed(lambda: transports.pop(name, None))

    def raise_errors(self) -> None:
        """Raise the first exception of a handler that was not raised before."""
        for registration in self._registrations:
            registration.raise_error()

    def clear(self) -> None:
        """Remove all registrations; realms stay."""
        with self._engine:
            while self._registrations:
                self._registrations.pop().remove()

    def _new(self, what: str, handler: object) -> Registration:
        if not callable(handler):
            raise BadRegistration(f"{what} must be callable, not {handler!r}")
        return Registration(self._engine, self._state, what)

    def _add(self, registration: Registration, handlers: list[T], handler: T) -> Registration:
        with self._engine:
            handlers.append(handler)
            self._registrations.append(registration)
        return registration.until_removed(lambda: handlers.remove(handler))


def _check_text(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise BadRegistration(f"the name of {what} must be a str, not {name!r}")


def _check_name(what: str, name: object) -> None:
    _check_text(what, name)
    if not 0 < len(str(name).encode("utf-8", "replace")) <= _LONGEST_NAME:
        raise BadRegistration(f"the name of {what} must have 1 to {_LONGEST_NAME} bytes, not {name!r}")
