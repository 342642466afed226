"""`Broker`, the entry point for users. It composes the other packages and has no protocol logic of its own.

Every method may be called from any thread. Methods that read or change the broker run inside the engine: they
see one consistent state, and their effects have been sent when they return.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from fakeamqp.arguments import check_arguments
from fakeamqp.endpoint import Endpoint, Runtime
from fakeamqp.errors import BrokerError, nearest
from fakeamqp.inspect.inspection import Inspection
from fakeamqp.model.access import Accounts, Permission, accounts, own_copy
from fakeamqp.model.limits import DEFAULT_BOUNDS
from fakeamqp.model.memory import default_limit
from fakeamqp.model.personality import PERSONALITIES, Personality, personality
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols import registry
from fakeamqp.trace.recorder import Recorder

if TYPE_CHECKING:
    import socket

    from typing_extensions import Never, Unpack

    from fakeamqp.admin import Admin
    from fakeamqp.endpoint import AnyClock
    from fakeamqp.inspect.messages import PublishedView
    from fakeamqp.model.limits import Bounds
    from fakeamqp.model.messages.message import MessageProperties, ReadableProperties
    from fakeamqp.model.races import Draw
    from fakeamqp.model.state import ClientConnection
    from fakeamqp.model.versions import PersonalityName
    from fakeamqp.protocols.amqp_0_9.public import Amqp09
    from fakeamqp.runtime.clock.handle import Clock, Instant, Mode
    from fakeamqp.runtime.event_loop.engine import LoopEngine
    from fakeamqp.runtime.intercept import Intercept
    from fakeamqp.runtime.tls import ServerTLS
    from fakeamqp.services import Services

__all__ = ["NO_JSON", "BadBody", "Broker", "BrokerError", "payload_of"]

Definitions: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"

T = TypeVar("T")

NO_JSON: Any = object()
"""The `json` of a publish that gives none: None is a JSON value."""


class BadBody(BrokerError, TypeError):
    """The body of a message is neither bytes nor text."""

    __module__ = "fakeamqp.errors"


class Broker(Endpoint, Inspection):
    """A real AMQP broker in this process.

    Use it as a context manager (`with`, or `async with`), or call `start` and `stop`. What is loaded, added,
    set and published before the start is there when it starts. A broker that is stopped can be inspected, and
    takes no messages.

    Args:
        host: address to listen on; "localhost" means 127.0.0.1 and, where the machine has it, ::1.
        port: port to listen on; 0 takes a free one, which `port` tells once the broker runs.
        personality: the behaviour to emulate: "rabbitmq-3.10", "rabbitmq-3.13", "rabbitmq-4.0",
            "rabbitmq-4.1", "rabbitmq-4.2" or "rabbitmq-4.3", or "spec" for the published specifications
            to the letter; or a `Personality`, such as `Personality("rabbitmq-4.3").with_(heartbeat=0)`.
        clock: the source of the broker's time: "real" for the machine's, even if the test has frozen it;
            "virtual" for time that only `clock.advance` and related methods move; "wall" for what
            `datetime.now()` returns, so that freezegun and time-machine move it.
        now: the initial time of a virtual clock: a datetime (a naive one is UTC) or seconds since the epoch.
            Default: the present.
        tls: True creates a temporary certificate authority (extra `tls`); a `ServerTLS` provides your own.
        users: replaces guest/guest. Maps each name to a password (and all permissions on all virtual hosts),
            or to a mapping of `password`, `tags`, `limits` and `permissions` {virtual host: (configure,
            write, read)}.
        virtual_hosts: names of virtual hosts besides "/".
        definitions: RabbitMQ definitions, as a path or parsed; loaded now, and again by `reset`.
        seed: determines generated names, the choices of random exchanges, and what fault rules draw. By
            default another one each time; in a simulation, the seed of the simulation.
        races: True delays some confirms, messages and settlements, as RabbitMQ does; a
            number is the seed of the delays. Default: only in a simulation, whose schedule draws them.
        permit: deprecated RabbitMQ features to permit although the personality denies them, such as
            `["global_qos"]` in rabbitmq-4.3.
        deny: deprecated features to deny although the personality permits them, such as
            `["transient_nonexcl_queues"]`.
        history: how many of the latest messages `published`, `returned`, `dead_lettered` and `dropped` each
            keep; 0 keeps none.
        trace: how many of the latest events the trace keeps; 0 switches it off.
        memory_limit: bytes of messages, histories and trace above which publishers are blocked, as by
            RabbitMQ's memory alarm; None for no limit. "auto" is the smaller of 1 GiB and 40 % of the
            machine's memory. See `memory`.
        bounds: of what clients can make the broker keep, such as `Bounds(consumers_per_channel=100)`.
        management: True serves RabbitMQ's HTTP API (extra `management`), at `management_url`.
        management_port: port of the HTTP API, which it switches on; 0 takes a free one.
        management_hosts: names by which HTTP may be asked, besides IP addresses and the names of this
            machine; others are refused, since a web site could point its own name to this machine.
        control: True serves the control interface (extra `management`) at `control_url`, and the inspector
            page; so does `management`, on the same port.
        control_port: port of the control interface, which it switches on; 0 takes a free one.
        runtime: what the broker runs in: "thread" for a thread of its own; "asyncio" for the event loop that
            runs when it starts (`async with`). The time of such a broker is that of the loop, and only
            coroutines of this loop can be its clients.
        misspelled: other names are errors.

    Raises:
        FakeAMQPError: an argument is misspelled or invalid.
        ManagementUnavailable: a package that HTTP needs is not installed.
    """

    _shutdown = "broker forced connection closure with reason 'shutdown'"

    def __init__(
        self,
        /,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        personality: PersonalityName | Personality = "rabbitmq-4.3",
        clock: Mode = "real",
        now: Instant | None = None,
        tls: bool | ServerTLS = False,
        users: Accounts | None = None,
        virtual_hosts: Iterable[str] = (),
        definitions: Definitions | None = None,
        seed: int | str | None = None,
        races: bool | int | None = None,
        permit: Iterable[str] = (),
        deny: Iterable[str] = (),
        history: int = 100_000,
        trace: int = 10_000,
        memory_limit: int | Literal["auto"] | None = "auto",
        bounds: Bounds | None = None,
        management: bool = False,
        management_port: int | None = None,
        management_hosts: Iterable[str] = (),
        control: bool = False,
        control_port: int | None = None,
        runtime: Runtime = "thread",
        **misspelled: Never,
    ) -> None:
        if misspelled:
            raise BrokerError(_no_argument(*next(iter(misspelled.items()))))
        check_arguments(locals())
        super().__init__(host, port, tls, runtime)
        machine = self._machine
        broker_clock: AnyClock = machine
        if clock != "real" or now is not None:
            from fakeamqp.runtime.clock.handle import clock_of

            broker_clock = clock_of(clock, now)
        self._mode = clock
        self._clock: Clock | None = None
        self._amqp_0_9: Amqp09 | None = None
        self._services: Services | None = None
        self._users = None if users is None else accounts(users)
        self._virtual_hosts = tuple(virtual_hosts)
        self._definitions = None if definitions is None else _parsed(definitions)
        self._kept: list[Mapping[str, Any]] = []
        """Definitions that are loaded again after a reset, in order."""
        self._state = state = BrokerState(
            broker_clock,
            personality=_checked(personality),
            seed=seed,
            history=history,
            permit=permit,
            deny=deny,
            peer_clock=None if clock == "real" else machine,
            memory_limit=default_limit() if memory_limit == "auto" else memory_limit,
            bounds=DEFAULT_BOUNDS if bounds is None else bounds,
        )
        recorder = (
            Recorder(
                broker_clock.now,
                trace,
                time=broker_clock.time,
                clock=clock,
                most_octets=state.bounds.trace_octets,
                real_time=None if clock == "real" else machine.now,
            )
            if trace
            else None
        )

        def accept(peer: Any, notify: Any) -> Any:  # The thread of the engine does not keep the broker alive.
            from fakeamqp.protocols.negotiation import accept

            return accept(state, peer, notify)

        self._compose(broker_clock, accept, recorder)
        self._asked_races = races
        race_seed = _race_seed(races, seed)
        if race_seed is not None:
            from fakeamqp.model.races import seeded

            self._race(seeded(race_seed), race_seed)
        self._management = self._accompany(
            control=control,
            control_port=control_port,
            hosts=management_hosts,
            management=management,
            management_port=management_port,
        )
        if self._management is not None and self._management.serves_api:
            self._observer = state.tap = self._management.observe(recorder)
        self._populate()

    def __repr__(self) -> str:
        if not self.running:
            return "<Broker stopped>"
        # Without the password: representations get into reports.
        return f"<Broker on {self.host}:{self.port} connections={len(self.connections)}>"

    def _race(self, draw: Draw, seed: int | None = None) -> None:
        """Delay some messages, confirms and acks, as `draw` says."""
        from fakeamqp.model.races import Races

        alias = (lambda _: None) if self._recorder is None else self._recorder.alias
        self._state.races = Races(self._state.peer_timers, draw, seed=seed, alias=alias)
        self._engine.late = self._state.races

    def _named(self, connection: ClientConnection) -> str:
        """The name of a connection in texts."""
        from fakeamqp.model.races import named

        alias = None if self._recorder is None else self._recorder.alias(connection.name)
        return named(alias or connection.name, connection.client_properties)

    def _populate(self) -> None:
        self._fill(self._state, self._kept)

    def _fill(self, state: BrokerState, kept: Iterable[Mapping[str, Any]]) -> None:
        """Add what the constructor was given, and definitions that are kept."""
        for name in self._virtual_hosts:
            state.add_virtual_host(name)
        if self._users is not None:
            state.access.remove("guest")
            for user in self._users:
                state.access.add(own_copy(user, state.virtual_hosts))
        else:
            guest = state.access.users["guest"]
            guest.permissions = {name: Permission() for name in state.virtual_hosts}
        for each in kept if self._definitions is None else (self._definitions, *kept):
            from fakeamqp.model.definitions import load_definitions

            load_definitions(state, each)

    # --- life cycle -----------------------------------------------------------------------------------

    def _prepare_start(self) -> int:
        from fakeamqp.protocols.registry import preload

        port = super()._prepare_start()
        preload()
        if self._address is not None:
            self._state.restart()
            if self._faults is not None:
                self._faults.after_restart()
        if self._in_loop:
            self._join(cast("LoopEngine", self._engine))
        return port

    def _join(self, engine: LoopEngine) -> None:
        """Take what the event loop, that of a simulation perhaps, determines."""
        if self._state.seed is None and engine.seed is not None:
            self._state.draw_from(engine.seed)
        if (self._asked_races is None or self._asked_races is True) and engine.lateness is not None:
            self._race(engine.lateness)
        name_connection = engine.name_connection
        if name_connection is not None:
            self._state.on_opened = lambda each: name_connection(each.name, self._named(each))

    def restart(self, *, crash: bool = False, durable: bool = True) -> None:
        """Restart on the same port: durable state is kept, transient state is lost.

        Args:
            crash: simulate a crash: clients get no connection.close, and persistent messages that were
                neither confirmed nor committed are lost.
            durable: False loses durable state as well, as if the disk were lost. Only what the constructor
                was given, and definitions that are kept, are restored.

        Raises:
            BrokerError: the broker does not run.
        """
        with self._engine.one_by_one(), self._engine:
            # A client that reconnects at once finds the port open, and is accepted after the restart.
            self._state.check_started()
            if not self._engine.running:
                raise BrokerError("the broker does not run; start it first")
            for listener in self._listeners:
                listener.drop_waiting()
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
            if self._management is not None:
                self._management.cleared()

    def reset(self) -> None:
        """Return to the initial state on the same port: no connections, queues, messages, history or faults.

        Users, virtual hosts and definitions given to the constructor are restored, and definitions that were
        loaded with `keep=True`; services and registrations made through `amqp_0_9` are removed. A virtual
        clock stands still at `now` again, or at the present if `now` was not given.
        """
        super().reset()

    def _reset(self, name: str) -> None:
        with self._engine:
            if self._amqp_0_9 is not None:
                self._amqp_0_9.clear()
            if self._services is not None:
                self._services.clear()
            super()._reset(name)

    # --- addresses -------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL for clients, with the virtual host "/" (as `%2F`) and an account.

        The account is the first one whose password is known: of an account from definitions the broker knows
        the hash only, unless the password is "guest" for guest, or the argument `users` has it.

        Raises:
            BrokerError: no account has a known password.
        """
        return self._url_with(self._login())

    def _login(self) -> str:
        """The name and the password of an account, as a URL has them before the host. Raises BrokerError."""
        from urllib.parse import quote

        users = self._state.access.users.values()
        user = next((each for each in users if each.password is not None), None)
        if user is None:
            hashed = [each.name for each in users if each.password_hash is not None]
            if hashed:
                raise BrokerError(
                    f"the broker does not know the password of user {hashed[0]!r}: the definitions contain "
                    f"its hash only. Tell it with Broker(users={{{hashed[0]!r}: '...'}}, definitions=...), "
                    "or add an account for the test with broker.admin.add_user('test', '...')"
                )
            user = next(iter(users), None)
        if user is None:
            return ""
        return f"{quote(user.name, safe='')}:{quote(user.password or '', safe='')}@"

    def _management_address(self) -> tuple[str, int]:
        if self._management is None or not self._management.serves_api:
            raise BrokerError("this broker has no HTTP API; create it with Broker(management=True)")
        self._state.check_started()
        assert self._management.address is not None
        return self._management.address

    def connect(self) -> socket.socket:
        """A connected, blocking socket whose peer is the broker. It needs no port and no listener.

        It carries plain AMQP, also if the broker's port uses TLS. The caller closes it. Of a broker with
        `runtime="asyncio"` it is non-blocking, such as for `asyncio.open_connection(sock=...)`.

        Raises:
            BrokerError: the broker does not run.
        """
        self._state.check_started()
        self._state.check_not_stopped()
        return self._engine.connect_socketpair()

    def intercept(self, *targets: str) -> Intercept:
        """A context manager that redirects connections of this process from the targets to this broker.

        A connection that cannot be redirected raises `InterceptError` in the client before anything is sent:
        for example one to an address that the app has looked up before.

        Args:
            targets: "host:port" or "[ipv6]:port", as the app is configured.

        Raises:
            InterceptError: a target has no host or no port.
        """
        from fakeamqp.runtime.intercept import Intercept

        return Intercept(targets, self._running_address())

    # --- time ------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The broker's clock: the time, the pending timers, and methods to move virtual time."""
        if self._clock is None:
            from fakeamqp.runtime.clock.handle import Clock

            self._clock = Clock(self._engine, self._mode)
        return self._clock

    # --- administration --------------------------------------------------------------------------------

    @property
    def admin(self) -> Admin:
        """Accounts, virtual hosts, policies, limits and services at run time, and URLs of HTTP interfaces."""
        from fakeamqp.admin import Admin

        return Admin(self)

    # --- actions ---------------------------------------------------------------------------------------

    def publish(
        self,
        body: bytes | bytearray | memoryview | str | None = None,
        *,
        json: Any = NO_JSON,
        exchange: str = "",
        routing_key: str = "",
        virtual_host: str = "/",
        headers: Mapping[str, Any] | None = None,
        sections: Mapping[str, Any] | None = None,
        **properties: Unpack[MessageProperties],
    ) -> PublishedView:
        """Publish a message without a client. It is routed, and delivered to consumers, when this returns.

        Args:
            body: bytes, or text to be encoded as UTF-8.
            json: instead of `body`: a value to be encoded as JSON. The content type is then
                "application/json", unless `content_type` is given.
            exchange: an existing exchange; "" is the default exchange.
            routing_key: for the default exchange, the name of a queue.
            virtual_host: the virtual host of the exchange.
            headers: of the message.
            sections: those of a message of AMQP 1.0, instead of headers and properties: `header`,
                `annotations`, `properties`, `application_properties`, `footer`, and instead of `body` one of
                `data`, `sequence` and `value`. `Message.sections` of a view has the same form.
            properties: `content_type`, `delivery_mode`, `expiration`, `priority`, ...

        Raises:
            BadBody: (a TypeError as well) the body is neither bytes nor text, or not exactly one of `body`
                and `json` is given.
            NotFound: the exchange or the virtual host does not exist.
            PreconditionFailed: `expiration` is not a valid TTL.
            UnknownProperty: a property is misspelled.
            FieldError: a value does not fit its field; the text says which.
            BrokerError: the broker is stopped.
        """
        from fakeamqp.inspect.messages import PublishedView
        from fakeamqp.model.messages.message import Message, plain_properties, time_to_live

        made: ReadableProperties
        if sections is not None:
            if headers is not None or properties or json is not NO_JSON:
                raise BrokerError("broker.publish: sections have the place of json, headers and properties")
            octets = None if body is None else payload_of("broker.publish", body, json)
            row = next(row for row in registry.PROTOCOLS if "links" in row.capabilities)
            made, payload = row.sections(self._state.personality, sections, octets)
        else:
            payload = payload_of("broker.publish", body, json)
            if json is not NO_JSON:
                properties.setdefault("content_type", "application/json")
            made = plain_properties(headers=headers, **properties)
        with self._engine:
            self._state.check_not_stopped()
            target = self._state.virtual_host(virtual_host)
            expires = made.expiration is not None and self._state.personality.expiration_is_ttl
            expiry = time_to_live(str(made.expiration)) if expires else None
            message = Message(exchange, routing_key, made, payload, expiry=expiry)
            message.secured = True
            if sections is None:
                # A message that no frame can carry must fail here, not when it is delivered.
                registry.PROTOCOLS[0].check_message(message)
            if target.firehose is not None:
                from fakeamqp.model.virtual_host.firehose import TEST

                target.firehose.publisher = TEST
            outcome = target.publish(message)
            return PublishedView.of(virtual_host, message, outcome)

    def load_definitions(self, definitions: Definitions, *, keep: bool = False) -> None:
        """Load RabbitMQ definitions, from a file or parsed.

        Args:
            definitions: a path, or the parsed JSON.
            keep: load them again after each `reset`, and after `restart(durable=False)`: in the order of the
                calls, after the definitions given to the constructor. The broker keeps a copy of them as they
                are now. Definitions that it keeps already move to the end.

        Raises:
            DefinitionsError: a key or value is misspelled or not supported; the text says which. Or
                definitions to keep need what a reset removes.
        """
        from fakeamqp.model.definitions import loading

        parsed = _parsed(definitions)
        with self._engine:
            self._engine.carry_out(loading(self._state, parsed))
            if keep:
                kept = [*(each for each in self._kept if each != parsed), deepcopy(dict(parsed))]
                self._check_kept(kept)
                self._kept = kept

    def _check_kept(self, kept: Iterable[Mapping[str, Any]]) -> None:
        """Check that a reset can load definitions again."""
        from fakeamqp.model.definitions import DefinitionsError

        trial = BrokerState(self._state.clock, personality=self._state.personality)
        trial.features = self._state.features

        try:
            self._fill(trial, kept)
        except DefinitionsError as problem:
            raise DefinitionsError(
                f"the definitions are loaded, but cannot be kept: after a reset, {problem}; a reset removes "
                "all that was not given to Broker(...) or kept, so keep what these definitions need, too"
            ) from None

    def definitions(self) -> dict[str, Any]:
        """The broker's topology and accounts in RabbitMQ's definitions format."""
        from fakeamqp.model.definitions import dump_definitions

        return self._reader.read(dump_definitions)


def payload_of(call: str, body: object, json: object) -> bytes:
    """The bytes of a message, of its body or of a value that is not `NO_JSON`.

    Raises BadBody, which names the `call`, if the body is neither bytes nor text, or none or both are given.
    """
    if json is not NO_JSON:
        if body is not None:
            raise BadBody(f"{call}: body and json are given; give one of them")
        from json import dumps

        return dumps(json).encode()
    if isinstance(body, str):
        return body.encode()
    if body is None:
        raise BadBody(f"{call}: no body; give bytes, text, or a value as json=")
    try:
        return memoryview(body).tobytes()  # type: ignore[arg-type]
    except TypeError:
        raise BadBody(
            f"{call}: the body is {type(body).__name__}, and must be bytes or str; "
            f"what is to be encoded as JSON goes as json=, such as {call}(json={{...}})"
        ) from None


def _checked(name: str | Personality) -> Personality:
    """A personality by its name, or one of the user, whose choices are checked. Raises FakeAMQPError."""
    chosen = personality(name)
    if chosen is PERSONALITIES.get(chosen.name):
        return chosen
    from fakeamqp.model.personality.variants import with_choices

    made = with_choices(chosen, {})
    registry.check_absent(made.not_implemented)
    return made


def _no_argument(name: str, value: object) -> str:
    """The text of the error about an argument that does not exist."""
    from dataclasses import fields

    choices = [field.name for field in fields(Personality)]
    if name in choices:
        return (
            f"Broker has no argument {name!r}: a choice of a personality is given by "
            f'personality=Personality("rabbitmq-4.3").with_({name}={value!r:.50})'
        )
    near = nearest(name, [*_ARGUMENTS, *choices])
    return f"Broker has no argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


_ARGUMENTS = tuple(name for name in Broker.__init__.__annotations__ if name not in ("misspelled", "return"))


def _race_seed(asked: bool | int | None, seed: int | str | None) -> int | None:
    """The seed of the races that an argument of `Broker` asks for; None for no races."""
    if asked is None or asked is False:
        return None
    if asked is True:
        return Random(None if seed is None else f"{seed}:races").randrange(1, 1_000_000)
    return asked


def _parsed(definitions: Definitions) -> Mapping[str, Any]:
    if isinstance(definitions, Mapping):
        return definitions
    if not isinstance(definitions, (str, os.PathLike)):
        raise BrokerError(
            f"definitions must be the path of a JSON file, or its parsed object, not {definitions!r}"
        )
    import json
    from pathlib import Path

    path = Path(definitions)
    try:
        parsed = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise BrokerError(f"definitions: cannot read {str(path)!r}: {problem}") from problem
    except RecursionError:
        raise BrokerError(f"definitions: cannot read {str(path)!r}: its values are nested too deep") from None
    if not isinstance(parsed, Mapping):
        raise BrokerError(f"definitions: {str(path)!r} must hold one JSON object")
    return parsed
