"""Rules that change nothing change nothing: clients see the same bytes with them and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9 import Child, content
from compat_tests.scripted.amqp_0_10 import c, structs, x
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults import server as server_0_9_1
from compat_tests.unit.faults.amqp_0_9 import server as server_0_9
from compat_tests.unit.faults.amqp_0_10 import server as server_0_10
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.requests import Response, encode_response
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control

QUEUES = st.sampled_from(["a", "b"])
BODIES = st.binary(max_size=10) | st.just(b"x" * 9000)

# What a client says: most of it makes sense, in some place or other.

# --- 0-9-1 --------------------------------------------------------------------------------------------

QUEUES_0_9_1 = st.sampled_from(["a", "b", "nowhere"])
CHANNELS_0_9_1 = st.sampled_from([1, 2])


def _publish(channel: int, key: str, body: bytes, mandatory: bool, size: int) -> bytes:
    method = m.BasicPublish(routing_key=key, mandatory=mandatory)
    properties = BasicProperties(priority=1).encode()
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, properties, body, size)
    )


METHODS_0_9_1 = st.one_of(
    st.builds(m.BasicConsume, queue=QUEUES_0_9_1, no_ack=st.booleans()),
    st.builds(m.BasicGet, queue=QUEUES_0_9_1, no_ack=st.booleans()),
    st.builds(m.BasicAck, delivery_tag=st.integers(0, 4), multiple=st.booleans()),
    st.builds(m.BasicNack, delivery_tag=st.integers(0, 4), multiple=st.booleans(), requeue=st.booleans()),
    st.builds(m.BasicReject, delivery_tag=st.integers(0, 4), requeue=st.booleans()),
    st.builds(m.BasicRecover, requeue=st.just(True)),
    st.builds(m.BasicQos, prefetch_count=st.integers(0, 3)),
    st.builds(m.QueueDeclare, queue=QUEUES_0_9_1, passive=st.booleans()),
    st.builds(m.QueuePurge, queue=QUEUES_0_9_1),
    st.builds(m.QueueDelete, queue=QUEUES_0_9_1),
    st.just(m.ConfirmSelect()),
    st.just(m.TxSelect()),
    st.just(m.TxCommit()),
    st.just(m.ChannelClose(reply_code=200)),
    st.just(m.ChannelCloseOk()),
    st.just(m.ChannelOpen()),
)

UTTERANCES_0_9_1 = st.one_of(
    st.builds(
        _publish,
        CHANNELS_0_9_1,
        QUEUES_0_9_1,
        st.binary(max_size=10),
        st.booleans(),
        st.sampled_from([1, 3, 100]),
    ),
    st.builds(
        lambda channel, method: server_0_9_1.bytes_of(method, channel=channel), CHANNELS_0_9_1, METHODS_0_9_1
    ),
    st.just(b"\x08\0\0\0\0\0\0\xce"),
    st.builds(
        lambda channel, body: server_0_9_1.bytes_of((3, body), channel=channel),
        CHANNELS_0_9_1,
        st.binary(max_size=3),
    ),
)

# --- 0-9 ----------------------------------------------------------------------------------------------

METHODS_0_9 = st.one_of(
    st.builds(m09.BasicGet, queue=QUEUES, no_ack=st.booleans()),
    st.builds(m09.BasicAck, delivery_tag=st.integers(0, 3), multiple=st.booleans()),
    st.builds(m09.BasicReject, delivery_tag=st.integers(1, 3), requeue=st.booleans()),
    st.builds(m09.BasicConsume, queue=QUEUES, consumer_tag=st.sampled_from(["t", "u"])),
    st.builds(m09.BasicCancel, consumer_tag=st.just("t")),
    st.builds(m09.BasicRecover, requeue=st.booleans()),
    st.builds(m09.QueueDeclare, queue=QUEUES),
    st.builds(m09.ChannelFlow, active=st.booleans()),
    st.builds(m09.FileConsume, queue=QUEUES, consumer_tag=st.just("f")),
    st.builds(m09.StreamConsume, queue=QUEUES, consumer_tag=st.just("s")),
    st.just(m09.TxSelect()),
    st.just(m09.TxCommit()),
    st.just(m09.ChannelPing()),
)
REQUESTS_0_9 = st.one_of(
    st.builds(m09.MessageTransfer, routing_key=QUEUES, body=BODIES.map(Body)),
    st.builds(m09.MessageConsume, queue=QUEUES, destination=st.sampled_from(["d", "e"])),
    st.builds(m09.MessageGet, queue=QUEUES, destination=st.just("g")),
    st.builds(m09.MessageCancel, destination=st.just("d")),
    st.builds(m09.MessageQos, prefetch_count=st.integers(0, 2)),
    st.builds(m09.MessageOpen, reference=st.just(b"r")),
    st.builds(m09.MessageAppend, reference=st.just(b"r"), octets=BODIES),
    st.builds(m09.MessageClose, reference=st.just(b"r")),
    st.just(m09.ChannelPing()),
    st.just(m09.QueueDeclare(queue="a")),
)
CONTENTS_0_9 = st.builds(
    lambda kind, key, body, inner: (kind(routing_key=key), body, inner),
    st.sampled_from([m09.BasicPublish, m09.StreamPublish]),
    QUEUES,
    BODIES,
    st.booleans(),
)
UTTERANCES_0_9 = st.one_of(
    st.tuples(st.just("method"), METHODS_0_9),
    st.tuples(st.just("request"), REQUESTS_0_9),
    st.tuples(st.just("content"), CONTENTS_0_9),
    st.tuples(st.just("response"), st.integers(1, 4)),
    st.tuples(st.just("other"), st.sampled_from([(7, 0, b"trace"), (8, 0, b""), (9, 1, b"\0" * 19)])),
)


def octets_0_9(requester: Requester, kind: str, what: Any) -> bytes:
    client = requester.client
    if kind == "method":
        return client.method_frame(what)
    if kind == "request":
        return requester.request_bytes(what)
    if kind == "response":
        requester.answered += 1
        response = Response(requester.answered, what, 0, m09.MessageOk().encode())
        return frame(10, 1, encode_response(response))
    if kind == "other":
        return frame(*what)
    method, body, inner = what
    children = (Child(60, b"\0\0", b"inner"),) if inner else ()
    child = Child(method.CLASS_ID, b"\0\0", body, children)
    return client.method_frame(method) + content(child, frame_size=8000)


# --- 0-10 ---------------------------------------------------------------------------------------------

CHANNELS_0_10 = st.sampled_from([0, 1])
IDS = st.integers(0, 5).map(SequenceSet.of)
_SIZE = 4096


def _frames(channel: int, what: Command | Control, sync: bool, content: tuple[str, bytes] | None) -> bytes:
    if isinstance(what, Control):
        return control_frame(channel, what.encode())
    segments = [(1, what.encode(sync))]
    if content is not None:
        header = structs.encode_header([structs.DeliveryProperties(routing_key=content[0])])
        segments += [(2, header), (3, content[1])]
    return encode_frames(channel, segments, _SIZE)


COMMANDS_0_10 = st.one_of(
    st.builds(
        x.MessageSubscribe, queue=QUEUES, destination=st.sampled_from(["d", "e"]), accept_mode=st.just(0)
    ),
    st.builds(x.MessageFlow, destination=st.just("d"), unit=st.integers(0, 1), value=st.integers(0, 50)),
    st.builds(x.MessageFlow, destination=st.just("d"), unit=st.integers(0, 1), value=st.just(0xFFFFFFFF)),
    st.builds(x.MessageAccept, transfers=IDS),
    st.builds(x.MessageRelease, transfers=IDS),
    st.builds(x.MessageReject, transfers=IDS),
    st.builds(x.MessageFlush, destination=st.just("d")),
    st.builds(x.MessageCancel, destination=st.just("e")),
    st.builds(x.QueueQuery, queue=QUEUES),
    st.builds(x.QueueDeclare, queue=QUEUES),
    st.just(x.ExecutionSync()),
    st.just(x.TxSelect()),
    st.just(x.TxCommit()),
)
CONTROLS_0_10 = st.one_of(
    st.builds(c.SessionFlush, completed=st.booleans(), expected=st.booleans()),
    st.builds(c.SessionCompleted, commands=IDS, timely_reply=st.booleans()),
    st.builds(c.SessionCommandPoint, command_id=st.integers(0, 3), command_offset=st.just(0)),
    st.just(c.SessionAttach(name=b"s-0")),
    st.just(c.SessionDetach(name=b"s-1")),
    st.just(c.SessionDetached(name=b"s-0", code=0)),
    st.just(c.ConnectionHeartbeat()),
)


def _off_track(track: int) -> bytes:
    """A command among the controls, or a control among the commands."""
    payload = x.TxSelect().encode() if track == 0 else c.SessionFlush(completed=True).encode()
    return FRAME_HEADER.pack(15, 1 - track, 12 + len(payload), 0, track, 0, 0) + payload


UTTERANCES_0_10 = st.one_of(
    st.sampled_from([0, 1]).map(_off_track),
    st.builds(
        lambda channel, key, body: _frames(channel, x.MessageTransfer(), False, (key, body)),
        CHANNELS_0_10,
        QUEUES,
        BODIES,
    ),
    st.builds(
        lambda channel, what, sync: _frames(channel, what, sync, None),
        CHANNELS_0_10,
        COMMANDS_0_10,
        st.booleans(),
    ),
    st.builds(lambda channel, what: _frames(channel, what, False, None), CHANNELS_0_10, CONTROLS_0_10),
    st.builds(
        lambda channel, octets: encode_frames(channel, [(1, octets)], _SIZE),
        CHANNELS_0_10,
        st.binary(max_size=4),
    ),
)


# --- both with rules and without ----------------------------------------------------------------------


def clients_0_9_1(server: server_0_9_1.FaultServer) -> list[Any]:
    clients = [server.client(channels=2) for _ in range(2)]
    clients[0].declare("a")
    clients[0].declare("b", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    return clients


def clients_0_9(server: server_0_9.FaultServer) -> list[Any]:
    clients = [server.client(frame_max=8192) for _ in range(2)]
    for client in clients:
        for queue in ("a", "b"):
            client.declare(queue)
    return clients


def clients_0_10(server: server_0_10.FaultServer) -> list[Any]:
    clients = [server.open(max_frame_size=_SIZE) for _ in range(2)]
    for number, client in enumerate(clients):
        session = client.session(f"s-{number}".encode(), number)
        for queue in ("a", "b"):
            session.declare(queue)
        session.subscribe("a", "d", credit=3)
    return clients


PROTOCOLS: dict[str, tuple[Any, Any, Any]] = {
    "0-9-1": (server_0_9_1.FaultServer, clients_0_9_1, UTTERANCES_0_9_1),
    "0-9": (server_0_9.FaultServer, clients_0_9, UTTERANCES_0_9),
    "0-10": (server_0_10.FaultServer, clients_0_10, UTTERANCES_0_10),
}


def spies(faults: Faults) -> None:
    faults.on("*")
    faults.on("message.transfer", "basic.publish", body=b"never")
    faults.on("message.transfer", "basic.publish", part="header")
    faults.on("message.transfer", "basic.deliver", direction="sent", queue="a")
    faults.on("basic.get-ok", "basic.return", queue="a")
    faults.on("message.ok", queue="nowhere").drop()
    faults.on("message.accept", queue="nowhere").drop()


def calls(faults: Faults) -> None:
    faults.on("message.transfer", "*.publish", queue="a").call(lambda group: group.properties)
    faults.on("*").call(lambda group: group.method)
    faults.on("message.*", "*.deliver", "basic.return", "queue.*", direction="sent").call(
        lambda group: group.body
    )
    faults.on("channel.*", "session.*", "execution.*", direction="sent").call(lambda group: group.body)


def waits(faults: Faults) -> None:
    faults.on("*", protocol="0-9-1").delay(0)
    faults.on("basic.deliver", "basic.get-ok", "*.*-ok", direction="sent", protocol="0-9-1").delay(0)
    faults.on("message.*", "queue.*", protocol="0-10").delay(0)
    faults.on("message.transfer", direction="sent", protocol="0-10").delay(0)


def copies(faults: Faults) -> None:
    """Frames are made anew."""
    faults.on("basic.publish", protocol="0-9-1").replace(body=lambda body: body, routing_key=lambda key: key)
    faults.on("basic.deliver", protocol="0-9-1").replace(
        delivery_tag=lambda tag: tag, priority=lambda priority: priority
    )
    faults.on("message.transfer", "basic.publish", "stream.publish").replace(body=lambda body: body)
    faults.on("message.transfer", direction="sent").replace(destination=lambda name: name)


def heard(protocol: str, conversation: list[Any], install: Callable[[Faults], None] | None) -> list[bytes]:
    """All that two clients are told, turn by turn, and whether they are still connected."""
    make, connect, _ = PROTOCOLS[protocol]
    server = make(trace=False)
    clients = connect(server)
    requesters = [Requester(client) for client in clients]
    if install is not None:
        install(server.faults)
    told = [client.take_bytes() for client in clients]
    for who, utterances, at in conversation:
        octets = b"".join(
            octets_0_9(requesters[who], *each) if protocol == "0-9" else each for each in utterances
        )
        for piece in (octets[:at], octets[at:]):
            clients[who].send_bytes(piece)
            server.settle()
        told += [client.take_bytes() for client in clients]
        told.append(bytes(client.closed for client in clients))
    server.faults.raise_errors()
    server.faults.clear()
    return told + [client.take_bytes() for client in clients]


@pytest.mark.parametrize(
    ("protocol", "install"),
    [
        (protocol, install)
        for protocol in PROTOCOLS
        for install in (spies, calls, waits, copies)
        if (protocol, install) != ("0-9", waits)  # There waiting answers are no longer combined.
    ],
)
@given(data=st.data())
@examples(100)
def test_clients_get_the_same_bytes_with_rules_that_change_no_frame(
    protocol: str, install: Callable[[Faults], None], data: st.DataObject
) -> None:
    turn = st.tuples(
        st.integers(0, 1), st.lists(PROTOCOLS[protocol][2], min_size=1, max_size=4), st.integers(0, 40)
    )
    conversation = data.draw(st.lists(turn, max_size=15))
    assert heard(protocol, conversation, install) == heard(protocol, conversation, None)


@pytest.mark.parametrize("reserved", [True, False])
def test_transfer_delayed_by_zero_seconds_is_stored_and_answered(reserved: bool) -> None:
    server = server_0_9.FaultServer()
    requester = server.requester(reserved=reserved)
    server.faults.on("message.*", "queue.*", "*.publish").delay(0)
    server.faults.on("*.deliver", "message.transfer", direction="sent").delay(0)
    requester.ask(m09.MessageTransfer(routing_key="q", body=Body(b"x")))
    server.settle()
    assert requester.response(m09.MessageOk).first == 1
    assert server.bodies() == [b"x"]


def test_rule_about_all_methods_does_not_see_the_protocol_header() -> None:
    """A server of 0-10 sends one as well."""
    server = server_0_10.FaultServer()
    rule = server.faults.on("*", direction="sent").drop()
    client = server.dial()
    client.send_bytes(PROTOCOL_HEADER)
    assert client.take_bytes() == PROTOCOL_HEADER
    assert rule.hits == 1
