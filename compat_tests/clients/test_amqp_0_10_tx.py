"""Transactions of one session: what they commit, what they roll back, what becomes of them at its end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from compat_tests.clients.amqp_0_10.checks import bodies, drained, fails
from compat_tests.clients.amqp_0_10.client import UNLIMITED, Connection, Message, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import MessageProperties

OLD = {
    "a": [b"old 1", b"old 2", b"old 3", b"old 4"],
    "b": [b"old 6"],
    "c": [b"old 7"],
}
"""What the queues have before: `a` by its name, `b` by amq.direct, `c` by amq.topic."""
NEW = {
    "a": [b"new 7"],
    "b": [b"new 6"],
    "c": [b"new 1", b"new 2", b"new 3", b"new 4"],
}
"""What they have after the commit."""
NOTHING: dict[str, list[bytes]] = {"a": [], "b": [], "c": []}
WAYS = {
    "a": {"key": "a"},
    "b": {"exchange": "amq.direct", "key": "to b"},
    "c": {"exchange": "amq.topic", "key": "to.c"},
}


def publish(session: Session, messages: dict[str, list[bytes]]) -> None:
    for queue, way in WAYS.items():
        for body in messages[queue]:
            session.publish(body, properties=MessageProperties(correlation_id=body), **way)


def check(session: Session, expected: dict[str, list[bytes]]) -> list[Message]:
    """These messages have come to the subscriptions, and no other."""
    found: list[Message] = []
    for queue in expected:
        messages = session.drain(queue)
        assert bodies(messages) == expected[queue], queue
        assert [each.properties.correlation_id for each in messages] == expected[queue]
        found += messages
    return found


@dataclass
class Work:
    """A session that has taken all old messages and sent all new ones in a transaction that is still open."""

    session: Session
    taken: list[Message]


def work(session: Session) -> Work:
    for queue in OLD:
        session.declare(queue, auto_delete=True)
    session.bind("b", "amq.direct", "to b")
    session.bind("c", "amq.topic", "to.c")
    publish(session, OLD)
    session.call(x.TxSelect())
    for queue in OLD:
        session.subscribe(queue, queue)
    taken = check(session, OLD)
    session.accept(*taken)
    publish(session, NEW)
    check(session, NOTHING)
    return Work(session, taken)


@pytest.fixture
def checker(session: Session) -> Session:
    """A session that is subscribed to all queues, which keeps them, and has no credit yet."""
    for queue in OLD:
        session.declare(queue, auto_delete=True)
        session.subscribe(queue, queue, credit=None, octets=None)
    return session


def check_and_commit(checker: Session, expected: dict[str, list[bytes]]) -> None:
    """The queues have these messages, and none once they are accepted by a transaction."""
    checker.call(x.TxSelect())
    for queue in expected:
        checker.flow(queue, UNLIMITED, UNLIMITED)
    checker.accept(*check(checker, expected))
    checker.call(x.TxCommit())
    assert [checker.depth(queue) for queue in expected] == [0, 0, 0]


@pytest.mark.suite("tx.TxTests.test_commit")
def test_commit_applies_publishes_and_accepts(connection: Connection, checker: Session) -> None:
    worker = work(connection.session(b"worker")).session
    worker.call(x.TxCommit())
    worker.close()
    check_and_commit(checker, NEW)


@pytest.mark.suite("tx.TxTests.test_auto_rollback")
def test_uncommitted_work_is_rolled_back_at_the_end_of_the_session(
    connection: Connection, checker: Session
) -> None:
    work(connection.session(b"worker")).session.close()
    check_and_commit(checker, OLD)


@pytest.mark.suite("tx.TxTests.test_rollback")
def test_rollback_undoes_work_and_leaves_messages_acquired(connection: Connection) -> None:
    worker = work(connection.session(b"worker"))
    session = worker.session
    session.call(x.TxRollback())
    check(session, NOTHING)
    session.release(*worker.taken)
    session.accept(*check(session, OLD))
    session.call(x.TxCommit())
    session.close()
    other = connection.session(b"other")
    for queue in OLD:
        with fails(404):  # They were auto-deleted.
            other.declare(queue, passive=True)
        other = connection.session(b"other")


def test_a_transaction_needs_tx_select(connection: Connection) -> None:
    for command in (x.TxCommit(), x.TxRollback()):
        with fails(503):
            connection.session(b"session").call(command)


def test_the_next_transaction_begins_with_the_end_of_the_last(
    connection: Connection, session: Session
) -> None:
    session.declare("q")
    session.call(x.TxSelect())
    other = connection.session(b"other")
    other.subscribe("q", "d")
    for end, expected in ((x.TxCommit(), [b"1"]), (x.TxRollback(), []), (x.TxCommit(), [b"3"])):
        session.publish(expected[0] if expected else b"rolled back", key="q")
        assert drained(other, "d") == []
        session.call(end)
        assert drained(other, "d") == expected
