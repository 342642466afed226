"""Extensions that a test registers for clients of AMQP 0-9: realms, tunnels, out-of-band transports, trace
frames.

`Coordinator` completes their distributed transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fakeamqp.inspect.frozen import frozen
from fakeamqp.model.errors import IllegalState
from fakeamqp.model.transactions import XaOutcome, Xid
from fakeamqp.protocols.amqp_0_9.access import Realms
from fakeamqp.protocols.amqp_0_9.choices import letter_of
from fakeamqp.protocols.amqp_0_9.registrations import (
    MemoryTransport,
    OutOfBandTransport,
    Registrations,
    TraceFrame,
    Tunnel,
    TunnelRequest,
)
from fakeamqp.services import BadRegistration, Registration

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.transactions import Branches
    from fakeamqp.runtime.engine import Engine

__all__ = [
    "Amqp09",
    "BadRegistration",
    "Coordinator",
    "MemoryTransport",
    "OutOfBandTransport",
    "Registration",
    "TraceFrame",
    "TunnelRequest",
    "letter_of",
]

T = TypeVar("T")
_LONGEST_NAME = 255


class _GuardedTransport:
    """A transport of the test with guarded methods."""

    def __init__(self, registration: Registration, transport: OutOfBandTransport) -> None:
        self.take = registration.guard(transport.take)
        self.put = registration.guard(transport.put)


class Amqp09:
    """Registers extensions, from any thread. The broker calls handlers inside the engine."""

    def __init__(self, engine: Engine, state: BrokerState) -> None:
        self._engine = engine
        self._state = state
        self._registrations: list[Registration] = []

    def add_realm(self, name: str, *, users: Iterable[str] | None = None, virtual_host: str = "/") -> None:
        """Add an access realm to a virtual host, or change its users.

        Existing tickets expire. Only personality "spec" checks tickets. The realm "/data" always exists.

        Args:
            name: the name of the realm, such as "/admin".
            users: the names of the users that may get tickets for it; None for all.
            virtual_host: the name of the virtual host.

        Raises:
            BadRegistration: the name is empty or too long.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        _check_name("a realm", name)
        with self._engine:
            self._state.virtual_host(virtual_host).extensions[Realms].add(name, users)

    def coordinator(self, virtual_host: str = "/") -> Coordinator:
        """The coordinator of the distributed transactions (dtx) of a virtual host.

        Args:
            virtual_host: the name of the virtual host.

        Raises:
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        with self._engine:
            self._state.virtual_host(virtual_host)
        return Coordinator(self._engine, self._state, virtual_host)

    def tunnel(self, proxy_name: str, handler: Callable[[TunnelRequest], object]) -> Registration:
        """Call `handler` with tunnel requests for a proxy; without a handler the broker refuses them (540).

        The method has no answer; a handler can publish through the broker. An exception of a handler is an
        internal error (541) for the client.

        Args:
            proxy_name: the name of the proxy; * matches any text and ? any character. A request without a
                name is for the proxy "". Of several matching handlers the first one is called; a request with
                the property broadcast goes to all handlers.
            handler: called with each request, such as the `append` of a list.

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
        """Call `handler` with every trace frame of a client; without a handler they are discarded.

        Args:
            handler: called with each frame, such as the `append` of a list.

        Raises:
            BadRegistration: the handler is not callable.
        """
        registration = self._new("the handler of trace frames", handler)
        return self._add(
            registration, self._state.extensions[Registrations].trace_handlers, registration.guard(handler)
        )

    def out_of_band(self, name: str, transport: OutOfBandTransport) -> Registration:
        """Use `transport` for the out-of-band frames of channels that are opened with this name.

        On such a channel a client may send frames out-of-band: without payload, which is in the transport.
        The broker sends contents to the client out-of-band, including their methods.

        Args:
            name: the field out-of-band of channel.open.
            transport: such as a `MemoryTransport`; channels with the same name share it.

        Raises:
            BadRegistration: the name is empty, in use or too long, or the transport lacks a method.
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
        """Raise the first exception that a handler has raised and that was not raised here before."""
        for registration in self._registrations:
            registration.raise_error()

    def clear(self) -> None:
        """Remove all registrations except the realms."""
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


_PREPARED = "prepared"


class DistributedTransaction(NamedTuple):
    """One distributed transaction when it was read.

    Attributes:
        identifier: as in dtx.start.
        state: such as "active" or "prepared".
        publishes: the number of messages that a commit publishes.
        settlements: the number of messages that a commit settles.
    """

    identifier: str
    state: str
    publishes: int
    settlements: int


class Coordinator:
    """Completes the distributed transactions that clients of AMQP 0-9 start with dtx.start in a virtual host.

    The client chooses the identifier of a transaction. After a decision the transaction is over for the
    client: later work of its channel is outside of it.
    """

    def __init__(self, engine: Engine, state: BrokerState, virtual_host: str) -> None:
        self._engine = engine
        self._state = state
        self._virtual_host = virtual_host

    def __repr__(self) -> str:
        return f"<Coordinator of virtual host {self._virtual_host!r}: {len(self.transactions)} transactions>"

    @property
    def transactions(self) -> tuple[DistributedTransaction, ...]:
        """The transactions that are not completed, in the order in which they were started."""
        with self._engine:
            return tuple(
                DistributedTransaction(_text(each.xid), each.state, each.publishes, each.settlements)
                for each in self._branches.views()
                if each.xid == _xid(_text(each.xid))
            )

    def prepare(self, identifier: str) -> None:
        """Prepare a transaction: the broker guarantees that it can commit or roll back, even after a restart.

        A transaction without work is completed.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
            IllegalState: it is already prepared; or it can only be rolled back, since its channel was lost or
                it has timed out.
        """
        with self._engine:
            _check(identifier, self._branches.prepare(_xid(identifier)))

    def commit(self, identifier: str) -> None:
        """Commit a transaction, prepared or not.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
            IllegalState: it had to be rolled back instead.
        """
        xid = _xid(identifier)
        with self._engine:
            branches = self._branches
            prepared = any(each.xid == xid and each.state == _PREPARED for each in branches.views())
            _check(identifier, branches.commit(xid, one_phase=not prepared))

    def rollback(self, identifier: str) -> None:
        """Roll back a transaction: drop its publishes and undo its settlements.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
        """
        with self._engine:
            self._branches.rollback(_xid(identifier))

    @property
    def _branches(self) -> Branches:
        return self._state.virtual_host(self._virtual_host).branches


def _check(identifier: str, outcome: XaOutcome) -> None:
    if outcome not in (XaOutcome.OK, XaOutcome.READ_ONLY):
        raise IllegalState(
            f"transaction {identifier!r} is rolled back ({outcome.value}): its channel was lost, or it has "
            "timed out"
        )


def _xid(identifier: str) -> Xid:
    return Xid(0, identifier.encode("utf-8", "surrogateescape"), b"")


def _text(xid: Xid) -> str:
    return xid.global_id.decode("utf-8", "surrogateescape")
