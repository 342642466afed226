"""The fault port of a connection of 0-9 in RabbitMQ: publishes are counted and confirmed, requests too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.fault_port import Amqp09FaultPort
from fakeamqp.protocols.amqp_0_9_1.fault_port import Amqp091FaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.rabbitmq_0_9.faults.fault_port import RabbitMQ09Port
    from fakeamqp.protocols.rabbitmq_0_9.server_connection import RabbitMQ09Connection

__all__ = ["RabbitMQ09FaultPort"]


class RabbitMQ09FaultPort(Amqp091FaultPort, Amqp09FaultPort):
    """The fault port of one connection."""

    __slots__ = ()

    protocol: str = "0-9"

    _connection: RabbitMQ09Connection

    def flush_confirms(self) -> None:
        """Send the confirms that are due, and the responses that wait to be combined."""
        for channel in list(self._connection.channels.values()):
            channel.end_turn()


if TYPE_CHECKING:

    def _check(port: RabbitMQ09FaultPort) -> RabbitMQ09Port:
        return port
