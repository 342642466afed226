"""Alternate exchanges: where messages go that are unroutable, rejected, or left behind by a queue."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import got
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule


def chain(session: Session) -> None:
    """Three exchanges, each the alternate of the one before; what gets to the end is in q."""
    session.declare_exchange("third", "fanout").declare("q").bind("q", "third")
    session.declare_exchange("second", "direct", alternate_exchange="third")
    session.declare_exchange("first", "direct", alternate_exchange="second")


@rule("0-10/exchange.declare/alternate-exchange-empty-name")
@pytest.mark.parametrize("alternate", [None, ""])
def test_unroutable_message_is_dropped_without_alternate_exchange(
    session: Session, alternate: str | None
) -> None:
    session.declare_exchange("e", alternate_exchange=alternate).declare("q")
    session.bind("q", "e", "bound").publish(exchange="e", key="unbound")
    assert got(session) == 0
    session.publish(exchange="e", key="bound")
    assert got(session) == 1
    session.expect_nothing()


@rule("0-10/exchange.declare/alternate-exchange-pre-existing-exchange#same")
@pytest.mark.parametrize("again", [None, "", "amq.fanout"])
def test_redeclaration_with_same_or_empty_alternate_exchange_keeps_alternate_exchange(
    session: Session, again: str | None
) -> None:
    session.declare_exchange("e", alternate_exchange="amq.fanout")
    session.declare_exchange("e", alternate_exchange=again)
    session.declare("q").bind("q", "amq.fanout").publish(exchange="e")
    assert got(session) == 1


@rule("0-10/exchange.declare/alternate-exchange-double-failure")
def test_message_unroutable_in_alternate_exchange_is_dropped(session: Session) -> None:
    chain(session)
    session.publish(exchange="first")
    assert got(session) == 0
    session.publish(exchange="second")
    assert got(session) == 1


@rule("0-10/exchange.declare/alternate-exchange-double-failure")
@pytest.mark.parametrize("first", ["one", "two", "self"])
def test_alternate_exchanges_in_cycle_do_not_loop_messages(session: Session, first: str) -> None:
    """The field alternate-exchange names an exchange that is there; RabbitMQ's argument any."""
    session.declare("q")
    for name, alternate in (("one", "two"), ("two", "one"), ("self", "self")):
        session.declare_exchange(name, arguments={"alternate-exchange": alternate})
        session.bind("q", name, f"to-{name}")
    alternate_of = {"one": "two", "two": "one", "self": "self"}
    session.publish(exchange=first, key=f"to-{alternate_of[first]}")
    assert got(session) == 1, "the alternate is asked"
    session.publish(exchange=first, key="unbound")
    assert got(session) == 1, "and no further exchange"
    session.publish(exchange=first, key=f"to-{first}")
    assert got(session) == 2
    session.expect_nothing()


@rule("0-10/exchange.declare/alternate-exchange-conditions#taken")
@rule("0-10/exchange.declare/alternate-exchange-conditions#accept-mode")
@rule("0-10/exchange.declare/alternate-exchange-conditions#discard")
@rule("0-10/exchange.declare/alternate-exchange-conditions#matched")
@pytest.mark.parametrize("accept_mode", [0, 1])
@pytest.mark.parametrize("discard", [False, True])
@pytest.mark.parametrize("routable", [False, True])
def test_only_unroutable_message_without_accept_and_discard_goes_to_alternate_exchange(
    spec: Server, accept_mode: int, discard: bool, routable: bool
) -> None:
    session = spec.session().declare_exchange("e", alternate_exchange="amq.fanout").declare("q")
    session.bind("q", "amq.fanout").declare("bound").bind("bound", "e", "bound")
    key = "bound" if routable else "unbound"
    session.publish(exchange="e", key=key, accept_mode=accept_mode, discard_unroutable=discard)
    took = accept_mode == 1 and not discard and not routable
    assert (got(session), got(session, "bound")) == (int(took), int(routable))


@rule("0-10/queue.declare/alternate-exchange-pre-existing-exchange#same")
@pytest.mark.parametrize("again", [None, "", "amq.fanout"])
def test_redeclaration_of_queue_with_same_or_empty_alternate_exchange_keeps_alternate_exchange(
    session: Session, again: str | None
) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    assert session.declare("q", alternate_exchange=again).query().alternate_exchange == "amq.fanout"


def alternate(session: Session, **declaration: Any) -> None:
    """Queue q, whose alternate exchange leads to queue `kept`."""
    session.declare_exchange("alternate", "fanout").declare("kept").bind("kept", "alternate")
    session.declare("q", alternate_exchange="alternate", **declaration)


@rule("0-10/queue.declare/alternate-exchange-routing#rejected")
def test_rejected_messages_go_to_the_alternate_exchange(session: Session) -> None:
    alternate(session)
    session.publish(b"no").subscribe().reject(session.transfer().id)
    assert (got(session), got(session, "kept")) == (0, 1)


@rule("0-10/queue.declare/alternate-exchange-routing#orphaned", "0-10/queue.delete/orphans#alternate")
def test_messages_of_deleted_queue_go_to_alternate_exchange_in_order(session: Session) -> None:
    alternate(session)
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    assert session.perform(x.QueueDelete(queue="q")).subscribe("kept").bodies() == [b"1", b"2", b"3"]


@rule("0-10/queue.declare/alternate-exchange-routing#leave")
@pytest.mark.parametrize("bound", [False, True])
def test_message_of_deleted_queue_unroutable_in_alternate_exchange_is_dropped(
    session: Session, bound: bool
) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    if bound:
        session.bind("q", "amq.fanout")  # It is on its way out itself.
    session.publish(b"no").perform(x.QueueDelete(queue="q")).declare("q")
    assert got(session) == 0
    session.expect_nothing()


@rule("0-10/queue.delete/orphans#discarded")
def test_messages_of_deleted_queue_without_alternate_exchange_are_discarded(session: Session) -> None:
    session.declare("q").declare("other").bind("other", "amq.fanout")
    session.publish().perform(x.QueueDelete(queue="q")).declare("q")
    assert (got(session), got(session, "other")) == (0, 0)
