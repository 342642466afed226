"""Which messages which exchange passes on, by the algorithms that all versions of AMQP share."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import got
from compat_tests.scripted.amqp_0_10 import Session
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule


@rule("0-10/exchange/default-exchange#publishing", "0-10/exchange/default-exchange#bindings")
@rule("0-10/queue.declare/default-binding")
@pytest.mark.parametrize("destination", ["", None])
def test_default_exchange_routes_to_queue_named_by_key(session: Session, destination: str | None) -> None:
    session.declare("q").declare("other").publish(b"for q", exchange=destination, key="q")
    assert session.subscribe().bodies() == [b"for q"]
    assert got(session, "other") == 0


@rule("0-10/queue/needs-binding")
@pytest.mark.parametrize("exchange", ["amq.direct", "amq.fanout", "amq.topic", "amq.match"])
def test_unbound_queue_receives_no_message(session: Session, exchange: str) -> None:
    session.declare("q").publish(exchange=exchange, key="q")
    assert got(session) == 0
    session.expect_nothing()


@rule("0-10/exchange/default-access#published")
def test_publish_to_empty_exchange_name_goes_to_default_exchange(session: Session) -> None:
    session.declare("q").publish(exchange="", key="q")
    assert got(session) == 1


@rule("0-10/exchange/routing-algorithms#direct")
@pytest.mark.parametrize(("key", "matches"), [("k", True), ("K", False), ("", False), ("k.l", False)])
def test_direct_exchange_routes_by_equal_key(session: Session, key: str, matches: bool) -> None:
    session.declare("q").bind("q", "amq.direct", "k").publish(exchange="amq.direct", key=key)
    assert got(session) == matches


@rule("0-10/exchange/routing-algorithms#fanout")
def test_fanout_exchange_routes_to_all_bound_queues_regardless_of_key(session: Session) -> None:
    session.declare("q").declare("other").bind("q", "amq.fanout", "k")
    session.bind("other", "amq.fanout").publish(exchange="amq.fanout", key="anything")
    session.send(x.MessageTransfer(destination="amq.fanout", accept_mode=1))
    assert (got(session), got(session, "other")) == (2, 2)


@rule("0-10/exchange/routing-algorithms#topic")
@rows(
    "pattern, key, matches",
    ("a.b", "a.b", True),
    ("a.*", "a.b", True),
    ("a.*", "a.b.c", False),
    ("a.*", "a", False),
    ("a.#", "a", True),
    ("a.#", "a.b.c", True),
    ("#", "", True),
    ("#.c", "a.b.c", True),
    ("*.b.#", "a.b", True),
    ("*.b.#", "b.a", False),
)
def test_topic_exchange_routes_by_pattern(session: Session, pattern: str, key: str, matches: bool) -> None:
    session.declare("q").bind("q", "amq.topic", pattern).publish(exchange="amq.topic", key=key)
    assert got(session) == matches


@rule("0-10/exchange/routing-algorithms#headers")
@rows(
    "wanted, sent, matches",
    ({"x-match": "all", "name": "fred", "age": 3}, {"name": "fred", "age": 3}, True),
    ({"x-match": "all", "name": "fred", "age": 3}, {"name": "fred", "age": 3, "more": 1}, True),
    ({"x-match": "all", "name": "fred", "age": 3}, {"name": "fred"}, False),
    ({"x-match": "all", "name": "fred", "age": 3}, {}, False),
    ({"x-match": "any", "name": "fred", "age": 3}, {"age": 3}, True),
    ({"x-match": "any", "name": "fred", "age": 3}, {"age": 4}, False),
    ({"x-match": "any", "name": "fred", "age": 3}, {}, False),
    ({"x-match": "any", "name": None}, {"name": "anybody"}, True),
    ({"x-match": "all", "name": None}, {"name": None}, True),
    ({"x-match": "any", "name": None}, {"other": "anybody"}, False),
    ({"x-match": "all", "big": 2**63}, {"big": 2**63}, True),
    ({"x-match": "all", "a": 1}, {"a": "1"}, False),
)
@pytest.mark.parametrize("exchange", ["amq.match", "amq.headers"])
def test_headers_exchange_routes_by_x_match_and_values(
    session: Session, exchange: str, wanted: dict[str, Any], sent: dict[str, Any], matches: bool
) -> None:
    session.declare("q").bind("q", exchange, arguments=wanted)
    session.publish(exchange=exchange, message=structs.MessageProperties(application_headers=sent))
    assert got(session) == matches


@rule("0-10/exchange/routing-algorithms#headers")
def test_headers_exchange_drops_message_without_headers(session: Session) -> None:
    session.declare("q").bind("q", "amq.match", arguments={"x-match": "all", "a": 1})
    session.publish(exchange="amq.match", message=structs.MessageProperties())
    session.publish(exchange="amq.match").send(x.MessageTransfer(destination="amq.match", accept_mode=1))
    session.send(x.MessageTransfer(destination="amq.match", accept_mode=1), body=b"no header")
    assert got(session) == 0
    session.expect_nothing()
