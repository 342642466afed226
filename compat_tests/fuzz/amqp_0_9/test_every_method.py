"""Every method of 0-9 in every state of a connection and a channel, with usual fields and with odd ones."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from compat_tests.fuzz.amqp_0_9 import hostile
from compat_tests.fuzz.amqp_0_9.recordings import INTERRUPTED, Client
from compat_tests.fuzz.checks import gone, inconsistencies, left_behind, serves_others, settled_fate
from compat_tests.fuzz.hostile import NAMES, VALUES
from compat_tests.fuzz.profile import FACTOR, sampled
from compat_tests.fuzz.subjects import SUBJECTS_0_9, Subject, speaking_0_9_1
from compat_tests.unit.codec.strategies import BITS, escaped
from fakeamqp.protocols.amqp_0_9.codec import METHODS, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

TEXTS = (*NAMES, "x" * 255, escaped(b"\xff"), "a b\r\n", "/", "/data", "PLAIN", "direct")
OCTETS = (b"", b"one", b"\0guest\0guest", b"\xff" * 300, INTERRUPTED)


def states(*, strict: bool) -> dict[str, bytes]:
    """What a client has said, by the state that it has brought about. Its channel is 1."""
    client = Client(strict=strict)
    handshake = client.handshake()
    opened = [*handshake, *client.open(1)]
    begun = client.frame(1, m.BasicPublish(routing_key="q"))
    header, *_ = content_frames(1, 60, b"\0\0", b"body", 100)
    staging = [client.frame(1, m.FileOpen(identifier="f", content_size=4)), client.frame(1, m.FileStage())]
    wrong = client.frame(1, m.QueueDeclare(queue="no such queue", passive=True))
    interrupted = [client.frame(1, m.ChannelResume(channel_id=INTERRUPTED))]
    branch = [client.frame(1, m.DtxSelect()), client.frame(1, m.DtxStart(dtx_identifier="x"))]
    aside = [*handshake, client.frame(1, m.ChannelOpen(out_of_band="memory"))]
    found = {
        "starting": handshake[:1],
        "tuning": handshake[:2],
        "tuned": handshake[:3],
        "no channel": handshake,
        "channel": opened,
        "busy": [hostile.prepared(strict=strict)],
        "transaction": [*opened, client.frame(1, m.TxSelect())],
        "branch": [*opened, *branch],
        "header due": [*opened, begun],
        "body due": [*opened, begun, header],
        "file due": [*opened, *staging],
        "resumed": [*handshake, *interrupted],
        "out of band": aside,
        "channel closing": [*opened, wrong],
        "closing": [*opened, client.frame(0, m.ChannelOpen())],
        "closed": [*opened, client.bye()],
    }
    return {state: b"".join(pieces) for state, pieces in found.items()}


STATES = {subject: states(strict=subject.strict) for subject in SUBJECTS_0_9 if subject.protocol == "0-9"}
NAMED = tuple(states(strict=False))


def odd(method: type[Method], random: Random) -> Method:
    """A method with fields that fit the wire."""
    fields: dict[str, Any] = {}
    for name, kind in method.LAYOUT:
        if kind in BITS:
            fields[name] = random.choice([0, 1, 2, 2 ** BITS[kind] - 1])
        elif kind == "bit":
            fields[name] = random.random() < 0.5
        elif kind == "shortstr":
            fields[name] = random.choice(TEXTS)
        elif kind == "longstr":
            fields[name] = random.choice(OCTETS)
        elif kind == "table":
            fields[name] = {
                random.choice(TEXTS)[:20]: random.choice(VALUES) for _ in range(random.randrange(3))
            }
        else:
            fields[name] = Body(random.choice(OCTETS), random.random() < 0.5)
    return method(**fields)


def frames(method: type[Method], random: Random, *, strict: bool) -> list[bytes]:
    """The method in every frame that could hold it, on the channels where it could come."""
    writer = Client(strict=strict)
    channel = 0 if method.NAME.startswith("connection.") else 1
    found = [
        writer.frame(channel, method()),
        writer.frame(channel, odd(method, random)),
        writer.frame(1 - channel, odd(method, random)),
        *writer.ask(odd(method, random), channel=1),
    ]
    return found + Client(strict=strict).answer(1, odd(method, random))


def check(subject: Subject, stream: bytes, *, witness: bool) -> str:
    server = subject.server()
    client = server.connect(port=40_000)
    client.send_bytes(stream)
    fate = settled_fate(client)
    assert not (problems := inconsistencies(server.state)), problems
    gone(client)
    assert not (found := left_behind(server.state, client.connection)), found
    if witness:
        serves_others(server)
        serves_others(speaking_0_9_1(server))
    return fate


@pytest.mark.parametrize("state", NAMED)
def test_every_method_in_every_state(state: str) -> None:
    random = Random(state)
    fates: Counter[str] = Counter()
    subjects = tuple(STATES)
    for number, method in sampled(list(enumerate(METHODS.values())), first=NAMED.index(state)):
        subject = subjects[number % 2]
        for turn, octets in enumerate(frames(method, random, strict=subject.strict)):
            if state in ("closing", "closed") and turn > 1:
                continue  # Nobody looks at it.
            stream = STATES[subject][state] + octets
            fates[check(subject, stream, witness=turn == number % 5)] += 1
    # Some methods do not show it, and in some states clients are told nothing.
    if FACTOR >= 1 and state not in ("starting", "tuning", "closed"):
        assert len(fates) > 1, fates
