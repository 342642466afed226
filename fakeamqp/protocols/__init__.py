"""One sans-I/O connection per protocol version: bytes in, bytes out, calls on the model between.

Nothing here knows sockets, threads or the wall clock. The runtime feeds what it reads to
`Connection.receive` and writes what `Connection.pending` hands out; tests do the same by hand.
"""

from __future__ import annotations

from fakeamqp.protocols.framed.delivering import encode
from fakeamqp.protocols.interface import Connection, PeerAddress
from fakeamqp.protocols.negotiation import accept

__all__ = ["Connection", "PeerAddress", "accept", "encode"]
