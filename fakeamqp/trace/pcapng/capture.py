"""From events to packets: a TCP stream per connection, a packet per frame, comments for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from fakeamqp.adapters import protocol_named, protocol_of
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.pcapng import blocks
from fakeamqp.trace.pcapng.tcp import MOST, Address, Stream
from fakeamqp.trace.reading import reader_of

if TYPE_CHECKING:
    from fakeamqp.trace.timeline import Trace

__all__ = ["write"]

_AMQP_PORT = 5672
"""Dissectors are chosen by port, and AMQP has no other mark that Wireshark would look for. So this is written
in the place of the broker's own port, which is mostly a random one, and a comment tells the real one."""
_FIRST_FREE_PORT = 49_152
_ENDS = {"closed": "sent", "aborted": "sent", "refused": "sent", "lost": "received"}
"""Which events end a connection, and whose FIN comes first: that which the server received, or sent."""


def write(trace: Trace, path: str | os.PathLike[str], *, redact: bool) -> None:
    """Write `trace`; see `Trace.pcapng`."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        application = f"fakeamqp {version('fakeamqp')}"
    except PackageNotFoundError:
        application = "fakeamqp"
    capture = _Capture(trace.events, redact)
    comments = [f"{trace.dropped} earlier events are not in this file"] if trace.dropped else []
    began = _nanoseconds(trace.wall_time or 0.0)
    with open(path, "wb") as file:
        # Comments for which there was no packet are about the whole.
        file.write(blocks.section_header(application, comments + capture.early))
        file.write(blocks.interface("fakeamqp", "connections of clients to a broker inside a test"))
        for packet in capture.packets:
            nanoseconds = max(0, began + _nanoseconds(packet.time))
            file.write(blocks.packet(nanoseconds, packet.octets, packet.comments))


def _nanoseconds(seconds: float) -> int:
    """Whole seconds apart: a float that counts from 1970 has no nanoseconds."""
    return int(seconds) * 1_000_000_000 + round(seconds % 1 * 1e9)


@dataclass
class _Packet:
    time: float
    octets: bytes
    comments: list[str] = field(default_factory=list)
    fresh: bool = False
    """Whether it is what a connection begins with."""


class _Capture:
    """The packets that events stand for."""

    def __init__(self, events: Iterable[Event], redact: bool) -> None:
        self.packets: list[_Packet] = []
        self.early: list[str] = []
        """Comments waiting for the next packet."""
        self._redact = redact
        self._streams: dict[str, Stream] = {}
        self._latest: dict[str, _Packet] = {}
        events = tuple(events)
        ends = _where_they_end(events)
        for position, event in enumerate(events):
            self._add(event)
            end = ends.get(position)
            if end is not None and event.alias in self._streams:
                self._write(event, self._streams[event.alias].close(_ENDS[end.event]))

    def _add(self, event: Event) -> None:
        if isinstance(event, FrameEvent):
            if event.alias not in self._streams:
                self._open(event)
            octets, comment = _octets(event, self._redact)
            if self._latest[event.alias].fresh and len(octets) > MOST:
                # Wireshark takes the protocol for another version when its first segment is no whole frame.
                self._comment(
                    event.alias, "a heartbeat that never was, for the sake of those who dissect this"
                )
                self._write(
                    event,
                    self._streams[event.alias].data("sent", protocol_named(event.protocol).framing.heartbeat),
                )
            self._write(event, self._streams[event.alias].data(event.direction, octets))
            if comment:
                self._comment(event.alias, comment)
            return
        if isinstance(event, ConnectionEvent) and event.alias not in self._streams:
            self._open(event)
        self._comment(event.alias, event.text)

    def _open(self, event: Event) -> None:
        """Let the connection begin: TCP's handshake and the protocol header.

        Where the trace has lost the beginning there is a header all the same: without one a dissector could
        but guess what follows. Who was refused has sent none.
        """
        number = len(self._streams) + 1
        client, server, remark = _addresses(event.connection or "", number)
        stream = self._streams[event.alias] = Stream(client, server, number)
        self.early.append(f"{event.alias} is {event.connection}{remark}")
        self._write(event, stream.open())
        protocol = event.protocol if isinstance(event, FrameEvent) else "0-9-1"
        header = protocol_named(protocol).framing.protocol_header
        if isinstance(event, ConnectionEvent):
            header = b"" if event.event == "refused" else event.protocol_header or header
        if header:
            self._write(event, stream.data("received", header))
            spoken = protocol_of(header)
            if spoken is not None and protocol_named(spoken).framing.answer:
                self._write(event, stream.data("sent", protocol_named(spoken).framing.answer))
            self._latest[event.alias].fresh = True

    def _write(self, event: Event, packets: Iterable[bytes]) -> None:
        for octets in packets:
            packet = self._latest[event.alias] = _Packet(event.time, octets, self.early)
            self.early = []
            self.packets.append(packet)

    def _comment(self, alias: str, text: str) -> None:
        packet = self._latest.get(alias) or (self.packets[-1] if self.packets else None)
        (self.early if packet is None else packet.comments).append(text)


def _where_they_end(events: tuple[Event, ...]) -> dict[int, ConnectionEvent]:
    """Behind which events a connection ends, and the event that says so.

    The last frames may come after that event, as the answer to a close does.
    """
    said: dict[str, ConnectionEvent] = {}
    last: dict[str, int] = {}
    for position, event in enumerate(events):
        if isinstance(event, ConnectionEvent) and event.event in _ENDS:
            said.setdefault(event.alias, event)
            last[event.alias] = position
        elif isinstance(event, FrameEvent):
            last[event.alias] = position
    return {last[alias]: event for alias, event in said.items()}


def _addresses(connection: str, number: int) -> tuple[Address, Address, str]:
    """Client, server, and what to say where they are not the real ones."""
    names = connection.split(" -> ")
    try:
        client, server = (_address(name) for name in names)
    except ValueError:  # A pair of sockets has no addresses.
        client, server = (Address(ip_address("127.0.0.1"), 0) for _ in range(2))
    remarks = []
    if server.port != _AMQP_PORT:
        remarks.append(f"port {_AMQP_PORT} stands for {server.port}")
    port = client.port
    if port <= _AMQP_PORT:
        # Of two ports that have dissectors the lower one counts.
        port = _FIRST_FREE_PORT + number % (65_536 - _FIRST_FREE_PORT)
        remarks.append(f"port {port} stands for {client.port}")
    ip = client.ip if client.ip.version == server.ip.version else server.ip
    said = f" ({'; '.join(remarks)})" if remarks else ""
    return Address(ip, port), Address(server.ip, _AMQP_PORT), said


def _address(name: str) -> Address:
    """Raises ValueError where it is no address."""
    host, _, port = name.rpartition(":")
    number = int(port)
    if not 0 <= number <= 65_535:
        raise ValueError(port)
    return Address(ip_address(host.strip("[]")), number)


def _octets(event: FrameEvent, redact: bool) -> tuple[bytes, str]:
    """The frame as bytes, and what to say where it is not the one that there was.

    What was cut for want of memory is filled up, so that every frame is whole: a body with zeros, while of a
    method or of properties of which the end is missing, nothing but the kind or the body's size is left.
    """
    payload = event.redacted.payload if redact else event.payload
    comment = ""
    if isinstance(payload, Cut):
        comment = f"{event.name} of {payload.size} bytes, of which the trace has {len(payload)}: "
        payload, remark = reader_of(event.protocol).filled(event.type, payload)
        comment += remark
    elif not reader_of(event.protocol).is_dissected(event.type):
        comment = event.text
    return protocol_named(event.protocol).framing.frame(event.type, event.channel, payload), comment
