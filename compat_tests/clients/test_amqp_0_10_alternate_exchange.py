"""Alternate exchanges: where messages go that are unroutable, rejected, or in a queue that is deleted."""

from __future__ import annotations

import pytest

from compat_tests.clients.amqp_0_10.checks import drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session

THREE = [b"one", b"two", b"three"]


@pytest.fixture
def dead(session: Session) -> str:
    """The destination of messages that have come to exchange `dead`."""
    session.declare_exchange("dead", "fanout")
    session.declare("dead", exclusive=True, auto_delete=True)
    session.bind("dead", "dead")
    return inbox(session, "dead")


def publish_three(session: Session, queue: str) -> None:
    for body in THREE:
        session.publish(body, key=queue)


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_unroutable")
def test_unroutable_message_goes_to_the_alternate_exchange(session: Session, dead: str) -> None:
    session.declare_exchange("orders", "direct", alternate_exchange="dead")
    session.declare("paid", exclusive=True, auto_delete=True)
    session.bind("paid", "orders", "paid")
    paid = inbox(session, "paid")
    session.publish(b"for paid", exchange="orders", key="paid")
    session.publish(b"for nobody", exchange="orders", key="lost")
    session.delete_exchange("orders")
    session.delete_exchange("dead")
    assert drained(session, paid) == [b"for paid"]
    assert drained(session, dead) == [b"for nobody"]


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_queue_delete")
def test_messages_of_a_deleted_queue_go_there_in_order(session: Session, dead: str) -> None:
    session.declare("q", alternate_exchange="dead")
    publish_three(session, "q")
    assert drained(session, dead) == []
    session.delete("q")
    assert drained(session, dead) == THREE
    session.delete_exchange("dead")


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_delete_while_used_by_queue")
def test_an_exchange_that_a_queue_needs_cannot_be_deleted(connection: Connection, session: Session) -> None:
    session.declare_exchange("dead", "fanout")
    session.declare("q", alternate_exchange="dead")
    with fails(530):
        connection.session(b"other").delete_exchange("dead")
    session.delete("q")
    session.delete_exchange("dead")


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_delete_while_used_by_exchange")
def test_an_exchange_that_an_exchange_needs_cannot_be_deleted(
    connection: Connection, session: Session
) -> None:
    session.declare_exchange("dead", "fanout")
    session.declare_exchange("orders", "fanout", alternate_exchange="dead")
    with fails(530):
        connection.session(b"other").delete_exchange("dead")
    session.delete_exchange("orders")
    session.delete_exchange("dead")


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(
            "one",
            marks=pytest.mark.suite(
                "alternate_exchange.AlternateExchangeTests.test_modify_existing_exchange_alternate"
            ),
            id="another",
        ),
        pytest.param(
            None,
            marks=pytest.mark.suite(
                "alternate_exchange.AlternateExchangeTests.test_add_alternate_to_exchange"
            ),
            id="none before",
        ),
    ],
)
def test_an_exchange_cannot_be_given_an_alternate_that_it_does_not_have(
    connection: Connection, session: Session, before: str | None
) -> None:
    session.declare_exchange("one")
    session.declare_exchange("two")
    session.declare_exchange("orders", "fanout", alternate_exchange=before)
    with fails(530):
        session.declare_exchange("orders", "fanout", alternate_exchange="two")
    other = connection.session(b"other")
    other.delete_exchange("two")  # Nothing uses it.
    other.delete_exchange("orders")
    other.delete_exchange("one")


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_del_alternate_to_exchange")
def test_redeclare_without_alternate_exchange_keeps_the_alternate_exchange(
    session: Session, dead: str
) -> None:
    session.declare_exchange("orders", "fanout", alternate_exchange="dead")
    session.declare_exchange("orders", "fanout")
    session.publish(b"for nobody", exchange="orders")
    assert drained(session, dead) == [b"for nobody"]
    session.delete_exchange("orders")
    session.delete_exchange("dead")


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "shared"])
@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_queue_autodelete")
def test_auto_deleted_queue_sends_ready_and_acquired_messages_to_its_alternate_exchange(
    connection: Connection, session: Session, dead: str, exclusive: bool
) -> None:
    other = connection.session(b"other")
    other.declare("q", alternate_exchange="dead", exclusive=exclusive, auto_delete=True)
    publish_three(other, "q")
    other.subscribe("q", "q", credit=1)
    assert other.get("q").body == b"one"
    assert drained(session, dead) == []
    other.close()
    assert drained(session, dead) == THREE


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_queue_delete_loop")
def test_a_queue_bound_to_its_own_alternate_exchange_can_be_deleted(session: Session, dead: str) -> None:
    session.declare("q", alternate_exchange="dead")
    session.bind("q", "dead")
    publish_three(session, "q")
    session.delete("q")
    session.delete_exchange("dead")
    assert drained(session, dead) == THREE


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_queue_delete_no_match")
def test_where_the_alternate_exchange_knows_no_queue_its_own_alternate_is_next(
    session: Session, dead: str
) -> None:
    session.declare_exchange("between", "direct", alternate_exchange="dead")
    session.declare("q", alternate_exchange="between")
    session.bind("q", "dead")
    publish_three(session, "q")
    session.delete("q")
    session.delete_exchange("between")
    session.delete_exchange("dead")
    assert drained(session, dead) == THREE


@pytest.mark.suite("alternate_exchange.AlternateExchangeTests.test_reject_no_match")
def test_rejected_messages_go_through_two_alternate_exchanges(session: Session, dead: str) -> None:
    session.declare_exchange("between", "direct", alternate_exchange="dead")
    session.declare("q", alternate_exchange="between", auto_delete=True)
    publish_three(session, "q")
    inbox(session, "q")
    for body in THREE:
        message = session.get("q")
        assert message.body == body
        session.reject(message)
    session.cancel("q")
    assert drained(session, dead) == THREE
    session.delete_exchange("between")
    session.delete_exchange("dead")
