"""What no test in `protocol` or `unit` holds of Apache's suite, over real sockets: see `qpid/suite.toml`."""

from __future__ import annotations

import pytest

from compat_tests.clients.amqp_0_10.checks import XID, carry_out, drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import AcquireMode, DeliveryMode

TEN = [f"message {number}".encode() for number in range(1, 11)]
BROWSING = AcquireMode.NOT_ACQUIRED


@pytest.fixture
def worker(session: Session) -> Session:
    """A session that may work in branches."""
    session.declare("a")
    session.call(x.DtxSelect())
    return session


def test_declare_bind_publish_subscribe_accept(session: Session) -> None:
    session.declare_exchange("orders", "direct")
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "orders", "key")
    inbox(session, "q")
    session.publish(b"hello", exchange="orders", key="key")
    message = session.get("q")
    delivery = message.delivery
    assert (message.body, delivery.exchange, delivery.routing_key) == (b"hello", "orders", "key")
    session.accept(message)
    session.cancel("q")
    assert session.depth("q") == 0


def test_second_browser_gets_messages_that_the_first_did_not_acquire(session: Session) -> None:
    session.declare("q")
    for body in TEN:
        session.publish(body, key="q")
    session.subscribe("q", "first", credit=10, acquire_mode=BROWSING)
    for number, message in enumerate(session.drain("first")):
        assert message.body == TEN[number]
        if number % 2 == 0:
            assert message.id in session.acquire(message)
            session.accept(message)
        else:
            session.release(message)
        session.complete(message)
    session.subscribe("q", "second", credit=1, acquire_mode=BROWSING)
    for body in TEN[1::2]:
        message = session.get("second")
        assert message.body == body
        session.complete(message)
    assert drained(session, "second") == []
    assert session.depth("q") == 5


def test_release_of_an_unacquired_message_leaves_it_once_in_the_queue(session: Session) -> None:
    session.declare("q")
    session.publish(b"single", key="q")
    for destination in ("a", "b"):
        session.subscribe("q", destination, acquire_mode=BROWSING)
        session.release(session.get(destination))
    for destination in ("a", "b"):
        session.cancel(destination)
    session.subscribe("q", "d")
    (message,) = session.drain("d")
    session.accept(message)
    assert drained(session, "d") == []
    assert session.depth("q") == 0


def test_two_headers_bindings_that_match_deliver_once(session: Session) -> None:
    session.declare("q")
    inbox(session, "q")
    session.bind("q", "amq.match", "one", **{"x-match": "any", "name": "fred"})
    session.bind("q", "amq.match", "two", **{"x-match": "all", "age": 3})

    def arrivals(**headers: object) -> int:
        session.publish(b"message", exchange="amq.match", headers=headers)
        return len(session.drain("q"))

    assert arrivals(name="fred", age=3) == arrivals(name="fred") == arrivals(age=3) == 1
    session.unbind("q", "amq.match", "one")
    assert (arrivals(name="fred"), arrivals(age=3)) == (0, 1)


def test_xid_can_be_used_again_after_rollback_or_commit(worker: Session) -> None:
    rollback, commit = x.DtxRollback(xid=XID), x.DtxCommit(xid=XID, one_phase=True)
    for finish in (rollback, commit, rollback):
        carry_out(worker, x.DtxStart(xid=XID), x.DtxEnd(xid=XID), finish)


def test_publish_and_accept_after_dtx_end_do_not_belong_to_the_branch(
    worker: Session, connection: Connection
) -> None:
    carry_out(worker, x.DtxStart(xid=XID))
    worker.publish(b"in the branch", key="a")
    carry_out(worker, x.DtxEnd(xid=XID))
    worker.publish(b"behind it", key="a")
    assert worker.depth("a") == 1
    inbox(worker, "a")
    message = worker.get("a")
    assert message.body == b"behind it"
    worker.cancel("a")
    worker.accept(message)
    worker.close()
    other = connection.session(b"other")
    carry_out(other, x.DtxCommit(xid=XID, one_phase=True))  # It never selected dtx.
    inbox(other, "a")
    assert drained(other, "a") == [b"in the branch"]


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_persistent_messages_outlive_the_broker(
    broker: Broker, connection: Connection, session: Session, crash: bool
) -> None:
    session.declare("q", durable=True)
    session.declare("gone")
    for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT):
        session.publish(mode.name.encode(), key="q", delivery_mode=mode)
    connection.drop()
    broker.restart(crash=crash)

    with connect(broker) as again:
        other = again.session(b"session")
        inbox(other, "q")
        assert drained(other, "q") == [b"PERSISTENT"]
        with fails(404):
            other.declare("gone", passive=True)
