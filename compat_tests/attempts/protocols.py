"""Peers that speak something else."""

from __future__ import annotations

import random
import ssl
import time

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.slow import HELLO
from compat_tests.attempts.targets import Target, ends
from compat_tests.fuzz import streams

_AMQP_1_0 = b"AMQP\0\1\0\0"


def _answer(target: Target, said: bytes, *, tls: bool) -> Row:
    """What comes when this is all that is sent."""
    with target.dial(tls=tls) as sock:
        sock.settimeout(20)
        start = time.monotonic()
        came = b""
        end = "closed"
        try:
            sock.sendall(said)
            while octets := sock.recv(65536):
                came += octets
        except TimeoutError:
            end = "open"
        except OSError:
            end = "closed"
        took = time.monotonic() - start
    if came[:4] == b"AMQP":
        words = f"header {'-'.join(map(str, came[5:8]))}"
    elif came[:1] == b"\x15":
        words = "TLS alert"
    elif came[:1] == b"\x01":
        words = "connection.start"
    else:
        words = f"{len(came)} bytes" if came else "nothing"
    when = "" if took < 5 else " by the timeout"
    return Row(f"{words}; {end}{when}", f"{took:.1f} s")


@attempt("Another protocol", tls=True)
def another_protocol(target: Target) -> dict[str, Row]:
    """A peer sends other bytes than AMQP on the AMQP port, and other bytes than TLS on the TLS port. The TLS
    library decides which bytes get an alert: OpenSSL in fakeamqp, Erlang's own in RabbitMQ."""
    garbage = random.Random(17).randbytes(1000)
    http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    rows = {}
    for tls in (False, True):
        port = "TLS port" if tls else "AMQP port"
        rows[f"{port}: HTTP GET"] = _answer(target, http, tls=tls)
        rows[f"{port}: HTTP POST"] = _answer(target, b"POST" + http[3:], tls=tls)
        rows[f"{port}: 1 000 random bytes"] = _answer(target, garbage, tls=tls)
        rows[f"{port}: 1 000 NUL bytes"] = _answer(target, b"\0" * 1000, tls=tls)
        rows[f"{port}: line feeds"] = _answer(target, b"\n" * 1000, tls=tls)
    rows["AMQP port: TLS client hello"] = _answer(target, HELLO, tls=False)
    for name, said in {
        "AMQP 0-9-1": b"".join(streams.Client().handshake()),
        "a TLS record of an unknown type": b"\x7f\x03\x03\x00\x10" + b"x" * 16,
        "a TLS record longer than 16 KiB": b"\x16\x03\x01\xff\xff" + b"x" * 65535,
        "an alert": b"\x15\x03\x01\x00\x02\x02\x28",
        "a client hello, then garbage": HELLO[:5] + garbage,
    }.items():
        rows[f"TLS port: {name}"] = _answer(target, said, tls=True)
    rows["TLS port: garbage after the handshake"] = _garbage_after_handshake(target, garbage)
    target.serves()
    return rows


def _garbage_after_handshake(target: Target, garbage: bytes) -> Row:
    """A good handshake on a pair of memory buffers, then bytes that are no records."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with target.dial(tls=True) as sock:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(65536))
        sock.sendall(outgoing.read() + garbage)
        return Row("closed" if ends(sock, 20) else "open")
