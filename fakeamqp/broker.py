"""`Broker`: what users hold. It composes the rooms below and has no protocol logic of its own.

Every method may be called from any thread. What looks at the broker or changes it does so inside the
engine, so it sees one moment and its effects have been sent when it returns.
"""

from __future__ import annotations

import difflib
import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from typing_extensions import Self

from fakeamqp.errors import FakeAMQPError
from fakeamqp.inspect import Inspection, PublishedView, remark
from fakeamqp.model.access import Permission
from fakeamqp.model.accounts import Accounts, account, accounts, own_copy
from fakeamqp.model.definitions import dump_definitions, load_definitions
from fakeamqp.model.expiration import time_to_live
from fakeamqp.model.message import Message
from fakeamqp.model.parameters import hint
from fakeamqp.model.personality import Personality, personality
from fakeamqp.model.properties import plain_properties
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols import accept, encode
from fakeamqp.runtime import Engine, RealClock
from fakeamqp.trace import Recorder, Trace

if TYPE_CHECKING:
    from fakeamqp.faults import Faults
    from fakeamqp.protocols.amqp_0_9.public import Amqp09
    from fakeamqp.runtime.clock.handle import Clock
    from fakeamqp.runtime.clock.modes import Instant, Mode
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.intercept import Intercept
    from fakeamqp.runtime.listener import Listener
    from fakeamqp.runtime.tls import ServerTLS

__all__ = ["Broker", "BrokerError"]

Definitions: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"

_SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
_CONNECTION_FORCED = 320


class BrokerError(FakeAMQPError):
    """The broker was asked for something it cannot do in its present state."""


class Broker(Inspection):
    """A real AMQP broker in this process.

    Use it as a context manager (`with`, or `async with`), or call `start` and `stop`.

    Args:
        host: address to listen on; loopback unless you name another.
        port: 0 takes a free one; see `port` once it runs.
        personality: whose behaviour to show: "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.2" or
            "rabbitmq-4.3", or "spec" for the documents to the letter.
        clock: whose time it lives by: "real" for the machine's, whatever the test has frozen; "virtual" for
            one that only `clock.advance` and its kin move; "wall" for what `datetime.now()` says, so that
            freezegun and time-machine move it.
        now: what time it shall be on a virtual clock: a datetime (a naive one is UTC) or seconds since the
            epoch. Default: the present.
        tls: True makes a certificate authority on the spot (extra `tls`), a `ServerTLS` brings your own.
        users: replaces guest/guest. Names with passwords (and every right on every virtual host), or with a
            mapping of `password`, `tags`, `limits` and `permissions` {virtual host: (configure, write,
            read)}.
        virtual_hosts: names beside "/".
        definitions: RabbitMQ's definitions, as a path or parsed; loaded at once, and again by `reset`.
        seed: for the names the broker makes up and what random exchanges choose; the same gives the same.
        permit: deprecated features of RabbitMQ to have although the personality denies them, such as
            `["global_qos"]` in rabbitmq-4.3.
        deny: deprecated features to do without although the personality permits them, such as
            `["transient_nonexcl_queues"]` in rabbitmq-4.2.
        history: how many of the latest messages `published` keeps, and `returned`, `dead_lettered` and
            `dropped` each; 0 keeps none.
        trace: how many of the latest events the trace keeps; 0 switches it off.
        settings: further choices of the personality to override by name, such as `heartbeat=0`.

    Raises:
        FakeAMQPError: an argument is misspelled or cannot be honoured.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        personality: str | Personality = "rabbitmq-4.2",
        clock: Mode = "real",
        now: Instant | None = None,
        tls: bool | ServerTLS = False,
        users: Accounts | None = None,
        virtual_hosts: Iterable[str] = (),
        definitions: Definitions | None = None,
        seed: int | str | None = None,
        permit: Iterable[str] = (),
        deny: Iterable[str] = (),
        history: int = 100_000,
        trace: int = 10_000,
        **settings: Any,
    ) -> None:
        broker_clock: RealClock | SteppedClock = RealClock()
        if clock != "real" or now is not None:
            from fakeamqp.runtime.clock.modes import clock_of

            broker_clock = clock_of(clock, now)
        for name, kept in (("history", history), ("trace", trace)):
            if isinstance(kept, bool) or not isinstance(kept, int) or kept < 0:
                raise BrokerError(f"{name} is how many to keep, a whole number from 0 on, not {kept!r}")
        self._mode = clock
        self._clock: Clock | None = None
        self._faults: Faults | None = None
        self._amqp_0_9: Amqp09 | None = None
        self._host = host
        self._asked_port = port
        self._users = None if users is None else accounts(users)
        self._virtual_hosts = tuple(virtual_hosts)
        self._definitions = _parsed(definitions)
        self._state = BrokerState(
            broker_clock,
            personality=_adjusted(personality, settings),
            seed=seed,
            history=history,
            permit=permit,
            deny=deny,
            peer_clock=None if clock == "real" else RealClock(),
        )
        self._recorder = (
            Recorder(broker_clock.now, trace, time=broker_clock.time, clock=clock) if trace else None
        )
        self._state.tap = self._recorder
        self._engine = Engine(
            broker_clock, self._state.timers, self._accept, transport_timers=self._state.peer_timers
        )
        self._listener: Listener | None = None
        self._tls_wanted = tls
        self._tls: ServerTLS | None = None
        self._address: tuple[str, int] | None = None
        self._has_run = False
        self._populate()

    def __repr__(self) -> str:
        if not self.running:
            return "<Broker stopped>"
        # Without the password: representations get into reports.
        return f"<Broker on {self.host}:{self.port} connections={len(self.connections)}>"

    def _accept(self, peer: Any, notify: Any) -> Any:
        return accept(self._state, peer, notify)

    def _populate(self) -> None:
        state = self._state
        for name in self._virtual_hosts:
            state.add_virtual_host(name)
        if self._users is not None:
            state.access.remove("guest")
            for user in self._users:
                state.access.add(own_copy(user, state.virtual_hosts))
        else:
            guest = state.access.users["guest"]
            guest.permissions = {name: Permission() for name in state.virtual_hosts}
        if self._definitions is not None:
            load_definitions(state, self._definitions)

    # --- life -----------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether clients can connect."""
        return self._engine.running

    def start(self) -> Self:
        """Start; clients can connect when this returns. Does nothing when the broker runs.

        After `stop` the port is the same where 0 was asked for, and durable state is still there.

        Raises:
            PortInUse: somebody else has the port.
            TLSUnavailable: TLS needs a package that is not installed.
        """
        if self._engine.running:
            return self
        wrap = {}
        if self._tls_wanted:
            self._tls = self._make_tls()
            wrap["wrap"] = self._tls.wrap
        if self._has_run:
            self._state.restart()
            if self._faults is not None:
                self._faults.after_restart()
        self._engine.start()
        try:
            port = self._asked_port or (self._address[1] if self._address else 0)
            self._listener = self._engine.listen(self._host, port, **wrap)
        except BaseException:
            self._engine.stop()
            raise
        self._address = self._listener.address
        self._has_run = True
        return self

    def stop(self) -> None:
        """Stop: connected clients are told, every socket and thread ends. Twice is once.

        What the broker held can still be looked at.
        """
        if self._engine.running:
            self._close_all()
        self._engine.stop()
        self._listener = None
        if self._tls is not None and self._tls is not self._tls_wanted:
            self._tls.close()

    def restart(self, *, crash: bool = False, durable: bool = True) -> None:
        """Restart on the same port: durable state is kept, transient state is gone.

        Args:
            crash: end as a crash would: clients are not told, and persistent messages that were neither
                confirmed nor committed are lost.
            durable: False loses durable state as well, as with the machine's disk: what the constructor was
                given is there again, and nothing else.

        Raises:
            BrokerError: the broker does not run.
        """
        listener = self._running_listener()
        with self._engine:
            # Who dials as soon as the connection ends finds the port open, and waits until all this is done.
            listener.pause()
            listener.resume()
            if not crash:
                self._close_all()
            self._engine.disconnect_all()
            self._state.restart(crash=crash)
            if not durable:
                self._state.discard("the broker came back without its disk")
                self._state.populate()
                self._populate()
            if self._faults is not None:
                self._faults.after_restart()

    def reset(self) -> None:
        """Back to the beginning, on the same port: no connections, queues, messages, history, trace, faults.

        Users, virtual hosts and definitions given to the constructor are there again; what was handed in with
        `amqp_0_9` is not. A virtual clock stands still at `now` as in the beginning, or at the present where
        that was not given.
        """
        with self._engine:
            if self._faults is not None:
                self._faults.clear()
            if self._amqp_0_9 is not None:
                self._amqp_0_9.clear()
            if self._engine.running:
                self._close_all()
                self._engine.disconnect_all()
            self._state.clear()
            self._state.populate()
            if self._engine.stepped is not None:
                self._engine.stepped.reset()
            self._populate()
            if self._recorder is not None:
                self._recorder.clear()

    def _close_all(self) -> None:
        with self._engine:
            for connection in list(self._state.connections):
                connection.close_by_operator(_CONNECTION_FORCED, _SHUTDOWN)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- where it is -----------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self._running_address()[0]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._running_address()[1]

    @property
    def url(self) -> str:
        """The URL for clients, with the credentials of the first user and virtual host "/"."""
        host, port = self._running_address()
        user = next(iter(self._state.access.users.values()), None)
        credentials = ""
        if user is not None:
            credentials = f"{quote(user.name, safe='')}:{quote(user.password or '', safe='')}@"
        scheme = "amqps" if self._tls_wanted else "amqp"
        return f"{scheme}://{credentials}{f'[{host}]' if ':' in host else host}:{port}/"

    @property
    def tls(self) -> ServerTLS:
        """Certificates: `client_context` for clients, `ca_file`, and `client_certificate(name)` for EXTERNAL.

        Raises:
            BrokerError: the broker does not speak TLS, or has not been started.
        """
        if self._tls is None:
            raise BrokerError("this broker does not speak TLS; make it with Broker(tls=True) and start it")
        return self._tls

    def connect(self) -> socket.socket:
        """A connected, blocking socket whose other end the broker serves: no port, no listener.

        It speaks plain AMQP, also where the broker's port speaks TLS. The caller closes it.
        """
        return self._engine.connect_socketpair()

    def intercept(self, *targets: str) -> Intercept:
        """A context manager under which clients in this process that dial a target reach this broker.

        Args:
            targets: "host:port" or "[ipv6]:port", as the app has it.
        """
        from fakeamqp.runtime.intercept import Intercept

        return Intercept(targets, self._running_address())

    def _make_tls(self) -> ServerTLS:
        from fakeamqp.runtime.tls import ServerTLS

        if isinstance(self._tls_wanted, ServerTLS):
            return self._tls_wanted
        # A throw-away CA lasts as long as the broker, so that clients can reconnect after a restart.
        return self._tls if self._tls is not None else ServerTLS.throwaway()

    def _running_address(self) -> tuple[str, int]:
        if self._address is None:
            raise BrokerError("the broker has no address yet; start it first")
        return self._address

    def _running_listener(self) -> Listener:
        if self._listener is None or not self._engine.running:
            raise BrokerError("the broker does not run; start it first")
        return self._listener

    # --- time ------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The broker's time: what it is, what is going to happen, and how to move it where it is virtual."""
        if self._clock is None:
            from fakeamqp.runtime.clock.handle import Clock

            self._clock = Clock(self._engine, self._mode)
        return self._clock

    # --- what goes wrong ------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """What is to go wrong: rules about methods, the network, alarms."""
        if self._faults is None:
            from fakeamqp.faults import Faults
            from fakeamqp.hosting import FaultHost

            self._faults = Faults(FaultHost(self, self._state, self._engine, self._recorder))
        return self._faults

    # --- what AMQP 0-9 leaves to others ----------------------------------------------------------------

    @property
    def amqp_0_9(self) -> Amqp09:
        """What to hand in for clients of AMQP 0-9: realms, tunnels, out-of-band transports, trace frames."""
        if self._amqp_0_9 is None:
            from fakeamqp.protocols.amqp_0_9.public import Amqp09

            self._amqp_0_9 = Amqp09(self._engine, self._state)
        return self._amqp_0_9

    # --- looking ---------------------------------------------------------------------------------------

    def look(self, at: Callable[[BrokerState], Any], /) -> Any:
        """Call `at` with the broker's state while everything stands still, and return what it returns."""
        with self._engine:
            return at(self._state)

    def wait_for(self, predicate: Callable[[BrokerState], object], /, timeout: float = 5.0) -> bool:
        """Wait until `predicate` of the broker's state is true, at most `timeout` seconds; whether it was."""
        return self._engine.wait_until(lambda: predicate(self._state), timeout)

    def wait_until_idle(self, timeout: float = 5.0) -> None:
        """Wait until everything that arrived has been dealt with and everything to be sent is sent.

        Raises:
            BrokerError: the broker is still busy after `timeout` seconds.
        """
        if not self._engine.wait_until(self._engine.quiet, timeout):
            waiting = self.look(
                lambda state: [
                    f"{each.name} has not read {each.unsent} bytes"
                    for each in state.connections
                    if each.unsent
                ]
            )
            reason = "; ".join(waiting) or "clients go on sending"
            raise BrokerError(f"the broker is still busy after {timeout:g} s: {reason}" + self.look(remark))

    @property
    def trace(self) -> Trace:
        """What happened, in order.

        Raises:
            BrokerError: the trace is switched off.
        """
        if self._recorder is None:
            raise BrokerError("the trace is off; make the broker with trace=10_000, say")
        with self._engine:
            return self._recorder.trace()

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """Bugs of the broker itself that came up while it ran: always empty, whatever clients do."""
        return tuple(failure.error for failure in self._engine.failures)

    # --- acting ----------------------------------------------------------------------------------------

    def publish(
        self,
        body: bytes | str,
        *,
        exchange: str = "",
        routing_key: str = "",
        virtual_host: str = "/",
        **properties: Any,
    ) -> PublishedView:
        """Publish without a client; it is routed, and delivered where somebody waits, when this returns.

        Args:
            body: text is encoded as UTF-8.
            exchange: must exist; "" is the default exchange.
            routing_key: for the default exchange, the name of a queue.
            virtual_host: where.
            properties: `headers`, `content_type`, `delivery_mode`, `expiration`, `priority`, ...

        Raises:
            NotFound: there is no such exchange or virtual host.
            PreconditionFailed: `expiration` is no time to live.
            UnknownProperty: a property is misspelled.
            FieldError: a value does not fit its field; the text says which.
        """
        octets = body.encode() if isinstance(body, str) else bytes(body)
        made = plain_properties(**properties)
        with self._engine:
            host = self._state.virtual_host(virtual_host)
            expires = made.expiration is not None and self._state.personality.expiration_is_ttl
            expiry = time_to_live(str(made.expiration)) if expires else None
            message = Message(exchange, routing_key, made, octets, expiry=expiry)
            message.secured = True
            # What no frame can carry must fail here, not at the client that would be sent it.
            encode(message)
            outcome = host.publish(message)
            return PublishedView.of(virtual_host, message, outcome)

    def load_definitions(self, definitions: Definitions) -> None:
        """Create what RabbitMQ's definitions name, from a file or parsed.

        Raises:
            DefinitionsError: something in them is misspelled or cannot be honoured.
        """
        parsed = _parsed(definitions)
        assert parsed is not None
        with self._engine:
            load_definitions(self._state, parsed)

    def definitions(self) -> dict[str, Any]:
        """The broker's topology and accounts in RabbitMQ's definitions format."""
        dumped: dict[str, Any] = self.look(dump_definitions)
        return dumped

    def add_user(
        self,
        name: str,
        password: str | None = None,
        *,
        tags: Iterable[str] = (),
        permissions: Mapping[str, tuple[str, str, str]] | None = None,
    ) -> None:
        """Add or replace an account; without `permissions` it may do everything everywhere."""
        with self._engine:
            user = account(name, {"password": password, "tags": tags, "permissions": permissions})
            self._state.access.add(own_copy(user, self._state.virtual_hosts))

    def add_virtual_host(self, name: str, *, default_queue_type: str | None = None) -> None:
        """Add a virtual host; accounts that have every right everywhere have it here as well.

        Args:
            name: of the virtual host; one that is there stays.
            default_queue_type: of durable queues declared without `x-queue-type`: "classic", "quorum" or
                "stream".

        Raises:
            ParameterError: there is no such queue type.
        """
        with self._engine:
            if name not in self._state.virtual_hosts:
                known = tuple(self._state.virtual_hosts)
                self._state.add_virtual_host(name)
                for user in self._state.access.users.values():
                    if all(user.permissions.get(each) == Permission() for each in known):
                        user.permissions[name] = Permission()
                self._state.access.changed()
            if default_queue_type is not None:
                host = self._state.virtual_hosts[name]
                host.metadata = replace(host.metadata, default_queue_type=default_queue_type)

    # --- policies and limits ----------------------------------------------------------------------------

    def set_policy(
        self,
        name: str,
        pattern: str,
        definition: Mapping[str, Any],
        *,
        apply_to: str = "all",
        priority: float = 0,
        virtual_host: str = "/",
        operator: bool = False,
    ) -> None:
        """Set or replace a policy: options for the queues and exchanges whose names match. It holds at once.

        Args:
            name: of the policy, unique in its virtual host.
            pattern: a regular expression, found anywhere in the name; "^orders" is what begins so.
            definition: what it sets, in RabbitMQ's words and units, such as {"message-ttl": 60_000}.
            apply_to: "queues", "classic_queues", "quorum_queues", "streams", "exchanges", or "all".
            priority: of all policies that match only the one with the highest counts.
            virtual_host: where.
            operator: make it an operator policy: it joins the other policy, and the stricter limit holds.

        Raises:
            PolicyError: a key is misspelled, or a value is illegal; the text says which.
            NotAllowed, InvalidPath: there is no such virtual host.
        """
        value = {"pattern": pattern, "definition": definition, "apply-to": apply_to, "priority": priority}
        with self._engine:
            self._state.virtual_host(virtual_host).policies.set(name, value, operator=operator)

    def clear_policy(self, name: str, virtual_host: str = "/", operator: bool = False) -> None:
        """Take a policy away: what it set ends at once.

        Raises:
            PolicyError: there is none of this name; the text names the nearest match.
            NotAllowed, InvalidPath: there is no such virtual host.
        """
        with self._engine:
            self._state.virtual_host(virtual_host).policies.clear(name, operator=operator)

    def set_limits(
        self,
        virtual_host: str = "/",
        *,
        max_connections: int | None = None,
        max_queues: int | None = None,
    ) -> None:
        """Limit a virtual host. What there is stays, also where it is more.

        A limit of 0 allows nothing, -1 is no limit, and one that is left out stays as it is.

        Args:
            virtual_host: which.
            max_connections: how many connections may be open to it.
            max_queues: how many queues it may have, exclusive ones included.

        Raises:
            LimitsError: a limit is no whole number.
            NotAllowed, InvalidPath: there is no such virtual host.
        """
        with self._engine:
            host = self._state.virtual_host(virtual_host)
            where = f"virtual host {virtual_host!r}"
            host.limits = host.limits.changed(where, max_connections=max_connections, max_queues=max_queues)

    def set_user_limits(
        self, user: str, *, max_connections: int | None = None, max_channels: int | None = None
    ) -> None:
        """Limit a user. What is open stays open, also where it is more.

        A limit of 0 allows nothing, -1 is no limit, and one that is left out stays as it is.

        Args:
            user: the name of the account.
            max_connections: how many connections it may have, to all virtual hosts together.
            max_channels: how many channels it may have, on all connections together.

        Raises:
            LimitsError: a limit is no whole number.
            BrokerError: there is no such account.
        """
        with self._engine:
            found = self._state.access.users.get(user)
            if found is None:
                raise BrokerError(f"there is no user {user!r}{hint(user, self._state.access.users)}")
            where = f"user {user!r}"
            found.limits = found.limits.changed(
                where, max_connections=max_connections, max_channels=max_channels
            )

    def block(self, reason: str) -> None:
        """Hold back everybody who publishes, and tell those who want to know (connection.blocked)."""
        with self._engine:
            self._state.block(reason)

    def unblock(self) -> None:
        """End what `block` began."""
        with self._engine:
            self._state.unblock()


def _adjusted(name: str | Personality, settings: Mapping[str, Any]) -> Personality:
    """The personality, with some choices overridden.

    Raises:
        FakeAMQPError: there is no such personality or choice.
    """
    from dataclasses import fields, replace

    chosen = personality(name)
    known = [field.name for field in fields(Personality)]
    for setting in settings:
        if setting not in known:
            near = difflib.get_close_matches(setting, [*known, *_ARGUMENTS], n=1)
            raise BrokerError(
                f"Broker has no argument {setting!r}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
    return replace(chosen, **settings)


_ARGUMENTS = tuple(name for name in Broker.__init__.__annotations__ if name not in ("settings", "return"))


def _parsed(definitions: Definitions | None) -> Mapping[str, Any] | None:
    if definitions is None or isinstance(definitions, Mapping):
        return definitions
    path = Path(definitions)
    try:
        parsed = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise BrokerError(f"definitions: cannot read {str(path)!r}: {problem}") from problem
    if not isinstance(parsed, Mapping):
        raise BrokerError(f"definitions: {str(path)!r} must hold one JSON object")
    return parsed
