"""Class file: contents that the client stages, breaks off and goes on with."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    attach_again,
    consume_files,
    next_command,
    open_file,
    publish_file,
    send_stage,
    stage_file,
    take_file,
    take_files,
)
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

CONTENT = bytes(range(256)) * 40


def stage_partly(session: Session, body: bytes, frames: int) -> int:
    """Send a stage whose end does not come; answers with how many bytes of the content did."""
    client = session.client
    octets = client.command_bytes(
        x.FileStage(), session.channel, header=[structs.FileProperties(filename="f")], body=body
    )
    start = sent = 0
    for number in range(2 + frames):  # the command, the header, and so much of the body
        size = int.from_bytes(octets[start + 2 : start + 4], "big")
        sent += size - 12 if number > 1 else 0
        start += size
    client.send_bytes(octets[:start])
    assert start < len(octets)
    return sent


def small_frames(server: Server, name: bytes = b"s", *, timeout: int | None = 0) -> Session:
    """A session whose contents come in many frames."""
    return server.open(max_frame_size=4096).session(name, timeout=timeout)


@pytest.mark.rule("0-10/file.stage/content#carries")
def test_staged_file_keeps_its_properties(session: Session) -> None:
    session.declare("q")
    assert open_file(session, 5) == 0
    send_stage(session, b"notes", filename="notes.txt")
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    consume_files(session)
    file = take_file(session)
    assert (file.body, file.properties.filename) == (b"notes", "notes.txt")


@pytest.mark.rule("0-10/file.stage/content#required")
@pytest.mark.parametrize("header", (None, [], [structs.MessageProperties()]), ids=("no", "empty", "other"))
def test_file_stage_without_file_properties_fails_with_503(
    session: Session, header: list[structs.Struct] | None
) -> None:
    assert open_file(session, 5) == 0
    exception = session.fails(x.FileStage(), 503, header=header, body=b"notes")
    assert (exception.class_code, exception.command_code) == (9, 8)


@pytest.mark.rule("0-10/file.open/content-size-content-size#accurate")
@pytest.mark.parametrize("body", (b"123456", b"1234"))
def test_file_stage_of_size_other_than_announced_fails_with_illegal_argument(
    session: Session, body: bytes
) -> None:
    assert open_file(session, 5) == 0
    session.fails(x.FileStage(), 531, header=[structs.FileProperties()], body=body)


@pytest.mark.rule("0-10/file.open/content-size-content-size#zero")
@pytest.mark.parametrize("body", (None, b""))
def test_empty_file_can_be_staged_and_published(session: Session, body: bytes | None) -> None:
    session.declare("q")
    assert open_file(session, 0) == 0
    session.call(x.FileStage(), header=[structs.FileProperties(filename="empty")], body=body)
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    consume_files(session)
    file = take_file(session)
    assert (file.body, file.properties.filename) == (b"", "empty")


def test_file_open_above_largest_message_size_fails_with_506(lenient: Server) -> None:
    largest = lenient.state.personality.largest_message
    session = lenient.session()
    session.call(x.FileOpen(identifier="fits", content_size=largest))
    session.fails(x.FileOpen(identifier="f", content_size=largest + 1), 506)


@pytest.mark.rule("0-10/file.open/identifier", "0-10/file.open-ok/staged-size-behavior#client")
def test_another_session_continues_interrupted_file_stage(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    sent = stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == sent
    session.declare("q")
    send_stage(session, CONTENT[sent:])
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    consume_files(session)
    assert take_file(session).body == CONTENT


@pytest.mark.rule("0-10/file.open/identifier", "0-10/file.open-ok/staged-size-staging")
def test_staged_size_adds_up_over_several_interruptions(server: Server) -> None:
    sent = 0
    for frames in (1, 0, 1):
        session = small_frames(server)
        assert open_file(session, len(CONTENT)) == sent
        sent += stage_partly(session, CONTENT[sent:], frames)
        session.client.drop()
    session = small_frames(server)
    assert 0 < sent == open_file(session, len(CONTENT)) < len(CONTENT)


@pytest.mark.rule("0-10/file.open/identifier", "0-10/file.open-ok/staged-size-staging")
def test_file_stage_skipped_by_session_gap_can_be_continued(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT), "one") == 0
    assert open_file(session, 3, "two") == 0
    left_out = session.next_id
    sent = stage_partly(session, CONTENT, frames=2)
    session.control(c.SessionGap(commands=SequenceSet.of(left_out)))
    session.point(left_out + 1)
    send_stage(session, b"two")
    assert open_file(session, len(CONTENT), "one") == sent
    send_stage(session, CONTENT[sent:])
    session.declare("q")
    for identifier in ("one", "two"):
        session.call(x.FilePublish(routing_key="q", identifier=identifier))
    consume_files(session)
    assert [file.body for file in take_files(session)] == [CONTENT, b"two"]


@pytest.mark.rule("0-10/file.open/identifier")
def test_interrupted_stream_publish_does_not_change_staged_size(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    header = [structs.StreamProperties()]
    octets = session.client.command_bytes(x.StreamPublish(routing_key="q"), header=header, body=CONTENT)
    session.client.send_bytes(octets[:-1])
    session.client.drop()
    assert open_file(small_frames(server), len(CONTENT)) == 0


@pytest.mark.rule("0-10/file.open/identifier")
@pytest.mark.parametrize("sent", (*range(1, 10_400, 521), 4095, 4096, 4097))
def test_file_is_whole_after_its_stage_is_interrupted_at_any_octet(server: Server, sent: int) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    octets = session.client.command_bytes(x.FileStage(), header=[structs.FileProperties()], body=CONTENT)
    assert sent < len(octets)
    session.client.send_bytes(octets[:sent])
    session.client.drop()
    session = small_frames(server)
    session.declare("q")
    publish_file(session, CONTENT)
    consume_files(session)
    assert [file.body for file in take_files(session)] == [CONTENT]


@pytest.mark.rule("0-10/file.open/identifier")
def test_staged_octets_of_another_user_are_not_continued(server: Server) -> None:
    server.state.access.add(User("other", "other", (), {"/": Permission()}))
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    other = server.session(user="other", password="other")
    assert open_file(other, len(CONTENT)) == 0


@pytest.mark.rule("0-10/file.open/identifier")
def test_staged_octets_of_another_identifier_are_not_continued(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT), "one") == 0
    stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    assert open_file(small_frames(server), len(CONTENT), "two") == 0


@pytest.mark.rule("0-10/file.open/content-size-content-size#accurate")
def test_staged_octets_of_file_with_another_size_are_not_continued(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    assert open_file(small_frames(server), len(CONTENT) + 1) == 0


@pytest.mark.rule(
    "0-10/file.open/content-size-content-size#accurate", "0-10/file.open-ok/staged-size-staging"
)
def test_octets_of_too_short_file_stage_are_kept_for_next_session(server: Server) -> None:
    session = server.session()
    session.declare("q")
    assert open_file(session, 5) == 0
    session.fails(x.FileStage(), 531, header=[structs.FileProperties()], body=b"123")
    session = server.session(b"other")
    assert open_file(session, 5) == 3


@pytest.mark.rule("0-10/file.open-ok/staged-size-staging")
def test_partly_staged_file_does_not_survive_restart(server: Server) -> None:
    session = small_frames(server)
    assert open_file(session, len(CONTENT)) == 0
    stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    server.state.restart()
    assert open_file(server.session(), len(CONTENT)) == 0


@pytest.mark.rule("0-10/file.open/identifier")
def test_replayed_file_stage_does_not_duplicate_octets(server: Server) -> None:
    session = small_frames(server, timeout=60)
    session.declare("q")
    assert open_file(session, len(CONTENT)) == 0
    staging = session.next_id
    stage_partly(session, CONTENT, frames=2)
    session.client.drop()
    again = attach_again(server, session, at=staging, has=1)
    again.call(x.FileStage(), header=[structs.FileProperties(filename="f")], body=CONTENT)
    again.call(x.FilePublish(routing_key="q", identifier="f"))
    consume_files(again)
    assert take_file(again).body == CONTENT


@pytest.mark.rule("0-10/file.open/identifier")
def test_identifier_opened_again_waits_for_single_file_stage(session: Session) -> None:
    session.declare("q")
    assert open_file(session, 3, "one") == 0
    assert open_file(session, 3, "two") == 0
    assert open_file(session, 3, "one") == 0
    send_stage(session, b"TWO")
    send_stage(session, b"ONE")
    for identifier in ("one", "two"):
        session.call(x.FilePublish(routing_key="q", identifier=identifier))
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"ONE", b"TWO"]


@pytest.mark.rule("0-10/file.open/identifier")
def test_fully_staged_file_can_be_opened_and_published_by_next_session(server: Server) -> None:
    session = server.session()
    session.declare("q")
    stage_file(session, b"file", filename="name")
    session.detach()
    session = server.session(b"other")
    assert open_file(session, 4) == 4
    send_stage(session, b"", filename="name")
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    assert session.query("q").message_count == 1


@pytest.mark.rule("0-10/file.publish/staged")
def test_file_staged_by_ended_session_can_be_published_without_stage(server: Server) -> None:
    session = server.session()
    session.declare("q")
    stage_file(session, b"file", filename="name")
    session.detach()
    session = server.session(b"other")
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    consume_files(session)
    file = take_file(session)
    assert (file.body, file.properties.filename) == (b"file", "name")


@pytest.mark.rule("0-10/file.publish/staged")
def test_file_publish_before_stage_is_carried_out_once_content_is_staged(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    assert open_file(session, 4) == 0
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    session.expect_nothing()
    send_stage(session, b"file")
    assert [file.body for file in take_files(session)] == [b"file"]
    session.fails(x.FilePublish(routing_key="q", identifier="f"), 404)


@pytest.mark.rule("0-10/file.publish/staged")
def test_file_publish_before_tx_select_is_not_rolled_back_with_later_transaction(session: Session) -> None:
    session.declare("q")
    assert open_file(session, 4) == 0
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    session.call(x.TxSelect())
    session.call(x.FileStage(), header=[structs.FileProperties()], body=b"file")
    session.call(x.TxRollback())
    assert session.query("q").message_count == 1


@pytest.mark.rule("0-10/file.publish/staged")
def test_mandatory_file_is_returned_with_312_when_exchange_is_deleted_before_stage(session: Session) -> None:
    session.declare_exchange("e")
    assert open_file(session, 4) == 0
    session.call(x.FilePublish(exchange="e", identifier="f", mandatory=True))
    session.call(x.ExchangeDelete(exchange="e"))
    send_stage(session, b"file")
    returned, _ = next_command(session, x.FileReturn)
    assert (returned.reply_code, returned.exchange) == (312, "e")


@pytest.mark.rule("0-10/file.publish/staged")
def test_file_publish_of_unknown_identifier_fails_with_not_found(session: Session) -> None:
    exception = session.fails(x.FilePublish(routing_key="q", identifier="f"), 404)
    assert (exception.command_code, exception.field_index) == (9, 4)


@pytest.mark.rule("0-10/file.stage/content#open")
def test_file_stage_without_open_fails_with_illegal_state(session: Session) -> None:
    session.fails(x.FileStage(), 409, header=[structs.FileProperties()], body=b"file")


def test_file_open_after_1000_pending_stages_fails_with_506(session: Session) -> None:
    for n in range(1000):
        session.send(x.FileOpen(identifier=f"f{n}", content_size=1))
    session.client.inbox.clear()
    session.fails(x.FileOpen(identifier="more", content_size=1), 506)


def test_session_with_file_stage_is_not_read_from_while_broker_is_blocked(client: Client) -> None:
    session = client.session()
    session.declare("q")
    client.server.state.block("low on memory")
    session.send(x.FileOpen(identifier="f", content_size=4))
    next_command(session, x.FileOpenOk)
    send_stage(session, b"file")
    assert not client.connection.reading
    client.server.state.unblock()
    assert client.connection.reading


def test_session_with_file_publish_is_not_read_from_while_broker_is_blocked(server: Server) -> None:
    session = server.session()
    session.declare("q")
    stage_file(session, b"file")
    session.client.server.state.block("low on memory")
    assert session.client.connection.reading
    session.send(x.FilePublish(routing_key="q", identifier="f"))
    assert not session.client.connection.reading
    session.client.server.state.unblock()
    session.call(x.ExecutionSync())
    assert session.client.connection.reading
