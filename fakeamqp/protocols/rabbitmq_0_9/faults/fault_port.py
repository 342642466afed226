"""The fault port of connections of 0-9: requests and responses, and where RabbitMQ has them confirms."""

from __future__ import annotations

from typing import Protocol

from fakeamqp.protocols.amqp_0_9.faults.fault_port import RequestFaultPort
from fakeamqp.protocols.amqp_0_9_1.faults.fault_port import ConfirmingFaultPort

__all__ = ["RabbitMQ09Port"]


class RabbitMQ09Port(ConfirmingFaultPort, RequestFaultPort, Protocol):
    """The fault port of one connection of 0-9."""
