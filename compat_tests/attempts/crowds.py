"""Peers that are many."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.targets import Target, descriptors, ends
from compat_tests.fuzz import streams
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

_MANY = 5000
_OTHERS = 200
_FEW_DESCRIPTORS = 128


def _logged_in(sock: socket.socket) -> bool:
    """Whether connection.open-ok comes."""
    octets = b""
    while m.ConnectionOpenOk.INDEX.to_bytes(4, "big") not in octets:
        try:
            came = sock.recv(65536)
        except OSError:
            return False
        if not came:
            return False
        octets += came
    return True


@attempt("5 000 connections", descriptors=_MANY + _OTHERS, long=True)
def many_connections(target: Target) -> dict[str, Row]:
    """5 000 connections only connect, then 5 000 log in and open a channel; fewer if the machine permits
    fewer. The broker serves another client meanwhile and afterwards."""
    rows = {}
    opened = b"".join([*streams.Client().handshake(), *streams.Client().open(1)])
    with descriptors(_MANY + _OTHERS) as permitted:
        count = permitted - _OTHERS
        for name, said in (("only connect", b""), ("log in and open a channel", opened)):
            rows[name] = _crowd(target, count, said)
    return rows


def _crowd(target: Target, count: int, said: bytes) -> Row:
    before = target.megabytes()
    start = time.monotonic()
    with ExitStack() as stack:
        socks = []
        for _ in range(count):  # Each at once: there are ten seconds for a handshake.
            socks.append(stack.enter_context(target.dial()))
            with suppress(OSError):
                socks[-1].sendall(said)
        came = sum(map(_logged_in, socks)) if said else count
        took = time.monotonic() - start
        answered = target.serves()
        more = max(0.0, target.megabytes() - before)
    target.serves()
    figures = f"{count} in {took:.1f} s, {more * 1000 / count:.0f} KB each, {answered:.2f} s"
    return Row(f"{'all' if came == count else came} taken; another client is served", figures)


@attempt("File descriptors at their limit", descriptors=_FEW_DESCRIPTORS, long=True, rabbitmq="it needs more")
def file_descriptors_at_their_limit(target: Target) -> dict[str, Row]:
    """A broker with at most 128 descriptors has 300 peers. It serves the connected peers, does not keep the
    processor busy, refuses the other peers at once, and accepts new peers when some have left."""
    client = target.client()
    opened = b"".join([*streams.Client().handshake(), *streams.Client().open(1)])
    with ExitStack() as stack:
        socks = [stack.enter_context(target.dial()) for _ in range(300)]
        for sock in socks:
            with suppress(OSError):  # It is refused.
                sock.sendall(opened)
        assert _logged_in(socks[50])
        refused = ends(socks[-1], 30)
        assert "declare-ok" in client.do(1, "queue.declare", queue="q")[0]
        before = target.cpu_seconds()
        start = time.monotonic()
        another = stack.enter_context(target.dial())
        refused = refused and ends(another, 30)
        time.sleep(1)
        busy = (target.cpu_seconds() - before) / (time.monotonic() - start)
        for sock in socks[:250]:
            sock.close()
        for _ in range(1000):  # Until the broker has noticed that they have left.
            sock = stack.enter_context(target.dial())
            with suppress(OSError):
                sock.sendall(opened)
            if came := _logged_in(sock):
                break
        assert "delete-ok" in client.do(1, "queue.delete", queue="q")[0]
        client.close()
    target.serves()
    idle = "idle" if busy < 0.2 else "busy"
    return {
        "300 peers": Row(
            f"further peers {'are refused' if refused else 'are taken or wait'}, {idle}; "
            f"{'another is taken when some leave' if came else 'none is taken any more'}",
            f"{busy:.0%} of a core",
        )
    }
