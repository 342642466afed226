"""Brokers to be fuzzed, by protocol and personality: what their clients send, and who else is there."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st

from compat_tests.fuzz import streams
from compat_tests.fuzz.amqp_0_9 import recordings as amqp_0_9
from compat_tests.fuzz.amqp_0_10 import recordings as amqp_0_10
from compat_tests.fuzz.amqp_1_0 import recordings as amqp_1_0
from compat_tests.fuzz.checks import gone, left_behind, queues, serves_others
from compat_tests.fuzz.mutations import FRAMING_0_9, FRAMING_0_10, FRAMING_1_0, Framing
from compat_tests.fuzz.streams import Recording
from compat_tests.scripted import (
    amqp_0_9 as driver_0_9,
    amqp_0_10 as driver_0_10,
    amqp_1_0 as driver_1_0,
)
from compat_tests.scripted.amqp_0_9_1 import METHODS, Server
from fakeamqp.connection import PeerAddress
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, Tunnel
from fakeamqp.protocols.amqp_0_9.resume import InterruptedChannels
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = [
    "PERSONALITIES",
    "SUBJECTS",
    "SUBJECTS_0_9",
    "SUBJECTS_1_0",
    "Subject",
    "on_each",
    "on_each_0_9",
    "speaking_0_9_1",
]


@dataclass(frozen=True)
class Subject:
    """A broker of one personality, whose clients speak one protocol. `share` is of the examples of a test."""

    protocol: str
    personality: str
    recordings: tuple[Recording, ...]
    share: float
    make: Callable[[str], Server]

    framing: ClassVar[Framing] = FRAMING_0_9
    fates: ClassVar[tuple[str, ...]] = ("open", "closing", "finished")
    """What becomes of some connection whose client sends mutated streams."""

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

    def before(self) -> dict[str, bytes]:
        """What a client has said, by the point it has come to."""
        client = self.writer()
        handshake = client.handshake()
        opened = [*handshake, *client.open(1)]
        return {
            "connect": b"",
            "half a header": client.header[:5],
            "header": client.header,
            "start-ok": b"".join(handshake[:2]),
            "tune-ok": b"".join(handshake[:3]),
            "handshake": b"".join(handshake),
            "channel": b"".join(opened),
            "publish": b"".join([*opened, *client.publish("", "q", b"body", frame_size=3)[:-1]]),
        }

    def noise(self) -> st.SearchStrategy[bytes]:
        """A method frame, or another one, around any octets: they get one layer deeper than these alone."""
        payload = st.binary(max_size=40)
        ids = st.sampled_from([*range(10, 130, 10), 85]), st.integers(0, 120), payload
        method = st.builds(lambda a, b, rest: a.to_bytes(2, "big") + b.to_bytes(2, "big") + rest, *ids)
        kinds = st.sampled_from([1, 1, 1, 1, 2, 2, 3, 3, 8, *range(4, 11)])
        return st.builds(frame, kinds, st.sampled_from([0, 1, 1, 2]), method | payload) | method

    def connect(self, server: Any) -> Any:
        """A client that has sent nothing yet."""
        return server.connect(port=40_000)

    def gone(self, client: Any) -> list[str]:
        """The client is lost. What it still holds: nothing, that is."""
        gone(client)
        return left_behind(client.server.state, client.connection)

    def serves_next(self, server: Any) -> None:
        """The next client of the same protocol is served."""
        serves_others(server)


class Subject010(Subject):
    """The same for 0-10, whose sessions may outlive connections."""

    framing = FRAMING_0_10
    fates = ("open", "closing", "failed", "finished")

    def before(self) -> dict[str, bytes]:
        return amqp_0_10.before()

    def noise(self) -> st.SearchStrategy[bytes]:
        def frame(flags: int, kind: int, channel: int, payload: bytes) -> bytes:
            size = (12 + len(payload)).to_bytes(2, "big")
            track = bytes((0, 1 if kind else 0))
            return bytes((flags, kind)) + size + track + channel.to_bytes(2, "big") + bytes(4) + payload

        codes = st.tuples(st.integers(1, 11), st.integers(0, 15)).map(bytes)
        rest = st.binary(max_size=40)
        command = st.builds(lambda code, rest: code + b"\1\1" + rest, codes, rest)
        flags = st.sampled_from([15, 15, 15, 11, 7, 3, 14, 13])
        kinds, channels = st.sampled_from([0, 1, 1, 2, 3]), st.sampled_from([0, 0, 1])
        return st.builds(
            frame, flags, kinds, channels, rest | command | st.builds(bytes.__add__, codes, rest)
        )

    def connect(self, server: Any) -> Any:
        return server.dial()

    def gone(self, client: Any) -> list[str]:
        """Those of its sessions that are kept for another connection end as well."""
        state = client.server.state
        client.drop()
        assert client.closed
        kept = list(state.sessions.values())
        found = [] if kept else left_behind(state, client.connection)
        found += [f"{each}" for each in kept if each.connection is not None or each.timeout == 0]
        for session in kept:
            session.end()
        assert not state.sessions
        found += left_behind(state, client.connection)
        branches = any(any(each.branches.views()) for each in state.virtual_hosts.values())
        return found + [f"{queue} is unacked" for queue in queues(state) if queue.unacked and not branches]

    def serves_next(self, server: Any) -> None:
        session = server.session(b"the next")
        session.declare("next", exclusive=True, auto_delete=True)
        session.publish(b"well", key="next")
        assert session.query("next").message_count == 1
        session.client.drop()


class Subject10(Subject):
    """The same for 1.0, where an error of a link or a session leaves the connection open."""

    framing = FRAMING_1_0
    fates = ("open", "closing", "failed", "finished")

    def before(self) -> dict[str, bytes]:
        return amqp_1_0.before()

    def noise(self) -> st.SearchStrategy[bytes]:
        """Frames around performatives, known or not, whose fields are values, well-formed or not."""

        def frame(kind: int, channel: int, code: int, fields: bytes) -> bytes:
            body = bytes((0, 0x53, code)) + fields
            return (8 + len(body)).to_bytes(4, "big") + bytes((2, kind, 0, channel)) + body

        rest = st.binary(max_size=40)
        values = st.lists(st.sampled_from(amqp_1_0.FIELDS), max_size=9).map(b"".join)
        sized = values.map(
            lambda octets: bytes((0xD0,)) + (len(octets) + 4).to_bytes(4, "big") + bytes(4) + octets
        )
        codes = st.sampled_from([*range(0x10, 0x19), *range(0x40, 0x45), 0x24, 0x70])
        return st.builds(
            frame, st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([0, 0, 1]), codes, sized | rest
        )

    def connect(self, server: Any) -> Any:
        return server.dial()

    def gone(self, client: Any) -> list[str]:
        client.drop()
        assert client.closed
        return left_behind(client.server.state, client.connection)

    def serves_next(self, server: Any) -> None:
        server.vhost.queues.create("next")
        client = server.session()
        assert isinstance(client.sender("/queues/next").publish(), driver_1_0.c.Accepted)
        assert client.receiver("/queues/next", 1, credit=1).take()[1]["data"] == b"body"
        client.drop()
        server.vhost.queues.remove(server.vhost.queues["next"])


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
SUBJECTS_0_9 = (
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
SUBJECTS_1_0 = tuple(
    Subject10("1-0", name, tuple(map(tuple, amqp_1_0.RECORDINGS)), 0.2, driver_1_0.Server)
    for name in ("rabbitmq-4.3", "rabbitmq-4.0")
)
SUBJECTS = (
    *SUBJECTS_0_9,
    *(Subject010("0-10", name, amqp_0_10.RECORDINGS, 0.5, driver_0_10.Server) for name in PERSONALITIES),
    *SUBJECTS_1_0,
)
on_each = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
"""Run a test on each subject."""
on_each_0_9 = pytest.mark.parametrize("subject", SUBJECTS_0_9, ids=str)
"""Run a test on each subject but those of 0-10 and 1.0."""


def speaking_0_9_1(server: Server) -> Server:
    """The same broker, for clients of 0-9-1."""
    same = copy(server)
    same.protocol = "0-9-1"
    same.asks_for_tickets = False
    same._port += 5_000
    return same
