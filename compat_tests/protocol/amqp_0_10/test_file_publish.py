"""Class file: where files are published to, and what comes back."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    ack_file,
    consume_files,
    file_properties,
    next_command,
    publish_file,
    stage_file,
    take_file,
    take_files,
)
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/file.publish/exchange-default")
@pytest.mark.parametrize("exchange", (None, ""))
def test_file_publish_without_exchange_name_goes_to_default_exchange(
    session: Session, exchange: str | None
) -> None:
    session.declare("q")
    publish_file(session, b"file", "q", exchange=exchange)
    consume_files(session)
    file = take_file(session)
    assert (file.body, file.deliver.exchange, file.deliver.routing_key) == (b"file", "", "q")


@pytest.mark.rule("0-10/file.publish/exchange-refusal")
@pytest.mark.parametrize("exchange", ("amq.direct", "amq.fanout", "amq.topic", "amq.match"))
def test_exchanges_of_all_types_accept_files(session: Session, exchange: str) -> None:
    session.declare("q")
    session.bind("q", exchange, "k", arguments={"x-match": "all"} if exchange == "amq.match" else None)
    publish_file(session, b"file", "k", exchange=exchange)
    consume_files(session)
    assert take_file(session).deliver.exchange == exchange


def test_file_publish_to_missing_exchange_fails_with_not_found(session: Session) -> None:
    stage_file(session, b"file")
    session.fails(x.FilePublish(exchange="missing", routing_key="q", identifier="f"), 404)


def test_file_publish_without_write_permission_fails_with_403(server: Server) -> None:
    server.state.access.add(User("reader", "reader", (), {"/": Permission(write="")}))
    session = server.session(user="reader", password="reader")
    stage_file(session, b"file")
    session.fails(x.FilePublish(exchange="amq.direct", routing_key="q", identifier="f"), 403)


def test_file_publish_without_topic_permission_for_key_fails_with_403(server: Server) -> None:
    allowed = {("/", "amq.topic"): TopicPermission(write="^a")}
    server.state.access.add(User("ann", "secret", (), {"/": Permission()}, allowed))
    session = server.session(user="ann", password="secret")
    publish_file(session, b"file", "a.b", exchange="amq.topic")
    stage_file(session, b"file")
    session.fails(x.FilePublish(exchange="amq.topic", routing_key="b.a", identifier="f"), 403)


@pytest.mark.rule("0-10/file.publish/mandatory-implementation", "0-10/file/return-codes#312")
def test_unroutable_mandatory_file_is_returned_with_312(session: Session) -> None:
    publish_file(session, b"file", "nowhere", mandatory=True)
    returned, _ = next_command(session, x.FileReturn)
    assert returned.reply_code == 312


@pytest.mark.rule("0-10/file.publish/mandatory-implementation")
def test_unroutable_file_without_mandatory_is_dropped(session: Session) -> None:
    publish_file(session, b"file", "nowhere")
    session.expect_nothing()


@pytest.mark.rule("0-10/file.publish/immediate-implementation", "0-10/file/return-codes#313")
def test_immediate_file_without_consumer_is_returned_with_313(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file", immediate=True)
    returned, _ = next_command(session, x.FileReturn)
    assert returned.reply_code == 313
    assert session.query("q").message_count == 0


@pytest.mark.rule("0-10/file.publish/immediate-implementation")
def test_immediate_file_is_delivered_to_waiting_consumer(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    publish_file(session, b"file", immediate=True)
    assert [file.body for file in take_files(session)] == [b"file"]


@pytest.mark.rule("0-10/file.publish/immediate-implementation", "0-10/file.publish/mandatory-implementation")
def test_mandatory_and_immediate_files_of_transaction_are_returned_at_commit(session: Session) -> None:
    session.declare("q")
    session.call(x.TxSelect())
    publish_file(session, b"1", "nowhere", mandatory=True)
    publish_file(session, b"2", immediate=True)
    session.expect_nothing()
    session.call(x.TxCommit())
    for code, body in ((312, b"1"), (313, b"2")):
        returned, got = next_command(session, x.FileReturn)
        assert (returned.reply_code, got.body) == (code, body)


@pytest.mark.rule("0-10/file.return/content")
def test_returned_file_keeps_exchange_key_properties_and_body(session: Session) -> None:
    publish_file(
        session, b"notes", "k", exchange="amq.topic", mandatory=True, filename="notes.txt", headers={"a": 1}
    )
    returned, got = next_command(session, x.FileReturn)
    assert (returned.exchange, returned.routing_key) == ("amq.topic", "k")
    assert returned.reply_text
    properties = file_properties(got.header)
    assert (properties.filename, properties.headers) == ("notes.txt", {"a": 1})
    assert got.body == b"notes"


@pytest.mark.rule("0-10/file.return/content", "0-10/file/return-codes#311")
def test_file_refused_by_queue_is_returned_with_311(session: Session) -> None:
    session.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    publish_file(session, b"1")
    publish_file(session, b"2")
    returned, got = next_command(session, x.FileReturn)
    assert (returned.reply_code, got.body) == (311, b"2")


# --- other protocols ---------------------------------------------------------------------------------


def test_file_reaches_0_9_1_client_with_its_properties(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(
        session,
        b"notes",
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"color": "red"},
        priority=3,
        reply_to="answers",
        message_id="m-1",
        timestamp=1_600_000_000,
    )
    content = server.client().get("q", no_ack=True)
    assert content is not None and content.body == b"notes"
    properties = content.properties
    assert (properties.content_type, properties.content_encoding) == ("text/plain", "utf-8")
    assert (properties.headers, properties.priority) == ({"color": "red"}, 3)
    assert (properties.reply_to, properties.message_id) == ("answers", "m-1")
    assert (properties.timestamp, properties.delivery_mode) == (1_600_000_000, 2)


def test_message_of_0_9_1_reaches_file_consumer_with_its_properties(server: Server) -> None:
    session = server.session()
    session.declare("q")
    server.client().publish(
        b"notes",
        routing_key="q",
        content_type="text/plain",
        headers={"color": "red"},
        priority=3,
        reply_to="answers",
        message_id="m-1",
        timestamp=1_600_000_000,
    )
    consume_files(session)
    file = take_file(session)
    assert file.body == b"notes"
    properties = file.properties
    assert (properties.content_type, properties.headers, properties.priority) == (
        "text/plain",
        {"color": "red"},
        3,
    )
    assert (properties.reply_to, properties.message_id) == ("answers", "m-1")
    assert properties.timestamp == 1_600_000_000
    ack_file(session, file.tag)


def test_file_of_many_frames_is_delivered_whole(client: Client) -> None:
    session = client.session()
    session.declare("q")
    body = bytes(range(256)) * 1000
    publish_file(session, body)
    consume_files(session)
    assert take_file(session).body == body
