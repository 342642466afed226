"""Floods: a thousand times the same method, of every method that a client may send."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.targets import Target
from compat_tests.fuzz import streams
from compat_tests.fuzz.amqp_0_9 import recordings as streams_0_9
from compat_tests.fuzz.amqp_0_10 import recordings as streams_0_10
from fakeamqp.protocols.amqp_0_9.codec import METHODS as METHODS_0_9, methods as m09
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.method import CLIENT, Method
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

__all__ = ["NUMBER", "framed_errors", "packed_errors"]

NUMBER = 1000
_MEGABYTES = 64.0
"""By how much a broker may grow in one flood. RabbitMQ's memory goes up and down by more of itself."""
_NAMED: dict[str, Any] = {
    "queue": "flooded",
    "exchange": "flooded",
    "destination": "flooded",
    "source": "amq.fanout",
    "binding_key": "k",
    "type": "direct",
    "auto_delete": True,
    "virtual_host": "/",
    "locale": "en_US",
    "mechanism": "PLAIN",
    "response": b"\0guest\0guest",
    "realm": "/data",
    "active": True,
    "identifier": "i",
    "reference": b"r",
    "dtx_identifier": "d",
    "prefetch_count": 1,
    "reply_code": 200,
    "name": "flooded",
    "transfers": SequenceSet.of(0),
    "commands": SequenceSet.of(0),
    "xid": structs.Xid(format=1, global_id=b"g", branch_id=b"b"),
}


def _fields(names: list[str]) -> dict[str, Any]:
    return {name: _NAMED[name] for name in names if name in _NAMED}


_DISTINCT = {
    "message.subscribe": "destination",
    "message.consume": "destination",
    "message.open": "reference",
    "file.consume": "consumer_tag",
    "stream.consume": "consumer_tag",
}
"""What must be another one each time."""


def _distinct(name: str, number: int, like: object) -> dict[str, Any]:
    if name not in _DISTINCT:
        return {}
    value: Any = f"r{number}"
    return {_DISTINCT[name]: value.encode() if isinstance(like, bytes) else value}


class _Flood:
    """What one flood sends: how it begins, and its units."""

    def __init__(
        self,
        begin: bytes,
        unit: Callable[[int], bytes],
        end: bytes,
        ends: bytes,
        errors: Callable[[bytes], list[str]],
    ) -> None:
        self.begin = begin
        self.unit = unit
        self.end = end
        self.ends = ends
        """What the answer to `end` contains."""
        self.errors = errors
        """Finds the errors among all that has come."""


def _framed(make: Callable[[], streams.Client], every: Any) -> Iterator[tuple[str, _Flood]]:
    """The floods of 0-9-1 or 0-9."""
    writer = make()
    begin = b"".join(
        [
            *writer.handshake(),
            *writer.open(1),
            *writer.send(
                m.QueueDeclare(queue="flooded", auto_delete=True, durable=True),
                m.ExchangeDeclare(exchange="flooded", type="direct", auto_delete=True, durable=True),
                m.BasicPublish(exchange="", routing_key="flooded"),
                [*content_frames(1, 60, b"\0\0", b"body", 1000)],
            ),
        ]
    )
    end = writer.frame(0, m.ConnectionClose(reply_code=200))
    ends = m.ConnectionCloseOk.INDEX.to_bytes(4, "big")
    for kind in sorted(every.values(), key=lambda each: each.NAME):
        if kind.RECEIVED_BY == CLIENT:
            continue
        yield kind.NAME, _Flood(begin, _framed_unit(make(), kind), end, ends, framed_errors)


def _framed_unit(writer: streams.Client, kind: type[Method]) -> Callable[[int], bytes]:
    names = [name for name, _ in kind.LAYOUT]
    fields = _fields(names)
    class_name, _, word = kind.NAME.partition(".")
    if kind.NAME == "basic.consume":
        fields["no_ack"] = True
    if "body" in names:
        fields["body"] = Body(b"body")
    if word == "declare":
        fields |= {"durable": True, "auto_delete": True}
    if word == "recover":
        fields["requeue"] = True
    select = {"tx": m.TxSelect, "dtx": m09.DtxSelect}.get(class_name)
    channel = 0 if class_name == "connection" else 1

    def unit(number: int) -> bytes:
        fields.update(_distinct(kind.NAME, number, fields.get("reference", "")))
        if isinstance(writer, streams_0_9.Client) and class_name == "message":
            return b"".join(writer.ask(kind(**fields)))
        if kind.NAME == "channel.open":
            return writer.frame(number + 2, kind())
        if kind.NAME == "channel.close":
            return writer.frame(number + 2, m.ChannelOpen()) + writer.frame(number + 2, kind(**fields))
        before = b"" if select is None or number else writer.frame(1, select())
        if word in ("ack", "nack", "reject") and class_name == "basic":
            before = b"".join([*writer.publish("", "flooded"), writer.frame(1, m.BasicGet(queue="flooded"))])
            fields["delivery_tag"] = number + 1
        said = writer.frame(channel, kind(**fields))
        if kind.HAS_CONTENT:
            said += b"".join(content_frames(1, kind.CLASS_ID, b"\0\0", b"body", 1000))
        return before + said

    return unit


def framed_errors(octets: bytes) -> list[str]:
    """Closes of the broker among its frames, with their reply codes."""
    found = []
    while len(octets) >= 8:
        size = int.from_bytes(octets[3:7], "big")
        payload, octets = octets[7 : 7 + size], octets[size + 8 :]
        for kind in (m.ChannelClose, m.ConnectionClose):
            if payload[:4] == kind.INDEX.to_bytes(4, "big"):
                found.append(f"{kind.NAME.partition('.')[0]} closed: {int.from_bytes(payload[4:6], 'big')}")
    return found


def packed_errors(octets: bytes) -> list[str]:
    """The same for 0-10: closes of the connection, exceptions and detached sessions, with their codes."""
    found = []
    octets = octets.removeprefix(streams_0_10.PROTOCOL_HEADER)
    while len(octets) >= 12:
        size = int.from_bytes(octets[2:4], "big")
        kind, payload, octets = octets[1], octets[12:size], octets[size:]
        said: Any = None
        if kind == 0:
            said = c.decode(payload)
        elif kind == 1:
            said = x.decode(payload)[0]
        if isinstance(said, c.ConnectionClose) and said.reply_code != 200:
            found.append(f"connection closed: {said.reply_code}")
        elif isinstance(said, x.ExecutionException):
            found.append(f"session ended: {said.error_code}")
        elif isinstance(said, c.SessionDetached) and said.code:
            found.append(f"session detached: {said.code}")
    return found


def _packed() -> Iterator[tuple[str, _Flood]]:
    """The floods of 0-10."""
    prepared = [
        *streams_0_10.handshake(),
        *streams_0_10.attach(),
        *streams_0_10.command(x.QueueDeclare(queue="flooded", auto_delete=True)),
        *streams_0_10.command(x.ExchangeDeclare(exchange="flooded", type="direct", auto_delete=True)),
        *streams_0_10.transfer("flooded"),
    ]
    begin = b"".join(prepared)
    end = b"".join(streams_0_10.control(c.ConnectionClose(reply_code=200)))
    ends = c.ConnectionCloseOk().encode()
    kinds = [*c.CONTROLS.values(), *x.COMMANDS.values()]
    for kind in sorted(kinds, key=lambda each: each.NAME):
        if kind.RECEIVED_BY == CLIENT:
            continue
        yield kind.NAME, _Flood(begin, _packed_unit(kind), end, ends, packed_errors)


def _packed_unit(kind: Any) -> Callable[[int], bytes]:
    fields = _fields([name for name, *_ in kind.FIELDS])
    if kind.NAME.startswith("session.") and "name" in fields:
        fields["name"] = b"s"
    if kind.NAME in ("message.transfer", "exchange.bind", "exchange.unbind", "exchange.bound"):
        fields["destination" if kind.NAME == "message.transfer" else "exchange"] = "amq.direct"
    elif "destination" in fields:
        fields["destination"] = "d"

    select = {"tx": x.TxSelect, "dtx": x.DtxSelect}.get(kind.NAME.partition(".")[0])

    def unit(number: int) -> bytes:
        fields.update(_distinct(kind.NAME, number, ""))
        if kind in c.CONTROLS.values():
            channel = number + 1 if kind.NAME == "session.attach" else 0
            said = fields | ({"name": b"%d" % number} if kind.NAME == "session.attach" else {})
            return b"".join(streams_0_10.control(kind(**said), channel))
        content = kind.HEADER is not None
        before = b"" if select is None or number else b"".join(streams_0_10.command(select()))
        return before + b"".join(
            streams_0_10.command(
                kind(**fields), header=[] if content else None, body=b"body" if content else None
            )
        )

    return unit


def _flood(target: Target, flood: _Flood, number: int) -> Row:
    before = target.megabytes()
    came = bytearray()
    with target.dial() as sock:
        reader = threading.Thread(target=_read, args=(sock, came, flood.ends))
        reader.start()
        with suppress(OSError):
            sock.sendall(flood.begin)
            sock.sendall(b"".join(map(flood.unit, range(number))))
            sock.sendall(flood.end)
        served = target.serves()
        reader.join(60)
        assert not reader.is_alive(), "the broker neither answers nor closes"
    served = max(served, target.serves())
    more = max(0.0, target.megabytes() - before)
    grown = "" if more < _MEGABYTES or target.is_rabbitmq else f"; {more:.0f} MB more"
    errors = flood.errors(bytes(came))
    ended = errors[0] if errors else "all handled" if flood.ends in came else "socket closed"
    return Row(f"{ended}{grown}", f"{served:.2f} s")


def _read(sock: socket.socket, came: bytearray, ends: bytes) -> None:
    with suppress(OSError):
        while octets := sock.recv(65536):
            came += octets
            if ends in came[-200 - len(octets) :]:
                return


@attempt("Floods of 0-9-1", long=True)
def floods_of_0_9_1(target: Target) -> dict[str, Row]:
    """A client sends each method 1 000 times, then a close of the connection. "All handled" means that the
    broker has answered the close, and so has handled all methods before it; otherwise the table has the first
    error. The seconds are the time of one conversation of another client meanwhile or right afterwards."""
    floods = _framed(streams.Client, m.METHODS)
    return {name: _flood(target, flood, NUMBER) for name, flood in floods}


@attempt("Floods of 0-9", rabbitmq="it has only the classes of 0-9-1", long=True)
def floods_of_0_9(target: Target) -> dict[str, Row]:
    """A client does the same with the methods of 0-9."""
    floods = _framed(lambda: streams_0_9.Client(rabbitmq=True), METHODS_0_9)
    return {name: _flood(target, flood, NUMBER) for name, flood in floods}


@attempt("Floods of 0-10", rabbitmq="it does not speak 0-10", long=True)
def floods_of_0_10(target: Target) -> dict[str, Row]:
    """A client does the same with the controls and commands of 0-10."""
    return {name: _flood(target, flood, NUMBER) for name, flood in _packed()}
