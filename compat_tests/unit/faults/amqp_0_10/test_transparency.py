"""Rules that change nothing change nothing: clients see the same bytes with them and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_10 import Client, c, structs, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control

QUEUES = st.sampled_from(["a", "b"])
CHANNELS = st.sampled_from([0, 1])
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


_COMMANDS = st.one_of(
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
_CONTROLS = st.one_of(
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


_UTTERANCES = st.one_of(
    st.sampled_from([0, 1]).map(_off_track),
    st.builds(
        lambda channel, key, body: _frames(channel, x.MessageTransfer(), False, (key, body)),
        CHANNELS,
        QUEUES,
        st.binary(max_size=10) | st.just(b"x" * 9000),
    ),
    st.builds(
        lambda channel, what, sync: _frames(channel, what, sync, None), CHANNELS, _COMMANDS, st.booleans()
    ),
    st.builds(lambda channel, what: _frames(channel, what, False, None), CHANNELS, _CONTROLS),
    st.builds(
        lambda channel, octets: encode_frames(channel, [(1, octets)], _SIZE), CHANNELS, st.binary(max_size=4)
    ),
)
"""What a client says: most of it makes sense, in some place or other."""

_CONVERSATIONS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(_UTTERANCES, min_size=1, max_size=4), st.integers(0, 40)),
    max_size=15,
)
"""Which of two clients says what, and where its bytes are cut in two."""


def _spies(faults: Faults) -> None:
    faults.on("*")
    faults.on("message.transfer", body=b"never")
    faults.on("message.transfer", part="header")
    faults.on("message.transfer", direction="sent", queue="a")
    faults.on("message.accept", queue="nowhere").drop()


def _calls(faults: Faults) -> None:
    faults.on("message.transfer", queue="a").call(lambda group: group.properties)
    faults.on("*").call(lambda group: group.method)
    faults.on("message.*", "session.*", "execution.*", direction="sent").call(lambda group: group.body)


def _waits(faults: Faults) -> None:
    faults.on("message.*", "queue.*").delay(0)
    faults.on("message.transfer", direction="sent").delay(0)


def _copies(faults: Faults) -> None:
    """Frames are made anew."""
    faults.on("message.transfer").replace(body=lambda body: body)
    faults.on("message.transfer", direction="sent").replace(destination=lambda name: name)


def _talk(conversation: list[Any], install: Callable[[Faults], None] | None) -> list[bytes]:
    server = FaultServer()
    clients: list[Client] = []
    for number in range(2):
        client = server.open(max_frame_size=_SIZE)
        session = client.session(f"s-{number}".encode(), number)
        for queue in ("a", "b"):
            session.declare(queue)
        session.subscribe("a", "d", credit=3)
        clients.append(client)
    if install is not None:
        install(server.faults)
    heard = [client.take_bytes() for client in clients]
    for who, utterances, at in conversation:
        octets = b"".join(utterances)
        for piece in (octets[:at], octets[at:]):
            clients[who].send_bytes(piece)
        for number, client in enumerate(clients):
            heard[number] += client.take_bytes() + b"|"
    for rule in server.faults.rules:
        assert getattr(rule, "error", None) is None
    return heard


@given(_CONVERSATIONS, st.sampled_from([_spies, _calls, _waits, _copies]))
@examples(150)
def test_clients_get_the_same_bytes_with_rules_that_change_no_frame(
    conversation: list[Any], install: Callable[[Faults], None]
) -> None:
    assert _talk(conversation, install) == _talk(conversation, None)


def test_rule_about_all_methods_does_not_see_the_protocol_header() -> None:
    """A server of 0-10 sends one as well."""
    server = FaultServer()
    rule = server.faults.on("*", direction="sent").drop()
    client = server.dial()
    client.send_bytes(PROTOCOL_HEADER)
    assert client.take_bytes() == PROTOCOL_HEADER
    assert rule.hits == 1
