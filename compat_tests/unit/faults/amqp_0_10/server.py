"""A broker with faults and without sockets, for raw clients of 0-10."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_10 import Server, Session
from compat_tests.unit.faults import server

__all__ = ["FaultServer"]


class FaultServer(server.FaultServer, Server):
    """A broker with faults whose clients speak 0-10."""

    def session_with(self, queue: str, name: bytes, **handshake: Any) -> Session:
        """A session, on a connection of its own, that has declared a queue."""
        session = self.session(name, **handshake)
        session.declare(queue)
        return session
