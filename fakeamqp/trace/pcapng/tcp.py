"""Synthetic TCP connections: segments in packets in Ethernet frames, with correct checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

__all__ = ["MOST", "Address", "Stream"]

IP: TypeAlias = IPv4Address | IPv6Address

_FIN, _SYN, _PUSH, _ACK = 1, 2, 8, 16
_TCP = 6
_TTL = 64
MOST = 65_535 - 40 - 20
"""The most bytes in a segment: an IPv6 packet without its headers."""
_SCALE = 7
_WINDOW = 65_535
_UNANSWERED = 1024 * 1024
"""Bytes after which the receiver sends an acknowledgement: far below its window of 8 MiB."""
_SYN_OPTIONS = struct.pack(">BBHBBBB", 2, 4, MOST, 1, 3, 3, _SCALE)
_NO_HARDWARE = bytes(12)
"""Both addresses of an Ethernet frame, as a loopback interface has them."""


@dataclass(frozen=True)
class Address:
    """One end of a connection."""

    ip: IP
    port: int


class _End:
    """The state of one end: bytes sent, and bytes that the other end has not acknowledged."""

    def __init__(self, address: Address, sequence: int) -> None:
        self.address = address
        self.sequence = sequence
        self.unanswered = 0


class Stream:
    """One TCP connection. Each method returns the packets to write, as Ethernet frames.

    Args:
        client: the address that connects.
        server: the address that accepts, of the same family.
        number: of the connection; it determines the first sequence numbers.
    """

    def __init__(self, client: Address, server: Address, number: int) -> None:
        start = number * 100_003 % 2**32
        self._ends = {"received": _End(client, start), "sent": _End(server, start ^ 0x5555_5555)}
        self._identification = 0

    def open(self) -> Iterator[bytes]:
        """The three packets of the handshake."""
        yield self._packet("received", _SYN)
        yield self._packet("sent", _SYN | _ACK)
        yield self._packet("received", _ACK)

    def data(self, direction: str, octets: bytes) -> Iterator[bytes]:
        """The packets for bytes that the server "received" or "sent"."""
        for start in range(0, len(octets), MOST):
            segment = octets[start : start + MOST]
            end = self._ends[direction]
            yield self._packet(direction, _PUSH | _ACK, segment)
            end.unanswered += len(segment)
            if end.unanswered >= _UNANSWERED:
                yield self._packet(_other(direction), _ACK)

    def close(self, direction: str) -> Iterator[bytes]:
        """The packets of the close.

        `direction` is "sent" if the server closes first, otherwise "received".
        """
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
        sum_ = _checksum(_pseudo_header(source, target, len(tcp)) + tcp)
        tcp = tcp[:16] + sum_.to_bytes(2, "big") + tcp[18:]
        self._identification = (self._identification + 1) % 2**16
        return _internet(source, target, self._identification, tcp)


def _other(direction: str) -> str:
    return "sent" if direction == "received" else "received"


def _pseudo_header(source: IP, target: IP, size: int) -> bytes:
    """The bytes that the checksum of TCP covers in addition to the segment."""
    return source.packed + target.packed + struct.pack(">II", size, _TCP)


def _internet(source: IP, target: IP, identification: int, segment: bytes) -> bytes:
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
