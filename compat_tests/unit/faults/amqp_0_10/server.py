"""A broker with faults and without sockets, for raw clients of 0-10."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_10 import Server
from compat_tests.unit.faults import server

__all__ = ["FaultServer"]


class FaultServer(server.FaultServer, Server):
    """A broker with faults whose clients speak 0-10."""
