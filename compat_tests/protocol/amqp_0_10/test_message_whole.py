"""Transfers that come whole are looked at all at once; they mean what their frames mean one by one."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.driver import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembler
from fakeamqp.trace import FrameEvent, Recorder

HEADER = [structs.DeliveryProperties(routing_key="q")]
COMMAND = x.MessageTransfer(accept_mode=1)
FIRST = 0x0B


def octets(client: Client, body: bytes = b"body", channel: int = 0) -> bytes:
    return client.command_bytes(COMMAND, channel, header=HEADER, body=body)


@pytest.fixture
def session(session: Session) -> Session:
    session.declare("q")
    return session


def depth(session: Session) -> int:
    return len(session.client.server.vhost.queues["q"].ready)


def test_a_transfer_may_be_cut_anywhere(session: Session) -> None:
    whole = octets(session.client)
    for cut in range(1, len(whole)):
        session.client.send_bytes(whole[:cut])
        assert depth(session) == cut - 1
        session.client.send_bytes(whole[cut:])
        assert depth(session) == cut
    session.client.send_bytes(whole * 3 + whole[:-1])
    assert depth(session) == len(whole) + 2
    session.client.send_bytes(whole[-1:])
    bodies = {queued.message.body for queued in session.client.server.vhost.queues["q"].ready}
    assert bodies == {b"body"}


def test_a_body_on_another_channel_is_that_of_another_command(session: Session) -> None:
    client = session.client
    client.session(b"other", channel=1)
    whole = octets(client)
    body = len(b"body") + 12
    client.send_bytes(whole[:-body] + octets(client, channel=1)[-body:])
    client.expect_close(501)


def test_a_header_on_another_channel_is_that_of_another_command(session: Session) -> None:
    client = session.client
    client.session(b"other", channel=1)
    command = 12 + len(COMMAND.encode())
    client.send_bytes(octets(client)[:command] + octets(client, channel=1)[command:])
    client.expect_close(501)


def test_a_transfer_cannot_begin_within_another_command(session: Session) -> None:
    client = session.client
    client.send_frame(COMMAND.encode(), flags=FIRST, kind=1, track=1)
    client.send_bytes(octets(client))
    client.expect_close(501)
    assert depth(session) == 0


def test_a_transfer_cannot_begin_within_a_command_that_has_no_octets_yet(session: Session) -> None:
    client = session.client
    client.send_frame(b"", flags=FIRST & ~1, kind=1, track=1)
    client.send_bytes(octets(client))
    client.expect_close(501)
    assert depth(session) == 0


def test_without_a_command_point_nothing_is_carried_out(server: Server) -> None:
    server.session(b"declares").declare("q")
    client = server.open()
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.send_bytes(octets(client))
    assert client.expect(c.SessionDetached).code == DetachCode.UNKNOWN_IDS
    assert not server.vhost.queues["q"].ready


@pytest.mark.rule("0-10/session.command-point/newly-attached-transports#again")
def test_on_each_transport_the_command_point_comes_first(server: Server) -> None:
    client = server.open()
    session = client.session(timeout=60)
    session.declare("q")
    client.drop()
    client = server.open()
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.inbox.clear()
    client.send_bytes(octets(client))
    assert client.expect(c.SessionDetached).code == DetachCode.UNKNOWN_IDS
    assert not server.vhost.queues["q"].ready


def test_behind_an_offset_the_beginning_of_a_transfer_is_wrong(server: Server) -> None:
    client = server.open()
    session = client.session(timeout=60)
    session.declare("q")
    size = len(COMMAND.encode())
    client.send_bytes(octets(client)[: 12 + size])
    client.drop()
    client = server.open()
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.send(c.SessionCommandPoint(command_id=session.next_id, command_offset=size))
    client.send_bytes(octets(client))
    client.expect_close(501)


def test_what_was_carried_out_before_is_not_carried_out_again(server: Server) -> None:
    client = server.open()
    session = client.session(timeout=60)
    session.declare("q")
    id_ = session.next_id
    client.send_bytes(octets(client) * 2)
    client.drop()
    client = server.open()
    again = client.session(at=id_)
    client.send_bytes(octets(client) * 3)
    assert len(server.vhost.queues["q"].ready) == 3
    assert again.end.incoming.current == id_ + 2


def test_the_rest_of_what_was_carried_out_is_not_taken_for_a_beginning(server: Server) -> None:
    client = server.open()
    session = client.session(timeout=60)
    session.declare("q")
    id_ = session.next_id
    client.send_bytes(octets(client) * 2)
    client.drop()
    client = server.open()
    again = client.session(at=id_)
    again.point(id_, offset=len(COMMAND.encode()))
    whole = octets(client)
    client.send_bytes(whole[12 + len(COMMAND.encode()) :] + whole * 2)
    assert len(server.vhost.queues["q"].ready) == 3


@pytest.mark.rule("0-10/session.command-point/nonzero-offset")
def test_the_rest_of_an_earlier_transfer_is_not_that_of_the_incomplete_one(session: Session) -> None:
    client, id_ = session.client, session.next_id
    whole = octets(client)
    client.send_bytes(whole)
    client.send_frame(COMMAND.encode(), flags=FIRST, kind=1, track=1)
    client.send_frame(b"header", flags=0x02, kind=2, track=1)
    # The rest of the earlier one begins in its header where this one ends in its own: with a body.
    session.point(id_, offset=len(COMMAND.encode()) + len(b"header"))
    client.send_frame(b"body", flags=0x07, kind=3, track=1)
    session.point(id_ + 1)
    client.send_bytes(whole)
    assert depth(session) == 2


def test_commands_that_were_left_out_are_passed_over(session: Session) -> None:
    id_ = session.next_id
    session.client.send_bytes(octets(session.client))
    session.control(c.SessionGap(commands=x.SequenceSet.of(id_ + 2)))
    session.client.send_bytes(octets(session.client) * 2)
    assert depth(session) == 3
    session.next_id = id_ + 4
    assert session.query().message_count == 3


class Keeper(Recorder):
    """A trace that keeps the frames of one kind from the broker, as faults do."""

    keeps = 0

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool:  # type: ignore[override]
        super().received(connection, frame_type, channel, payload)
        return frame_type == self.keeps


def watched() -> tuple[Session, Keeper]:
    server = Server()
    server.state.tap = keeper = Keeper(server.clock.now)
    session = server.session()
    session.declare("q")
    return session, keeper


def test_a_whole_transfer_is_handled_at_once_with_a_trace_too(monkeypatch: pytest.MonkeyPatch) -> None:
    session, keeper = watched()
    whole = octets(session.client)
    monkeypatch.setattr(Assembler, "add", None)
    session.client.send_bytes(whole * 2)
    assert depth(session) == 2
    frames = [event for event in keeper.trace().events if isinstance(event, FrameEvent)]
    names = [event.name for event in frames if event.direction == "received"]
    assert names[-6:] == ["message.transfer", "header", "body"] * 2


def test_a_whole_transfer_without_the_header_that_a_tap_keeps_has_no_routing_key() -> None:
    session, keeper = watched()
    keeper.keeps = 0x0302
    session.client.send_bytes(octets(session.client) * 2)
    assert depth(session) == 0
    assert session.end.incoming.current == 2


def test_a_whole_transfer_waits_for_the_body_that_a_tap_keeps() -> None:
    session, keeper = watched()
    keeper.keeps = 0x0703
    whole = octets(session.client)
    session.client.send_bytes(whole)
    assert depth(session) == 0
    assert session.end.connection is not None
    session.end.connection.take(whole[-len(b"body") - 12 :])
    assert depth(session) == 1
