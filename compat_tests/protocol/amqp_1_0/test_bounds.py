"""Hostile clients of AMQP 1.0: mutated bytes, deep and huge values, floods. The broker goes on."""

from __future__ import annotations

from random import Random

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Server, attach, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT


def session() -> bytes:
    """The frames of a session that publishes, receives and settles."""
    pair = {"name": "pair", "snd_settle_mode": 1, "properties": {Symbol("paired"): True}}
    flow = c.Flow(incoming_window=99, next_outgoing_id=0, outgoing_window=99, handle=1, link_credit=9)
    bodies = [
        (attach(SENDER, "/queues/q", 0), b""),
        (attach(RECEIVER, "/queues/q", 1), b""),
        (attach(SENDER, "/management", 2, **pair), b""),
        (flow, b""),
        (
            c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"),
            message(annotations={Symbol("x-a"): [UInt(1)]}, application={"a": {"b": 1}}),
        ),
        (
            c.Disposition(role=True, first=0, last=5, settled=True, state=c.Modified(delivery_failed=True)),
            b"",
        ),
        (c.Detach(handle=1, closed=True), b""),
        (c.End(), b""),
    ]
    return b"".join(frame(0, 0, body.encode() + payload) for body, payload in bodies)


@pytest.mark.parametrize("seed", range(10))
def test_mutated_session_raises_nothing_and_others_go_on(seed: int) -> None:
    random = Random(seed)
    server = with_queues(Server())
    octets = session()
    for _ in range(200):
        mutant = bytearray(octets)
        for _ in range(random.randint(1, 4)):
            place = random.randrange(len(mutant))
            if random.random() < 0.3:
                del mutant[place]
            elif random.random() < 0.3:
                mutant[place:place] = random.randbytes(random.randint(1, 4))
            else:
                mutant[place] = random.randrange(256)
        client = server.session()
        client.send_bytes(bytes(mutant))
        client.take_bytes()
        for kind, channel, payload, _ in DIALECT.cut(bytes(mutant)):
            DIALECT.describe(kind, payload)
            DIALECT.to_json(kind, payload)
            DIALECT.redacted(kind, payload, channel)
        client.drop()
    assert not server.state.connections
    assert not server.vhost.queues["q"].subscriptions
    assert isinstance(server.session().sender().publish(), c.Accepted)


@pytest.mark.parametrize(
    "value",
    [
        b"\xc0\x7f\x01" * 40 + b"\x45",
        b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xf0\0\0\0\x09\xff\xff\xff\xff\x40",
        b"\0" * 200,
    ],
    ids=["deep", "long-list", "long-array", "descriptors"],
)
def test_value_that_announces_too_much_is_refused(server: Server, value: bytes) -> None:
    client = server.session()
    client.send_bytes(frame(0, 0, b"\0\x53\x12" + value))
    client.expect_close("amqp:internal-error")


def test_flood_of_empty_frames_closes_the_connection() -> None:
    server = with_queues(Server())
    client = server.session()
    client.send_bytes(EMPTY_FRAME * (server.state.bounds.idle_frames + 1))
    client.expect_close("amqp:resource-limit-exceeded")


def test_thousand_connections_leave_nothing_behind() -> None:
    server = with_queues(Server())
    for _ in range(1000):
        client = server.session()
        client.receiver(credit=1)
        client.send(c.Close()).take_all()
    assert not server.state.connections and not server.state.leaving
    assert not server.vhost.queues["q"].subscriptions
    assert server.state.memory.connections.octets == 0
