"""The scripted client as cases use it: it does as it is told, and puts into words what comes back."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from compat_tests.differential.codec import (
    METHODS,
    decode_method,
    decode_properties,
    encode_method,
    frame,
    publish_frames,
    shown,
)
from compat_tests.scripted.amqp_0_9_1 import PROTOCOL_HEADERS, Client, Frame, Server
from compat_tests.scripted.sockets import SocketServer
from fakeamqp.connection import PeerAddress

if TYPE_CHECKING:
    from compat_tests.differential.operators import BrokerOperator, NodeOperator

__all__ = [
    "CAPABILITIES",
    "PROTOCOL_HEADER",
    "Address",
    "Event",
    "HandshakeFailed",
    "RawClient",
    "described",
]

PROTOCOL_HEADER = PROTOCOL_HEADERS["0-9-1"]
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


class Address(NamedTuple):
    """Where a broker listens, and how much longer than usual to wait for what it may still say.

    `header` is what clients send first if their case does not say it.
    """

    host: str
    port: int
    patience: float = 1.0
    operator: NodeOperator | BrokerOperator | None = None
    header: bytes = PROTOCOL_HEADER
    server: Server | None = None
    """A broker without sockets in place of one that listens: its time is moved, not waited for."""


class HandshakeFailed(Exception):
    """The broker did not let the client in; the text is what it said."""


class Event(NamedTuple):
    """Something the broker did: a method (its content included), a heartbeat, the end of the socket."""

    name: str
    channel: int
    text: str


class RawClient(Client):
    """The scripted client, over a socket or without, which tells all that comes. Close methods are answered.

    With `answers` False they are not.
    """

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
        super().__init__(address.server or SocketServer(address.host, address.port), PeerAddress())
        self.address = address
        self.answers = answers
        self.frame_max = tune["frame_max"] or 2**31
        self._contents: dict[int, list[Frame]] = {}
        """Methods whose contents are still coming, with what has come of these."""
        if header is not None:
            self.send_bytes(address.header if header is PROTOCOL_HEADER else header)
        if not handshake:
            return
        try:
            self.start_ok(**login)
            self._expect("connection.tune")
            self.tell(0, "connection.tune-ok", **tune)
            self.tell(0, "connection.open", virtual_host=vhost)
            self._expect("connection.open-ok")
            for channel in channels:
                self.tell(channel, "channel.open")
                self._expect("channel.open-ok")
        except BaseException:
            self.close()
            raise

    @property
    def end(self) -> str:
        """How the socket ended, once it has.

        RabbitMQ resets the socket where others end it in good order; it is one outcome.
        """
        return "closed" if self.closed else ""

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
        self.tell(
            0,
            "connection.start-ok",
            client_properties=properties,
            mechanism=mechanism,
            response=f"\0{user}\0{password}" if response is None else response,
            locale=locale,
        )

    def close(self) -> None:
        """Drop the socket."""
        self.drop()

    # --- out ---------------------------------------------------------------------------------------

    def end_sending(self) -> None:
        """Close our half of the socket."""
        self.connection.socket.shutdown(socket.SHUT_WR)

    def tell(self, channel: int, method: str, **arguments: Any) -> None:
        """Send a method."""
        self.send_bytes(frame(1, channel, encode_method(method, **arguments)))

    def publish(  # type: ignore[override]
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

    def read(self, payload: bytes) -> Any:
        """Nothing yet: what a frame holds is told as it is, whatever the broker's codec thinks of it."""

    def next(self, seconds: float) -> Event | None:
        """What comes next, or None where nothing does for so long."""
        deadline = time.monotonic() + seconds * self.address.patience
        while True:
            if (event := self._event()) is not None:
                return event
            if self.end:
                return Event("closed", 0, "closed")
            left = deadline - time.monotonic()
            if self.address.server is not None:
                self.server.advance(0)  # What is due by now happens now, as in a broker with a loop.
                return self._event()
            if left <= 0 or not (self.connection.wait(left) or self.end):
                return None

    def octets(self, seconds: float = 0.3) -> bytes:
        """All bytes that come until silence."""
        while self.connection.wait(seconds * self.address.patience):
            pass
        octets = b"".join(frame(each.type, each.channel, each.payload) for each in self._inbox)
        octets += self._octets + self.take_bytes()
        self._inbox, self._octets = [], b""
        return octets

    def _event(self) -> Event | None:
        """The next of what has come."""
        inbox = self.inbox
        if self.header:
            header, self.header = self.header, b""
            return Event("header", 0, f"header {header.hex()}")
        while inbox:
            came = inbox.pop(0)
            if came.type == 8:
                return Event("heartbeat", came.channel, "heartbeat")
            if came.type == 1:
                event = self._told(came)
            else:
                event = self._told_content([*self._contents.pop(came.channel), came])
            if event is not None:
                return event
        return None

    def _told(self, came: Frame) -> Event | None:
        name, arguments = decode_method(came.payload)
        if METHODS[name].content:
            self._contents[came.channel] = [came]
            return None
        if name in _ANSWERS and self.answers:
            self.tell(came.channel, _ANSWERS[name])
        return Event(name, came.channel, described(came.channel, name, arguments))

    def _told_content(self, frames: list[Frame]) -> Event | None:
        """A method with its content, if that is whole."""
        method, header, *parts = frames
        body = b"".join(part.payload for part in parts)
        if len(body) < int.from_bytes(header.payload[4:12], "big"):
            self._contents[method.channel] = frames
            return None
        name, arguments = decode_method(method.payload)
        if len(body) > _LONGEST_SHOWN:
            body = body[:20] + b"..%d" % len(body)
        text = described(method.channel, name, arguments)
        return Event(name, method.channel, f"{text} {decode_properties(header.payload[12:])} {shown(body)}")

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
        """All that comes until nothing has come for so long; without sockets, time is moved first."""
        came: list[str] = []
        if self.address.server is not None:
            self.server.advance(seconds)
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
        if self.address.server is not None:
            return self.quiet(0)
        self.tell(channel, "access.request", realm="/data")
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
        self.tell(channel, method, **arguments)
        replies = METHODS[method].responses
        if method == "basic.recover":
            replies = ("basic.recover-ok",)
        if not replies or arguments.get("no_wait") or arguments.get("nowait"):
            return self.barrier(channel, settle)
        came = self.until(*replies)
        return came + (self.quiet(settle) if settle else [])


def described(channel: int, name: str, arguments: Mapping[str, Any]) -> str:
    """A method in words."""
    if name in _ANSWERS:
        text = arguments["reply_text"].decode("utf-8", "backslashreplace")
        told = f'{arguments["reply_code"]}, "{text}", {arguments["class_id"]}.{arguments["method_id"]}'
    else:
        told = ", ".join(
            f"{field}={shown(value) if isinstance(value, bytes) else repr(value)}"
            for field, value in arguments.items()
            if not field.startswith("reserved")
        )
    return f"[{channel}]{name}({told})" if channel > 1 else f"{name}({told})"
