"""`Proxy`: faults, trace, checks and assertions in front of a RabbitMQ, or any broker of AMQP 0-9-1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit
from weakref import finalize

from fakeamqp.connection import bracketed
from fakeamqp.endpoint import Endpoint, Runtime, caller, engine_of, in_loop, warn_of_drop
from fakeamqp.errors import BrokerError
from fakeamqp.fault_context import FaultContext
from fakeamqp.inspect.inspection import StateReader
from fakeamqp.model.state import BrokerState
from fakeamqp.runtime import RealClock
from fakeamqp.runtime.dialing import Target
from fakeamqp.trace.recorder import Recorder

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from typing_extensions import Self

    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.faults import Faults
    from fakeamqp.runtime import ThreadEngine
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.runtime.event_loop.engine import LoopEngine
    from fakeamqp.runtime.listener import Listener
    from fakeamqp.runtime.tls import ServerTLS

_PORTS = {"amqp": 5672, "amqps": 5671}
_CONNECTION_FORCED = 320
IMPOSSIBLE: Mapping[str, str] = {
    "crash": "a proxy cannot crash the broker behind it; use disconnect(), or stop that broker",
    "restart": "a proxy cannot restart the broker behind it",
    "redirect": "AMQP 0-9-1 has no connection.redirect",
    "starve": "a proxy speaks AMQP 0-9-1, whose consumers give no credit",
    "cancel_consumers": "a proxy does not see the queues; delete the queue on the broker",
    "cancel-consumers": "a proxy does not see the queues",
}
"""Why some faults are not possible in front of another broker, by name."""


class Proxy(Endpoint):
    """A proxy in front of a broker, with the faults, the trace, the checks and the assertions of `Broker`.

    Clients connect to `url` instead of the broker. Without a fault all bytes pass unchanged, in both
    directions. It is for tests and staging, not for production.

    Use it as a context manager, or call `start` and `stop`.

    Args:
        to: the URL of the broker, such as "amqp://guest:guest@rabbit:5672/%2F"; "amqps://" for TLS. Of
            several URLs the first that can be reached is taken, for each client anew.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        tls: True creates a temporary certificate authority for clients; a `ServerTLS` provides your own.
        to_tls: the SSL context for the broker; by default that of the machine's authorities.
        seed: determines what fault rules draw.
        history: how many of the latest messages `published` and `returned` each keep; 0 keeps none.
        trace: how many of the latest events the trace keeps; 0 switches it off.
        runtime: what the proxy runs in: "thread" for a thread of its own; "asyncio" for the event loop that
            runs when it starts (`async with`).

    Raises:
        BrokerError: a URL is none of AMQP.
    """

    def __init__(
        self,
        to: str | Sequence[str],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: bool | ServerTLS = False,
        to_tls: ssl.SSLContext | None = None,
        seed: int | str | None = None,
        history: int = 100_000,
        trace: int = 10_000,
        runtime: Runtime = "thread",
    ) -> None:
        urls = [to] if isinstance(to, str) else list(to)
        if not urls:
            raise BrokerError(
                "Proxy needs the URL of a broker, such as 'amqp://guest:guest@localhost:5672/%2F'"
            )
        self._targets = [_target(url, to_tls) for url in urls]
        self._login, self._path = _login_of(urls[0])
        self._host = host
        self._asked_port = port
        self._tls_wanted = tls
        self._tls: ServerTLS | None = None
        self._in_loop = in_loop(runtime)
        clock: RealClock = RealClock()
        if self._in_loop:
            from fakeamqp.runtime.event_loop.engine import LoopClock

            clock = LoopClock()
        self._state = BrokerState(clock, seed=seed, history=history)
        self._state.stage = "not started"
        self._recorder = Recorder(clock.now, trace, time=clock.time) if trace else None
        self._state.tap = self._recorder
        self._state.latest_events = None if self._recorder is None else self._recorder.timeline
        self._engine = _engine_of(self._state, clock, self._targets)
        self._reader = StateReader(self._engine, self._state)
        self._faults: Faults | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._address: tuple[str, int] | None = None
        self._dropped: finalize[..., Any] | None = None

    def __repr__(self) -> str:
        to = ", ".join(map(str, self._targets))
        if not self.running:
            return f"<Proxy to {to}, stopped>"
        return f"<Proxy on {self.host}:{self.port} to {to} connections={len(self._state.connections)}>"

    # --- life cycle -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether clients can connect."""
        return self._engine.running

    def start(self) -> Self:
        """Start the proxy; clients can connect when this returns. Does nothing while it runs.

        Raises:
            PortInUse: another socket uses the port.
            TLSUnavailable: the package that TLS needs is not installed.
            BrokerError: it runs in an event loop.
        """
        if self._in_loop:
            raise BrokerError("a proxy with runtime='asyncio' starts with `async with proxy:`")
        engine = cast("ThreadEngine", self._engine)
        with engine.one_by_one():
            if not engine.running:
                port = self._prepare_start()
                try:
                    engine.start()
                    self._listeners = engine.listen_on(self._host, port, tls=self._tls)
                except BaseException:
                    engine.stop()
                    raise
                self._started()
        return self

    async def start_async(self) -> Self:
        """`start` for coroutines. A proxy with `runtime="asyncio"` runs in the event loop of the caller."""
        if not self._in_loop:
            return self.start()
        engine = cast("LoopEngine", self._engine)
        if not engine.running:
            port = self._prepare_start()
            try:
                engine.start()
                self._listeners = await engine.listen_on(self._host, port, tls=self._tls)
            except BaseException:
                engine.stop()
                raise
            self._started()
        return self

    def _prepare_start(self) -> int:
        """Get what the start needs; returns the port to listen on, 0 for any."""
        if self._tls_wanted and self._tls is None:
            from fakeamqp.runtime.tls import ServerTLS

            given = isinstance(self._tls_wanted, ServerTLS)
            self._tls = self._tls_wanted if given else ServerTLS.throwaway()  # type: ignore[assignment]
        return self._asked_port or (self._address[1] if self._address else 0)

    def _started(self) -> None:
        self._address = self._listeners[0].address
        self._state.stage = "running"
        self._dropped = finalize(self, warn_of_drop, self._engine, self._address, *caller())

    def stop(self) -> None:
        """Close all connections with a handshake, then every socket, and end the thread. Idempotent."""
        with self._engine.one_by_one():
            if self._engine.running:
                with self._engine:
                    self._close_all("the proxy has been stopped")
                self._state.stage = "stopped"
            self._engine.stop()
            if self._dropped is not None:
                self._dropped.detach()
            self._listeners = ()
            if self._tls is not None and self._tls is not self._tls_wanted:
                self._tls.close()

    async def stop_async(self) -> None:
        """`stop` for coroutines. In an event loop, the loop has closed all streams afterwards."""
        self.stop()
        await self._engine.stopped()

    def reset(self) -> None:
        """Close all connections, and forget messages, trace and faults."""
        with self._engine:
            if self._faults is not None:
                self._faults.clear()
            self._close_all("the proxy has been reset")
            self._engine.disconnect_all()
            self._state.clear()
            self._state.populate()
            if self._recorder is not None:
                self._recorder.clear()

    def _close_all(self, why: str) -> None:
        for connection in list(self._state.connections):
            connection.close_by_operator(_CONNECTION_FORCED, f"CONNECTION_FORCED - {why}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await self.start_async()

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.stop_async()

    # --- addresses and faults -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL for clients: the account and the virtual host are those of the broker's URL."""
        host, port = self._running_address()
        scheme = "amqps" if self._tls_wanted else "amqp"
        return f"{scheme}://{self._login}{bracketed(host)}:{port}{self._path}"

    @property
    def tls(self) -> ServerTLS:
        """Certificates for clients: see `Broker.tls`.

        Raises:
            BrokerError: clients do not use TLS, or the proxy has not been started.
        """
        if not self._tls_wanted:
            raise BrokerError("clients of this proxy do not use TLS; make it with Proxy(..., tls=True)")
        self._state.check_started()
        assert self._tls is not None
        return self._tls

    @property
    def faults(self) -> Faults:
        """Faults to inject: rules about methods, the network, alarms."""
        if self._faults is None:
            from fakeamqp.faults import Faults

            self._faults = Faults(_ProxyFaultContext(self, self._state, self._engine, self._recorder))
        return self._faults


class _ProxyFaultContext(FaultContext):
    """What faults need of a proxy, and why some are not possible."""

    impossible = IMPOSSIBLE

    def __init__(self, proxy: Proxy, state: BrokerState, engine: Engine, recorder: Recorder | None) -> None:
        super().__init__(proxy, state, engine, recorder, recorder)  # type: ignore[arg-type]


def _engine_of(state: BrokerState, clock: RealClock, targets: Sequence[Target]) -> Engine:
    def accept(peer: PeerAddress, notify: Callable[[Connection], None]) -> Connection:
        # The thread of the engine does not keep the proxy alive.
        from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection

        return ProxiedConnection(state, peer, notify, partial(engine.dial, targets))

    engine = engine_of(state, clock, clock, accept)
    return engine


def _target(url: str, context: ssl.SSLContext | None) -> Target:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BrokerError(
            f"{_without_password(url)!r} is no URL of a broker: give one such as "
            "'amqp://guest:guest@localhost:5672/%2F', or with amqps:// for TLS"
        )
    if parts.scheme == "amqps" and context is None:
        from ssl import create_default_context

        context = create_default_context()
    if parts.scheme == "amqp":
        context = None
    return Target(unquote(parts.hostname), parts.port or _PORTS[parts.scheme], context)


def _login_of(url: str) -> tuple[str, str]:
    """The account of a URL, as it stands before the host, and the path."""
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    return login + at, parts.path


def _without_password(url: object) -> str:
    import re

    return re.sub(r":[^:@/]*@", ":***@", str(url))
