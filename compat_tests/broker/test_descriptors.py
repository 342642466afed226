"""A broker whose process has run out of descriptors."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import Talker
from compat_tests.management.client import Api

pytest.importorskip("resource")

LIMIT = 60
SERVER = f"""
import asyncio, resource, sys
from fakeamqp import Broker

async def serve(broker):
    async with broker:
        print(broker.port, 0, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

def main(runtime):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, hard))
    if runtime == "asyncio":
        asyncio.run(serve(Broker(runtime="asyncio")))
        return
    with Broker(management=True) as broker:
        print(broker.port, broker.admin.management_port, flush=True)
        sys.stdin.readline()

main(sys.argv[1])
"""


@contextlib.contextmanager
def serving(runtime: str) -> Iterator[tuple[subprocess.Popen[str], Address, int]]:
    """A broker in a process with few descriptors: the process, its address, and the port of its HTTP API."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, runtime],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port, management_port = map(int, process.stdout.readline().split())
        yield process, Address("broker", "127.0.0.1", port), management_port
    finally:
        process.kill()
        process.communicate()


def is_refused(sock: socket.socket) -> bool:
    """Whether the broker ends a connection without an answer; waits until either happens."""
    try:
        sock.sendall(b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return not sock.recv(1)
    except ConnectionError:
        return True


@pytest.mark.parametrize("runtime", ["thread", "asyncio"])
def test_without_descriptors_new_peers_are_refused_and_others_served(runtime: str) -> None:
    with serving(runtime) as (process, address, management_port), contextlib.ExitStack() as opened:

        def served() -> Talker | None:
            """A client with an open channel, which no timeout ends; None if it is refused."""
            # A scripted client that is refused before the first frame asserts that one comes.
            with contextlib.suppress(ConnectionError, AssertionError):
                client = Talker(address)
                opened.callback(client.close)
                return client
            return None

        talker = served()
        assert talker is not None
        talker.declare("q")
        api = Api(f"http://guest:guest@127.0.0.1:{management_port}")
        if management_port:
            assert api.get("whoami")["name"] == "guest"
        clients = [client for client in (served() for _ in range(3 * LIMIT)) if client is not None]
        assert 0 < len(clients) < LIMIT
        if management_port:
            with socket.create_connection((address.host, management_port), timeout=60) as asking:
                assert is_refused(asking)
        assert talker.count("q") == 0
        clients.pop().close()
        while served() is None:  # Until the broker has noticed.
            pass
        for each in clients:
            each.close()
        while management_port:
            with contextlib.suppress(OSError):
                assert api.get("whoami")["name"] == "guest"
                break
        _, log = process.communicate("\n", timeout=60)
    assert process.returncode == 0
    assert log.count("refuses a connection for now") == (2 if management_port else 1)
    assert "Traceback" not in log, log
    assert len(log.splitlines()) <= 4, log  # With a line of each after ten seconds.
