"""file.publish and file.return."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9.files import (
    bodies,
    consume,
    open_file,
    publish,
    publish_file,
    stage,
    stage_file,
    take,
)
from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule


@rule("0-9/file.publish/staged", "0-9/file.publish/exchange-01")
def test_file_publish_sends_the_staged_content_of_its_identifier(client: Client) -> None:
    client.declare("q")
    stage_file(client, b"1", "a")
    stage_file(client, b"2", "b")
    publish(client, identifier="b")
    client.expect_nothing()
    consume(client)
    assert bodies(client) == [b"2"]


def test_second_publish_of_a_published_file_identifier_closes_the_channel_with_404(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"1")
    publish(client, identifier="published")
    client.expect_channel_close(404)


@rule("0-9/file.publish/asynchronous")
def test_publish_may_come_before_the_content(client: Client) -> None:
    client.declare("q")
    client.declare("r")
    open_file(client, 4)
    publish(client)
    publish(client, "r")
    assert (client.count("q"), client.count("r")) == (0, 0)
    stage(client, b"body", filename="f")
    assert (client.count("q"), client.count("r")) == (1, 1)
    publish(client)
    client.expect_channel_close(404)


@rule("0-9/file.publish/asynchronous")
def test_file_publish_is_dropped_when_its_channel_closes_before_the_content(server: Server) -> None:
    client = server.client()
    client.declare("q")
    open_file(client, 4)
    publish(client)
    client.close_channel()
    client.open_channel()
    open_file(client, 4)
    stage(client, b"body")
    assert client.count("q") == 0


@rule("0-9/file.publish/unknown-identifier")
def test_file_publish_of_an_unknown_identifier_closes_the_channel_with_404(client: Client) -> None:
    client.declare("q")
    publish(client)
    client.expect_channel_close(404)


@rule("0-9/file.publish/exchange-missing")
def test_file_publish_to_a_missing_exchange_closes_the_channel_with_404(client: Client) -> None:
    stage_file(client, b"body")
    publish(client, exchange="missing")
    client.expect_channel_close(404)


def test_mandatory_file_is_returned_when_its_exchange_was_deleted_before_the_content(client: Client) -> None:
    client.call(shared.ExchangeDeclare(exchange="x", type="fanout"), shared.ExchangeDeclareOk)
    open_file(client, 4)
    publish(client, exchange="x", mandatory=True)
    client.call(shared.ExchangeDelete(exchange="x"), shared.ExchangeDeleteOk)
    stage(client, b"body")
    assert client.expect_content(m.FileReturn).method.reply_code == 312


@rule("0-9/file.publish/exchange-02")
def test_file_publish_to_an_internal_exchange_closes_the_channel_with_403(lenient: Server) -> None:
    client = lenient.client()
    client.call(shared.ExchangeDeclare(exchange="x", type="fanout", internal=True), shared.ExchangeDeclareOk)
    stage_file(client, b"body")
    publish(client, exchange="x")
    client.expect_channel_close(403)


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_every_exchange_takes_files(client: Client, kind: str) -> None:
    client.declare("q")
    name = "amq.match" if kind == "headers" else f"amq.{kind}"
    client.bind("q", name, "k", arguments={"x-match": "all", "h": 1} if kind == "headers" else {})
    publish_file(client, b"body", "k", exchange=name, headers={"h": 1})
    publish_file(client, b"other", "l", exchange=name, headers={"h": 2})
    consume(client)
    assert bodies(client) == ([b"body", b"other"] if kind == "fanout" else [b"body"])


def test_file_publish_without_write_permission_closes_the_channel_with_403(lenient: Server) -> None:
    lenient.state.access.add(User("ann", "pw", (), {"/": Permission("", "mine", "")}))
    client = lenient.client(user="ann", password="pw")
    stage_file(client, b"body")
    publish(client, exchange="amq.direct")
    client.expect_channel_close(403)


@rule(
    "0-9/file.publish/mandatory-01",
    "0-9/file.publish/immediate-01",
    "0-9/file.return/content#code",
    "0-9/file.return/content#source",
    "0-9/file.return/content#content",
)
@pytest.mark.parametrize(("key", "flag", "code"), [("nobody", "mandatory", 312), ("q", "immediate", 313)])
def test_undeliverable_mandatory_or_immediate_file_is_returned_whole(
    client: Client, key: str, flag: str, code: int
) -> None:
    client.declare("q")
    stage_file(client, b"body", filename="f", headers={"n": 5})
    publish(client, key, **{flag: True})
    returned = client.expect_content(m.FileReturn)
    method = returned.method
    assert (method.reply_code, method.exchange, method.routing_key) == (code, "", key)
    assert method.reply_text
    assert (returned.body, returned.properties.filename) == (b"body", "f")
    assert returned.properties.headers == {"n": 5}
    assert client.count("q") == 0


@rule("0-9/file.publish/immediate-01")
def test_immediate_file_is_delivered_only_to_a_file_consumer(client: Client) -> None:
    client.declare("q")
    client.consume("q", "basic")
    stage_file(client, b"1")
    publish(client, immediate=True)
    assert client.expect_content(m.FileReturn).method.reply_code == 313
    consume(client)
    stage_file(client, b"2")
    publish(client, immediate=True)
    assert take(client).body == b"2"


@rule("0-9/file/02")
@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_no_file_is_discarded_for_want_of_room(client: Client, overflow: str) -> None:
    client.declare("q", arguments={"x-max-length": 1, "x-overflow": overflow})
    publish_file(client, b"1")
    publish_file(client, b"2")
    returned = client.expect_content(m.FileReturn)
    assert (returned.method.reply_code, returned.body) == (311, b"2")
    consume(client)
    assert bodies(client) == [b"1"]


# --- transactions --------------------------------------------------------------------------------------


@rule("0-9/file/transactional#messages")
def test_publishes_are_done_at_commit(client: Client) -> None:
    client.declare("q")
    client.call(m.TxSelect(), shared.TxSelectOk)
    publish_file(client, b"1")
    assert client.count("q") == 0
    client.call(m.TxRollback(), shared.TxRollbackOk)
    assert client.count("q") == 0
    publish_file(client, b"2")
    client.call(m.TxCommit(), shared.TxCommitOk)
    assert client.count("q") == 1


@rule("0-9/file/transactional#messages", "0-9/file.publish/asynchronous")
def test_committed_file_is_queued_when_its_content_arrives_later(client: Client) -> None:
    client.declare("q")
    client.call(m.TxSelect(), shared.TxSelectOk)
    open_file(client, 4)
    publish(client)
    client.call(m.TxCommit(), shared.TxCommitOk)
    assert client.count("q") == 0
    stage(client, b"body")
    assert client.count("q") == 1


@rule("0-9/file/transactional#acks")
def test_acks_count_at_commit_and_are_undone_by_rollback(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish_file(client, b"1")
    client.call(m.TxSelect(), shared.TxSelectOk)
    consume(client)
    file = take(client)
    client.send(m.FileAck(delivery_tag=file.tag))
    client.call(m.TxRollback(), shared.TxRollbackOk)
    if client.inbox:  # The default personality sends it again at once.
        file = take(client)
        assert file.deliver.redelivered
    client.send(m.FileAck(delivery_tag=file.tag))
    client.call(m.TxCommit(), shared.TxCommitOk)
    client.drop()
    assert server.client().count("q") == 0


def test_file_staged_without_properties_is_delivered_without_properties(client: Client) -> None:
    open_file(client, 0)
    client.send_content(m.FileStage(), FileProperties(), b"")
    client.declare("q")
    publish(client)
    consume(client)
    properties: Any = take(client).properties
    assert properties == FileProperties()
