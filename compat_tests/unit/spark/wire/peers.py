"""The other end of a connection's socket, which a test plays by hand.

```python
with opened(options, TUNE) as (connection, peer):
    peer.sendall(CLOSE)
```
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER, content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.spark.options import write_options
from fakeamqp.spark.wire import transport
from fakeamqp.spark.wire.connection import WireConnection

NO_PROPERTIES = b"\x00\x00"
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


def options(url="amqp://host/", **others):
    return write_options({"amqp.url": url, **others}).connection


def sent(method, channel=0):
    """The frame of a method."""
    return method_frame(channel, method.encode())


def content(method, body, channel=1, properties=NO_PROPERTIES, limit=10):
    """The frames of a method with a content."""
    return sent(method, channel) + b"".join(content_frames(channel, 60, properties, body, limit))


START = sent(m.ConnectionStart(version_major=0, version_minor=9, mechanisms=b"PLAIN", locales=b"en_US"))
OPENED = sent(m.ConnectionOpenOk())
CLOSED = sent(m.ConnectionCloseOk())


def tune(channel_max=0, frame_max=0, heartbeat=0):
    return sent(m.ConnectionTune(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat))


@contextmanager
def pair() -> Iterator[tuple[WireConnection, socket.socket]]:
    """A connection whose next socket has its other end here."""
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.MonkeyPatch.context() as patch:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        patch.setattr(transport.socket, "create_connection", lambda *_: near)
        with far:
            far.settimeout(5)
            yield WireConnection(options()), far


@contextmanager
def opened(tuning=None) -> Iterator[tuple[WireConnection, socket.socket]]:
    """An open connection, and the other end of its socket."""
    with pair() as (connection, peer):
        peer.sendall(START + (tune() if tuning is None else tuning) + OPENED)
        connection.open()
        try:
            yield connection, peer
        finally:
            connection.abandon()


def received(peer: socket.socket) -> list[m.Method | bytes]:
    """What the connection has sent so far, as methods; other frames, and the protocol header, as bytes."""
    octets = b""
    peer.setblocking(False)
    try:
        while piece := peer.recv(1 << 16):
            octets += piece
    except BlockingIOError:
        pass
    finally:
        peer.settimeout(5)
    found: list[m.Method | bytes] = []
    if octets.startswith(PROTOCOL_HEADER):
        found.append(PROTOCOL_HEADER)
        octets = octets[len(PROTOCOL_HEADER) :]
    while octets:
        kind, _, size = FRAME_HEADER.unpack_from(octets)
        payload = octets[FRAME_HEADER.size :][:size]
        if kind == 1:
            found.append(m.METHODS[int.from_bytes(payload[:4], "big")].decode(payload, RABBITMQ))
        else:
            found.append(octets[: size + 8])
        octets = octets[size + 8 :]
    return found
