"""A client that does as it is told, and puts into words what comes back."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from compat_tests.differential.codec import (
    METHODS,
    decode_method,
    decode_properties,
    encode_method,
    frame,
    publish_frames,
    shown,
)

__all__ = ["CAPABILITIES", "PROTOCOL_HEADER", "Address", "HandshakeFailed", "Operator", "RawClient"]

PROTOCOL_HEADER = b"AMQP\0\0\x09\x01"
CAPABILITIES = dict.fromkeys(
    (
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "authentication_failure_close",
    ),
    True,
)
_TUNE = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}
_ANSWERS = {"channel.close": "channel.close-ok", "connection.close": "connection.close-ok"}
_LONGEST_SHOWN = 60


class Operator(Protocol):
    """What may be done to a broker from beside it: RabbitMQ's command for it, and the same on the broker."""

    def close_all_connections(self, reason: str) -> None: ...

    def set_alarms(self, *resources: str) -> None:
        """Have these alarms, of `memory` and `disk`, and no others."""

    def close_connections_of(self, user: str, reason: str) -> None:
        """Close the connections of a user one by one."""

    def close_user_connections(self, user: str, reason: str) -> None:
        """Close the connections of a user with one command."""

    def set_consumer_timeout(self, seconds: str) -> None: ...

    def set_channel_tick(self, milliseconds: str) -> None: ...

    def set_largest_message(self, octets: str) -> None: ...

    def add_user(self, name: str, password: str, virtual_host: str = "/") -> None:
        """Add an account with all permissions in a virtual host."""

    def delete_user(self, name: str) -> None: ...

    def change_password(self, name: str, password: str) -> None: ...

    def set_permissions(
        self, user: str, configure: str, write: str, read: str, virtual_host: str = "/"
    ) -> None: ...

    def clear_permissions(self, user: str, virtual_host: str = "/") -> None: ...

    def set_topic_permissions(self, user: str, exchange: str, write: str, read: str) -> None: ...

    def add_virtual_host(self, name: str) -> None:
        """Add a virtual host in which guest has all permissions."""

    def delete_virtual_host(self, name: str) -> None: ...

    def set_limits(self, virtual_host: str, limits: str) -> None:
        """Set limits of a virtual host; they are JSON, as for RabbitMQ's command."""

    def set_user_limits(self, user: str, limits: str) -> None: ...

    def restart(self) -> None: ...


class Address(NamedTuple):
    """Where a broker listens, and how much longer than usual to wait for what it may still say.

    `header` is what clients send first if their case does not say it.
    """

    host: str
    port: int
    patience: float = 1.0
    operator: Operator | None = None
    header: bytes = PROTOCOL_HEADER


class HandshakeFailed(Exception):
    """The broker did not let the client in; the text is what it said."""


class Event(NamedTuple):
    """Something the broker did: a method (its content included), a heartbeat, the end of the socket."""

    name: str
    channel: int
    text: str


class _Content:
    """A method whose content is still coming."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.size = 0
        self.properties = ""
        self.body = b""


class RawClient:
    """One connection. Close methods are answered, unless `answers` is False."""

    def __init__(
        self,
        address: Address,
        *,
        header: bytes | None = PROTOCOL_HEADER,
        handshake: bool = True,
        channels: tuple[int, ...] = (1,),
        answers: bool = True,
        tune: Mapping[str, int] = _TUNE,
        vhost: str = "/",
        **login: Any,
    ) -> None:
        self.address = address
        self.answers = answers
        self.frame_max = tune["frame_max"] or 2**31
        self.end = ""
        """How the socket ended, once it has."""
        self._socket = socket.create_connection((address.host, address.port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._octets = b""
        self._contents: dict[int, _Content] = {}
        if header is not None:
            self.send_bytes(address.header if header is PROTOCOL_HEADER else header)
        if not handshake:
            return
        try:
            self.start_ok(**login)
            self._expect("connection.tune")
            self.send(0, "connection.tune-ok", **tune)
            self.send(0, "connection.open", virtual_host=vhost)
            self._expect("connection.open-ok")
            for channel in channels:
                self.send(channel, "channel.open")
                self._expect("channel.open-ok")
        except BaseException:
            self.close()
            raise

    def _expect(self, name: str) -> None:
        came = self.until(name)
        if f"{name}(" not in came[-1]:
            raise HandshakeFailed(" ; ".join(came))

    def start_ok(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        mechanism: str = "PLAIN",
        response: str | bytes | None = None,
        capabilities: Mapping[str, bool] | None = CAPABILITIES,
        locale: str = "en_US",
    ) -> None:
        """Wait for connection.start and log in."""
        self.until("connection.start")
        properties: dict[str, Any] = {"product": "differential tests"}
        if capabilities is not None:
            properties["capabilities"] = dict(capabilities)
        self.send(
            0,
            "connection.start-ok",
            client_properties=properties,
            mechanism=mechanism,
            response=f"\0{user}\0{password}" if response is None else response,
            locale=locale,
        )

    def close(self) -> None:
        """Drop the socket."""
        self._socket.close()

    # --- out ---------------------------------------------------------------------------------------

    def send_bytes(self, octets: bytes) -> None:
        """Send what may be no AMQP at all. A socket that has ended takes everything."""
        with contextlib.suppress(OSError):
            self._socket.sendall(octets)

    def end_sending(self) -> None:
        """Close our half of the socket."""
        self._socket.shutdown(socket.SHUT_WR)

    def send(self, channel: int, method: str, **arguments: Any) -> None:
        """Send a method."""
        self.send_bytes(frame(1, channel, encode_method(method, **arguments)))

    def publish(
        self,
        channel: int,
        *,
        body: bytes | str = b"",
        props: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Send basic.publish with its content."""
        self.send_bytes(
            publish_frames(channel, body=body, props=props or {}, frame_max=self.frame_max, **arguments)
        )

    # --- in ----------------------------------------------------------------------------------------

    def _read(self, seconds: float) -> bool:
        """Take in what comes within some seconds; False on silence."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            octets = self._socket.recv(1 << 16)
        except TimeoutError:
            return False
        except OSError:
            octets = b""
        if not octets:
            # RabbitMQ resets the socket where others end it in good order; it is one outcome.
            self.end = "closed"
        self._octets += octets
        return True

    def next(self, seconds: float) -> Event | None:
        """What comes next, or None where nothing does for so long."""
        deadline = time.monotonic() + seconds * self.address.patience
        while True:
            event = self._parse()
            if event is not None:
                return event
            if self.end:
                return Event("closed", 0, "closed")
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                return None

    def octets(self, seconds: float = 0.3) -> bytes:
        """All bytes that come until silence."""
        while self._read(seconds * self.address.patience) and not self.end:
            pass
        octets, self._octets = self._octets, b""
        return octets

    def _parse(self) -> Event | None:
        while True:
            octets = self._octets
            if octets[:4] == b"AMQP" and len(octets) >= 8:
                self._octets = octets[8:]
                return Event("header", 0, f"header {octets[:8].hex()}")
            if len(octets) < 7:
                return None
            kind, channel, size = struct.unpack_from(">BHI", octets)
            if len(octets) < size + 8:
                return None
            payload, self._octets = octets[7 : 7 + size], octets[8 + size :]
            assert octets[7 + size] == 0xCE, "a broker sent a frame with a wrong end"
            if kind == 8:
                return Event("heartbeat", channel, "heartbeat")
            event = (
                self._take_method(channel, payload) if kind == 1 else self._take_part(kind, channel, payload)
            )
            if event is not None:
                return event

    def _take_method(self, channel: int, payload: bytes) -> Event | None:
        name, arguments = decode_method(payload)
        text = _described(name, arguments)
        if channel > 1:
            text = f"[{channel}]{text}"
        if METHODS[name].content:
            self._contents[channel] = _Content(text, name)
            return None
        if name in _ANSWERS and self.answers:
            self.send(channel, _ANSWERS[name])
        return Event(name, channel, text)

    def _take_part(self, kind: int, channel: int, payload: bytes) -> Event | None:
        content = self._contents[channel]
        if kind == 2:
            content.size = int.from_bytes(payload[4:12], "big")
            content.properties = decode_properties(payload[12:])
        else:
            content.body += payload
        if len(content.body) < content.size:
            return None
        del self._contents[channel]
        body = content.body
        if len(body) > _LONGEST_SHOWN:
            body = body[:20] + b"..%d" % len(body)
        return Event(content.name, channel, f"{content.text} {content.properties} {shown(body)}")

    # --- what came, in words -----------------------------------------------------------------------

    def until(self, *names: str, seconds: float = 8.0) -> list[str]:
        """All up to one of these methods, a close, or the end; `silence` where nothing comes any more."""
        came: list[str] = []
        while True:
            event = self.next(seconds)
            if event is None:
                return [*came, "silence"]
            came.append(event.text)
            if event.name in (*names, *_ANSWERS, "header", "closed"):
                return came

    def quiet(self, seconds: float = 0.3) -> list[str]:
        """All that comes until nothing has come for so long."""
        came: list[str] = []
        while (event := self.next(seconds)) is not None:
            came.append(event.text)
            if event.name == "closed":
                break
        return came

    def drain(self, seconds: float = 2.0) -> list[str]:
        """All up to the end of the socket; `still-open` where it does not end."""
        came = self.quiet(seconds)
        return came if self.end and not self._octets else [*came, "still-open"]

    def barrier(self, channel: int, settle: float = 0.0) -> list[str]:
        """What comes before the answer to a harmless call, and for `settle` seconds after it."""
        self.send(channel, "access.request", realm="/data")
        came: list[str] = []
        while True:
            event = self.next(4.0)
            if event is None:
                return [*came, "silence"]
            if (event.name, event.channel) == ("access.request-ok", channel):
                break
            came.append(event.text)
            if event.name in ("connection.close", "closed"):
                return came
            if event.name == "channel.close" and event.channel == channel:
                return came
        return came + (self.quiet(settle) if settle else [])

    def do(self, channel: int, method: str, settle: float = 0.0, **arguments: Any) -> list[str]:
        """Send a method and say what comes of it: its reply, an error, or what a following call shows."""
        if method == "publish":
            self.publish(channel, **arguments)
            return self.barrier(channel, settle)
        self.send(channel, method, **arguments)
        replies = METHODS[method].responses
        if method == "basic.recover":
            replies = ("basic.recover-ok",)
        if not replies or arguments.get("no_wait") or arguments.get("nowait"):
            return self.barrier(channel, settle)
        came = self.until(*replies)
        return came + (self.quiet(settle) if settle else [])


def _described(name: str, arguments: Mapping[str, Any]) -> str:
    if name in _ANSWERS:
        text = arguments["reply_text"].decode("utf-8", "backslashreplace")
        return (
            f'{name}({arguments["reply_code"]}, "{text}", {arguments["class_id"]}.{arguments["method_id"]})'
        )
    parts = (
        f"{field}={shown(value) if isinstance(value, bytes) else repr(value)}"
        for field, value in arguments.items()
        if not field.startswith("reserved")
    )
    return f"{name}({', '.join(parts)})"
