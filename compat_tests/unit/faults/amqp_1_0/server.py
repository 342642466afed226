"""A broker with faults and without sockets, for raw clients of 1.0."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_1_0 import Server
from compat_tests.unit.faults import server

__all__ = ["FaultServer"]


class FaultServer(server.FaultServer, Server):
    """A broker with faults and a queue "q", whose clients speak 1.0."""

    def __init__(self, name: str = "rabbitmq-4.3", **state: Any) -> None:
        super().__init__(name, **state)
        self.vhost.queues.create("q")

    def unsettled(self) -> list[Any]:
        """What clients hold of queue "q"."""
        connections = list(self.state.connections)
        sessions = [each for connection in connections for each in connection.open_channels]
        return [delivery.queued for each in sessions for delivery in each.ledger.outstanding.values()]
