"""Raw load: how many messages a second go through a broker that another process talks to.

One connection publishes encoded messages of 100 bytes as fast as the broker reads; another consumes them
without acknowledgements and counts. Every delivery of a run has the same size, so the consumer counts
bytes and divides: the client costs so little that it is not what is measured (see `sink_serving`, which
puts a server in the broker's place that does nothing but move as many bytes). Brokers take turns, run by run,
so that whatever else the machine does happens to all of them.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from compat_tests.differential import rabbitmq_node
from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.scripted.sockets import SocketServer
from fakeamqp.connection import PeerAddress
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["Address", "fakeamqp_serving", "measure", "rabbitmq_serving", "sink_serving", "take_turns"]

BODY = b"x" * 100
QUEUE = "load"
TAG = "counts"
BATCH = 500
"""Messages handed to the kernel at once."""
RECEIVE_SIZE = 1 << 20
PATIENCE = 120.0


@dataclass(frozen=True)
class Address:
    """Where something listens that can be measured; a sink speaks no AMQP."""

    name: str
    host: str
    port: int
    sink: bool = False

    @property
    def url(self) -> str:
        """With the default account."""
        return f"amqp://guest:guest@{self.host}:{self.port}/%2F"


# --- the client -----------------------------------------------------------------------------------------


def publish_bytes(channel: int) -> bytes:
    """One publish, encoded."""
    method = m.BasicPublish(exchange="", routing_key=QUEUE)
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, BasicProperties().encode(), BODY, 100_000)
    )


def deliver_bytes(channel: int) -> bytes:
    """One delivery as every broker encodes it; only the delivery tag differs, and has a fixed width."""
    method = m.BasicDeliver(
        consumer_tag=TAG, delivery_tag=1, redelivered=False, exchange="", routing_key=QUEUE
    )
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, BasicProperties().encode(), BODY, 100_000)
    )


class Connection(Client):
    """A client that says what it is told and reads whole frames, until the load begins: over its socket."""

    def __init__(self, address: Address) -> None:
        super().__init__(SocketServer(address.host, address.port, patience=PATIENCE), PeerAddress())
        self.socket: socket.socket = self.connection.socket  # type: ignore[attr-defined]

    def open(self, channel: int) -> None:
        """From the protocol header to an open channel.

        Raises:
            ConnectionError: the broker did not go along.
        """
        try:
            self.handshake()
            self.open_channel(channel)
        except AssertionError as unexpected:
            raise ConnectionError("the broker did not go along") from unexpected

    def close(self) -> None:
        self.socket.close()


def measure(address: Address, messages: int, *, same_channel: bool = True) -> float:
    """Messages per second through one broker: from the first byte sent to the last byte received.

    Args:
        address: of the broker.
        messages: how many; rounded down to whole batches.
        same_channel: whether publisher and consumer use the same channel number on their connections.

    Raises:
        ConnectionError: the broker did not go along, or sent something else than the deliveries.
    """
    batches = max(1, messages // BATCH)
    out, back = 1, 1 if same_channel else 2
    publisher, consumer = Connection(address), Connection(address)
    try:
        if address.sink:
            publisher.socket.sendall(b"P")
            consumer.socket.sendall(b"C")
        else:
            publisher.open(out)
            consumer.open(back)
            publisher.declare(QUEUE, channel=out, exclusive=False, auto_delete=True)
            consumer.consume(QUEUE, TAG, channel=back, no_ack=True)
        blob = publish_bytes(out) * BATCH

        def publish() -> None:
            send = publisher.socket.sendall
            for _ in range(batches):
                send(blob)

        due = batches * BATCH * len(deliver_bytes(back))
        thread = threading.Thread(target=publish, name="publisher", daemon=True)
        buffer = bytearray(RECEIVE_SIZE)
        receive = consumer.socket.recv_into
        start = time.perf_counter()
        thread.start()
        while due > 0:
            count = receive(buffer)
            if not count:
                raise ConnectionError(f"{address.name} closed the connection with {due} bytes to come")
            due -= count
        seconds = time.perf_counter() - start
        thread.join()
        if due < 0 or (not address.sink and bytes(buffer[count - 101 : count]) != BODY + b"\xce"):
            raise ConnectionError(f"{address.name} sent something else than the deliveries")
        return batches * BATCH / seconds
    finally:
        publisher.close()
        consumer.close()


def take_turns(addresses: list[Address], messages: int, runs: int, **how: bool) -> dict[str, list[float]]:
    """Measure all of them in turn, `runs` times after one run to warm up."""
    rates: dict[str, list[float]] = {address.name: [] for address in addresses}
    for run in range(runs + 1):
        for address in addresses:
            rate = measure(address, messages, **how)
            if run:
                rates[address.name].append(rate)
    return rates


# --- what is measured -----------------------------------------------------------------------------------


@contextmanager
def fakeamqp_serving(*options: str) -> Iterator[Address]:
    """`fakeamqp serve` in a process of its own."""
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield Address("fakeamqp", "127.0.0.1", urlsplit(line.split()[-1]).port or 0)
        finally:
            process.terminate()


@contextmanager
def rabbitmq_serving(series: str | None = None) -> Iterator[Address]:
    """A private RabbitMQ node, its schedulers as they are by default; without a series the installed one."""
    with rabbitmq_node.RabbitMQNode(series, spins=True) as node:
        yield Address(f"RabbitMQ {node.version}", "127.0.0.1", node.port)


@contextmanager
def sink_serving() -> Iterator[Address]:
    """A server in a process of its own that reads publishes and sends as many deliveries, unseen."""
    command = [sys.executable, "-m", "compat_tests.benchmarks.load"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Address("bare loop", "127.0.0.1", int(process.stdout.readline()), sink=True)
        finally:
            process.terminate()


def be_the_sink() -> None:
    """For each pair of connections, P and C: for so many bytes in, the bytes of so many deliveries out."""
    published, delivered = len(publish_bytes(1)), deliver_bytes(1)
    ready = delivered * 4000
    view = memoryview(ready)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            by_kind = {}
            for _ in range(2):
                peer, _address = listener.accept()
                by_kind[peer.recv(1)] = peer
            total = answered = 0
            with by_kind[b"P"] as publisher, by_kind[b"C"] as consumer:
                while octets := publisher.recv(256 * 1024):
                    total += len(octets)
                    due = total // published - answered
                    answered += due
                    consumer.sendall(view[: due * len(delivered)])


if __name__ == "__main__":
    be_the_sink()
