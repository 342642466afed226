"""What can be asked about queues, exchanges and bindings."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.clients.amqp_0_10.client import Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    ExchangeBoundResult,
    ExchangeQueryResult,
    QueueQueryResult,
)

NOT_FOUND = "exchange_not_found"
NO_QUEUE = "queue_not_found"


@pytest.mark.suite("query.QueryTests.test_queue_query")
def test_a_queue_is_described(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True, arguments={"qpid.max_count": 5})
    session.publish(key="q")
    session.subscribe("q", "d", credit=None)
    found = session.query("q")
    assert found.queue == "q"
    assert (found.exclusive, found.auto_delete, found.durable) == (True, True, False)
    assert (found.message_count, found.subscriber_count) == (1, 1)
    assert found.arguments is not None and found.arguments["qpid.max_count"] == 5
    assert found.alternate_exchange is None


@pytest.mark.suite("query.QueryTests.test_queue_query_unknown")
def test_query_of_an_unknown_queue_returns_an_empty_result(session: Session) -> None:
    found = session.query("no such queue")
    assert not found.queue
    assert found == QueueQueryResult(
        message_count=found.message_count, subscriber_count=found.subscriber_count
    )


@pytest.mark.suite("query.QueryTests.test_exchange_query")
def test_an_exchange_is_described(session: Session) -> None:
    def query(name: str) -> ExchangeQueryResult:
        found = session.call(x.ExchangeQuery(name=name))
        assert isinstance(found, ExchangeQueryResult)
        return found

    standard = {"amq.direct": "direct", "amq.topic": "topic", "amq.fanout": "fanout", "amq.match": "headers"}
    for name, type_name in {**standard, "": "direct"}.items():
        assert (query(name).type, query(name).not_found) == (type_name, False)
    assert query("e").not_found
    for durable in (False, True):
        session.declare_exchange("e", "direct", durable=durable)
        found = query("e")
        assert (found.type, found.durable, found.not_found) == ("direct", durable, False)
        session.delete_exchange("e")
    assert query("e").not_found


def flags(result: ExchangeBoundResult) -> set[str]:
    """What it says is not so."""
    return {name for name, _ in ExchangeBoundResult.FIELDS if getattr(result, name)}


@pytest.fixture
def queues(session: Session) -> None:
    for name in ("used", "unused"):
        session.declare(name, exclusive=True, auto_delete=True)


def check(session: Session, exchange: str, used: dict[str, Any], unused: dict[str, Any], what: str) -> None:
    """Ask about all combinations of a queue and a criterion, each used, unused, or not asked for."""
    for queue, bound in ((None, True), ("used", True), ("unused", False)):
        for criterion, matched in (({}, True), (used, True), (unused, False)):
            if queue is None and not criterion:
                continue
            expected = set() if bound else {"queue_not_matched"}
            expected |= set() if matched else {what}
            assert flags(session.bound(exchange, queue=queue, **criterion)) == expected, (queue, criterion)


def check_missing(session: Session, exchange: str) -> None:
    """Ask about what is not there."""
    assert flags(session.bound("nowhere")) == {NOT_FOUND}
    assert flags(session.bound(exchange, queue="nobody")) == {NO_QUEUE}
    assert flags(session.bound("nowhere", queue="used")) == {NOT_FOUND}
    assert flags(session.bound("nowhere", queue="nobody")) == {NOT_FOUND, NO_QUEUE}


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param("amq.direct", marks=pytest.mark.suite("query.QueryTests.test_exchange_bound_direct")),
        pytest.param("amq.topic", marks=pytest.mark.suite("query.QueryTests.test_exchange_bound_topic")),
    ],
)
def test_bindings_can_be_asked_for_by_queue_and_key(session: Session, queues: None, exchange: str) -> None:
    session.bind("used", exchange, "key")
    check(session, exchange, {"binding_key": "key"}, {"binding_key": "other"}, "key_not_matched")
    check_missing(session, exchange)


@pytest.mark.suite("query.QueryTests.test_exchange_bound_fanout")
def test_bindings_of_a_fanout_exchange_can_be_asked_for_by_queue(session: Session, queues: None) -> None:
    session.bind("used", "amq.fanout")
    assert flags(session.bound("amq.fanout", queue="used")) == set()
    assert flags(session.bound("amq.fanout", queue="unused")) == {"queue_not_matched"}
    check_missing(session, "amq.fanout")


@pytest.mark.suite("query.QueryTests.test_exchange_bound_header")
def test_bindings_can_be_asked_for_by_queue_and_arguments(session: Session, queues: None) -> None:
    session.bind("used", "amq.match", None, **{"x-match": "all", "a": "A"})
    check(
        session,
        "amq.match",
        {"arguments": {"x-match": "all", "a": "A"}},
        {"arguments": {"x-match": "all", "b": "B"}},
        "args_not_matched",
    )
    check_missing(session, "amq.match")
