"""Peers that are slow, silent, or half gone."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.targets import Target
from compat_tests.fuzz import streams
from compat_tests.fuzz.amqp_0_9 import recordings as streams_0_9
from compat_tests.fuzz.amqp_0_10 import recordings as streams_0_10
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

_ENOUGH = 30.0
"""Seconds that slow peers are watched for; a handshake may take ten."""
_A_WHILE = 12.0
"""Seconds in which a heartbeat of one second has closed what is silent."""
TCP_REPAIR = 19
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) * 6
"""The beginning of a client's first message of TLS, of 205 bytes."""


@dataclass
class _Peer:
    name: str
    socket: socket.socket
    drips: bytes
    ended: float | None = None


def _watch(peers: list[_Peer], seconds: float, drip: float) -> None:
    """Send a byte of each peer's drips from time to time, and note when its connection ends."""
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            peer.socket.setblocking(False)
            selector.register(peer.socket, selectors.EVENT_READ, peer)
        start = time.monotonic()
        due = start
        while time.monotonic() < start + seconds and selector.get_map():
            for key, _ in selector.select(max(0.0, min(due, start + seconds) - time.monotonic())):
                try:
                    came = key.data.socket.recv(65536)
                except OSError:
                    came = b""
                if not came:
                    key.data.ended = time.monotonic() - start
                    selector.unregister(key.data.socket)
            if time.monotonic() >= due:
                due += drip
                for peer in peers:
                    with suppress(OSError):
                        peer.socket.send(peer.drips[:1])
                        peer.drips = peer.drips[1:]


def _rows(peers: list[_Peer], seconds: float, least: float) -> dict[str, Row]:
    rows = {}
    for peer in peers:
        peer.socket.close()
        if peer.ended is None:
            rows[peer.name] = Row("open; others are served", f"after {seconds:g} s")
        elif peer.ended < least:
            rows[peer.name] = Row("closed before the timeout", f"after {peer.ended:.1f} s")
        else:
            rows[peer.name] = Row("closed by the timeout", f"after {peer.ended:.1f} s")
    return rows


@attempt("Slow handshakes", tls=True, long=True)
def slow_handshakes(target: Target) -> dict[str, Row]:
    """A peer stops at a stage of the handshake, or sends its next bytes a second apart."""
    peers = []

    def peer(name: str, sent: bytes, drips: bytes = b"", *, tls: bool = False) -> None:
        peers.append(_Peer(name, target.dial(tls=tls), drips))
        peers[-1].socket.sendall(sent)

    peer("nothing is sent", b"")
    peer("the first half of the protocol header", b"AMQP")
    peer("the protocol header, byte by byte", b"", b"AMQP\0\0\x09")
    names = ("the protocol header", "connection.start-ok", "connection.tune-ok", "connection.open")
    spoken = {
        "0-9-1": streams.Client().handshake(),
        "0-9": streams_0_9.Client(strict=False).handshake(),
        "0-10": streams_0_10.handshake(),
    }
    for protocol, pieces in spoken.items():
        if target.is_rabbitmq and protocol == "0-10":
            continue
        for at in (1, 2, 3):
            before = b"".join(pieces[:at])
            peer(f"{protocol}: nothing after {names[at - 1]}", before)
            peer(f"{protocol}: half of {names[at]}", before + pieces[at][: len(pieces[at]) // 2])
            peer(f"{protocol}: {names[at]}, byte by byte", before, pieces[at] + b"\0" * 100)
        if protocol == "0-9-1":
            before = b"".join(pieces[:1])
            secure = streams.Client().frame(0, m.ConnectionSecureOk(response=b"x"))
            peer(f"{protocol}: half of connection.secure-ok", before + secure[:10])
    if target.tls_port:
        peer("TLS port: nothing is sent", b"", tls=True)
        peer("TLS port: half of the client hello", HELLO[:100], tls=True)
        peer("TLS port: the client hello, byte by byte", b"", HELLO, tls=True)
    _watch(peers, _ENOUGH, 1.0)
    target.serves()
    return _rows(peers, _ENOUGH, 4.5)


@attempt("Slow frames", long=True)
def slow_frames(target: Target) -> dict[str, Row]:
    """A client logs in with a heartbeat of one second, sends a part of its input, and then stops or sends the
    remaining bytes at three a second. The heartbeat closes connections that are silent for two intervals.
    Bytes are a sign of life, so a slow client stays; it costs a socket and the memory for its bytes."""
    peers = []

    def peer(name: str, sent: bytes, drips: bytes = b"") -> None:
        opened = b"".join([*client.handshake(heartbeat=1), *client.open(1)])
        peers.append(_Peer(name, target.dial(), drips))
        peers[-1].socket.sendall(opened + sent)

    client = streams.Client()
    parts = client.publish("", "nowhere" * 30, b"x" * 200, headers={"a": "b" * 200})
    names = ("a method frame", "a content header", "a content body")
    for at, name in enumerate(names):
        before, part = b"".join(parts[:at]), parts[at]
        peer(f"silent in {name}", before + part[: len(part) // 2])
        peer(f"{name}, byte by byte", before, part)
    peer("silent between the frames of a content", parts[0])
    peer("silent between two methods", b"")
    _watch(peers, _A_WHILE, 0.3)
    target.serves()
    return _rows(peers, _A_WHILE, 1.0)


@attempt("Half-open sockets", long=True)
def half_open_sockets(target: Target) -> dict[str, Row]:
    """50 peers disappear without a FIN or RST (TCP's repair mode destroys the socket, so that the machine
    resets the next packet), 50 end only their own side, and 50 reset the connection."""
    rows = {}
    opened = b"".join([*streams.Client().handshake(heartbeat=1), *streams.Client().open(1)])
    before = _connections(target)
    for name in ("gone without FIN or RST", "half closed", "reset"):
        socks = []
        for _ in range(50):
            sock = target.dial()
            sock.sendall(opened)
            socks.append(sock)
        _wait_for_connections(target, lambda count: count >= before + 50)
        for sock in socks:
            if name == "half closed":
                sock.shutdown(socket.SHUT_WR)
                continue
            if name == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                try:
                    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
                except OSError:
                    rows[name] = Row("not made: needs root")
            sock.close()
        if name in rows:
            continue
        start = time.monotonic()
        gone = _wait_for_connections(target, lambda count: count <= before)
        rows[name] = Row("all freed" if gone else "kept", f"in {time.monotonic() - start:.1f} s")
        for sock in socks:
            sock.close()
    target.serves()
    return rows


def _connections(target: Target) -> int:
    """The established connections of the target's port, by its own sockets."""
    wanted = f":{target.port:04X}"
    count = 0
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            # A destroyed peer's end is gone, the broker's is left.
            count += fields[1].endswith(wanted) and fields[3] in ("01", "08", "04", "05")
    return count


def _wait_for_connections(target: Target, enough: object) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if enough(_connections(target)):  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False
