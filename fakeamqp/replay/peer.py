"""One client of a replay: sends the recorded frames and collects the replies."""

from __future__ import annotations

import contextlib
import ssl
from collections import defaultdict, deque
from dataclasses import dataclass
from socket import socket as Socket
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.trace import FRAME_TEXT
from fakeamqp.replay.logins import wrong_login
from fakeamqp.replay.replies import Names, OrderKey, RecordedReply, ReplyAssembler

__all__ = ["Peer", "ReplayLogin"]

_NAMES = ("queue", "exchange", "source", "destination", "routing_key", "consumer_tag", "arguments")
"""Fields that may have a name that the broker generated."""
_SETTLING = (m.BasicAck, m.BasicNack, m.BasicReject)
_MOST = 1024 * 1024


@dataclass(frozen=True)
class ReplayLogin:
    """Replaces recorded logins by PLAIN with this user; None leaves them as recorded.

    Recorded logins with a mechanism in `keeps` are never replaced.
    """

    user: str | None = None
    password: str = ""
    virtual_host: str | None = None
    keeps: tuple[str, ...] = ()


class Peer:
    """A connection to the broker under test, and the replies that arrived on it.

    Args:
        socket: a connected socket; the peer closes it.
        login: replaces the recorded login.
        names: the names that the brokers generated, shared by all peers.
        header: the protocol header.
        refused: the recorded login was refused, so this one must be refused as well.
    """

    def __init__(
        self, socket: Socket, login: ReplayLogin, names: Names, header: bytes, *, refused: bool = False
    ) -> None:
        self.socket = socket
        self.closed: bool = False
        self.arrived: dict[tuple[int, OrderKey], deque[RecordedReply]] = defaultdict(deque)
        self.tags: dict[tuple[int, int], int] = {}
        """Delivery tags by channel and recorded tag."""
        self._login = login
        self._refused = refused
        self._names = names
        self._buffer = bytearray()
        self._assembler = ReplyAssembler()
        self._tune: m.ConnectionTune | None = None
        self.send_bytes(header)

    def send(self, frame_type: int, channel: int, payload: bytes) -> None:
        """Send a recorded frame, with the names and delivery tags of this broker."""
        if frame_type == FRAME_METHOD:
            method = FRAME_TEXT.decode_method(payload)
            changes = {} if method is None else self._changes(channel, method)
            if method is not None and changes:
                for name, value in changes.items():
                    setattr(method, name, value)
                payload = method.encode()
        elif frame_type == FRAME_CONTENT_HEADER:
            payload = self._header(payload)
        self.send_bytes(frame(frame_type, channel, payload))

    def send_bytes(self, octets: bytes) -> None:
        """Send bytes. A closed connection is not an error here; `receive` detects it."""
        with contextlib.suppress(OSError):
            self.socket.sendall(octets)

    def receive(self) -> None:
        """Read what has arrived. Call it when the socket is readable."""
        try:
            octets = self.socket.recv(_MOST)
            self.closed = not octets
            # A selector does not see bytes that TLS has already read.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                octets += self.socket.recv(_MOST)
        except OSError:
            octets = b""
            self.closed = True
        self._buffer += octets
        while len(self._buffer) >= FRAME_OVERHEAD:
            frame_type, channel, size = FRAME_HEADER.unpack_from(self._buffer)
            end = FRAME_HEADER.size + size
            if len(self._buffer) <= end:
                return
            payload = bytes(self._buffer[FRAME_HEADER.size : end])
            del self._buffer[: end + 1]
            if frame_type == FRAME_HEARTBEAT:
                continue
            for reply in self._assembler.feed(frame_type, channel, payload):
                if isinstance(reply.method, m.ConnectionTune):
                    self._tune = reply.method
                self.arrived[channel, reply.order_key].append(reply)

    def close(self) -> None:
        """Close the socket without connection.close."""
        self.closed = True
        self.socket.close()

    def _changes(self, channel: int, method: Method) -> dict[str, Any]:
        if isinstance(method, m.ConnectionStartOk):
            if self._refused:
                return {"response": wrong_login(method.mechanism, method.response)}
            if self._login.user is None or method.mechanism in self._login.keeps:
                return {}
            response = f"\0{self._login.user}\0{self._login.password}".encode()
            return {"mechanism": "PLAIN", "response": response}
        if isinstance(method, m.ConnectionTuneOk):
            return self._tuned(method)
        if isinstance(method, m.ConnectionOpen) and self._login.virtual_host is not None:
            return {"virtual_host": self._login.virtual_host}
        changes: dict[str, Any] = {}
        if isinstance(method, _SETTLING):
            changes["delivery_tag"] = self.tags.get((channel, method.delivery_tag), method.delivery_tag)
        for name in _NAMES:
            if hasattr(method, name):
                changes[name] = self._names.of(getattr(method, name))
        # Without a change the method keeps its recorded bytes.
        return {name: value for name, value in changes.items() if getattr(method, name) != value}

    def _tuned(self, asked: m.ConnectionTuneOk) -> dict[str, Any]:
        """Limits that this broker offers, and no heartbeats, because the replay sends none."""
        tune = self._tune or m.ConnectionTune()
        limits = {"channel_max": tune.channel_max, "frame_max": tune.frame_max}
        changes: dict[str, Any] = {"heartbeat": 0}
        for name, limit in limits.items():
            value = getattr(asked, name)
            changes[name] = min(value or limit, limit) if limit else value
        return changes

    def _header(self, payload: bytes) -> bytes:
        header = FRAME_TEXT.decode_header(payload)
        if header is None or header[1].reply_to is None:
            return payload
        properties = header[1]
        reply_to, properties.reply_to = properties.reply_to, self._names.of(properties.reply_to)
        return (
            payload
            if reply_to == properties.reply_to
            else payload[: CONTENT_HEADER.size] + properties.encode()
        )
