"""What is attacked: a broker in a process of its own, or a RabbitMQ node."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.differential.rabbitmq_node import RabbitMQError, RabbitMQNode
from compat_tests.differential.raw_client import Address, RawClient
from compat_tests.tools.loopback import free_port

__all__ = ["NAMES", "Target", "broker_process", "descriptors", "ends", "rabbitmq"]

NAMES = ("fakeamqp", "RabbitMQ 4.3")
_LISTENING = re.compile(r"listening on amqps?://[^@]*@127\.0\.0\.1:(\d+)/%2F\n")
_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Target:
    """A broker that listens on 127.0.0.1.

    `import_definitions` has it load the text of a definitions file and returns what it says: "loaded", or why
    not.
    """

    name: str
    port: int
    pid: int
    import_definitions: Callable[[str], str]
    tls_port: int = 0

    @property
    def is_rabbitmq(self) -> bool:
        return self.name != NAMES[0]

    def dial(self, *, tls: bool = False) -> socket.socket:
        """A connected socket that waits at most 30 seconds for anything."""
        return socket.create_connection(("127.0.0.1", self.tls_port if tls else self.port), timeout=30)

    def client(self, **options: Any) -> RawClient:
        """A well-behaved client of 0-9-1."""
        return RawClient(Address("127.0.0.1", self.port, patience=4.0), **options)

    def megabytes(self) -> float:
        """The resident memory of its processes."""
        return (
            sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._pids()) * _PAGE / 1e6
        )

    def cpu_seconds(self) -> float:
        """The processor time that its processes have taken."""
        return (
            sum(
                sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
                for pid in self._pids()
            )
            / _TICKS
        )

    def _pids(self) -> list[int]:
        """The process and all below it."""
        parents: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
        found = [self.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def serves(self) -> float:
        """Have another client declare, publish and get; the seconds that this takes.

        Raises:
            AssertionError: the broker does not serve it.
        """
        start = time.monotonic()
        client = self.client()
        try:
            assert "declare-ok" in client.do(1, "queue.declare", queue="served", durable=True)[0]
            client.publish(1, exchange="", routing_key="served", body=b"well served")
            came = client.do(1, "basic.get", queue="served", no_ack=True)
            assert "well served" in came[0], came
            assert "delete-ok" in client.do(1, "queue.delete", queue="served")[0]
        finally:
            client.close()
        return time.monotonic() - start


def ends(sock: socket.socket, seconds: float) -> bool:
    """Whether the broker ends a connection before nothing has come for so many seconds."""
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def descriptors(most: int) -> Iterator[int]:
    """This process, and those started meanwhile, may have so many descriptors, if the system permits them.

    Gives the number that they may have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    permitted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (permitted, hard))
    try:
        yield permitted
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _serve(*arguments: str, most: int | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", "--host", "127.0.0.1", *arguments]
    with nullcontext() if most is None else descriptors(most):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            assert process.stdout is not None
            found = _LISTENING.fullmatch(process.stdout.readline())
            assert found, "the broker does not start"
            yield process, int(found[1])
        finally:
            process.terminate()
            try:
                process.wait(20)
            finally:
                process.kill()


_LOADER = """
import sys
from fakeamqp import Broker
from fakeamqp.errors import FakeAMQPError
try:
    Broker(definitions=sys.argv[1])
except FakeAMQPError as error:
    sys.exit(f"refused: {error}")
print("loaded")
"""


def _loaded_by_a_broker(path: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _LOADER, path], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout.strip() or done.stderr.strip()


@contextmanager
def broker_process(*, tls: bool = False, most: int | None = None) -> Iterator[Target]:
    """`fakeamqp serve`; for TLS a second one, since it has one port only."""

    def import_definitions(text: str) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text)
            file.flush()
            return _loaded_by_a_broker(file.name)

    with _serve(most=most) as (process, port):
        target = Target(NAMES[0], port, process.pid, import_definitions)
        if not tls:
            yield target
            return
        with _serve("--tls") as (_, target.tls_port):
            yield target


class NodeWithCertificate(RabbitMQNode):
    """A node with files for TLS in its folder."""

    def __init__(self, files: Mapping[str, bytes], version: str = "4.3", **options: Any) -> None:
        self._files = files
        super().__init__(version, **options)

    def _prepare(self, folder: Path) -> dict[str, str]:
        seen = self._installation.seen(folder)
        for name, text in self._files.items():
            (folder / name).write_bytes(text)
            self._settings[f"ssl_options.{name.removesuffix('.pem')}"] = str(seen / name)
        return super()._prepare(folder)


def await_port(port: int) -> None:
    """RabbitMQ opens the listener for TLS after the other one."""
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def rabbitmq(*, tls: bool = False, most: int | None = None) -> Iterator[Target]:
    """A node of RabbitMQ 4.3."""
    files: dict[str, bytes] = {}
    settings: dict[str, str] = {}
    tls_port = 0
    if tls:
        import trustme

        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        files["cacertfile.pem"] = authority.cert_pem.bytes()
        files["certfile.pem"] = issued.cert_chain_pems[0].bytes()
        files["keyfile.pem"] = issued.private_key_pem.bytes()
        tls_port = free_port()
        settings["listeners.ssl.1"] = f"127.0.0.1:{tls_port}"
    with nullcontext() if most is None else descriptors(most):
        node = NodeWithCertificate(files, settings=settings)
        node.start()
    try:
        if tls:
            await_port(tls_port)

        def import_definitions(text: str) -> str:
            file = node._exchanged()
            file.write_text(text)
            try:
                node.control("import_definitions", str(node._installation.seen(node._running()) / file.name))
            except (RabbitMQError, subprocess.TimeoutExpired) as refused:
                return str(refused)
            return "loaded"

        assert node.pid is not None
        yield Target(NAMES[1], node.port, node.pid, import_definitions, tls_port)
    finally:
        node.stop()
