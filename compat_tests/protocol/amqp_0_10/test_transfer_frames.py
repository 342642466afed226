"""Transfers that come whole are looked at all at once; they mean what their frames mean one by one."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembler
from fakeamqp.trace import FrameEvent, Recorder

rule = pytest.mark.rule

HEADER = [structs.DeliveryProperties(routing_key="q")]
COMMAND = x.MessageTransfer(accept_mode=1)
FIRST = 0x0B


def octets(client: Client, body: bytes = b"body", channel: int = 0) -> bytes:
    return client.command_bytes(COMMAND, channel, header=HEADER, body=body)


WHOLE = octets(Server().open())
"""A transfer on channel 0."""


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


def lost(server: Server, sent: bytes = b"") -> int:
    """Lose the transport of a session that has declared a queue and sent this; the id of what it sent."""
    session = server.open().session(timeout=60)
    session.declare("q").client.send_bytes(sent)
    session.client.drop()
    return session.next_id


def depth(session: Session) -> int:
    return len(session.server.vhost.queues["q"].ready)


def test_transfer_received_in_two_parts_cut_at_any_octet_is_queued(session: Session) -> None:
    whole = octets(session.client)
    for cut in range(1, len(whole)):
        session.client.send_bytes(whole[:cut])
        assert depth(session) == cut - 1
        session.client.send_bytes(whole[cut:])
        assert depth(session) == cut
    session.client.send_bytes(whole * 3 + whole[:-1])
    assert depth(session) == len(whole) + 2
    session.client.send_bytes(whole[-1:])
    bodies = {queued.message.body for queued in session.server.vhost.queues["q"].ready}
    assert bodies == {b"body"}


@rows("rest", len(b"body") + 12, len(WHOLE) - 12 - len(COMMAND.encode()), ids=["body", "header"])
def test_rest_of_transfer_on_another_channel_is_a_framing_error(session: Session, rest: int) -> None:
    client = session.client
    client.session(b"other", channel=1)
    client.send_bytes(octets(client)[:-rest] + octets(client, channel=1)[-rest:]).expect_close(501)


@rows("begun, flags", (COMMAND.encode(), FIRST), (b"", FIRST & ~1), ids=["command", "empty"])
def test_transfer_within_unfinished_command_closes_connection_with_framing_error(
    session: Session, begun: bytes, flags: int
) -> None:
    client = session.client
    client.send_frame(begun, flags=flags, kind=1, track=1).send_bytes(octets(client)).expect_close(501)
    assert depth(session) == 0


@rule("0-10/session.command-point/newly-attached-transports#again")
@pytest.mark.parametrize("again", [False, True], ids=["new session", "new transport"])
def test_transfer_before_command_point_detaches_session_with_unknown_ids(server: Server, again: bool) -> None:
    server.session(b"declares").declare("q")
    if again:
        lost(server)
    client = server.open()
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.inbox.clear()
    assert client.send_bytes(octets(client)).expect(c.SessionDetached).code == DetachCode.UNKNOWN_IDS
    assert not server.vhost.queues["q"].ready


def test_start_of_transfer_after_nonzero_command_offset_is_a_framing_error(server: Server) -> None:
    size = len(COMMAND.encode())
    id_ = lost(server, WHOLE[: 12 + size])
    client = server.open()
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.send(c.SessionCommandPoint(command_id=id_, command_offset=size))
    client.send_bytes(octets(client)).expect_close(501)


@pytest.mark.parametrize("offset", [0, len(COMMAND.encode())], ids=["whole", "rest"])
def test_replayed_transfers_are_not_carried_out_again(server: Server, offset: int) -> None:
    id_ = lost(server, WHOLE * 2)
    again = server.open().session(at=id_)
    if offset:
        again.point(id_, offset=offset)
    again.client.send_bytes(WHOLE[12 + offset if offset else 0 :] + WHOLE * 2)
    assert len(server.vhost.queues["q"].ready) == 3
    assert again.end.incoming.current == id_ + 2


@rule("0-10/session.command-point/nonzero-offset")
def test_rest_of_earlier_transfer_does_not_complete_unfinished_transfer(session: Session) -> None:
    client, id_ = session.client, session.next_id
    whole = octets(client)
    client.send_bytes(whole).send_frame(COMMAND.encode(), flags=FIRST, kind=1, track=1)
    client.send_frame(b"header", flags=0x02, kind=2, track=1)
    # The rest of the earlier one begins in its header where this one ends in its own: with a body.
    session.point(id_, offset=len(COMMAND.encode()) + len(b"header"))
    client.send_frame(b"body", flags=0x07, kind=3, track=1)
    session.point(id_ + 1)
    client.send_bytes(whole)
    assert depth(session) == 2


def test_command_ids_of_session_gap_are_skipped(session: Session) -> None:
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
    session = server.session().declare("q")
    return session, keeper


def test_whole_transfer_is_handled_without_assembler_while_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    session, keeper = watched()
    whole = octets(session.client)
    monkeypatch.setattr(Assembler, "add", None)
    session.client.send_bytes(whole * 2)
    assert depth(session) == 2
    frames = [event for event in keeper.trace().events if isinstance(event, FrameEvent)]
    names = [event.name for event in frames if event.direction == "received"]
    assert names[-6:] == ["message.transfer", "header", "body"] * 2


def test_transfer_with_header_withheld_by_tap_is_not_routed() -> None:
    session, keeper = watched()
    keeper.keeps = 0x0302
    session.client.send_bytes(octets(session.client) * 2)
    assert depth(session) == 0
    assert session.end.incoming.current == 2


def test_transfer_waits_for_body_withheld_by_tap() -> None:
    session, keeper = watched()
    keeper.keeps = 0x0703
    whole = octets(session.client)
    session.client.send_bytes(whole)
    assert depth(session) == 0
    assert session.end.connection is not None
    session.end.connection.take(whole[-len(b"body") - 12 :])
    assert depth(session) == 1
