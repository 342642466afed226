"""One client that does again what another one did."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.trace import WORDS
from fakeamqp.protocols.framed.codec.frames import (
    CONTENT_HEADER,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    frame,
)
from fakeamqp.protocols.framed.codec.method import Method
from fakeamqp.replay.logins import wrong_login
from fakeamqp.replay.replies import Assembler, Names, Reply, Strand

__all__ = ["Login", "Peer"]

_NAMES = ("queue", "exchange", "source", "destination", "routing_key", "consumer_tag", "arguments")
"""Fields in which a name may be that the broker has made up."""
_SETTLING = (m.BasicAck, m.BasicNack, m.BasicReject)
_MOST = 1024 * 1024


@dataclass(frozen=True)
class Login:
    """With what the clients of a recording log in, by PLAIN; None leaves it as it was recorded.

    `spares` are mechanisms of which the recorded login is left as it is all the same.
    """

    user: str | None = None
    password: str = ""
    virtual_host: str | None = None
    spares: tuple[str, ...] = ()


class Peer:
    """A connection to the broker under trial, and what has come over it.

    Args:
        line: a connected socket; the peer closes it.
        login: with what to log in.
        names: what the broker has made up, shared by all peers.
        header: the protocol header to begin with.
        refused: the other client was not let in, so this one must not be either.
    """

    def __init__(
        self, line: socket.socket, login: Login, names: Names, header: bytes, *, refused: bool = False
    ) -> None:
        self.line = line
        self.ended = False
        self.arrived: dict[tuple[int, Strand], deque[Reply]] = defaultdict(deque)
        self.tags: dict[tuple[int, int], int] = {}
        """Delivery tags by channel and recorded tag."""
        self._login = login
        self._refused = refused
        self._names = names
        self._buffer = bytearray()
        self._assembler = Assembler()
        self._tune: m.ConnectionTune | None = None
        self.send_bytes(header)

    def send(self, frame_type: int, channel: int, payload: bytes) -> None:
        """Send what the other client sent, with the names and numbers that this broker knows."""
        if frame_type == FRAME_METHOD:
            method = WORDS.decode_method(payload)
            changes = {} if method is None else self._changes(channel, method)
            if method is not None and changes:
                for name, value in changes.items():
                    setattr(method, name, value)
                payload = method.encode()
        elif frame_type == FRAME_CONTENT_HEADER:
            payload = self._header(payload)
        self.send_bytes(frame(frame_type, channel, payload))

    def send_bytes(self, octets: bytes) -> None:
        """Send; what the broker does not want any more is lost. That it has gone is seen when reading."""
        with contextlib.suppress(OSError):
            self.line.sendall(octets)

    def receive(self) -> None:
        """Take what has come; to be called when something has."""
        try:
            octets = self.line.recv(_MOST)
            self.ended = not octets
            # What TLS has read ahead no selector sees.
            while isinstance(self.line, ssl.SSLSocket) and self.line.pending():
                octets += self.line.recv(_MOST)
        except OSError:
            octets = b""
            self.ended = True
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
                self.arrived[channel, reply.strand].append(reply)

    def close(self) -> None:
        """End, without a word."""
        self.ended = True
        self.line.close()

    def _changes(self, channel: int, method: Method) -> dict[str, Any]:
        if isinstance(method, m.ConnectionStartOk):
            if self._refused:
                return {"response": wrong_login(method.mechanism, method.response)}
            if self._login.user is None or method.mechanism in self._login.spares:
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
        # What stays as it was keeps its bytes.
        return {name: value for name, value in changes.items() if getattr(method, name) != value}

    def _tuned(self, asked: m.ConnectionTuneOk) -> dict[str, Any]:
        """No more than this broker offers, and no heartbeats: nobody here sends any in time."""
        tune = self._tune or m.ConnectionTune()
        limits = {"channel_max": tune.channel_max, "frame_max": tune.frame_max}
        changes: dict[str, Any] = {"heartbeat": 0}
        for name, limit in limits.items():
            value = getattr(asked, name)
            changes[name] = min(value or limit, limit) if limit else value
        return changes

    def _header(self, payload: bytes) -> bytes:
        header = WORDS.decode_header(payload)
        if header is None or header[1].reply_to is None:
            return payload
        properties = header[1]
        reply_to, properties.reply_to = properties.reply_to, self._names.of(properties.reply_to)
        return (
            payload
            if reply_to == properties.reply_to
            else payload[: CONTENT_HEADER.size] + properties.encode()
        )
