"""Bounds of what one peer, or all peers together, can make a broker keep.

What RabbitMQ bounds itself is a choice of the `Personality`. These bounds hold in all personalities: they are
far above what tests need, and keep a client that goes astray from exhausting the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from fakeamqp.errors import FakeAMQPError

__all__ = ["DEFAULT_BOUNDS", "SHARE", "Bounds", "BoundsError"]

_MIB = 1024 * 1024

SHARE = 16
"""Each history, and the trace, shrinks to this part of the memory limit before publishers are blocked."""


class BoundsError(FakeAMQPError):
    """A bound is not a whole number above 0."""


@dataclass(frozen=True)
class Bounds:
    """What peers can make the broker keep. Each bound is a whole number above 0.

    Attributes:
        outbox_deliveries: bytes that wait for a client, above which it gets no further deliveries.
        outbox_input: bytes that wait for a client, from which on the broker handles no input of it.
        history_octets: bytes of messages, headers included, that each of the histories keeps.
        trace_octets: bytes that the trace keeps of long headers, long arguments and messages.
        pending_handshakes: connections that have not logged in; beyond it the oldest is closed.
        consumers_per_channel: consumers of one channel or session.
        bindings_per_virtual_host: bindings of one virtual host.
        idle_frames: heartbeats and empty frames in a row, with nothing between them, from one client.
        detached_sessions: sessions of AMQP 0-10 without a connection; beyond it the one that has been
            detached longest ends.
        http_connections: connections of the HTTP port, and not more than a quarter of the descriptors that
            the process may have; beyond it the one ends whose client has been waited for longest.
    """

    outbox_deliveries: int = _MIB
    outbox_input: int = 8 * _MIB
    history_octets: int = 64 * _MIB
    trace_octets: int = 32 * _MIB
    pending_handshakes: int = 10_000
    consumers_per_channel: int = 100_000
    bindings_per_virtual_host: int = 1_000_000
    idle_frames: int = 100_000
    detached_sessions: int = 1_000
    http_connections: int = 100

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BoundsError(f"bound {each.name} must be a whole number above 0, not {value!r}")


DEFAULT_BOUNDS = Bounds()
