"""A broker with faults and without sockets: the model, raw clients, and time that is moved by hand."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Frame, Server
from compat_tests.scripted.fault_context import FaultContext
from fakeamqp.faults import Faults, FrameGroup, Rule
from fakeamqp.faults.port import BrokerContext
from fakeamqp.model.personality import Personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, frame, method_frame
from fakeamqp.trace import ConnectionEvent, Recorder

__all__ = ["FaultServer", "Publisher", "bytes_of", "only_0_9_1", "publish_bytes", "seen"]


only_0_9_1 = pytest.mark.parametrize("server", ["0-9-1"], indirect=True)
"""For tests whose server is one of 0-9-1 alone."""


class FaultServer(Server):
    """A `Server` with `faults`; with `trace=False` nobody else watches. Those of 0-9 and 0-10 build on it."""

    def __init__(self, name: str | Personality = "rabbitmq-4.2", *, trace: bool = True, **state: Any) -> None:
        super().__init__(name, **state)
        self.recorder = self.next_tap = Recorder(self.clock.now) if trace else None
        self.state.tap = self.recorder
        self.tapped = self.state
        """What faults watch: the broker, or where tests run through a proxy, that."""
        self.restarts: list[tuple[bool, bool]] = []
        context: BrokerContext = FaultContext(self)
        self.faults = Faults(context)

    def restart(self, *, crash: bool = False, durable: bool = True) -> None:
        """As `Server.restart`; what faults asked for is kept in `restarts`."""
        self.restarts.append((crash, durable))
        super().restart(crash=crash)
        if not durable:
            self.state.discard("the disk is gone")
            self.state.populate()

    def settle(self) -> None:
        """Have done what is to be done as soon as possible."""
        self.advance(0)

    @property
    def said(self) -> list[str]:
        """What the trace tells of faults."""
        assert self.recorder is not None
        return [
            event.detail
            for event in self.recorder.trace().events
            if isinstance(event, ConnectionEvent) and event.event == "fault"
        ]

    def bodies(self, queue: str = "q") -> list[bytes]:
        """What is ready in a queue."""
        return [queued.message.body for queued in self.vhost.queues[queue].ready]

    def client_with(self, queue: str, **handshake: Any) -> Client:
        """A client that has declared a queue."""
        client = self.client(**handshake)
        client.declare(queue)
        return client

    def publisher(self, queue: str = "q", **handshake: Any) -> Publisher:
        """A client that has declared a queue and has its publishes confirmed."""
        client = self.client_with(queue, **handshake)
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        return Publisher(client, queue)


class Publisher:
    """A client that publishes to one queue and looks at its confirms."""

    def __init__(self, client: Client, queue: str) -> None:
        self.client = client
        self.queue = queue
        assert isinstance(client.server, FaultServer)
        self.server = client.server
        self.faults = client.server.faults

    def publish(self, *bodies: bytes, **how: Any) -> None:
        """Publish each by itself, so that each is a turn of its own."""
        for body in bodies:
            self.client.publish(body, **{"routing_key": self.queue, **how})

    @property
    def confirms(self) -> list[str]:
        """The confirms that have come; nothing else may have: "ack 1", "nack 2", "ack 5 multiple"."""
        said = []
        while self.client.inbox:
            said.append(self._words(self.client.take_frame()))
        return said

    @staticmethod
    def _words(got: Frame) -> str:
        method = got.method
        assert isinstance(method, (m.BasicAck, m.BasicNack)), f"expected a confirm, got {got}"
        verdict = "ack" if isinstance(method, m.BasicAck) else "nack"
        return f"{verdict} {method.delivery_tag}" + " multiple" * bool(method.multiple and verdict == "ack")

    @property
    def stored(self) -> list[bytes]:
        """The bodies in the queue, as far as they are ready."""
        return self.server.bodies(self.queue)


def seen(rule: Rule) -> list[FrameGroup]:
    """What the rule fires on from now on."""
    groups: list[FrameGroup] = []
    rule.call(groups.append)
    return groups


def bytes_of(*frames: Any, channel: int = 1) -> bytes:
    """Methods, and (type, payload) for other frames, as bytes on a channel."""
    return b"".join(
        frame(each[0], channel, each[1]) if isinstance(each, tuple) else method_frame(channel, each.encode())
        for each in frames
    )


def publish_bytes(body: bytes, routing_key: str, *, channel: int = 1) -> bytes:
    """A publish through the default exchange, in three frames."""
    header = CONTENT_HEADER.pack(60, 0, len(body)) + b"\0\0"
    return bytes_of(m.BasicPublish(routing_key=routing_key), (2, header), (3, body), channel=channel)
