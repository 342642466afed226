"""A broker with faults and without sockets, for raw clients of 0-9."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults import server

__all__ = ["FaultServer"]


class FaultServer(server.FaultServer, Server):
    """A broker with faults whose clients speak 0-9."""

    def requester(self, queue: str = "q", *, reserved: bool = True) -> Requester:
        """A client that has declared a queue and goes on by requests."""
        return Requester(self.client_with(queue), reserved=reserved)
