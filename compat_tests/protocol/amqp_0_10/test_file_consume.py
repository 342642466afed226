"""Class file: consumers."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    attach_again,
    consume_files,
    next_command,
    publish_file,
    take_files,
)
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/file.consume/min-consumers")
def test_twenty_file_consumers_share_queue_in_turn(session: Session) -> None:
    session.declare("q")
    for n in range(20):
        consume_files(session, tag=f"t{n}")
    for n in range(20):
        publish_file(session, b"%d" % n)
    assert [file.deliver.consumer_tag for file in take_files(session)] == [f"t{n}" for n in range(20)]


@pytest.mark.rule("0-10/file.consume/queue-queue-exists-if-empty")
@pytest.mark.parametrize("queue", (None, ""))
def test_file_consume_without_queue_name_fails_with_not_allowed(session: Session, queue: str | None) -> None:
    exception = session.fails(x.FileConsume(queue=queue, consumer_tag="t"), 530)
    assert (exception.class_code, exception.command_code, exception.field_index) == (9, 3, 0)


def test_file_consume_of_missing_queue_fails_with_not_found(session: Session) -> None:
    session.fails(x.FileConsume(queue="missing", consumer_tag="t"), 404)


@pytest.mark.rule("0-10/file.consume/consumer-tag-not-existing-consumer")
def test_file_consume_with_tag_in_use_fails_with_not_allowed(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    assert session.fails(x.FileConsume(queue="q", consumer_tag="t"), 530).field_index == 1


@pytest.mark.rule("0-10/file.consume/consumer-tag-not-empty-consumer-tag")
@pytest.mark.parametrize("tag", (None, ""))
def test_file_consume_without_consumer_tag_fails_with_not_allowed(session: Session, tag: str | None) -> None:
    session.declare("q")
    assert session.fails(x.FileConsume(queue="q", consumer_tag=tag), 530).field_index == 1


@pytest.mark.rule("0-10/file.consume/exclusive-in-use")
def test_exclusive_file_consume_of_queue_in_use_fails_with_resource_locked(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_files(one)
    two.fails(x.FileConsume(queue="q", consumer_tag="t", exclusive=True), 405)


@pytest.mark.rule("0-10/file.consume/exclusive-in-use")
def test_exclusive_file_consumer_locks_out_other_consumers_until_cancelled(client: Client) -> None:
    one, two, three = (client.session(b"%d" % n, n) for n in (1, 2, 3))
    one.declare("q")
    consume_files(one, exclusive=True)
    two.fails(x.FileConsume(queue="q", consumer_tag="t"), 405)
    one.call(x.FileCancel(consumer_tag="t"))
    consume_files(three)


@pytest.mark.rule("0-10/file.consume/no-local")
def test_no_local_file_consumer_receives_no_message_of_its_own_connection(server: Server) -> None:
    client = server.open()
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    other = server.session(b"other")
    one.declare("q")
    consume_files(one, no_local=True)
    publish_file(one, b"own")
    publish_file(two, b"of another session")
    two.publish(b"of another class")
    assert take_files(one) == []
    publish_file(other, b"foreign")
    assert [file.body for file in take_files(one)] == [b"foreign"]
    consume_files(other)
    assert [file.body for file in take_files(other)] == [
        b"own",
        b"of another session",
        b"of another class",
    ]


@pytest.mark.rule("0-10/file.consume/nowait")
def test_file_consume_with_nowait_is_not_answered(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file")
    session.call(x.FileConsume(queue="q", consumer_tag="t", nowait=True))
    assert [file.body for file in take_files(session)] == [b"file"]


@pytest.mark.rule("0-10/file.consume-ok/tag")
def test_tag_of_file_consume_ok_cancels_consumer(session: Session) -> None:
    session.declare("q")
    session.send(x.FileConsume(queue="q", consumer_tag="mine"))
    ok, got = next_command(session, x.FileConsumeOk)
    assert got.what.encode()[:2] == b"\x09\x04"
    session.call(x.FileCancel(consumer_tag=ok.consumer_tag))
    assert session.query("q").subscriber_count == 0


@pytest.mark.rule("0-10/file.cancel/stops")
def test_no_file_is_delivered_after_file_cancel(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    session.call(x.FileCancel(consumer_tag="t"))
    publish_file(session, b"file")
    session.expect_nothing()
    assert session.query("q").message_count == 1


@pytest.mark.rule("0-10/file.cancel/stops")
def test_file_being_staged_at_cancel_is_staged_but_not_delivered(
    session: Session,
) -> None:
    session.declare("q")
    publish_file(session, b"first")
    publish_file(session, b"second")
    consume_files(session)
    opening, _ = next_command(session, x.FileOpen)
    session.call(x.FileCancel(consumer_tag="t"))
    assert session.query("q").message_count == 2
    session.call(x.FileOpenOk(staged_size=0))
    _, staged = next_command(session, x.FileStage)
    assert staged.body == b"first"
    session.expect_nothing()
    consume_files(session, tag="t2")
    again, _ = next_command(session, x.FileOpen)
    assert again.identifier == opening.identifier
    session.call(x.FileOpenOk(staged_size=5))
    next_command(session, x.FileStage)
    deliver, _ = next_command(session, x.FileDeliver)
    assert not deliver.redelivered


def test_file_cancel_of_unknown_consumer_fails_with_not_found(session: Session) -> None:
    session.fails(x.FileCancel(consumer_tag="t"), 404)


def test_deletion_of_queue_ends_session_of_file_consumer_with_408(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_files(one)
    two.call(x.QueueDelete(queue="q"))
    exception, _ = next_command(one, x.ExecutionException)
    assert exception.error_code == 408


@pytest.mark.rule("0-10/file.consume/no-local")
def test_no_local_applies_to_new_connection_after_session_is_attached_again(server: Server) -> None:
    session = server.open().session(b"s", timeout=60)
    session.declare("q")
    consume_files(session, no_local=True)
    session.client.drop()
    again = attach_again(server, session, at=session.next_id, has=1)
    publish_file(again, b"own")
    assert take_files(again) == []
    publish_file(server.session(b"other"), b"foreign")
    assert [file.body for file in take_files(again)] == [b"foreign"]
