"""`Broker.admin`: accounts, virtual hosts, policies, limits and services at run time; what a broker tells.

Everything takes effect in the engine of the broker, as its own methods do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from fakeamqp.arguments import is_name
from fakeamqp.connection import bracketed
from fakeamqp.errors import BrokerError
from fakeamqp.lazy import raise_if_renamed
from fakeamqp.model.access import Permission, TopicPermission, account, own_copy
from fakeamqp.model.policies import hint
from fakeamqp.protocols import registry

if TYPE_CHECKING:
    from fakeamqp.inspect.inspection import StateReader
    from fakeamqp.inspect.memory import MemoryView
    from fakeamqp.inspect.snapshot import Topology
    from fakeamqp.model.access import User
    from fakeamqp.model.races import Late
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9.public import Amqp09
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.services import Registration, ServiceMessage

__all__ = ["Admin", "ProxyAdmin"]


class ProxyAdmin:
    """What a proxy tells of itself: `Proxy.admin`. `Broker.admin` has the same, and more."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._engine: Engine = owner._engine
        self._state: BrokerState = owner._state
        self._reader: StateReader = owner._reader

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say why a proxy cannot do what a broker can."""
            impossible = {} if name.startswith("_") else self._owner._impossible
            if name in impossible:
                raise AttributeError(f"a proxy has no admin.{name}: {impossible[name]}", name=name, obj=self)
            raise_if_renamed(self, name)

    @property
    def control_url(self) -> str:
        """The address of the control interface, with the token that it needs behind `#token=`.

        The token lasts as long as this object, and gives full access to it.

        Raises:
            BrokerError: there is no control interface, or it has not been started.
        """
        url = self._owner._http_url()
        address: str = self._owner._management.control.address(url)
        return address

    @property
    def inspector_url(self) -> str:
        """The address of the inspector page, with the token that opens it behind `#token=`.

        The token lasts as long as this object, and gives full access to it.

        Raises:
            BrokerError: there is no inspector page, or it has not been started.
        """
        url = self._owner._http_url()
        address: str = self._owner._management.inspector.address(url)
        return address

    @property
    def memory(self) -> MemoryView:
        """What messages, connections and the trace take of the broker's memory, and what holds it.

        The queues are looked at message by message.
        """
        from fakeamqp.inspect.memory import memory_view

        return self._reader.read(memory_view)

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """Exceptions caused by bugs of the broker itself. Empty, whatever clients do."""
        return tuple(failure.error for failure in self._engine.failures)


class Admin(ProxyAdmin):
    """What `rabbitmqctl` and RabbitMQ's management do for a broker, at run time: `Broker.admin`."""

    # --- addresses -------------------------------------------------------------------------------------

    @property
    def management_url(self) -> str:
        """The URL of the HTTP API without a path, with the account of `url`.

        A client appends "/api/overview", for example.

        Raises:
            BrokerError: the broker has no HTTP API, has not been started, or knows no password of an account.
        """
        host, port = self._owner._management_address()
        return f"http://{self._owner._login()}{bracketed(host)}:{port}"

    @property
    def management_port(self) -> int:
        """The port of the HTTP API.

        Raises:
            BrokerError: the broker has no HTTP API, or has not been started.
        """
        port: int = self._owner._management_address()[1]
        return port

    # --- accounts --------------------------------------------------------------------------------------

    @property
    def users(self) -> tuple[str, ...]:
        """The names of the accounts, in the order they were added."""
        return self._reader.read(lambda state: tuple(state.access.users))

    def add_user(
        self,
        name: str,
        password: str | None = None,
        *,
        tags: Iterable[str] = (),
        permissions: Mapping[str, tuple[str, str, str]] | None = None,
    ) -> None:
        """Add or replace an account; without `permissions` it has all permissions on all virtual hosts."""
        with self._engine:
            user = account(name, {"password": password, "tags": tags, "permissions": permissions})
            self._state.access.add(own_copy(user, self._state.virtual_hosts))

    @property
    def virtual_hosts(self) -> tuple[str, ...]:
        """The names of the virtual hosts, in the order they were added."""
        return self._reader.read(lambda state: tuple(state.virtual_hosts))

    def add_virtual_host(self, name: str, *, default_queue_type: str | None = None) -> None:
        """Add a virtual host. Accounts with all permissions on all virtual hosts get them here as well.

        Args:
            name: of the virtual host; an existing one is kept.
            default_queue_type: the type of durable queues declared without `x-queue-type`: "classic",
                "quorum" or "stream".

        Raises:
            BrokerError: the name is empty, or too long for AMQP.
            ParameterError: the queue type does not exist.
        """
        if not is_name(name):
            raise BrokerError(f"the name of a virtual host is a text of 1 to 255 bytes, not {name!r:.100}")
        with self._engine:
            if name not in self._state.virtual_hosts:
                known = tuple(self._state.virtual_hosts)
                self._state.add_virtual_host(name)
                for user in self._state.access.users.values():
                    if all(user.permissions.get(each) == Permission() for each in known):
                        user.permissions[name] = Permission()
                self._state.access.changed()
            if default_queue_type is not None:
                added = self._state.virtual_hosts[name]
                added.metadata = replace(added.metadata, default_queue_type=default_queue_type)

    def remove_user(self, name: str) -> None:
        """Remove an account, and close its connections as RabbitMQ does: 320, "user 'name' is deleted".

        Raises:
            BrokerError: the account does not exist.
        """
        with self._engine:
            self._known_user(name)
            self._owner._close_forced(lambda each: each.user_name == name, f"user '{name}' is deleted")
            self._state.remove_user(name)

    def remove_virtual_host(self, name: str) -> None:
        """Remove a virtual host with all that is in it, and the permissions in it.

        Its consumers are cancelled, and its connections closed, as RabbitMQ does it: 320,
        "vhost 'name' is deleted".

        Raises:
            BrokerError: the virtual host does not exist.
        """
        with self._engine:
            known = self._state.virtual_hosts
            if name not in known:
                raise BrokerError(f"there is no virtual host {name!r}{hint(name, known)}")
            self._engine.carry_out(known[name].discarding("the virtual host was deleted"))
            self._owner._close_forced(
                lambda each: each.virtual_host_name == name, f"vhost '{name}' is deleted"
            )
            self._state.remove_virtual_host(name)

    def set_firehose(self, on: bool = True, virtual_host: str = "/") -> None:
        """Switch the firehose of a virtual host on or off, as `rabbitmqctl trace_on` and `trace_off` do.

        The exchange amq.rabbitmq.trace then gets a copy of each message that a client publishes, with the
        routing key "publish.<exchange>", and of each that a client gets, with "deliver.<queue>". A restart of
        the broker switches it off. The broker's own record of what happened is `Broker.trace`.

        Raises:
            BrokerError: `on` is neither True nor False, or the broker is stopped.
            ParameterError: the personality has no firehose.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        if not isinstance(on, bool):
            raise BrokerError(
                f"set_firehose(on={on!r}): on must be True or False; virtual_host= is the other argument"
            )
        with self._engine:
            self._state.check_not_stopped()
            self._state.virtual_host(virtual_host).set_firehose(on)

    def set_permissions(
        self, user: str, permission: Permission | tuple[str, str, str], virtual_host: str = "/"
    ) -> None:
        """Give an account permissions in a virtual host, in the place of those that it has there.

        Args:
            user: the name of the account.
            permission: a `Permission`, or (configure, write, read): regular expressions over names.
            virtual_host: the name of the virtual host.

        Raises:
            BrokerError: the account does not exist.
            NotAllowed, InvalidPath: the virtual host does not exist.
            InvalidPattern: one is no regular expression.
        """
        given = permission if isinstance(permission, Permission) else Permission(*permission)
        with self._engine:
            self._state.virtual_host(virtual_host)
            self._known_user(user).permissions[virtual_host] = given
            self._state.access.changed()

    def set_topic_permissions(
        self, user: str, exchange: str, permission: TopicPermission, virtual_host: str = "/"
    ) -> None:
        """Limit the routing keys that an account may use on a topic exchange.

        Args:
            user: the name of the account.
            exchange: the name of the exchange.
            permission: regular expressions over routing keys.
            virtual_host: the name of the virtual host.

        Raises:
            BrokerError: the account does not exist.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        with self._engine:
            self._state.virtual_host(virtual_host)
            self._known_user(user).topic_permissions[virtual_host, exchange] = permission
            self._state.access.changed()

    def clear_topic_permissions(self, user: str, virtual_host: str = "/") -> None:
        """Remove all limits on the routing keys of an account in a virtual host.

        Raises:
            BrokerError: the account does not exist.
        """
        with self._engine:
            limits = self._known_user(user).topic_permissions
            for key in [key for key in limits if key[0] == virtual_host]:
                del limits[key]
            self._state.access.changed()

    def clear_permissions(self, user: str, virtual_host: str = "/") -> None:
        """Take all permissions in a virtual host from an account. Its connections stay open.

        Raises:
            BrokerError: the account does not exist.
        """
        with self._engine:
            self._known_user(user).permissions.pop(virtual_host, None)
            self._state.access.changed()

    def _known_user(self, name: str) -> User:
        found = self._state.access.users.get(name)
        if found is None:
            raise BrokerError(f"there is no user {name!r}{hint(name, self._state.access.users)}")
        return found

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
        """Set or replace a policy for queues and exchanges with matching names. It takes effect immediately.

        Args:
            name: of the policy, unique in its virtual host.
            pattern: a regular expression that is searched in the name; "^orders" matches a prefix.
            definition: the keys and values to set, in RabbitMQ's units, such as {"message-ttl": 60_000}.
            apply_to: "queues", "classic_queues", "quorum_queues", "streams", "exchanges", or "all".
            priority: of several matching policies, the one with the highest priority applies.
            virtual_host: the virtual host of the policy.
            operator: set an operator policy: it is merged with the other policy, and the lower limit applies.

        Raises:
            PolicyError: a key is misspelled, or a value is invalid; the text says which.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        value = {"pattern": pattern, "definition": definition, "apply-to": apply_to, "priority": priority}
        with self._engine:
            policies = self._state.virtual_host(virtual_host).policies
            self._engine.carry_out(policies.setting(name, value, operator=operator))

    def clear_policy(self, name: str, virtual_host: str = "/", operator: bool = False) -> None:
        """Remove a policy; its settings end immediately.

        Raises:
            PolicyError: the policy does not exist; the text names the nearest match.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        with self._engine:
            policies = self._state.virtual_host(virtual_host).policies
            self._engine.carry_out(policies.clearing(name, operator=operator))

    def set_limits(
        self,
        virtual_host: str = "/",
        *,
        max_connections: int | None = None,
        max_queues: int | None = None,
    ) -> None:
        """Limit a virtual host. Existing connections and queues stay, even above the limit.

        A limit of 0 allows none, -1 means no limit, and None leaves the limit unchanged.

        Args:
            virtual_host: the name of the virtual host.
            max_connections: the maximum number of open connections.
            max_queues: the maximum number of queues, exclusive ones included.

        Raises:
            LimitsError: a limit is not an integer.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        with self._engine:
            limited = self._state.virtual_host(virtual_host)
            where = f"virtual host {virtual_host!r}"
            limited.limits = limited.limits.changed(
                where, max_connections=max_connections, max_queues=max_queues
            )

    def set_user_limits(
        self, user: str, *, max_connections: int | None = None, max_channels: int | None = None
    ) -> None:
        """Limit a user. Open connections and channels stay open, even above the limit.

        A limit of 0 allows none, -1 means no limit, and None leaves the limit unchanged.

        Args:
            user: the name of the account.
            max_connections: the maximum number of connections, to all virtual hosts together.
            max_channels: the maximum number of channels, on all connections together.

        Raises:
            LimitsError: a limit is not an integer.
            BrokerError: the account does not exist.
        """
        with self._engine:
            found = self._known_user(user)
            where = f"user {user!r}"
            found.limits = found.limits.changed(
                where, max_connections=max_connections, max_channels=max_channels
            )

    # --- what the test adds ----------------------------------------------------------------------------

    def add_service(
        self,
        name: str,
        handler: Callable[[ServiceMessage], bytes | str | None],
        *,
        exchange: str = "amq.system",
        virtual_host: str = "/",
        contents: Iterable[str] | None = None,
    ) -> Registration:
        """Call `handler` with every message that a system exchange gets with the routing key `name`.

        The exchange hands a message over without a queue. The broker calls the handler inside the engine,
        after the turn in which the message arrived and at the same instant of its clock. So the handler may
        use the broker, but must not wait for it. A handler that returns bytes or str answers: the broker
        publishes this to the queue or reply address in `reply_to`, with the same `correlation_id`. An
        exception of the handler has no effect on the publisher; it is logged and kept for the test.

        Args:
            name: the routing key, which must not begin with "amq.".
            handler: called with each message, such as the `append` of a list.
            exchange: the system exchange, which is declared if it does not exist, in all personalities. Every
                system exchange of the virtual host serves all services.
            virtual_host: the virtual host of the exchange.
            contents: the AMQP classes of the contents that the service takes: "basic", "file", "stream". A
                publish with another class is refused with 540 on its channel. Default: all classes.

        Returns:
            The registration, with which the test waits for calls and removes the service.

        Raises:
            BadRegistration: the name is invalid or in use, a class of contents does not exist, or the handler
                is not callable.
            PreconditionFailed: the exchange exists and is of another type.
            NotAllowed, InvalidPath: the virtual host does not exist.
        """
        if self._owner._services is None:
            from fakeamqp.services import Services

            self._owner._services = Services(self._engine, self._state, self._owner.publish)
        added: Registration = self._owner._services.add(
            name, handler, exchange=exchange, virtual_host=virtual_host, contents=contents
        )
        return added

    @property
    def amqp_0_9(self) -> Amqp09:
        """Extensions for clients of AMQP 0-9: realms, tunnels, out-of-band transports, trace frames."""
        if self._owner._amqp_0_9 is None:
            self._owner._amqp_0_9 = registry.named("0-9").public(self._engine, self._state)
        extensions: Amqp09 = self._owner._amqp_0_9
        return extensions

    # --- what the broker tells -------------------------------------------------------------------------

    def topology(
        self,
        virtual_host: str | None = None,
        *,
        counts: bool = False,
        consumers: bool = False,
        predeclared: bool = False,
    ) -> Topology:
        """Exchanges, bindings, queues and policies, as comparable text and as diagrams.

        Equal topologies give equal texts, in whatever order they were declared.

        Args:
            virtual_host: the name of one; None for all.
            counts: include the numbers of messages.
            consumers: include the consumers.
            predeclared: include the exchanges that every virtual host has.

        Raises:
            NoSuchVirtualHost: no virtual host has this name.
        """
        from fakeamqp.inspect.snapshot import topology

        return self._reader.read(
            lambda state: topology(
                state, virtual_host, counts=counts, consumers=consumers, predeclared=predeclared
            )
        )

    @property
    def race_seed(self) -> int | None:
        """The seed of the races, given or drawn; None without races, and in a simulation that draws them."""
        races = self._state.races
        return None if races is None else races.seed

    @property
    def late(self) -> tuple[Late, ...]:
        """The latest 1 000 of what `races` delayed; `str` describes each."""
        races = self._state.races
        return () if races is None else self._reader.read(lambda _: tuple(races.occurred))
