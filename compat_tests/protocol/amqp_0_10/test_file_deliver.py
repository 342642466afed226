"""Class file: contents that the broker stages, and delivers."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    attach_again,
    consume_files,
    next_command,
    publish_file,
    take_file,
    take_files,
)
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs


@pytest.mark.rule("0-10/file.deliver/staged", "0-10/file.open-ok/staged-size-behavior#server")
def test_broker_opens_stages_and_delivers_file_with_same_identifier(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes", filename="notes.txt")
    consume_files(session)
    opening, _ = next_command(session, x.FileOpen)
    assert opening.content_size == 5
    session.expect_nothing()
    session.call(x.FileOpenOk(staged_size=0))
    _, staged = next_command(session, x.FileStage)
    assert staged.body == b"notes"
    assert structs.decode_header(staged.header or b"") == (structs.FileProperties(filename="notes.txt"),)
    deliver, _ = next_command(session, x.FileDeliver)
    assert deliver == x.FileDeliver(
        consumer_tag="t", delivery_tag=1, exchange="", routing_key="q", identifier=opening.identifier
    )


@pytest.mark.rule("0-10/file.open-ok/staged-size-behavior#server")
def test_broker_stages_file_from_staged_size_of_client(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes")
    consume_files(session)
    assert take_file(session, have=b"no").body == b"notes"


@pytest.mark.rule("0-10/file.open-ok/staged-size-behavior#server")
def test_broker_stages_empty_body_when_client_has_whole_file(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes")
    consume_files(session)
    next_command(session, x.FileOpen)
    session.call(x.FileOpenOk(staged_size=5))
    _, staged = next_command(session, x.FileStage)
    assert staged.body == b""


@pytest.mark.rule("0-10/file.open-ok/staged-size-behavior#server")
def test_file_open_ok_with_staged_size_above_content_fails_with_illegal_argument(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes")
    consume_files(session)
    next_command(session, x.FileOpen)
    assert session.fails(x.FileOpenOk(staged_size=6), 531).field_index == 0


@pytest.mark.rule("0-10/file.open-ok/staged-size-behavior#server")
def test_file_open_ok_without_open_fails_with_illegal_state(session: Session) -> None:
    session.fails(x.FileOpenOk(staged_size=0), 409)


@pytest.mark.rule("0-10/file.open/identifier")
def test_file_keeps_its_identifier_when_opened_again_in_new_session(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"notes")
    consume_files(session)
    opening, _ = next_command(session, x.FileOpen)
    session.client.drop()
    session = server.session()
    consume_files(session)
    again, _ = next_command(session, x.FileOpen)
    assert again == opening


@pytest.mark.rule("0-10/file.open/identifier")
def test_files_of_equal_content_have_different_identifiers(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes")
    publish_file(session, b"notes")
    consume_files(session)
    one, two = take_files(session)
    assert one.deliver.identifier != two.deliver.identifier


@pytest.mark.rule("0-10/file.deliver/staged")
def test_file_not_staged_when_session_ends_is_requeued_as_not_redelivered(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"one")
    publish_file(session, b"two")
    consume_files(session)
    next_command(session, x.FileOpen)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    found = [(file.body, file.deliver.redelivered) for file in take_files(session)]
    assert found == [(b"one", False), (b"two", False)]


@pytest.mark.rule("0-10/file.deliver/staged")
def test_session_attached_again_continues_delivery_of_files(server: Server) -> None:
    session = server.open().session(b"s", timeout=60)
    session.declare("q")
    publish_file(session, b"one")
    publish_file(session, b"two")
    consume_files(session)
    opening, got = next_command(session, x.FileOpen)
    assert got.id is not None
    session.client.drop()
    again = attach_again(server, session, at=session.next_id, has=got.id)
    replayed, _ = next_command(again, x.FileOpen)
    assert replayed == opening
    again.call(x.FileOpenOk(staged_size=0))
    _, staged = next_command(again, x.FileStage)
    assert staged.body == b"one"
    assert next_command(again, x.FileDeliver)[0].delivery_tag == 1
    assert take_file(again).body == b"two"


@pytest.mark.rule("0-10/file.deliver/staged")
def test_file_stays_queued_while_session_of_consumer_is_detached(server: Server) -> None:
    session = server.open().session(b"s", timeout=60)
    session.declare("q")
    consume_files(session)
    session.client.drop()
    other = server.session(b"other")
    publish_file(other, b"file")
    assert other.query("q").message_count == 1
    again = attach_again(server, session, at=session.next_id, has=1)
    assert [file.body for file in take_files(again)] == [b"file"]
