"""Class file: what it promises, and transactions."""

from __future__ import annotations

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
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

ALL_PROPERTIES = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"color": "red", "size": 3},
    "priority": 7,
    "reply_to": "answers",
    "message_id": "m-1",
    "filename": "notes.txt",
    "timestamp": 1_600_000_000,
    "cluster_id": "c",
}


# --- the class ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/file/properties")
def test_file_consumer_receives_all_properties_unchanged(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes", **ALL_PROPERTIES)
    consume_files(session)
    assert take_file(session).properties == structs.FileProperties(**ALL_PROPERTIES)


@pytest.mark.rule("0-10/file/properties")
def test_file_properties_reach_subscription_of_class_message(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"notes", **ALL_PROPERTIES)
    session.subscribe("q")
    transfer = session.transfer()
    assert (transfer.body, transfer.delivery.routing_key) == (b"notes", "q")
    assert (transfer.delivery.priority, transfer.delivery.delivery_mode) == (7, 2)
    assert (transfer.message.content_type, transfer.message.content_encoding) == ("text/plain", "utf-8")
    headers = transfer.message.application_headers or {}
    assert (headers["color"], headers["size"]) == ("red", 3)


@pytest.mark.rule("0-10/file/properties")
def test_transferred_message_reaches_file_consumer_with_properties(session: Session) -> None:
    session.declare("q")
    message = structs.MessageProperties(content_type="text/plain", application_headers={"color": "red"})
    session.publish(b"notes", message=message, priority=3)
    session.call(x.ExecutionSync())
    consume_files(session)
    file = take_file(session)
    assert file.body == b"notes"
    assert file.properties.content_type == "text/plain"
    assert file.properties.headers == {"color": "red"}
    assert file.properties.priority == 3


@pytest.mark.rule("0-10/file/reliable-storage")
def test_file_in_durable_queue_survives_restart(server: Server) -> None:
    session = server.session()
    session.declare("q", durable=True)
    publish_file(session, b"kept", filename="kept.txt")
    session.client.drop()
    server.state.restart()
    session = server.session()
    consume_files(session)
    file = take_file(session)
    assert (file.body, file.properties.filename) == (b"kept", "kept.txt")


@pytest.mark.rule("0-10/file/reliable-storage")
def test_file_in_durable_queue_survives_crash(server: Server) -> None:
    session = server.session()
    session.declare("q", durable=True)
    publish_file(session, b"kept")
    session.client.drop()
    server.state.restart(crash=True)
    session = server.session()
    consume_files(session)
    assert take_file(session).body == b"kept"


@pytest.mark.rule("0-10/file/no-discard#kept")
@pytest.mark.parametrize("limit", ({"x-max-length": 2}, {"x-max-length-bytes": 4}))
def test_file_published_to_full_queue_is_returned_and_earlier_files_remain(
    session: Session, limit: dict[str, int]
) -> None:
    session.declare("q", arguments=limit)
    publish_file(session, b"f1")
    publish_file(session, b"f2")
    publish_file(session, b"f3")
    returned, got = next_command(session, x.FileReturn)
    assert (returned.reply_code, got.body) == (311, b"f3")
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"f1", b"f2"]
    publish_file(session, b"f3")
    assert [file.body for file in take_files(session)] == [b"f3"]


@pytest.mark.rule("0-10/file/no-discard#kept")
def test_file_is_delivered_to_waiting_consumer_when_max_length_is_zero(session: Session) -> None:
    session.declare("q", arguments={"x-max-length": 0})
    consume_files(session)
    publish_file(session, b"file")
    assert [file.body for file in take_files(session)] == [b"file"]


@pytest.mark.rule("0-10/file/no-discard#kept")
def test_file_is_returned_and_queued_nowhere_when_quorum_queue_is_full(lenient: Server) -> None:
    session = lenient.session()
    limit = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    session.declare("q", durable=True, arguments=limit)
    while session.query("q").message_count < 2:  # It refuses from one above its limit on.
        publish_file(session, b"kept")
    session.declare("roomy")
    for queue in ("q", "roomy"):
        session.bind(queue, "amq.fanout")
    publish_file(session, b"returned", exchange="amq.fanout")
    returned, got = next_command(session, x.FileReturn)
    assert (returned.reply_code, got.body) == (311, b"returned")
    counts = [session.query(queue).message_count for queue in ("q", "roomy")]
    assert counts == [2, 0], "what comes back went nowhere"


@pytest.mark.rule("0-10/file/no-discard#slowed")
def test_file_publisher_is_not_read_from_while_broker_is_blocked(server: Server) -> None:
    session = server.session()
    session.declare("q")
    for identifier in ("one", "two"):
        stage_file(session, identifier.encode(), identifier)
    server.state.block("memory")
    for identifier in ("one", "two"):
        session.send(x.FilePublish(routing_key="q", identifier=identifier))
    assert not session.client.connection.reading
    assert len(server.vhost.queues["q"].ready) == 1
    server.state.unblock()
    assert session.client.connection.reading
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"one", b"two"]


@pytest.mark.deviates("0-10/file/priority-levels")
def test_default_personality_ignores_file_priority_in_queue_without_priorities(
    lenient: Server,
) -> None:
    session = lenient.session()
    session.declare("q")
    for priority in (0, 9):
        publish_file(session, b"%d" % priority, priority=priority)
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"0", b"9"]


@pytest.mark.rule("0-10/file/priority-levels")
def test_spec_personality_delivers_files_by_descending_priority(spec: Server) -> None:
    session = spec.session()
    session.declare("q")
    for priority in (0, 9, 4):
        publish_file(session, b"%d" % priority, priority=priority)
    consume_files(session)
    assert [file.body for file in take_files(session)] == [b"9", b"4", b"0"]


@pytest.mark.rule(
    "0-10/file/acknowledgement-support#automatic",
    "0-10/file/acknowledgement-support#explicit",
    "0-10/file.consume/no-ack",
)
def test_no_ack_and_acked_files_are_not_requeued_when_session_ends(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"automatic")
    consume_files(session, no_ack=True)
    assert take_file(session).body == b"automatic"
    session.call(x.FileCancel(consumer_tag="t"))
    publish_file(session, b"explicit")
    consume_files(session)
    ack_file(session, take_file(session).tag)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert take_files(session) == []


@pytest.mark.rule("0-10/file.consume/no-ack")
def test_no_ack_file_not_delivered_yet_is_requeued_when_session_ends(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session, no_ack=True)
    next_command(session, x.FileOpen)
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    file = take_file(session)
    assert file.body == b"file"


@pytest.mark.rule("0-10/file.consume/no-ack", "0-10/file.ack/multiple-validation")
def test_file_ack_for_no_ack_consumer_fails_with_precondition_failed(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session, no_ack=True)
    session.fails(x.FileAck(delivery_tag=take_file(session).tag), 406)


# --- transactions ------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/file/transactions#published")
def test_rolled_back_file_publish_is_not_delivered(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    session.call(x.TxSelect())
    publish_file(session, b"undone")
    session.call(x.TxRollback())
    publish_file(session, b"done")
    assert take_files(session) == []
    session.call(x.TxCommit())
    assert [file.body for file in take_files(session)] == [b"done"]


@pytest.mark.rule("0-10/file/transactions#published", "0-10/file.publish/staged")
def test_committed_file_publish_waits_until_content_is_staged(session: Session) -> None:
    session.declare("q")
    consume_files(session)
    session.call(x.TxSelect())
    session.call(x.FileOpen(identifier="f", content_size=4))
    next_command(session, x.FileOpenOk)
    session.call(x.FilePublish(routing_key="q", identifier="f"))
    session.call(x.TxCommit())
    session.expect_nothing()
    session.call(x.FileStage(), header=[structs.FileProperties()], body=b"late")
    assert [file.body for file in take_files(session)] == [b"late"]


@pytest.mark.rule("0-10/file/transactions#acked")
def test_rolled_back_file_ack_can_be_repeated_and_leaves_file_unacked(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    tag = take_file(session).tag
    session.call(x.TxSelect())
    ack_file(session, tag)
    session.call(x.TxRollback())
    ack_file(session, tag)
    session.call(x.TxRollback())
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert take_file(session).deliver.redelivered


@pytest.mark.rule("0-10/file/transactions#acked")
def test_committed_file_ack_removes_file(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_file(session, b"file")
    consume_files(session)
    session.call(x.TxSelect())
    ack_file(session, take_file(session).tag)
    session.call(x.TxCommit())
    session.detach()
    session = server.session(b"other")
    consume_files(session)
    assert take_files(session) == []
