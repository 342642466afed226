"""Alternate exchanges of queues: where messages go that are rejected, or left behind."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import got
from compat_tests.scripted.amqp_0_10 import Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule


@rule("0-10/queue.declare/alternate-exchange-pre-existing-exchange#same")
@pytest.mark.parametrize("again", [None, "", "amq.fanout"])
def test_redeclaration_of_queue_with_same_or_empty_alternate_exchange_keeps_alternate_exchange(
    session: Session, again: str | None
) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    session.declare("q", alternate_exchange=again)
    assert session.query().alternate_exchange == "amq.fanout"


def alternate(session: Session, **declaration: Any) -> None:
    """Queue q, whose alternate exchange leads to queue `kept`."""
    session.declare_exchange("alternate", "fanout")
    session.declare("kept")
    session.bind("kept", "alternate")
    session.declare("q", alternate_exchange="alternate", **declaration)


@rule("0-10/queue.declare/alternate-exchange-routing#rejected")
def test_rejected_messages_go_to_the_alternate_exchange(session: Session) -> None:
    alternate(session)
    session.publish(b"no")
    session.subscribe()
    session.reject(session.transfer().id)
    assert (got(session), got(session, "kept")) == (0, 1)


@rule("0-10/queue.declare/alternate-exchange-routing#orphaned", "0-10/queue.delete/orphans#alternate")
def test_messages_of_deleted_queue_go_to_alternate_exchange_in_order(session: Session) -> None:
    alternate(session)
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    session.call(x.QueueDelete(queue="q"))
    session.subscribe("kept")
    assert session.bodies() == [b"1", b"2", b"3"]


@rule("0-10/queue.declare/alternate-exchange-routing#leave")
@pytest.mark.parametrize("bound", [False, True])
def test_message_of_deleted_queue_unroutable_in_alternate_exchange_is_dropped(
    session: Session, bound: bool
) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    if bound:
        session.bind("q", "amq.fanout")  # It is on its way out itself.
    session.publish(b"no")
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    assert got(session) == 0
    session.expect_nothing()


@rule("0-10/queue.delete/orphans#discarded")
def test_messages_of_deleted_queue_without_alternate_exchange_are_discarded(session: Session) -> None:
    session.declare("q")
    session.declare("other")
    session.bind("other", "amq.fanout")
    session.publish()
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    assert (got(session), got(session, "other")) == (0, 0)
