"""Rules that change nothing change nothing: clients see the same bytes with them and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9 import Child, content
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.requests import Response, encode_response
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame

QUEUES = st.sampled_from(["a", "b"])
BODIES = st.binary(max_size=10) | st.just(b"x" * 9000)

_METHODS = st.one_of(
    st.builds(m.BasicGet, queue=QUEUES, no_ack=st.booleans()),
    st.builds(m.BasicAck, delivery_tag=st.integers(0, 3), multiple=st.booleans()),
    st.builds(m.BasicReject, delivery_tag=st.integers(1, 3), requeue=st.booleans()),
    st.builds(m.BasicConsume, queue=QUEUES, consumer_tag=st.sampled_from(["t", "u"])),
    st.builds(m.BasicCancel, consumer_tag=st.just("t")),
    st.builds(m.BasicRecover, requeue=st.booleans()),
    st.builds(m.QueueDeclare, queue=QUEUES),
    st.builds(m.ChannelFlow, active=st.booleans()),
    st.builds(m.FileConsume, queue=QUEUES, consumer_tag=st.just("f")),
    st.builds(m.StreamConsume, queue=QUEUES, consumer_tag=st.just("s")),
    st.just(m.TxSelect()),
    st.just(m.TxCommit()),
    st.just(m.ChannelPing()),
)
_REQUESTS = st.one_of(
    st.builds(m.MessageTransfer, routing_key=QUEUES, body=BODIES.map(Body)),
    st.builds(m.MessageConsume, queue=QUEUES, destination=st.sampled_from(["d", "e"])),
    st.builds(m.MessageGet, queue=QUEUES, destination=st.just("g")),
    st.builds(m.MessageCancel, destination=st.just("d")),
    st.builds(m.MessageQos, prefetch_count=st.integers(0, 2)),
    st.builds(m.MessageOpen, reference=st.just(b"r")),
    st.builds(m.MessageAppend, reference=st.just(b"r"), octets=BODIES),
    st.builds(m.MessageClose, reference=st.just(b"r")),
    st.just(m.ChannelPing()),
    st.just(m.QueueDeclare(queue="a")),
)
_CONTENTS = st.builds(
    lambda kind, key, body, inner: (kind(routing_key=key), body, inner),
    st.sampled_from([m.BasicPublish, m.StreamPublish]),
    QUEUES,
    BODIES,
    st.booleans(),
)
_UTTERANCES = st.one_of(
    st.tuples(st.just("method"), _METHODS),
    st.tuples(st.just("request"), _REQUESTS),
    st.tuples(st.just("content"), _CONTENTS),
    st.tuples(st.just("response"), st.integers(1, 4)),
    st.tuples(st.just("other"), st.sampled_from([(7, 0, b"trace"), (8, 0, b""), (9, 1, b"\0" * 19)])),
)
"""What a client says: most of it makes sense, in some place or other."""


def _octets(requester: Requester, kind: str, what: Any) -> bytes:
    client = requester.client
    if kind == "method":
        return client.method_frame(what)
    if kind == "request":
        return requester.request_bytes(what)
    if kind == "response":
        requester.answered += 1
        response = Response(requester.answered, what, 0, m.MessageOk().encode())
        return frame(10, 1, encode_response(response))
    if kind == "other":
        return frame(*what)
    method, body, inner = what
    children = (Child(60, b"\0\0", b"inner"),) if inner else ()
    child = Child(method.CLASS_ID, b"\0\0", body, children)
    return client.method_frame(method) + content(child, frame_size=8000)


def _spies(faults: Faults) -> None:
    faults.on("*")
    faults.on("message.transfer", body=b"never")
    faults.on("message.transfer", "basic.publish", part="header")
    faults.on("message.transfer", "basic.deliver", direction="sent", queue="a")
    faults.on("message.ok", queue="nowhere").drop()


def _calls(faults: Faults) -> None:
    faults.on("message.transfer", "*.publish", queue="a").call(lambda group: group.properties)
    faults.on("*").call(lambda group: group.method)
    faults.on("message.*", "*.deliver", "channel.*", direction="sent").call(lambda group: group.body)


def _waits(faults: Faults) -> None:
    faults.on("message.*", "queue.*", "*.publish").delay(0)
    faults.on("*.deliver", "message.transfer", direction="sent").delay(0)


def _copies(faults: Faults) -> None:
    """Frames are made anew."""
    faults.on("message.transfer", "basic.publish", "stream.publish").replace(body=lambda body: body)
    faults.on("message.transfer", direction="sent").replace(destination=lambda name: name)


def _talk(conversation: list[Any], install: Callable[[Faults], None] | None) -> list[bytes]:
    server = FaultServer()
    clients: list[Requester] = []
    for _ in range(2):
        client = server.client(frame_max=8192)
        for queue in ("a", "b"):
            client.declare(queue)
        clients.append(Requester(client))
    if install is not None:
        install(server.faults)
    heard = [each.client.take_bytes() for each in clients]
    for who, utterances, at in conversation:
        octets = b"".join(_octets(clients[who], *each) for each in utterances)
        for piece in (octets[:at], octets[at:]):
            clients[who].client.send_bytes(piece)
            server.settle()
        for number, each in enumerate(clients):
            heard[number] += each.client.take_bytes() + b"|"
    for rule in server.faults.rules:
        assert getattr(rule, "error", None) is None
    return heard


_CONVERSATIONS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(_UTTERANCES, min_size=1, max_size=4), st.integers(0, 40)),
    max_size=15,
)


@given(_CONVERSATIONS, st.sampled_from([_spies, _calls, _copies]))
@examples(100)
def test_clients_get_the_same_bytes_with_rules_that_change_no_frame(
    conversation: list[Any], install: Callable[[Faults], None]
) -> None:
    assert _talk(conversation, install) == _talk(conversation, None)


@pytest.mark.parametrize("reserved", [True, False])
def test_transfer_delayed_by_zero_seconds_is_stored_and_answered(reserved: bool) -> None:
    server = FaultServer()
    requester = server.requester(reserved=reserved)
    _waits(server.faults)
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"x")))
    server.settle()
    assert requester.response(m.MessageOk).first == 1
    assert server.bodies() == [b"x"]
