"""Brokers to be fuzzed, by protocol and personality: what their clients send, and who else is there.

0-9 and 0-9-1 have frames in common, so that the same mutations fit both.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

import pytest

from compat_tests.fuzz import streams
from compat_tests.fuzz.amqp_0_9 import recordings as amqp_0_9
from compat_tests.fuzz.streams import Recording
from compat_tests.scripted import amqp_0_9 as driver_0_9
from compat_tests.scripted.amqp_0_9_1 import METHODS, Server
from fakeamqp.connection import PeerAddress
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, Tunnel
from fakeamqp.protocols.amqp_0_9.resume import InterruptedChannels
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["PERSONALITIES", "SUBJECTS", "Subject", "on_each", "speaking_0_9_1"]


@dataclass(frozen=True)
class Subject:
    """A broker of one personality, whose clients speak one protocol. `share` is of the examples of a test."""

    protocol: str
    personality: str
    recordings: tuple[Recording, ...]
    share: float
    make: Callable[[str], Server]

    def __str__(self) -> str:
        return f"{self.protocol}-{self.personality}"

    @property
    def strict(self) -> bool:
        """Whether clients keep to the published grammar."""
        return self.personality == "spec"

    def server(self) -> Server:
        """A broker that nobody has talked to."""
        return self.make(self.personality)

    def writer(self) -> streams.Client:
        """Writes what a client sends."""
        kind = amqp_0_9.Client if self.protocol == "0-9" else streams.Client
        return kind(strict=self.strict)


class _Transport:
    """An out-of-band transport that never runs dry, and one that is `broken`."""

    def __init__(self, payloads: tuple[bytes, ...], *, broken: bool = False) -> None:
        self._payloads = cycle(payloads)
        self._broken = broken

    def take(self) -> bytes | None:
        return None if self._broken else next(self._payloads)

    def put(self, payload: bytes) -> None:
        if self._broken:
            raise InternalError("the transport is broken")


def _tunnelled(request: Any) -> None:
    if request.data_name == "fails":
        raise InternalError("the handler has failed")


class _Client(driver_0_9.Client):
    """One that may find itself speaking 0-8."""

    def read(self, payload: bytes) -> Method:
        methods = METHODS if self.connection.protocol != "0-8" else version_0_8.METHODS
        method = methods[int.from_bytes(payload[:4], "big")].decode(payload, self.grammar)
        assert isinstance(method, Method)
        return method


class _Server(driver_0_9.Server):
    """A broker with whatever can be handed in, and a channel that was interrupted."""

    def connect(self, **peer: Any) -> _Client:
        self._port += 1
        return _Client(self, PeerAddress(**{"port": self._port, **peer}))


@cache
def _interrupted(personality: str) -> Any:
    """What is kept of a channel with consumers and windows whose connection was lost."""
    server = driver_0_9.Server(personality, tickets=True)
    client = server.client()
    client.declare("q")
    client.qos(1)
    client.consume("q", "again")
    client.call(m.StreamConsume(queue="q", consumer_tag="stream"), m.StreamConsumeOk)
    client.call(m.TxSelect(), m.TxSelectOk)
    (channel,) = client.connection.open_channels  # type: ignore[attr-defined]
    client.drop()
    return server.vhost.extensions[InterruptedChannels].take("guest", channel.channel_id)


def _server_0_9(personality: str) -> Server:
    server = _Server(personality, tickets=True)
    extensions = server.state.extensions[Registrations]
    payloads = amqp_0_9.aside(strict=personality == "spec")
    extensions.transports.update(memory=_Transport(payloads), broken=_Transport((), broken=True))
    extensions.tunnels.append(Tunnel("*", _tunnelled))
    extensions.trace_handlers.append(lambda trace: None)
    server.vhost.extensions[InterruptedChannels].keep(
        "guest", amqp_0_9.INTERRUPTED, _interrupted(personality)
    )
    return server


PERSONALITIES = ("rabbitmq-4.3", "spec")
SUBJECTS = (
    *(Subject("0-9-1", name, streams.recordings(name), 0.5, Server) for name in PERSONALITIES),
    *(
        Subject(
            "0-9",
            name,
            amqp_0_9.recordings(strict=name == "spec", rabbitmq=name != "spec"),
            0.13,
            _server_0_9,
        )
        for name in PERSONALITIES
    ),
)
on_each = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
"""Run a test on each subject."""


def speaking_0_9_1(server: Server) -> Server:
    """The same broker, for clients of 0-9-1."""
    same = copy(server)
    same.protocol = "0-9-1"
    same.asks_for_tickets = False
    same._port += 5_000
    return same
