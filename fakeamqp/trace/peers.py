"""The short names of the connections in a recording."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from fakeamqp.dialects import default_protocol, protocol_of

__all__ = ["Peer", "Peers", "protocol_header"]

_MOST_CLOSED = 1000
"""The number of closed connections whose short names are kept. Events about them may still follow."""


Peer: TypeAlias = "tuple[str, str, str]"
"""A connection: its name, its short name such as "c1", and its protocol. A plain tuple; see `entries`."""


class Peers(dict[str, Peer]):
    """Peers by the name of the connection. A lookup adds a connection that is missing."""

    def __init__(self) -> None:
        super().__init__()
        self._added = 0
        self._closed: deque[Peer] = deque()
        self._protocols: dict[str, str] = {}
        """The protocols of the open connections. They outlast `clear`."""

    def __missing__(self, connection: str) -> Peer:
        return self.add(connection)

    def add(self, connection: str, detail: str = "") -> Peer:
        """Give a connection the next short name, also if an earlier connection had the same name.

        Args:
            connection: its name.
            detail: of the event "connected", which tells the protocol. Without it the protocol of the
                connection stays.
        """
        header = protocol_header(detail)
        if header:
            self._protocols[connection] = protocol_of(header) or default_protocol().name
        self._added += 1
        protocol = self._protocols.get(connection) or default_protocol().name
        peer = self[connection] = (connection, f"c{self._added}", protocol)
        return peer

    def close(self, peer: Peer) -> None:
        """Mark a connection as closed. Its short name is kept until 1000 more connections have closed."""
        self._closed.append(peer)
        self._protocols.pop(peer[0], None)
        if len(self._closed) > _MOST_CLOSED:
            oldest = self._closed.popleft()
            if self.get(oldest[0]) is oldest:
                del self[oldest[0]]

    def clear(self) -> None:
        """Forget all short names; numbers begin at 1 again."""
        super().clear()
        self._added = 0
        self._closed.clear()


def protocol_header(detail: str) -> bytes:
    """The protocol header for a detail such as "AMQP 0-0-9-1"; b"" for any other text."""
    letters, _, numbers = detail.partition(" ")
    parts = numbers.split("-")
    if (
        letters != "AMQP"
        or len(parts) != 4
        or not all(part.isdecimal() and int(part) < 256 for part in parts)
    ):
        return b""
    return b"AMQP" + bytes(int(part) for part in parts)
