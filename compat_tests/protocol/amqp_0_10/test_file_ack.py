"""Class file: what consumers do with files, and what becomes of those."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    ack_file,
    consume_files,
    next_command,
    publish_file,
    stage_file,
    take_file,
    take_files,
)
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/file.ack/semantics#multiple")
def test_multiple_file_ack_covers_all_files_up_to_its_tag(server: Server) -> None:
    session = server.session()
    session.declare("q")
    for n in range(3):
        publish_file(session, b"%d" % n)
    consume_files(session)
    _, second, _ = take_files(session)
    ack_file(session, second.tag, multiple=True)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert [(file.body, file.deliver.redelivered) for file in take_files(session)] == [(b"2", True)]


@pytest.mark.rule("0-10/file.ack/semantics#zero")
def test_multiple_file_ack_with_tag_zero_covers_all_files_but_no_transfers(server: Server) -> None:
    session = server.session()
    session.declare("q")
    session.subscribe("q", credit=3)
    for _ in range(3):
        session.publish(b"a transfer")
    assert len(session.transfers()) == 3
    session.call(x.MessageCancel(destination="d"))
    publish_file(session, b"1")
    publish_file(session, b"2")
    consume_files(session)
    assert len(take_files(session)) == 2
    ack_file(session, 0, multiple=True)
    ack_file(session, 0, multiple=True)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"a transfer"] * 3


@pytest.mark.rule("0-10/file.ack/semantics#single")
def test_single_file_ack_covers_only_its_file(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"1")
    publish_file(session, b"2")
    consume_files(session)
    _, second = take_files(session)
    ack_file(session, second.tag)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"1"]


@pytest.mark.rule("0-10/file.ack/multiple-validation")
@pytest.mark.parametrize("multiple", (False, True))
def test_file_ack_of_unknown_tag_fails_with_precondition_failed(session: Session, multiple: bool) -> None:
    exception = session.fails(x.FileAck(delivery_tag=99, multiple=multiple), 406)
    assert (exception.class_code, exception.command_code, exception.field_index) == (9, 12, 0)


@pytest.mark.rule("0-10/file.ack/multiple-validation", "0-10/file.deliver/staged")
def test_multiple_file_ack_with_tag_zero_leaves_out_file_still_being_staged(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    next_command(session, x.FileOpen)
    session.call(x.FileAck(delivery_tag=0, multiple=True))
    session.call(x.FileOpenOk(staged_size=0))
    next_command(session, x.FileStage)
    next_command(session, x.FileDeliver)
    session.call(x.FileAck(delivery_tag=1))


@pytest.mark.rule("0-10/file.ack/multiple-validation", "0-10/file.deliver/staged")
def test_file_ack_before_file_deliver_fails_with_precondition_failed(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    next_command(session, x.FileOpen)
    session.fails(x.FileAck(delivery_tag=1), 406)


class _Settled(QuietTap):
    """Remembers what it is told of deliveries and how they end."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def happened(self, event: str, **facts: Any) -> None:
        if event == "delivered":
            names = ("queue", "consumer", "channel", "delivery_tag", "redelivered")
            self.told.append((event, *(facts[name] for name in names)))
        elif event in ("acked", "rejected", "requeued"):
            self.told.append((event, facts["delivery_tag"]))


def test_tap_is_given_delivery_tags_of_files_delivered_acked_rejected_and_requeued(session: Session) -> None:
    session.declare("q")
    for n in range(3):
        publish_file(session, b"%d" % n)
    tap = session.client.server.state.tap = _Settled()
    consume_files(session)
    assert tap.told == [], "it is delivered once it is staged"
    first, second, _ = take_files(session)
    ack_file(session, first.tag)
    session.call(x.FileReject(delivery_tag=second.tag))
    session.fails(x.FileCancel(consumer_tag="missing"), 404)
    delivered = [("delivered", "q", "t", 0, tag, False) for tag in (1, 2, 3)]
    assert tap.told == [*delivered, ("acked", 1), ("rejected", 2), ("requeued", 3)]


@pytest.mark.rule("0-10/file.ack/multiple-validation")
def test_single_file_ack_with_tag_zero_fails_with_precondition_failed(session: Session) -> None:
    session.fails(x.FileAck(delivery_tag=0), 406)


@pytest.mark.rule("0-10/file.ack/delivery-tag-session-local")
def test_file_ack_of_tag_of_another_session_fails(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    publish_file(one, b"file")
    consume_files(one)
    tag = take_file(one).tag
    two.fails(x.FileAck(delivery_tag=tag), 406)
    ack_file(one, tag)


@pytest.mark.rule("0-10/file.reject/delivery-tag-session-local")
def test_file_reject_of_tag_of_another_session_fails(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    publish_file(one, b"file")
    consume_files(one)
    tag = take_file(one).tag
    two.fails(x.FileReject(delivery_tag=tag, requeue=True), 406)
    ack_file(one, tag)


@pytest.mark.rule("0-10/file.reject/server-interpretation", "0-10/file.reject/requeue-requeue-strategy")
def test_file_rejected_with_requeue_is_redelivered_to_another_session(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    publish_file(one, b"file")
    consume_files(one)
    file = take_file(one)
    consume_files(two)
    one.call(x.FileReject(delivery_tag=file.tag, requeue=True))
    again = take_file(two)
    assert (again.body, again.deliver.redelivered) == (b"file", True)


@pytest.mark.rule("0-10/file.reject/requeue-requeue-strategy")
def test_file_rejected_with_requeue_is_not_redelivered_to_same_session(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    file = take_file(session)
    session.call(x.FileReject(delivery_tag=file.tag, requeue=True))
    consume_files(session, tag="another")
    publish_file(session, b"next")
    assert [each.body for each in take_files(session)] == [b"next"]
    assert session.query("q").message_count == 1


@pytest.mark.rule("0-10/file.reject/not-selection")
def test_file_rejected_without_requeue_is_removed(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    session.call(x.FileReject(delivery_tag=take_file(session).tag))
    session.detach()
    session = server.session(b"other")
    assert session.query("q").message_count == 0


@pytest.mark.rule("0-10/file.reject/not-selection")
def test_file_rejected_without_requeue_goes_to_alternate_exchange(session: Session) -> None:
    session.declare("dead")
    session.bind("dead", "amq.fanout")
    session.declare("q", alternate_exchange="amq.fanout")
    publish_file(session, b"file", filename="name")
    consume_files(session)
    session.call(x.FileReject(delivery_tag=take_file(session).tag))
    consume_files(session, "dead", "undertaker")
    file = take_file(session)
    assert (file.body, file.properties.filename) == (b"file", "name")


@pytest.mark.rule("0-10/file.deliver/redelivery-tracking")
def test_spec_personality_dead_letters_file_after_five_requeues(spec: Server) -> None:
    session = spec.session(b"0")
    session.declare("dead")
    session.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    publish_file(session, b"hopeless")
    for n in range(5):
        session = spec.session(b"%d" % (n + 1))
        consume_files(session)
        session.call(x.FileReject(delivery_tag=take_file(session).tag, requeue=True))
        session.detach()
    session = spec.session(b"last")
    assert session.query("q").message_count == 0
    assert session.query("dead").message_count == 1


@pytest.mark.rule("0-10/file.deliver/delivery-tag-non-zero")
def test_file_delivery_tags_begin_at_1(session: Session) -> None:
    session.declare("q")
    for n in range(3):
        publish_file(session, b"%d" % n)
    consume_files(session)
    assert [file.tag for file in take_files(session)] == [1, 2, 3]


def test_second_file_publish_of_same_staged_content_fails_with_not_found(session: Session) -> None:
    session.declare("q")
    stage_file(session, b"one", "f")
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    session.fails(x.FilePublish(routing_key="q", identifier="f"), 404)
