"""queue.delete, queue.purge and queue.query."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.driver import Client, Server, Session
from compat_tests.protocol.amqp_0_10.test_exchange import exists as exchange_exists, got, refused
from compat_tests.protocol.amqp_0_10.test_queue import exists
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command


@pytest.mark.rule("0-10/queue.delete/queue-empty-name#raises")
@pytest.mark.rule("0-10/queue.delete/queue-empty-name#code")
@pytest.mark.deviates("0-10/queue.delete/queue-empty-name#code")
@pytest.mark.parametrize("name", ["", None])
@pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.3", 404), ("spec", 542)])
def test_deleting_no_queue_is_an_error(personality: str, code: int, name: str | None) -> None:
    refused(Server(personality).open(), x.QueueDelete(queue=name), code, "queue")


@pytest.mark.rule("0-10/queue.purge/queue-empty-name#raises")
@pytest.mark.rule("0-10/queue.purge/queue-empty-name#code")
@pytest.mark.deviates("0-10/queue.purge/queue-empty-name#code")
@pytest.mark.parametrize("name", ["", None])
@pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.3", 531), ("spec", 542)])
def test_purging_no_queue_is_an_error(personality: str, code: int, name: str | None) -> None:
    refused(Server(personality).open(), x.QueuePurge(queue=name), code, "queue")


@pytest.mark.rule("0-10/queue.delete/queue-queue-exists")
@pytest.mark.rule("0-10/queue.purge/queue-queue-exists")
@pytest.mark.parametrize("kind", [x.QueueDelete, x.QueuePurge])
def test_a_queue_that_is_not_there(client: Client, kind: type[x.QueueDelete] | type[x.QueuePurge]) -> None:
    refused(client, kind(queue="missing"), 404, "queue")


def kept(client: Client, command: Command) -> None:
    """The command fails for what is in the queue or takes from it, and the queue stays."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, 406)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    assert "q" in client.server.vhost.queues


@pytest.mark.rule("0-10/queue.delete/if-unused-if-unused-flag")
def test_if_unused_spares_a_queue_with_a_subscription(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.subscribe()
    kept(client, x.QueueDelete(queue="q", if_unused=True))
    session.call(x.MessageCancel(destination="d"))
    session.call(x.QueueDelete(queue="q", if_unused=True))
    assert not exists(session)


@pytest.mark.rule("0-10/queue.delete/if-empty-not-empty")
def test_if_empty_spares_a_queue_with_a_message(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.publish()
    kept(client, x.QueueDelete(queue="q", if_empty=True))
    assert got(session) == 1
    session.call(x.QueuePurge(queue="q"))
    session.call(x.QueueDelete(queue="q", if_empty=True))
    assert not exists(session)


def test_bindings_go_with_their_queue(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.direct", "k")
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    session.publish(exchange="amq.direct", key="k")
    assert got(session) == 0


@pytest.mark.rule("0-10/queue.purge/empty")
def test_a_purged_queue_is_empty(session: Session) -> None:
    session.declare("q")
    for _ in range(5):
        session.publish()
    assert got(session) == 5
    session.call(x.QueuePurge(queue="q"))
    assert got(session) == 0


@pytest.mark.rule("0-10/queue.purge/pending-messages")
def test_what_was_sent_and_not_accepted_is_not_purged(session: Session) -> None:
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


@pytest.mark.rule("0-10/queue.purge/subscribers-stay")
def test_subscriptions_survive_a_purge(session: Session) -> None:
    session.declare("q")
    session.subscribe()
    session.call(x.QueuePurge(queue="q"))
    session.publish(b"after")
    assert session.bodies() == [b"after"]


# --- query -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue.query/result#declaration")
@pytest.mark.rule("0-10/queue.query/result#counts")
def test_what_a_query_tells(session: Session) -> None:
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


@pytest.mark.rule("0-10/queue.query/result#declaration")
@pytest.mark.rule("0-10/queue.query/result#counts")
def test_numbers_are_told_even_if_they_are_nought(session: Session) -> None:
    session.declare("q")
    found = session.query()
    assert (found.durable, found.exclusive, found.auto_delete) == (False, False, False)
    assert (found.message_count, found.subscriber_count) == (0, 0)
    assert found.alternate_exchange is None


@pytest.mark.rule("0-10/queue.query/result#counts")
def test_messages_that_are_held_do_not_count(session: Session) -> None:
    session.declare("q")
    session.publish()
    session.publish()
    session.subscribe(credit=1)
    held = session.transfer()
    assert got(session) == 1
    session.release(held.id)
    assert got(session) == 2


@pytest.mark.rule("0-10/queue.query/missing")
def test_a_query_for_what_is_missing_is_no_error(session: Session) -> None:
    found = session.query("missing")
    assert found == structs.QueueQueryResult()
    assert exchange_exists(session, "amq.direct")
