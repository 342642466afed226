"""Chaos for clients of 1.0: what happens to them, and that a plan happens again."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Link, attach, message
from compat_tests.unit.faults.amqp_1_0.server import FaultServer
from fakeamqp.faults.chaos import FAULTS, PROFILES
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c

OF_THE_NETWORK = {"slices", "slow", "stall"}
"""These need transports, and know no protocol."""


def talk(server: FaultServer) -> bytes:
    """A client logs in, publishes, and settles what it gets, whatever comes; returns what has come."""
    client = server.dial()
    parts = (c.Open(container_id="x"), c.Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    client.send_bytes(b"AMQP\3\1\0\0").login().send_bytes(b"AMQP\0\1\0\0")
    for body in (*parts, attach(SENDER, "/queues/q", 0), attach(RECEIVER, "/queues/q", 1)):
        client.send(body)
    sender, receiver = Link(client, 0), Link(client, 1)
    receiver.flow(link_credit=9)
    heard = b""
    for number in range(6):
        if client.closed:
            break
        sender.transfer(message(b"%d" % number))
        receiver.settle(c.Accepted(), number)
        server.advance(0.1)
        heard += client.take_bytes()
    server.advance(5)
    return heard + client.take_bytes()


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - OF_THE_NETWORK))
def test_plan_of_chaos_among_links_gives_the_same_bytes_when_played_again(fault: str) -> None:
    first, again = FaultServer(), FaultServer()
    chaos = first.faults.chaos(3, {fault: 0.5}).optional()
    heard = talk(first)
    for rule in first.faults.rules:
        assert getattr(rule, "error", None) is None
    happens = FAULTS[fault].happens_in("1-0") and any(
        name in ("transfer", "disposition", "attach", "flow", "open", "begin", "sasl-init")
        for name in FAULTS[fault].methods
    )
    assert bool(chaos.hits) is happens, chaos.plan
    again.faults.chaos(plan=chaos.plan).optional()
    assert talk(again) == heard


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("seed", range(5))
def test_accepted_messages_survive_chaos(profile: str, seed: int) -> None:
    server = FaultServer()
    server.vhost.queues.declare("kept", QueueDeclaration(durable=True))
    accepted: set[bytes] = set()
    odds = {name: each for name, each in PROFILES[profile].items() if name not in OF_THE_NETWORK}
    server.faults.chaos(seed, odds, intensity=5).optional()
    client: Client | None = None
    for number in range(60):
        if client is None or client.closed:
            client = server.dial()
            client.send_bytes(b"AMQP\3\1\0\0").login().send_bytes(b"AMQP\0\1\0\0")
            client.send(c.Open(container_id="x"))
            client.send(c.Begin(next_outgoing_id=0, incoming_window=2000, outgoing_window=2000))
            client.send(attach(SENDER, "/queues/kept", 0))
            sent: dict[int, bytes] = {}
            ended = False
        elif ended:
            client.send(c.Close())
            continue
        body = b"%d" % number
        sent[Link(client, 0).transfer(message(body, header=c.Header(durable=True)))] = body
        server.advance(0.05)
        try:
            arrived = client.take_all()
        except Exception:  # What is malformed ends the conversation.
            client.drop()
            continue
        for each in arrived:
            if isinstance(each.what, c.Disposition) and isinstance(
                c.read_composite(each.what.state), c.Accepted
            ):
                last = each.what.first if each.what.last is None else each.what.last
                accepted.update(sent[id_] for id_ in range(each.what.first, last + 1) if id_ in sent)
            ended = ended or isinstance(each.what, (c.End, c.Detach, c.Close))
    server.faults.clear()
    server.advance(60)
    bodies = set(server.bodies("kept"))
    assert accepted, "nothing was accepted"
    returned = accepted - bodies
    assert not returned, f"accepted, and gone: {returned}"
