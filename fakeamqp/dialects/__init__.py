"""One sans-I/O connection per protocol version: octets in, octets out, calls on the model between.

Nothing here knows sockets, threads or the wall clock. The runtime feeds what it reads to
`Connection.receive` and writes what `Connection.pending` hands out; tests do the same by hand.
"""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x.delivering import encode
from fakeamqp.dialects.interface import Connection, PeerAddress
from fakeamqp.dialects.negotiation import accept

__all__ = ["Connection", "PeerAddress", "accept", "encode"]
