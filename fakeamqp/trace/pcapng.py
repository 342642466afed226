"""A trace as a capture file for Wireshark: a synthetic TCP stream per connection, a packet per frame.

Other events are comments. TLS connections are shown decrypted.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.dialects import default_protocol, dialect_named, protocol_of
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.trace.timeline import Trace

# --- TCP: segments in packets in Ethernet frames, with correct checksums ------------------------------

_IP: TypeAlias = IPv4Address | IPv6Address

_FIN, _SYN, _PUSH, _ACK = 1, 2, 8, 16
_TCP = 6
_TTL = 64
_MOST = 65_535 - 40 - 20
"""The most bytes in a segment: an IPv6 packet without its headers."""
_SCALE = 7
_WINDOW = 65_535
_UNANSWERED = 1024 * 1024
"""Bytes after which the receiver sends an acknowledgement: far below its window of 8 MiB."""
_SYN_OPTIONS = struct.pack(">BBHBBBB", 2, 4, _MOST, 1, 3, 3, _SCALE)
_NO_HARDWARE = bytes(12)
"""Both addresses of an Ethernet frame, as a loopback interface has them."""


@dataclass(frozen=True)
class _Address:
    ip: _IP
    port: int


class _End:
    """The state of one end: bytes sent, and bytes that the other end has not acknowledged."""

    def __init__(self, address: _Address, sequence: int) -> None:
        self.address = address
        self.sequence = sequence
        self.unanswered = 0


class _Stream:
    """One TCP connection. Each method returns the packets to write, as Ethernet frames.

    Both addresses are of one family. `number` determines the first sequence numbers.
    """

    def __init__(self, client: _Address, server: _Address, number: int) -> None:
        start = number * 100_003 % 2**32
        self._ends = {"received": _End(client, start), "sent": _End(server, start ^ 0x5555_5555)}
        self._identification = 0

    def open(self) -> Iterator[bytes]:
        yield self._packet("received", _SYN)
        yield self._packet("sent", _SYN | _ACK)
        yield self._packet("received", _ACK)

    def data(self, direction: str, octets: bytes) -> Iterator[bytes]:
        """The packets for bytes that the server "received" or "sent"."""
        for start in range(0, len(octets), _MOST):
            segment = octets[start : start + _MOST]
            end = self._ends[direction]
            yield self._packet(direction, _PUSH | _ACK, segment)
            end.unanswered += len(segment)
            if end.unanswered >= _UNANSWERED:
                yield self._packet(_other(direction), _ACK)

    def close(self, direction: str) -> Iterator[bytes]:
        """The packets of the close. `direction` is "sent" if the server closes first."""
        yield self._packet(direction, _FIN | _ACK)
        yield self._packet(_other(direction), _FIN | _ACK)
        yield self._packet(direction, _ACK)

    def _packet(self, direction: str, flags: int, segment: bytes = b"") -> bytes:
        sender, receiver = self._ends[direction], self._ends[_other(direction)]
        receiver.unanswered = 0
        options = _SYN_OPTIONS if flags & _SYN else b""
        header = struct.pack(
            ">HHIIBBHHH",
            sender.address.port,
            receiver.address.port,
            sender.sequence,
            receiver.sequence if flags & _ACK else 0,
            (20 + len(options)) // 4 << 4,
            flags,
            _WINDOW,
            0,
            0,
        )
        tcp = header + options + segment
        sender.sequence = (sender.sequence + len(segment) + bool(flags & (_SYN | _FIN))) % 2**32
        source, target = sender.address.ip, receiver.address.ip
        pseudo_header = source.packed + target.packed + struct.pack(">II", len(tcp), _TCP)
        sum_ = _checksum(pseudo_header + tcp)
        tcp = tcp[:16] + sum_.to_bytes(2, "big") + tcp[18:]
        self._identification = (self._identification + 1) % 2**16
        return _internet(source, target, self._identification, tcp)


def _other(direction: str) -> str:
    return "sent" if direction == "received" else "received"


def _internet(source: _IP, target: _IP, identification: int, segment: bytes) -> bytes:
    addresses = source.packed + target.packed
    if source.version == 6:
        header = struct.pack(">IHBB", 6 << 28, len(segment), _TCP, _TTL)
        return _NO_HARDWARE + b"\x86\xdd" + header + addresses + segment
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), identification, 0x4000, _TTL, _TCP, 0)
    sum_ = _checksum(header + addresses)
    return _NO_HARDWARE + b"\x08\x00" + header[:10] + sum_.to_bytes(2, "big") + addresses + segment


def _checksum(octets: bytes) -> int:
    """The complement of the one's complement sum: adding with end-around carry is counting modulo 65535."""
    number = int.from_bytes(octets + bytes(len(octets) % 2), "big")
    return -number % 0xFFFF


# --- blocks and options, as the IETF draft "PCAP Now Generic (pcapng) Capture File Format" has them ---

_SECTION_HEADER = 0x0A0D0D0A
_INTERFACE = 1
_ENHANCED_PACKET = 6

_BYTE_ORDER = 0x1A2B3C4D
_LENGTH_UNKNOWN = -1
_ETHERNET = 1
_NO_LIMIT = 0
_NANOSECONDS = 9

_LATEST = 2**64 - 1
"""In nanoseconds since 1970: the year 2554. A virtual clock may be later."""
_COMMENT = 1
_USER_APPLICATION = 4
_INTERFACE_NAME = 2
_INTERFACE_DESCRIPTION = 3
_TIMESTAMP_RESOLUTION = 9
_LONGEST_OPTION = 4096
"""The most bytes of an option. The format allows 65535; readers do not need more."""


def _section_header(application: str, comments: Iterable[str] = ()) -> bytes:
    """The first block of a file, with the name of the program that wrote it."""
    fields = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN)
    options = [(_COMMENT, _text(comment)) for comment in comments]
    return _block(_SECTION_HEADER, fields + _options([*options, (_USER_APPLICATION, _text(application))]))


def _interface(name: str, description: str) -> bytes:
    """The block of the interface of all packets: Ethernet, with times in nanoseconds."""
    options = [
        (_INTERFACE_NAME, _text(name)),
        (_INTERFACE_DESCRIPTION, _text(description)),
        (_TIMESTAMP_RESOLUTION, bytes([_NANOSECONDS])),
    ]
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, _NO_LIMIT) + _options(options))


def _packet(nanoseconds: int, octets: bytes, comments: Iterable[str] = ()) -> bytes:
    """The block of one packet. Its time is in nanoseconds since 1970."""
    nanoseconds = min(nanoseconds, _LATEST)
    fields = struct.pack("<IIIII", 0, nanoseconds >> 32, nanoseconds & 0xFFFFFFFF, len(octets), len(octets))
    options = _options([(_COMMENT, _text(comment)) for comment in comments])
    return _block(_ENHANCED_PACKET, fields + _padded(octets) + options)


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _options(options: list[tuple[int, bytes]]) -> bytes:
    if not options:
        return b""
    written = [struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options]
    return b"".join((*written, struct.pack("<HH", 0, 0)))


def _padded(octets: bytes) -> bytes:
    """Pad to a multiple of four bytes, as all fields of a block are."""
    return octets + bytes(-len(octets) % 4)


def _text(text: str) -> bytes:
    octets = text.encode("utf-8", "backslashreplace")
    if len(octets) <= _LONGEST_OPTION:
        return octets
    return octets[: _LONGEST_OPTION - 3].decode("utf-8", "ignore").encode() + b"..."


# --- events as packets ----------------------------------------------------------------------------------

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
        file.write(_section_header(application, comments + capture.early))
        file.write(_interface("fakeamqp", "connections of clients to a broker inside a test"))
        for packet in capture.packets:
            nanoseconds = max(0, began + _nanoseconds(packet.time))
            file.write(_packet(nanoseconds, packet.octets, packet.comments))


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
    def __init__(self, events: Iterable[Event], redact: bool) -> None:
        self.packets: list[_Packet] = []
        self.early: list[str] = []
        """Comments waiting for the next packet."""
        self._redact = redact
        self._streams: dict[str, _Stream] = {}
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
            if self._latest[event.alias].fresh and len(octets) > _MOST:
                # Wireshark guesses another version if the first segment is not a whole frame.
                self._comment(
                    event.alias, "a heartbeat that was not sent; it helps Wireshark to detect the version"
                )
                heartbeat = dialect_named(event.protocol).heartbeat
                self._write(event, self._streams[event.alias].data("sent", heartbeat))
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
        stream = self._streams[event.alias] = _Stream(client, server, number)
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


def _addresses(connection: str, number: int) -> tuple[_Address, _Address, str]:
    """Client, server, and a comment if the ports are not the real ones."""
    names = connection.split(" -> ")
    try:
        client, server = (_address(name) for name in names)
    except ValueError:  # A pair of sockets has no addresses.
        client, server = (_Address(ip_address("127.0.0.1"), 0) for _ in range(2))
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
    return _Address(ip, port), _Address(server.ip, _AMQP_PORT), said


def _address(name: str) -> _Address:
    """The address in a name; raises ValueError if there is none."""
    host, _, port = name.rpartition(":")
    number = int(port)
    if not 0 <= number <= 65_535:
        raise ValueError(port)
    return _Address(ip_address(host.strip("[]")), number)


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
