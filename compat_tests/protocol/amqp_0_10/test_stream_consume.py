"""Class stream: consumers."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    bodies,
    consume_stream,
    next_command,
    publish_packet,
    take_packets,
)
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/stream.consume/min-consumers")
def test_twenty_stream_consumers_share_queue_in_turn(session: Session) -> None:
    session.declare("q")
    for n in range(20):
        consume_stream(session, tag=f"t{n}")
    for n in range(20):
        publish_packet(session, b"%d" % n)
    assert [packet.deliver.consumer_tag for packet in take_packets(session)] == [f"t{n}" for n in range(20)]


@pytest.mark.rule("0-10/stream.consume/queue-queue-exists-if-empty")
@pytest.mark.parametrize("queue", (None, ""))
def test_stream_consume_without_queue_name_fails_with_not_allowed(
    session: Session, queue: str | None
) -> None:
    exception = session.fails(x.StreamConsume(queue=queue, consumer_tag="t"), 530)
    assert (exception.class_code, exception.command_code, exception.field_index) == (10, 3, 0)


@pytest.mark.rule("0-10/stream.consume/consumer-tag-not-existing-consumer")
def test_stream_consume_with_tag_in_use_fails_with_not_allowed(session: Session) -> None:
    session.declare("q")
    consume_stream(session)
    assert session.fails(x.StreamConsume(queue="q", consumer_tag="t"), 530).field_index == 1


@pytest.mark.rule("0-10/stream.consume/consumer-tag-not-empty-consumer-tag")
@pytest.mark.parametrize("tag", (None, ""))
def test_stream_consume_without_consumer_tag_fails_with_not_allowed(
    session: Session, tag: str | None
) -> None:
    session.declare("q")
    assert session.fails(x.StreamConsume(queue="q", consumer_tag=tag), 530).field_index == 1


@pytest.mark.rule("0-10/stream.consume/exclusive-in-use")
def test_exclusive_stream_consume_of_queue_in_use_fails_with_resource_locked(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_stream(one)
    two.fails(x.StreamConsume(queue="q", consumer_tag="t", exclusive=True), 405)


@pytest.mark.rule("0-10/stream.consume/exclusive-in-use")
def test_stream_consume_beside_exclusive_consumer_fails_with_resource_locked(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_stream(one, exclusive=True)
    two.fails(x.StreamConsume(queue="q", consumer_tag="t"), 405)


def test_no_local_stream_consumer_receives_no_message_of_its_own_connection(server: Server) -> None:
    session, other = server.session(), server.session(b"other")
    session.declare("q")
    consume_stream(session, no_local=True)
    publish_packet(session, b"own")
    publish_packet(other, b"foreign")
    assert bodies(session) == [b"foreign"]


def test_stream_consume_with_nowait_is_not_answered(session: Session) -> None:
    session.declare("q")
    publish_packet(session, b"1")
    session.call(x.StreamConsume(queue="q", consumer_tag="t", nowait=True))
    assert bodies(session) == [b"1"]


@pytest.mark.rule("0-10/stream.consume-ok/tag")
def test_tag_of_stream_consume_ok_cancels_consumer(session: Session) -> None:
    session.declare("q")
    session.send(x.StreamConsume(queue="q", consumer_tag="mine"))
    ok, got = next_command(session, x.StreamConsumeOk)
    assert got.what.encode()[:2] == b"\x0a\x04"
    session.call(x.StreamCancel(consumer_tag=ok.consumer_tag))
    assert session.query("q").subscriber_count == 0


@pytest.mark.rule("0-10/stream.cancel/shortly")
def test_no_stream_message_is_delivered_after_stream_cancel(session: Session) -> None:
    session.declare("q")
    consume_stream(session)
    publish_packet(session, b"1")
    session.call(x.StreamCancel(consumer_tag="t"))
    publish_packet(session, b"2")
    assert bodies(session) == [b"1"]


def test_stream_cancel_of_unknown_consumer_fails_with_not_found(session: Session) -> None:
    session.fails(x.StreamCancel(consumer_tag="t"), 404)


def test_deletion_of_queue_ends_session_of_stream_consumer_with_408(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_stream(one)
    two.call(x.QueueDelete(queue="q"))
    exception, _ = next_command(one, x.ExecutionException)
    assert exception.error_code == 408
