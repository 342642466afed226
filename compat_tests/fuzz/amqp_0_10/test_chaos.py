"""Chaos among clients of 0-10: what the broker has said is done stays done, and a plan happens again."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from compat_tests.fuzz.checks import inconsistencies
from compat_tests.fuzz.fault_server import FaultServer
from compat_tests.fuzz.profile import FACTOR
from compat_tests.scripted.amqp_0_10 import UNLIMITED, Arrived, Client as RawClient
from fakeamqp.faults.chaos import FAULTS, PROFILES
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, successor
from fakeamqp.protocols.amqp_0_10.codec.structs import Command
from fakeamqp.protocols.base.codec import WireError

STEPS = 80


class Client:
    """One client: it publishes to "q", and may consume from it. It comes back when it is thrown out."""

    def __init__(self, server: FaultServer, name: str, *, consumes: bool) -> None:
        self.server = server
        self.name = name
        self.consumes = consumes
        self.done: set[int] = set()
        """Messages that the broker has said it has."""
        self.got: set[int] = set()
        self.raw: RawClient | None = None
        self._attached = 0

    def connect(self) -> None:
        """Everything up to the session at once, without waiting for an answer."""
        if self.reachable is not None:
            return
        self.raw = raw = self.server.dial(RawClient)
        if raw is None:
            return
        self._next_id = 0
        self._pending: dict[int, int] = {}
        self._attached += 1
        raw.send_bytes(PROTOCOL_HEADER)
        raw.send(c.ConnectionStartOk({"connection_name": self.name}, "PLAIN", b"\0guest\0guest", "en_US"))
        raw.send(c.ConnectionTuneOk(heartbeat=0))
        raw.send(c.ConnectionOpen(virtual_host="/"))
        raw.send(c.SessionAttach(name=f"{self.name} {self._attached}".encode()))
        raw.send(c.SessionCommandPoint(command_id=0, command_offset=0))
        self._send(x.QueueDeclare(queue="q", durable=True))
        if self.consumes:
            self._send(x.MessageSubscribe(queue="q", destination="d", accept_mode=0, acquire_mode=0))
            for unit in (0, 1):
                self._send(x.MessageFlow(destination="d", unit=unit, value=UNLIMITED))

    def publish(self, number: int) -> None:
        """Send a message that survives a crash."""
        header = [structs.DeliveryProperties(routing_key="q", delivery_mode=2)]
        self._pending[self._next_id] = number
        self._send(x.MessageTransfer(accept_mode=1), header=header, body=str(number).encode())

    def read(self) -> None:
        """Take what has come; what cannot be read is the end."""
        raw = self.raw
        if raw is None:
            return
        broken = False
        try:
            inbox = raw.inbox
        except (AssertionError, WireError):
            broken, inbox = True, raw._inbox
        while inbox:
            self._take(raw, inbox.pop(0))
        if broken:
            raw.drop()

    def _take(self, raw: RawClient, arrived: Arrived) -> None:
        what = arrived.what
        if isinstance(what, c.SessionCompleted):
            which = (what.commands or SequenceSet()).select(self._pending)
            self.done.update(self._pending.pop(each) for each in which)
        elif isinstance(what, (c.SessionDetach, c.SessionDetached)):
            raw.send(c.ConnectionClose(reply_code=200))
        elif isinstance(what, c.ConnectionClose):
            raw.send(c.ConnectionCloseOk())
        elif isinstance(what, c.ConnectionCloseOk):
            raw.drop()
        elif isinstance(what, x.MessageTransfer):
            assert arrived.id is not None
            self.got.add(int(arrived.body or b"0"))
            self._send(x.MessageAccept(transfers=SequenceSet.of(arrived.id)))
            raw.send(c.SessionCompleted(commands=SequenceSet.of(arrived.id)))

    @property
    def reachable(self) -> RawClient | None:
        """The client, while it has a transport."""
        return None if self.raw is None or self.raw.closed else self.raw

    def _send(self, command: Command, **content: Any) -> None:
        self._next_id = successor(self._next_id)
        if self.reachable is not None:
            self.reachable.send_command(command, **content)


class World:
    """Two who publish, one who consumes as well, and chaos."""

    def __init__(self, program: int, **chaos: Any) -> None:
        self.random = Random(program)
        self.server = FaultServer()
        self.clients = [Client(self.server, name, consumes=name == "b") for name in ("a", "b")]
        self.chaos = self.server.faults.chaos(**chaos)
        self.sent = 0

    def read(self) -> None:
        for client in self.clients:
            client.read()

    def step(self) -> None:
        client = self.random.choice(self.clients)
        client.connect()
        if client.reachable is not None:
            self.sent += 1
            client.publish(self.sent)
        if self.random.random() < 0.3:
            self.server.advance(self.random.choice([0.01, 0.2, 1.0]), self.read)
        self.server.pump(self.read)
        problems = inconsistencies(self.server.state)
        assert not problems, problems

    def end(self) -> None:
        """All faults end; then every message that the broker took is there or was delivered."""
        plan = self.chaos.plan
        self.server.faults.clear()
        self.server.advance(2.0, self.read)
        for client in self.clients:
            client.connect()
        self.server.advance(2.0, self.read)
        assert self.server.state.tap is None
        kept = [queued.message.body for queued in self.server.vhost.queues["q"].ready]
        there = {int(body) for body in kept}.union(*(client.got for client in self.clients))
        for client in self.clients:
            assert client.done <= there, (client.name, client.done - there, plan)
        for client in self.clients:
            if client.raw is not None:
                client.raw.drop()
        assert not self.server.state.connections
        assert not self.server.state.sessions
        problems = inconsistencies(self.server.state)
        assert not problems, problems


def run(program: int, **chaos: Any) -> tuple[World, list[str]]:
    """What a program with this number does under chaos, and the plan without its head."""
    world = World(program, **chaos)
    for _ in range(int(STEPS * max(1, FACTOR**0.5))):
        world.step()
    lines = world.chaos.plan.splitlines()[1:]
    world.end()
    return world, lines


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", [1, 2])
def test_repeated_chaos_plan_gives_the_same_faults_and_completed_commands(profile: str, seed: int) -> None:
    world, lines = run(len(profile), seed=seed, profile=profile, intensity=5)
    assert lines
    again, second = run(len(profile), seed=0, plan=world.chaos.plan)
    assert second == lines
    assert [client.done for client in again.clients] == [client.done for client in world.clients]


_THESE = [
    name
    for name, kind in FAULTS.items()
    if kind.happens_in("0-10")
    and any(
        each in ("message.transfer", "session.completed", "session.attach", "message.accept")
        for each in kind.methods
    )
]


@pytest.mark.parametrize("fault", [*_THESE, "refused-login"])
def test_every_fault_happens(fault: str) -> None:
    plans = [run(seed, seed=seed, profile={fault: 0.3})[1] for seed in range(3)]
    assert any(plans)
    assert all(f": {fault} (" in line for plan in plans for line in plan)


def test_all_commands_are_completed_without_faults() -> None:
    world, lines = run(5, profile={})
    assert lines == []
    assert set().union(*(client.done for client in world.clients)) == set(range(1, world.sent + 1))
