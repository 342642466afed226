"""Class stream: windows, and the pace at which messages come."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    bodies,
    consume_stream,
    next_command,
    publish_packet,
    take_packets,
)
from compat_tests.protocol.amqp_0_10.test_queue_access import Notes
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c


def qos(session: Session, **arguments: int | bool) -> None:
    """Ask for windows and a rate; what follows stays in the inbox."""
    session.send(x.StreamQos(**arguments))  # type: ignore[arg-type]
    next_command(session, x.StreamQosOk)


@pytest.mark.rule("0-10/stream.qos-ok/confirm")
def test_stream_qos_ok_is_numbered_as_command_of_broker(session: Session) -> None:
    session.send(x.StreamQos(prefetch_count=1))
    _, got = next_command(session, x.StreamQosOk)
    assert got.what.encode()[:2] == b"\x0a\x02"
    assert got.id == 0, "it is numbered like all commands of the broker's"


@pytest.mark.rule("0-10/stream.qos/consume-rate-ignore-prefetch")
def test_stream_prefetch_count_limits_uncompleted_messages(session: Session) -> None:
    session.declare("q")
    qos(session, prefetch_count=2)
    for n in range(5):
        publish_packet(session, b"%d" % n)
    consume_stream(session)
    first, second = take_packets(session)
    assert (first.body, second.body) == (b"0", b"1")
    session.completed(second.id)
    assert bodies(session) == [b"2"]
    session.completed(first.id, second.id)
    assert bodies(session) == [b"3"], "what was completed counts once"


@pytest.mark.rule("0-10/stream.qos/consume-rate-ignore-prefetch")
def test_stream_prefetch_size_limits_octets_of_uncompleted_messages(session: Session) -> None:
    session.declare("q")
    qos(session, prefetch_size=100)
    for n in b"12":
        publish_packet(session, bytes((n,)) * 60)
    consume_stream(session)
    (only,) = take_packets(session)
    session.completed(only.id)
    assert len(take_packets(session)) == 1


@pytest.mark.rule("0-10/stream.qos/consume-rate#limit", "0-10/stream.qos/consume-rate-ignore-prefetch")
def test_stream_consume_rate_spreads_deliveries_over_time(session: Session) -> None:
    server = session.client.server
    session.declare("q")
    qos(session, consume_rate=1000)
    for n in range(5):
        publish_packet(session, b"%d" % n * 1000)
    consume_stream(session)
    assert len(take_packets(session)) == 1
    for _ in range(4):
        server.advance(0.999)
        assert take_packets(session) == []
        server.advance(0.001)
        assert len(take_packets(session)) == 1
    server.advance(10)
    assert take_packets(session) == []
    publish_packet(session, b"at once")
    assert bodies(session) == [b"at once"]


@pytest.mark.rule("0-10/stream.qos/consume-rate#zero")
def test_stream_consume_rate_zero_removes_rate_limit(session: Session) -> None:
    session.declare("q")
    qos(session, consume_rate=1)
    publish_packet(session, b"1" * 1000)
    publish_packet(session, b"2")
    consume_stream(session)
    assert len(take_packets(session)) == 1
    qos(session, consume_rate=0)
    assert bodies(session) == [b"2"]


@pytest.mark.rule("0-10/stream.qos/consume-rate-drop-by-priority")
def test_stream_consume_rate_delays_messages_without_loss(spec: Server) -> None:
    session = spec.session()
    session.declare("q")
    qos(session, consume_rate=1)
    consume_stream(session)
    for priority in (0, 9, 0, 9):
        publish_packet(session, b"%d" % priority, priority=priority)
    spec.advance(10)
    assert bodies(session) == [b"0", b"9", b"9", b"0"]


@pytest.mark.rule("0-10/stream.qos/global")
def test_global_stream_prefetch_applies_to_all_sessions_of_connection(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q1")
    one.declare("q2")
    qos(one, prefetch_count=1, global_=True)
    consume_stream(one, "q1")
    consume_stream(two, "q2")
    publish_packet(one, b"1", "q1")
    (packet,) = take_packets(one)
    publish_packet(one, b"2", "q2")
    two.expect_nothing()
    one.completed(packet.id)
    assert bodies(two) == [b"2"]


@pytest.mark.rule("0-10/stream.qos/global")
def test_ended_session_releases_its_share_of_global_stream_prefetch(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q1")
    one.declare("q2")
    qos(one, prefetch_count=1, global_=True)
    consume_stream(one, "q1")
    consume_stream(two, "q2")
    publish_packet(one, b"1", "q1")
    assert len(take_packets(one)) == 1
    publish_packet(one, b"2", "q2")
    two.expect_nothing()
    client.send(c.SessionDetach(name=b"one"), 1)
    client.inbox[:] = [each for each in client.inbox if each.channel == 2]
    assert bodies(two) == [b"2"]


@pytest.mark.rule("0-10/stream.qos/global")
def test_global_stream_consume_rate_applies_to_all_sessions_of_connection(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q1")
    one.declare("q2")
    qos(one, consume_rate=1, global_=True)
    consume_stream(one, "q1")
    consume_stream(two, "q2")
    publish_packet(one, b"1", "q1")
    assert len(take_packets(one)) == 1
    publish_packet(one, b"2", "q2")
    two.expect_nothing()
    client.server.advance(1)
    assert bodies(two) == [b"2"]


def test_timers_of_stream_consume_rate_are_removed_when_session_ends(session: Session) -> None:
    session.declare("q")
    qos(session, consume_rate=1)
    qos(session, consume_rate=1, global_=True)
    consume_stream(session)
    publish_packet(session, b"1" * 1000)
    timers = session.client.server.state.timers
    assert timers.next_due() is not None
    session.client.drop()
    assert timers.next_due() is None


@pytest.mark.parametrize("shared", [False, True])
def test_tap_event_of_stream_consumer_tells_whether_prefetch_is_shared(
    session: Session, shared: bool
) -> None:
    session.declare("q")
    tap = session.client.server.state.tap = Notes()
    if shared:
        qos(session, prefetch_count=1)
    consume_stream(session)
    facts = tap.of("consumer added")
    assert (facts["prefetch"], facts["shares_prefetch"], facts["no_ack"]) == (0, shared, True)
