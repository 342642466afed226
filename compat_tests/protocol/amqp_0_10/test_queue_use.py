"""queue.delete, queue.purge and queue.query."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import exists as exchange_exists, got, refused
from compat_tests.protocol.amqp_0_10.test_queue import exists
from compat_tests.scripted.amqp_0_10 import Client, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule


def _nameless(command: str) -> list[pytest.MarkDecorator]:
    return [
        rule(f"0-10/queue.{command}/queue-empty-name#raises", f"0-10/queue.{command}/queue-empty-name#code"),
        pytest.mark.deviates(f"0-10/queue.{command}/queue-empty-name#code"),
    ]


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        pytest.param(x.QueueDelete, {"rabbitmq-4.3": 404, "spec": 542}, marks=_nameless("delete")),
        pytest.param(x.QueuePurge, {"rabbitmq-4.3": 531, "spec": 542}, marks=_nameless("purge")),
    ],
)
@rule("0-10/queue.delete/queue-queue-exists", "0-10/queue.purge/queue-queue-exists")
def test_delete_and_purge_without_queue_name_or_of_missing_queue_fail(
    client: Client, kind: type[x.QueueDelete] | type[x.QueuePurge], codes: dict[str, int]
) -> None:
    code = codes[client.server.state.personality.name]
    for name in ("", None):
        refused(client, kind(queue=name), code, "queue")
    refused(client, kind(queue="missing"), 404, "queue")


def kept(client: Client, command: Command) -> None:
    """The command fails for what is in the queue or takes from it, and the queue stays."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, 406)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    assert "q" in client.server.vhost.queues


@rule("0-10/queue.delete/if-unused-if-unused-flag")
def test_queue_delete_with_if_unused_fails_while_queue_has_subscription(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.subscribe()
    kept(client, x.QueueDelete(queue="q", if_unused=True))
    session.call(x.MessageCancel(destination="d"))
    session.call(x.QueueDelete(queue="q", if_unused=True))
    assert not exists(session)


@rule("0-10/queue.delete/if-empty-not-empty")
def test_queue_delete_with_if_empty_fails_while_queue_has_message(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.publish()
    kept(client, x.QueueDelete(queue="q", if_empty=True))
    assert got(session) == 1
    session.call(x.QueuePurge(queue="q"))
    session.call(x.QueueDelete(queue="q", if_empty=True))
    assert not exists(session)


def test_deletion_of_queue_removes_its_bindings(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.direct", "k")
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    session.publish(exchange="amq.direct", key="k")
    assert got(session) == 0


@rule("0-10/queue.purge/empty")
def test_purge_removes_all_ready_messages(session: Session) -> None:
    session.declare("q")
    for _ in range(5):
        session.publish()
    assert got(session) == 5
    session.call(x.QueuePurge(queue="q"))
    assert got(session) == 0


@rule("0-10/queue.purge/pending-messages")
def test_purge_does_not_remove_delivered_unaccepted_message(session: Session) -> None:
    session.declare("q")
    session.publish(b"held")
    session.publish(b"waits")
    session.subscribe(credit=1)
    held = session.transfer()
    session.call(x.QueuePurge(queue="q"))
    session.release(held.id)
    assert got(session) == 1
    session.flow(1)
    assert session.bodies() == [b"held"]


@rule("0-10/queue.purge/subscribers-stay")
def test_subscription_receives_messages_after_purge(session: Session) -> None:
    session.declare("q")
    session.subscribe()
    session.call(x.QueuePurge(queue="q"))
    session.publish(b"after")
    assert session.bodies() == [b"after"]


# --- query -------------------------------------------------------------------------------------------


@rule("0-10/queue.query/result#declaration", "0-10/queue.query/result#counts")
def test_queue_query_returns_declaration_and_counts(session: Session) -> None:
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
    session.declare(
        "q",
        alternate_exchange="amq.fanout",
        durable=True,
        exclusive=True,
        auto_delete=True,
        arguments=arguments,
    )
    session.publish()
    session.publish()
    session.subscribe(credit=None)
    found = session.query()
    assert (found.queue, found.alternate_exchange) == ("q", "amq.fanout")
    assert (found.durable, found.exclusive, found.auto_delete) == (True, True, True)
    assert found.arguments is not None and found.arguments.items() >= arguments.items()
    assert (found.message_count, found.subscriber_count) == (2, 1)


@rule("0-10/queue.query/result#declaration", "0-10/queue.query/result#counts")
def test_queue_query_returns_false_and_zero_values(session: Session) -> None:
    session.declare("q")
    found = session.query()
    assert (found.durable, found.exclusive, found.auto_delete) == (False, False, False)
    assert (found.message_count, found.subscriber_count) == (0, 0)
    assert found.alternate_exchange is None


@rule("0-10/queue.query/result#counts")
def test_queue_query_does_not_count_unaccepted_messages(session: Session) -> None:
    session.declare("q")
    session.publish()
    session.publish()
    session.subscribe(credit=1)
    held = session.transfer()
    assert got(session) == 1
    session.release(held.id)
    assert got(session) == 2


@rule("0-10/queue.query/missing")
def test_queue_query_of_missing_queue_returns_empty_result(session: Session) -> None:
    found = session.query("missing")
    assert found == structs.QueueQueryResult()
    assert exchange_exists(session, "amq.direct")
