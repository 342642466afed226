"""What an operator may do to RabbitMQ and to the broker, in the same words."""

from __future__ import annotations

import contextlib

from compat_tests.differential.rabbitmq_node import RabbitMQNode
from fakeamqp import Broker

__all__ = ["BrokerOperator", "NodeOperator"]


class NodeOperator:
    """Does it by RabbitMQ's own commands."""

    def __init__(self, node: RabbitMQNode) -> None:
        self._node = node

    def close_all_connections(self, reason: str) -> None:
        self._node.control("close_all_connections", "--vhost=/", reason)

    def set_alarms(self, *resources: str) -> None:
        memory = "0" if "memory" in resources else "{absolute, 2000000000}"
        disk = 10**18 if "disk" in resources else 10**6
        # In one command, since each takes a second.
        self._node.control(
            "eval",
            f"vm_memory_monitor:set_vm_memory_high_watermark({memory}), "
            f"rabbit_disk_monitor:set_disk_free_limit({disk}).",
        )

    def set_permissions(self, user: str, configure: str, write: str, read: str) -> None:
        self._node.control("set_permissions", user, configure, write, read)

    def restart(self) -> None:
        self._node.control("stop_app")
        self._node.control("start_app")


class BrokerOperator:
    """Does it by the methods of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._alarms = contextlib.ExitStack()

    def close_all_connections(self, reason: str) -> None:
        for connection in self._broker.connections:
            connection.close(320, f"CONNECTION_FORCED - {reason}")

    def set_alarms(self, *resources: str) -> None:
        self._alarms.close()
        for resource, alarm in (
            ("memory", self._broker.faults.memory_alarm),
            ("disk", self._broker.faults.disk_alarm),
        ):
            if resource in resources:
                self._alarms.enter_context(alarm())

    def set_permissions(self, user: str, configure: str, write: str, read: str) -> None:
        permission = {"user": user, "vhost": "/", "configure": configure, "write": write, "read": read}
        self._broker.load_definitions({"permissions": [permission]})

    def restart(self) -> None:
        self._broker.restart()
