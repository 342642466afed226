"""What an operator may do to RabbitMQ and to the broker, in the same words."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

from compat_tests.differential.rabbitmq_node import RabbitMQNode
from fakeamqp import Broker
from fakeamqp.faults.lasting import Alarm
from fakeamqp.inspect.handles import ConnectionHandle
from fakeamqp.model.personality import PERSONALITIES

__all__ = ["BrokerOperator", "NodeOperator"]

_NOBODY = '<<"operator">>'
_USERS = "rabbit_auth_backend_internal"


def _binary(text: str) -> str:
    """A text as an Erlang binary."""
    return "<<" + ", ".join(str(octet) for octet in text.encode()) + ">>"


class NodeOperator:
    """Does it by the functions that RabbitMQ's own commands call in the node."""

    def __init__(self, node: RabbitMQNode) -> None:
        self._node = node
        self._tracing = threading.Lock()

    def close_all_connections(self, reason: str) -> None:
        self._node.control("close_all_connections", "--vhost=/", reason)

    def close_connections_of(self, user: str, reason: str) -> None:
        """Close the connections of a user one by one."""
        self._node.evaluate(
            f"Found = [Each || Each <- rabbit_networking:connections(), "
            f"(catch rabbit_networking:connection_info(Each, [user])) =:= [{{user, {_binary(user)}}}]], "
            f"[rabbit_networking:close_connection(Each, {json.dumps(reason)}) || Each <- Found]"
        )

    def close_user_connections(self, user: str, reason: str) -> None:
        """Close the connections of a user with one command."""
        self._node.evaluate(
            f"rabbit_networking:close_all_user_connections({_binary(user)}, {_binary(reason)})"
        )

    def set_alarms(self, *resources: str) -> None:
        """Have these alarms, of `memory` and `disk`, and no others."""
        memory = "0" if "memory" in resources else "{absolute, 2000000000}"
        disk = 10**18 if "disk" in resources else 10**6
        self._node.evaluate(
            f"vm_memory_monitor:set_vm_memory_high_watermark({memory}), "
            f"rabbit_disk_monitor:set_disk_free_limit({disk})"
        )

    def set_consumer_timeout(self, seconds: str) -> None:
        """Set the timeout, and have channels look at it every 100 ms; nothing means the usual one."""
        timeout = int(float(seconds) * 1000) if seconds else 1_800_000
        self._node.evaluate(f"application:set_env(rabbit, consumer_timeout, {timeout})")
        self.set_channel_tick("100" if seconds else "")

    def set_channel_tick(self, milliseconds: str) -> None:
        """Set how often channels look for late acknowledgements; nothing means as the node was started."""
        tick = milliseconds or self._node.variables.get("channel_tick_interval", "60000")
        self._node.evaluate(f"application:set_env(rabbit, channel_tick_interval, {tick})")

    def set_largest_message(self, octets: str) -> None:
        """Limit the size of messages; nothing means the usual limit."""
        limit = int(octets) if octets else 134217728 if self._node.version.startswith("3.") else 16777216
        self._node.evaluate(
            f"application:set_env(rabbit, max_message_size, {limit}), "
            f"case erlang:function_exported(persistent_term, put, 2) of true -> "
            f"persistent_term:put(max_message_size, {limit}); _ -> ok end"
        )

    def add_user(self, name: str, password: str, virtual_host: str = "/") -> None:
        """Add an account with all permissions in a virtual host."""
        self._node.evaluate(f"{_USERS}:add_user({_binary(name)}, {_binary(password)}, {_NOBODY})")
        self.set_permissions(name, ".*", ".*", ".*", virtual_host)

    def delete_user(self, name: str) -> None:
        self._node.evaluate(f"{_USERS}:delete_user({_binary(name)}, {_NOBODY})")

    def change_password(self, name: str, password: str) -> None:
        self._node.evaluate(f"{_USERS}:change_password({_binary(name)}, {_binary(password)}, {_NOBODY})")

    def set_permissions(
        self, user: str, configure: str, write: str, read: str, virtual_host: str = "/"
    ) -> None:
        patterns = ", ".join(_binary(each) for each in (user, virtual_host, configure, write, read))
        self._node.evaluate(f"{_USERS}:set_permissions({patterns}, {_NOBODY})")

    def clear_permissions(self, user: str, virtual_host: str = "/") -> None:
        self._node.evaluate(
            f"{_USERS}:clear_permissions({_binary(user)}, {_binary(virtual_host)}, {_NOBODY})"
        )

    def set_topic_permissions(self, user: str, exchange: str, write: str, read: str) -> None:
        patterns = ", ".join(_binary(each) for each in (user, "/", exchange, write, read))
        self._node.evaluate(f"{_USERS}:set_topic_permissions({patterns}, {_NOBODY})")

    def add_virtual_host(self, name: str) -> None:
        """Add a virtual host in which guest has all permissions."""
        self._node.evaluate(f"rabbit_vhost:add({_binary(name)}, {_NOBODY})")
        self.set_permissions("guest", ".*", ".*", ".*", name)

    def delete_virtual_host(self, name: str) -> None:
        self._node.evaluate(f"rabbit_vhost:delete({_binary(name)}, {_NOBODY})")

    def set_tracing(self, virtual_host: str, tracing: str) -> None:
        with self._tracing:  # The node loses one of two changes at a time.
            self._node.evaluate(f"rabbit_trace:{'start' if tracing else 'stop'}({_binary(virtual_host)})")

    def set_limits(self, virtual_host: str, limits: str) -> None:
        """Set limits of a virtual host; they are JSON, as for RabbitMQ's command."""
        self._node.evaluate(
            f"rabbit_vhost_limit:parse_set({_binary(virtual_host)}, {_binary(limits)}, {_NOBODY})"
        )

    def set_user_limits(self, user: str, limits: str) -> None:
        self._node.evaluate(f"{_USERS}:set_user_limits({_binary(user)}, {_binary(limits)}, {_NOBODY})")

    def restart(self) -> None:
        # Soon after the stop, the start fails now and then.
        self._node.evaluate(
            "rabbit:stop(), case catch rabbit:start() of ok -> ok; _ -> timer:sleep(1000), rabbit:start() end"
        )


class BrokerOperator:
    """Does it by the methods of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._alarms: dict[str, Alarm] = {}
        self._closing: dict[str, list[ConnectionHandle]] = {}

    def close_all_connections(self, reason: str) -> None:
        for connection in self._broker.connections:
            connection.close(320, f"CONNECTION_FORCED - {reason}")

    def close_connections_of(self, user: str, reason: str) -> None:
        chosen = [connection for connection in self._broker.connections if connection.user == user]
        # Those that are closing, which RabbitMQ still lists.
        for connection in [*chosen, *self._closing.get(user, ())]:
            connection.close(320, f"CONNECTION_FORCED - {reason}")
        self._closing[user] = chosen

    close_user_connections = close_connections_of

    def set_alarms(self, *resources: str) -> None:
        for resource, alarm in (
            ("memory", self._broker.faults.memory_alarm),
            ("disk", self._broker.faults.disk_alarm),
        ):
            lasting = self._alarms.get(resource)
            if resource in resources and lasting is None:
                self._alarms[resource] = alarm()
            elif resource not in resources and lasting is not None:
                self._alarms.pop(resource).remove()

    def set_consumer_timeout(self, seconds: str) -> None:
        self._set(consumer_timeout=float(seconds or 1800))

    def set_channel_tick(self, milliseconds: str) -> None:
        """Nothing: the broker's channels have timers of their own for each delivery."""

    def set_largest_message(self, octets: str) -> None:
        usual = PERSONALITIES[self._broker._state.personality.name].largest_message
        self._set(largest_message=int(octets or usual))

    def _set(self, **choices: int | float) -> None:
        """Change choices of a running broker, which it has no method for."""
        state = self._broker._state
        with self._broker._engine:
            state.personality = replace(state.personality, **choices)

    def add_user(self, name: str, password: str, virtual_host: str = "/") -> None:
        self._broker.admin.add_user(name, password, permissions={virtual_host: (".*", ".*", ".*")})

    def delete_user(self, name: str) -> None:
        self._broker.admin.remove_user(name)

    def change_password(self, name: str, password: str) -> None:
        self._broker.load_definitions({"users": [{"name": name, "password": password, "tags": ""}]})

    def set_permissions(
        self, user: str, configure: str, write: str, read: str, virtual_host: str = "/"
    ) -> None:
        permission = {"configure": configure, "write": write, "read": read}
        self._broker.load_definitions({"permissions": [{"user": user, "vhost": virtual_host, **permission}]})

    def clear_permissions(self, user: str, virtual_host: str = "/") -> None:
        self._broker.admin.clear_permissions(user, virtual_host)

    def set_topic_permissions(self, user: str, exchange: str, write: str, read: str) -> None:
        permission = {"exchange": exchange, "write": write, "read": read}
        self._broker.load_definitions({"topic_permissions": [{"user": user, "vhost": "/", **permission}]})

    def add_virtual_host(self, name: str) -> None:
        self._broker.admin.add_virtual_host(name)
        self.set_permissions("guest", ".*", ".*", ".*", name)

    def delete_virtual_host(self, name: str) -> None:
        self._broker.admin.remove_virtual_host(name)

    def set_tracing(self, virtual_host: str, tracing: str) -> None:
        self._broker.admin.set_firehose(bool(tracing), virtual_host)

    def set_limits(self, virtual_host: str, limits: str) -> None:
        self._broker.admin.set_limits(virtual_host, **_named(limits))

    def set_user_limits(self, user: str, limits: str) -> None:
        self._broker.admin.set_user_limits(user, **_named(limits))

    def restart(self) -> None:
        self._broker.restart()


def _named(limits: str) -> dict[str, int]:
    return {name.replace("-", "_"): limit for name, limit in json.loads(limits).items()}
