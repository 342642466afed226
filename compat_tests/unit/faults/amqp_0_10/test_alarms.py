"""Publishers of 0-10 that are held back, and streams of bytes that end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_10 import Session, c, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.faults.shapers import Cut
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame


def told(session: Session) -> list[str]:
    """What the client was told, bookkeeping left out; taken away."""
    inbox = session.client.inbox
    said = [
        f"{each.what.NAME} {each.what.destination or ''}".strip()
        for each in inbox
        if isinstance(each.what, (x.MessageStop, x.MessageFlow))
    ]
    inbox.clear()
    return said


def test_rabbitmq_stops_reading_a_publisher_in_an_alarm_without_message_stop(
    server: FaultServer, session: Session
) -> None:
    other = server.session(b"other")
    alarm = server.faults.memory_alarm()
    assert session.client.connection.reading
    session.publish(b"one")
    assert not session.client.connection.reading
    session.publish(b"two")
    assert server.bodies() == [b"one"]
    assert (told(session), other.client.connection.reading) == ([], True)
    alarm.remove()
    assert session.client.connection.reading
    assert server.bodies() == [b"one", b"two"]
    assert told(session) == []


@pytest.mark.rule("0-10/message/throttling")
def test_spec_broker_sends_message_stop_in_an_alarm_and_message_flow_after_it() -> None:
    server = FaultServer("spec")
    session = server.session_with("q", b"s")
    session.client.inbox.clear()
    alarm = server.faults.disk_alarm()
    session.publish(b"one")
    assert told(session) == ["message.stop"]
    alarm.remove()
    assert told(session) == ["message.flow", "message.flow"]


def test_channel_flow_fault_sends_message_stop_and_message_flow_when_removed(
    server: FaultServer, session: Session
) -> None:
    session.publish(b"one", exchange="amq.topic")
    session.client.inbox.clear()
    flow = server.faults.channel_flow(connection=session.client.connection.name)
    assert (flow.hits, told(session)) == (1, ["message.stop amq.topic"])
    flow.remove()
    assert told(session) == ["message.flow amq.topic"] * 2


def test_credit_starved_before_a_detach_is_usable_in_the_resumed_session(server: FaultServer) -> None:
    client = server.open()
    session = client.session(b"s", timeout=60)
    session.declare("q")
    session.subscribe("q")
    starvation = server.faults.starve("q")
    client.drop()
    elsewhere = server.session(b"elsewhere")
    starvation.remove()
    elsewhere.publish(b"one")
    again = server.open()
    again.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    resumed = Session(again, b"s", 0)
    resumed.point(session.next_id)
    assert resumed.bodies() == [b"one"]


# --- frames that are counted --------------------------------------------------------------------------

HEARTBEAT = control_frame(0, c.ConnectionHeartbeat().encode())
ATTACH = control_frame(0, c.SessionAttach(name=b"session").encode())


def passed(cut: Cut, octets: bytes, size: int) -> bytes:
    """What passes of a stream that comes in pieces of that size."""
    out = b""
    for start in range(0, len(octets), size):
        piece = octets[start : start + size]
        count, last = cut.admit(piece)
        out += piece[:count]
        if last:
            break
    return out


@pytest.mark.parametrize("size", [1, 3, 7, 12, 13, 1000])
@pytest.mark.parametrize(
    ("stream", "protocol"),
    [
        (lambda frames: PROTOCOL_HEADER + frames, None),
        (lambda frames: frames, "0-10"),
    ],
)
def test_cut_after_two_frames_passes_two_frames_in_pieces_of_any_size(
    stream: Callable[[bytes], bytes], protocol: str | None, size: int
) -> None:
    whole = stream(ATTACH + HEARTBEAT + ATTACH)
    cut = Cut(None, 2, "fin", protocol)
    assert passed(cut, whole, size) == whole[: -len(ATTACH)]
    assert cut.passed == 2


def test_cut_for_0_10_counts_0_9_1_frames_behind_a_0_9_1_header() -> None:
    whole = b"AMQP\0\0\x09\x01" + b"\x08\0\0\0\0\0\0\xce" * 3
    assert passed(Cut(None, 2, "fin", "0-10"), whole, 5) == whole[:-8]
