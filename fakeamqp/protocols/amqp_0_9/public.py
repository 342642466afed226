"""What tests hand in for clients of AMQP 0-9: realms, tunnels, out-of-band transports, trace frames.

What they decide for them is there as well: see `coordinator`.
"""

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
    """This cannot be handed in; the text says why."""


class Registration:
    """Something of the test's that a broker uses until it is removed. As a context manager it is, at the end.

    `error` is the first thing that it has raised where the broker called it; `wait` raises that, and with the
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
        """How often the broker has called it."""
        return self._calls

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the broker has called it `n` times, counted from the beginning.

        Args:
            n: how many calls.
            timeout: how many real seconds to wait.

        Raises:
            WaitTimeout: it was not called that often.
            Exception: what it raised meanwhile, if it did.
        """
        seen = self._engine.wait_until(lambda: self._calls >= n or self._failed, timeout)
        self.raise_error()
        if not seen:
            with self._engine:
                text = f"{self._what} was called {self._calls} times in {timeout:g} s, and not {n}"
                raise WaitTimeout(text + remark(self._state))

    def raise_error(self) -> None:
        """Raise what it has raised, once."""
        if self._failed:
            self._error_told = True
            assert self.error is not None
            raise self.error

    def remove(self) -> None:
        """Have the broker use it no more. Twice is once."""
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
        """`function`, called by the broker: what it raises is kept for the test, and ends the connection."""

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
        """Have `withdraw` undo it."""
        self._withdraw = withdraw
        return self


class _GuardedTransport:
    """A transport of the test's, as the broker uses it."""

    def __init__(self, registration: Registration, transport: OutOfBandTransport) -> None:
        self.take = registration.guard(transport.take)
        self.put = registration.guard(transport.put)


class Amqp09:
    """What can be handed in, from any thread; handlers are called inside the engine."""

    def __init__(self, engine: Engine, state: BrokerState) -> None:
        self._engine = engine
        self._state = state
        self._registrations: list[Registration] = []

    def add_realm(self, name: str, *, users: Iterable[str] | None = None, virtual_host: str = "/") -> None:
        """Add an access realm to a virtual host, or say anew who may use it.

        Tickets that clients have expire. Realms matter where tickets are checked: in personality "spec". The
        realm "/data" is always there.

        Args:
            name: such as "/admin".
            users: the names of those that may have tickets for it; None for everybody.
            virtual_host: where.

        Raises:
            BadRegistration: no frame can carry the name.
            NotAllowed, InvalidPath: there is no such virtual host.
        """
        _check_name("a realm", name)
        with self._engine:
            self._state.virtual_host(virtual_host).extensions[Realms].add(name, users)

    def coordinator(self, virtual_host: str = "/") -> Coordinator:
        """Who decides about the distributed transactions (dtx) of clients in a virtual host.

        Args:
            virtual_host: where.

        Raises:
            NotAllowed, InvalidPath: there is no such virtual host.
        """
        with self._engine:
            self._state.virtual_host(virtual_host)
        return Coordinator(self._engine, self._state, virtual_host)

    def tunnel(self, proxy_name: str, handler: Callable[[TunnelRequest], object]) -> Registration:
        """Have `handler` deal with tunnel requests for a proxy; without one the broker refuses them (540).

        The method has no answer. A handler may publish through the broker, which is how it can say something.
        What it raises the client is told of as an internal error (541).

        Args:
            proxy_name: the proxy's name; * stands for any text and ? for any one character. A request without
                a name is for the proxy "". Where several fit, it is the one that came first; a request with
                the property broadcast goes to all there are.
            handler: called with each request; the `append` of a list will do.

        Raises:
            BadRegistration: the name is no text, or the handler cannot be called.
        """
        _check_text("a proxy", proxy_name)
        registration = self._new(f"the handler of tunnel proxy {proxy_name!r}", handler)

        def handle(request: TunnelRequest) -> None:
            meta_data, headers = frozen(request.meta_data), frozen(request.headers)
            handler(replace(request, meta_data=meta_data, headers=headers))

        tunnel = Tunnel(proxy_name, registration.guard(handle))
        return self._add(registration, self._state.extensions[Registrations].tunnels, tunnel)

    def on_trace_frame(self, handler: Callable[[TraceFrame], object]) -> Registration:
        """Have `handler` called with every trace frame that a client sends; otherwise they are discarded.

        Args:
            handler: called with each; the `append` of a list will do.

        Raises:
            BadRegistration: the handler cannot be called.
        """
        registration = self._new("the handler of trace frames", handler)
        return self._add(
            registration, self._state.extensions[Registrations].trace_handlers, registration.guard(handler)
        )

    def out_of_band(self, name: str, transport: OutOfBandTransport) -> Registration:
        """Have channels use `transport` for out-of-band frames that are opened with this name for it.

        On such a channel a client may send the frames of its methods and contents out-of-band: they come
        without a payload, which the transport has. Contents to the client go out-of-band, methods and all.

        Args:
            name: what the client says in the field out-of-band of channel.open.
            transport: such as a `MemoryTransport`; channels that name it share it.

        Raises:
            BadRegistration: the name is blank or taken, or too long for a frame, or that is no transport.
        """
        _check_name("an out-of-band transport", name)
        for method in ("take", "put"):
            if not callable(getattr(transport, method, None)):
                raise BadRegistration(f"an out-of-band transport has `take` and `put`; {transport!r} has not")
        with self._engine:
            transports = self._state.extensions[Registrations].transports
            if name in transports:
                raise BadRegistration(f"there is an out-of-band transport {name!r} already; remove it first")
            registration = Registration(self._engine, self._state, f"the out-of-band transport {name!r}")
            transports[name] = _GuardedTransport(registration, transport)
            self._registrations.append(registration)
        return registration.until_removed(lambda: transports.pop(name, None))

    def raise_errors(self) -> None:
        """Raise the first thing that a handler has raised, if that is not known yet."""
        for registration in self._registrations:
            registration.raise_error()

    def clear(self) -> None:
        """Remove everything but the realms, and forget it."""
        with self._engine:
            while self._registrations:
                self._registrations.pop().remove()

    def _new(self, what: str, handler: object) -> Registration:
        if not callable(handler):
            raise BadRegistration(f"{what} is a function, not {handler!r}")
        return Registration(self._engine, self._state, what)

    def _add(self, registration: Registration, handlers: list[T], handler: T) -> Registration:
        with self._engine:
            handlers.append(handler)
            self._registrations.append(registration)
        return registration.until_removed(lambda: handlers.remove(handler))


def _check_text(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise BadRegistration(f"{what} has a str for a name, not {name!r}")


def _check_name(what: str, name: object) -> None:
    _check_text(what, name)
    if not 0 < len(str(name).encode("utf-8", "replace")) <= _LONGEST_NAME:
        raise BadRegistration(f"{what} has a name of 1 to {_LONGEST_NAME} bytes, not {name!r}")
