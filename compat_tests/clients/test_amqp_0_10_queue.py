"""Queues: purging, exclusivity, passive declarations, bindings, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.clients.amqp_0_10.checks import drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.fixture
def other(connection: Connection) -> Session:
    """Another session."""
    return connection.session(b"other")


def gone(session: Session, queue: str) -> None:
    """The queue is not there any more; this is the end of the session."""
    with fails(404):
        session.declare(queue, passive=True)


# --- purge --------------------------------------------------------------------------------------------------


@pytest.mark.suite("queue.QueueTests.test_purge")
def test_a_purged_queue_is_empty(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    for body in (b"one", b"two", b"three"):
        session.publish(body, key="q")
    session.declare("q")  # It is there, and stays what it is.
    assert session.depth("q") == 3
    session.purge("q")
    assert session.depth("q") == 0
    session.publish(b"four", key="q")
    inbox(session, "q")
    assert drained(session, "q") == [b"four"]


@pytest.mark.suite("queue.QueueTests.test_purge_queue_exists")
def test_an_unknown_queue_cannot_be_purged(session: Session) -> None:
    with fails(404):
        session.purge("nowhere")


@pytest.mark.suite("queue.QueueTests.test_purge_empty_name")
def test_a_queue_without_a_name_cannot_be_purged(session: Session) -> None:
    with fails(531):
        session.call(x.QueuePurge())


# --- exclusivity --------------------------------------------------------------------------------------------

FORBIDDEN = {
    "declare": x.QueueDeclare(queue="q", exclusive=True, auto_delete=True),
    "subscribe": x.MessageSubscribe(queue="q"),
    "delete": x.QueueDelete(queue="q"),
    "bind": x.ExchangeBind(exchange="amq.direct", queue="q", binding_key="abc"),
    "unbind": x.ExchangeUnbind(exchange="amq.fanout", queue="q"),
}


@pytest.mark.suite("queue.QueueTests.test_declare_exclusive")
def test_an_exclusive_queue_is_for_its_session_only(connection: Connection, session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "amq.fanout")
    for name, command in FORBIDDEN.items():
        with fails(405):
            connection.session(name.encode()).call(command)
    session.publish(b"still bound", exchange="amq.fanout")
    assert session.depth("q") == 1


@pytest.mark.suite("queue.QueueTests.test_declare_exclusive_alreadyinuse")
def test_a_queue_that_others_use_cannot_become_exclusive(session: Session, other: Session) -> None:
    session.declare("q", auto_delete=True)
    session.subscribe("q", None, credit=None, octets=None)
    with fails(405):
        other.declare("q", exclusive=True, auto_delete=True)


@pytest.mark.suite("queue.QueueTests.test_declare_passive")
def test_a_passive_declaration_finds_a_queue(session: Session, other: Session) -> None:
    session.declare("q")
    session.declare("q", passive=True)
    other.declare("q", passive=True)
    session.delete("q")
    gone(other, "q")


@pytest.mark.suite("queue.QueueTests.test_declare_passive_queue_not_found")
def test_passive_declare_of_a_missing_queue_fails_with_404(session: Session) -> None:
    gone(session, "q")


@pytest.mark.suite("queue.QueueTests.test_declare_passive_with_exclusive")
def test_a_passive_declaration_may_ask_for_exclusivity(session: Session, other: Session) -> None:
    session.declare("mine", exclusive=True, auto_delete=True)
    session.declare("shared", auto_delete=True)
    for each in (session, other):
        each.declare("mine", passive=True)
        each.declare("shared", passive=True)
    session.declare("mine", passive=True, exclusive=True)
    with fails(405):
        other.declare("shared", passive=True, exclusive=True)


# --- bindings -----------------------------------------------------------------------------------------------


@pytest.mark.suite("queue.QueueTests.test_bind")
def test_a_queue_is_bound_with_a_key_or_without(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "amq.direct", "key")
    session.bind("q", "amq.direct")
    for key in ("key", "", "q"):
        session.publish(key.encode(), exchange="amq.direct", key=key)
    inbox(session, "q")
    assert drained(session, "q") == [b"key", b""]
    with fails(404):
        session.bind("q", "nowhere", "key")


@pytest.mark.suite("queue.QueueTests.test_bind_queue_existence")
def test_an_unknown_queue_cannot_be_bound(session: Session) -> None:
    with fails(404):
        session.bind("nobody", "amq.direct", "key")


def case(name: str, **how: Any) -> Any:
    return pytest.param(how, marks=pytest.mark.suite(f"queue.QueueTests.test_unbind_{name}"), id=name)


@pytest.mark.parametrize(
    "how",
    [
        case("direct", exchange="amq.direct", key="key"),
        case("topic", exchange="amq.topic", key="key"),
        case("fanout", exchange="amq.fanout"),
        case("headers", exchange="amq.match", arguments={"x-match": "all", "a": "b"}, headers={"a": "b"}),
    ],
)
def test_an_unbound_queue_gets_no_more(session: Session, how: dict[str, Any]) -> None:
    exchange, key = how["exchange"], how.get("key", "")
    for queue in ("one", "two"):
        session.declare(queue, exclusive=True, auto_delete=True)
        inbox(session, queue)
        session.bind(queue, exchange, key, **how.get("arguments", {}))

    def publish(body: bytes) -> None:
        session.publish(body, exchange=exchange, key=key, headers=how.get("headers"))

    publish(b"for both")
    session.unbind("one", exchange, key)
    publish(b"for one")
    assert drained(session, "one") == [b"for both"]
    assert drained(session, "two") == [b"for both", b"for one"]


# --- deletion -----------------------------------------------------------------------------------------------


@pytest.mark.suite("queue.QueueTests.test_delete_simple")
def test_queue_with_messages_can_be_deleted(connection: Connection, session: Session) -> None:
    session.declare("q")
    for body in (b"a", b"b", b"c"):
        session.publish(body, key="q")
    session.delete("q")
    with fails(404):
        connection.session(b"subscriber").subscribe("q", "d")
    gone(session, "q")


@pytest.mark.suite("queue.QueueTests.test_delete_queue_exists")
def test_an_unknown_queue_cannot_be_deleted(session: Session) -> None:
    with fails(404):
        session.delete("nowhere", if_empty=True)


@pytest.mark.suite("queue.QueueTests.test_delete_ifempty")
def test_a_queue_may_be_deleted_only_if_empty(connection: Connection, session: Session) -> None:
    session.declare("q")
    session.publish(b"message", key="q")
    with fails(406):
        session.delete("q", if_empty=True)
    other = connection.session(b"other")
    inbox(other, "q")
    message = other.get("q")
    assert message.body == b"message"
    other.accept(message)
    other.cancel("q")
    other.delete("q", if_empty=True)
    gone(other, "q")


@pytest.mark.suite("queue.QueueTests.test_delete_ifunused")
def test_a_queue_may_be_deleted_only_if_unused(session: Session, other: Session) -> None:
    session.declare("q")
    inbox(session, "q")
    with fails(406):
        other.delete("q", if_unused=True)
    session.cancel("q")
    session.delete("q", if_unused=True)
    gone(session, "q")


@pytest.mark.suite("queue.QueueTests.test_autodelete_shared")
def test_an_auto_deleted_queue_goes_with_its_last_subscription(session: Session, other: Session) -> None:
    session.declare("q", auto_delete=True)
    inbox(session, "q", "same name")
    inbox(other, "q", "same name")
    other.close()
    session.declare("q", passive=True)
    session.cancel("same name")
    gone(session, "q")
