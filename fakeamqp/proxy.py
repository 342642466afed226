"""`Proxy`: faults, trace, checks and assertions in front of a RabbitMQ, or any broker of 0-9-1 or 1.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote, urlsplit

from fakeamqp.endpoint import Endpoint, Runtime
from fakeamqp.errors import BrokerError, without_login
from fakeamqp.model.state import BrokerState
from fakeamqp.runtime.dialing import Target
from fakeamqp.trace.recorder import Recorder
from fakeamqp.trace.recording import Recording, RecordingTap

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Callable

    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.runtime.tls import ServerTLS

_PORTS = {"amqp": 5672, "amqps": 5671}
_REASONS = {
    "consumer consumers definitions exchange exchanges explain policies queue queues sessions topology "
    "virtual_hosts": ("a proxy does not see what the broker behind it holds; ask its management API"),
    "dead_lettered dropped expect_dead_lettered expect_dropped": (
        "a proxy does not see what becomes of a message in the broker behind it"
    ),
    "add_user add_virtual_host clear_permissions clear_policy load_definitions remove_user "
    "remove_virtual_host clear_topic_permissions set_permissions set_topic_permissions users set_firehose "
    "set_limits set_policy set_user_limits": ("a proxy cannot configure the broker behind it"),
    "management_port management_url": "a proxy has no HTTP API; ask that of the broker behind it",
    "login": "a proxy does not know the accounts of the broker behind it",
    "connect intercept": "clients reach a proxy by its URL only",
    "late race_seed": "races are delays in a broker of fakeamqp",
    "add_service": "a service runs in a broker of fakeamqp",
    "amqp_0_9": "a proxy speaks AMQP 0-9-1",
    "clock": "a proxy cannot move the time of the broker behind it",
    "publish": "a proxy publishes nothing itself; connect a client",
    "restart": "a proxy cannot restart the broker behind it",
    "crash": "a proxy cannot crash the broker behind it; use disconnect(), or stop that broker",
    "redirect": "AMQP 0-9-1 has no connection.redirect",
    "starve": "the credit of consumers is counted by the broker behind a proxy",
    "cancel_consumers cancel-consumers": (
        "a proxy does not see the queues; delete the queue on the broker behind it"
    ),
}
IMPOSSIBLE: Mapping[str, str] = {name: why for names, why in _REASONS.items() for name in names.split()}
"""Why a proxy has not some members of `Broker`, and some of its faults, by name."""


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
        record: a file to which all events are written as they happen, or a `Recording` that says more.
        runtime: what the proxy runs in: "thread" for a thread of its own; "asyncio" for the event loop that
            runs when it starts (`async with`).
        control: True serves the control interface (extra `management`) at `control_url`, and the inspector
            page.
        control_port: port of the control interface, which it switches on; 0 takes a free one.

    Raises:
        BrokerError: a URL is none of AMQP.
        ManagementUnavailable: a package that HTTP needs is not installed.
    """

    _kind = "proxy"
    _shutdown = "the proxy has been stopped"
    _impossible = IMPOSSIBLE

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
        record: str | os.PathLike[str] | Recording | None = None,
        runtime: Runtime = "thread",
        control: bool = False,
        control_port: int | None = None,
    ) -> None:
        urls = [to] if isinstance(to, str) else [] if isinstance(to, Endpoint) else list(to)
        if not urls:
            raise BrokerError(
                "Proxy needs the URL of a broker, such as 'amqp://guest:guest@localhost:5672/%2F'"
            )
        super().__init__(host, port, tls, runtime)
        self._targets = [_target(url, to_tls) for url in urls]
        if to_tls is not None and not (
            hasattr(to_tls, "wrap_bio") and any(each.context is to_tls for each in self._targets)
        ):
            raise BrokerError(
                "to_tls is the ssl.SSLContext for a broker with an amqps:// URL, such as "
                "ssl.create_default_context(cafile='ca.pem')"
            )
        self._login, self._path = _login_of(urls[0])
        clock = self._machine
        self._state = state = BrokerState(clock, seed=seed, history=history)
        targets = self._targets

        def accept(peer: PeerAddress, notify: Callable[[Connection], None]) -> Connection:
            # The thread of the engine does not keep the proxy alive.
            from fakeamqp.protocols import registry
            from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection

            return ProxiedConnection(state, peer, notify, dial, registry.proxied_by_header)

        recorder = Recorder(clock.now, trace, time=clock.time) if trace else None
        self._compose(clock, accept, recorder)
        dial = partial(self._engine.dial, targets)
        self._recording: RecordingTap | None = None
        if record is not None:
            settings = record if isinstance(record, Recording) else Recording(record)
            self._recording = RecordingTap(settings, clock.now, clock.time, recorder)
            self._observer = state.tap = self._recording
            self._engine.before_flush = self._recording.flush  # A proxy has no memory alarm to settle.
        self._management = self._accompany(control=control, control_port=control_port)

    def __getattr__(self, name: str) -> NoReturn:
        why = (
            f"a proxy has no {name}: {IMPOSSIBLE[name]}" if name in IMPOSSIBLE else f"a proxy has no {name!r}"
        )
        raise AttributeError(why, name=name, obj=self)

    def __repr__(self) -> str:
        to = ", ".join(map(str, self._targets))
        if not self.running:
            return f"<Proxy to {to}, stopped>"
        return f"<Proxy on {self.host}:{self.port} to {to} connections={len(self._state.connections)}>"

    def _prepare_start(self) -> int:
        port = super()._prepare_start()
        if self._recording is not None:
            self._recording.prepare()
        return port

    def _started(self) -> None:
        if self._recording is not None:
            # Not before: a failed start must not move the files of earlier recordings.
            try:
                with self._engine:
                    self._recording.start()
            except BaseException:
                self._stop_engine()
                raise
        super()._started()

    def _stop_engine(self) -> None:
        super()._stop_engine()
        if self._recording is not None:
            self._recording.stop()

    def _reset(self, name: str) -> None:
        with self._engine:
            super()._reset(name)
            if self._recording is not None:
                self._recording.clear()

    @property
    def url(self) -> str:
        """The URL for clients: the account and the virtual host are those of the broker's URL."""
        return self._url_with(self._login)


def _target(url: str, context: ssl.SSLContext | None) -> Target:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        if not parts.hostname:
            raise ValueError
    except (KeyError, ValueError):
        raise BrokerError(
            f"{without_login(str(url))!r} is no URL of a broker: give one such as "
            "'amqp://guest:guest@localhost:5672/%2F', or with amqps:// for TLS; characters such as / in a "
            "password are written as %2F"
        ) from None
    if parts.scheme == "amqps" and context is None:
        from ssl import create_default_context

        context = create_default_context()
    if parts.scheme == "amqp":
        context = None
    return Target(unquote(parts.hostname), port, context)


def _login_of(url: str) -> tuple[str, str]:
    """The account of a URL, as it stands before the host, and the path, with the query."""
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    return login + at, parts._replace(scheme="", netloc="", fragment="").geturl()
