"""Events as packets: a TCP stream per connection, a packet per frame, comments for other events."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from fakeamqp.dialects import default_protocol, dialect_named, protocol_of
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent
from fakeamqp.trace.pcapng import blocks
from fakeamqp.trace.pcapng.tcp import MOST, Address, Stream
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.trace.timeline import Trace

__all__ = ["write"]

_AMQP_PORT = 5672
"""Wireshark chooses the dissector of AMQP by the port alone. So this port replaces the broker's own one,
which is usually random, and a comment has the real one."""
_FIRST_FREE_PORT = 49_152
_ENDS = {"closed": "sent", "aborted": "sent", "refused": "sent", "lost": "received"}
"""The events that end a connection, and the direction of the first FIN."""


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
        # Comments without a packet belong to the whole file.
        file.write(blocks.section_header(application, comments + capture.early))
        file.write(blocks.interface("fakeamqp", "connections of clients to a broker inside a test"))
        for packet in capture.packets:
            nanoseconds = max(0, began + _nanoseconds(packet.time))
            file.write(blocks.packet(nanoseconds, packet.octets, packet.comments))


def _nanoseconds(seconds: float) -> int:
    """Converts whole seconds separately: a float since 1970 has no precision of nanoseconds."""
    return int(seconds) * 1_000_000_000 + round(seconds % 1 * 1e9)


@dataclass
class _Packet:
    time: float
    octets: bytes
    comments: list[str] = field(default_factory=list)
    fresh: bool = False
    """True for the first packet of a connection after the handshake."""


class _Capture:
    """The packets of events."""

    def __init__(self, events: Iterable[Event], redact: bool) -> None:
        self.packets: list[_Packet] = []
        self.early: list[str] = []
        """Comments waiting for the next packet."""
        self._redact = redact
        self._streams: dict[str, Stream] = {}
        self._latest: dict[str, _Packet] = {}
        events = tuple(events)
        ends = _last_positions(events)
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
                # Wireshark guesses another version if the first segment is not a whole frame.
                self._comment(
                    event.alias, "a heartbeat that was not sent; it helps Wireshark to detect the version"
                )
                self._write(
                    event,
                    self._streams[event.alias].data("sent", dialect_named(event.protocol).heartbeat),
                )
            self._write(event, self._streams[event.alias].data(event.direction, octets))
            if comment:
                self._comment(event.alias, comment)
            return
        if isinstance(event, ConnectionEvent) and event.alias not in self._streams:
            self._open(event)
        self._comment(event.alias, event.text)

    def _open(self, event: Event) -> None:
        """Add the handshake of TCP and the protocol header.

        The header is added even if the trace has lost the beginning of the connection, because dissectors
        need it. A client that was refused has sent none.
        """
        number = len(self._streams) + 1
        client, server, note = _addresses(event.connection or "", number)
        stream = self._streams[event.alias] = Stream(client, server, number)
        self.early.append(f"{event.alias} is {event.connection}{note}")
        self._write(event, stream.open())
        protocol = event.protocol if isinstance(event, FrameEvent) else default_protocol().name
        header = dialect_named(protocol).protocol_header
        if isinstance(event, ConnectionEvent):
            header = b"" if event.event == "refused" else event.protocol_header or header
        if header:
            self._write(event, stream.data("received", header))
            spoken = protocol_of(header)
            if spoken is not None and dialect_named(spoken).answer:
                self._write(event, stream.data("sent", dialect_named(spoken).answer))
            self._latest[event.alias].fresh = True

    def _write(self, event: Event, packets: Iterable[bytes]) -> None:
        for octets in packets:
            packet = self._latest[event.alias] = _Packet(event.time, octets, self.early)
            self.early = []
            self.packets.append(packet)

    def _comment(self, alias: str, text: str) -> None:
        packet = self._latest.get(alias) or (self.packets[-1] if self.packets else None)
        (self.early if packet is None else packet.comments).append(text)


def _last_positions(events: tuple[Event, ...]) -> dict[int, ConnectionEvent]:
    """By the position of a connection's last event: the event that reports its end.

    Frames may follow that event, such as the answer to a close.
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
    """Client, server, and a comment if the ports are not the real ones."""
    names = connection.split(" -> ")
    try:
        client, server = (_address(name) for name in names)
    except ValueError:  # A pair of sockets has no addresses.
        client, server = (Address(ip_address("127.0.0.1"), 0) for _ in range(2))
    notes = []
    if server.port != _AMQP_PORT:
        notes.append(f"port {_AMQP_PORT} stands for {server.port}")
    port = client.port
    if port <= _AMQP_PORT:
        # If both ports have dissectors, Wireshark uses the lower one.
        port = _FIRST_FREE_PORT + number % (65_536 - _FIRST_FREE_PORT)
        notes.append(f"port {port} stands for {client.port}")
    ip = client.ip if client.ip.version == server.ip.version else server.ip
    said = f" ({'; '.join(notes)})" if notes else ""
    return Address(ip, port), Address(server.ip, _AMQP_PORT), said


def _address(name: str) -> Address:
    """The address in a name; raises ValueError if there is none."""
    host, _, port = name.rpartition(":")
    number = int(port)
    if not 0 <= number <= 65_535:
        raise ValueError(port)
    return Address(ip_address(host.strip("[]")), number)


def _octets(event: FrameEvent, redact: bool) -> tuple[bytes, str]:
    """The frame as bytes, and a comment if it differs from the real one.

    A truncated frame is completed: a body with zeros, a method to its id without fields, and a header to the
    size of the body without properties.
    """
    payload = event.redacted.payload if redact else event.payload
    comment = ""
    if isinstance(payload, Truncated):
        comment = f"{event.name} of {payload.size} bytes, of which the trace has {len(payload)}: "
        payload, note = dialect_named(event.protocol).filled(event.type, payload)
        comment += note
    elif not dialect_named(event.protocol).is_dissected(event.type):
        comment = event.text
    return dialect_named(event.protocol).frame(event.type, event.channel, payload), comment
