"""Exchanges: the standard types, those that are there from the beginning, headers, errors, auto-deletion."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from compat_tests.clients.amqp_0_10.checks import bodies, drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import MessageProperties

_numbers = count()


def arrives(session: Session, destination: str, **address: Any) -> bool:
    """Whether a message that is sent there comes to this destination, alone and unchanged."""
    body = f"message {next(_numbers)}".encode()
    session.publish(body, **address)
    found = session.drain(destination)
    if not found:
        return False
    assert bodies(found) == [body]
    assert found[0].headers == (address.get("headers") or {})
    return True


# --- the standard types ------------------------------------------------------------------------------------
# Each returns what takes its bindings away again.


def works_directly(session: Session, exchange: str) -> Callable[[], None]:
    session.declare("q")
    session.bind("q", exchange, "k")
    inbox(session, "q")
    assert arrives(session, "q", exchange=exchange, key="k")
    assert not arrives(session, "q", exchange=exchange, key="kk")
    return lambda: session.unbind("q", exchange, "k")


def fans_out(session: Session, exchange: str) -> Callable[[], None]:
    for queue in ("p", "q"):
        session.declare(queue)
        session.bind(queue, exchange)
        inbox(session, queue)
    session.publish(b"for all", exchange=exchange)
    assert [drained(session, queue) for queue in ("p", "q")] == [[b"for all"], [b"for all"]]

    def unbind() -> None:
        session.unbind("p", exchange, "")  # No key and an empty one are the same.
        session.unbind("q", exchange, "")

    return unbind


def matches_topics(session: Session, exchange: str) -> Callable[[], None]:
    session.declare("q")
    session.bind("q", exchange, "a.#.b.*")
    inbox(session, "q")
    for key in ("a.b.x", "a.x.b.x", "a.x.x.b.x"):
        assert arrives(session, "q", exchange=exchange, key=key), key
    for key in ("a.b", "a.b.x.y", "x.a.b.x"):
        assert not arrives(session, "q", exchange=exchange, key=key), key
    return lambda: session.unbind("q", exchange, "a.#.b.*")


def matches_headers(session: Session, exchange: str) -> Callable[[], None]:
    session.declare("q")
    session.bind("q", exchange, None, **{"x-match": "all", "name": "fred", "age": 3})
    inbox(session, "q")
    assert arrives(session, "q", exchange=exchange, headers={"name": "fred", "age": 3})
    session.call(x.MessageTransfer(destination=exchange))  # It has neither header nor body.
    assert drained(session, "q") == []
    return lambda: session.unbind("q", exchange, "")


WORKS = {
    "direct": works_directly,
    "fanout": fans_out,
    "topic": matches_topics,
    "headers": matches_headers,
}
PRESENT = {"direct": "amq.direct", "fanout": "amq.fanout", "topic": "amq.topic", "headers": "amq.match"}


def of_types(suite: str, *names: str) -> pytest.MarkDecorator:
    """Run for each standard type, with the test of the suite that each is."""
    cases = [
        pytest.param(type_name, marks=pytest.mark.suite(f"exchange.{suite}.{name}"), id=type_name)
        for type_name, name in zip(WORKS, names, strict=True)
    ]
    return pytest.mark.parametrize("type_name", cases)


@of_types("RecommendedTypesRuleTests", "testDirect", "testFanout", "testTopic", "testHeaders")
def test_an_exchange_of_each_type_can_be_declared_and_works(session: Session, type_name: str) -> None:
    session.declare_exchange("e", type_name)
    WORKS[type_name](session, "e")


@of_types("RequiredInstancesRuleTests", "testAmqDirect", "testAmqFanOut", "testAmqTopic", "testAmqMatch")
def test_an_exchange_of_each_type_is_there_and_works(session: Session, type_name: str) -> None:
    WORKS[type_name](session, PRESENT[type_name])


@of_types(
    "AutodeleteTests",
    "testAutodeleteDirect",
    "testAutodeleteFanout",
    "testAutodeleteTopic",
    "testAutodeleteHeaders",
)
def test_an_auto_deleted_exchange_goes_with_its_last_binding(
    connection: Connection, session: Session, type_name: str
) -> None:
    session.declare_exchange("e", type_name, auto_delete=True)
    unbind = WORKS[type_name](session, "e")
    session.declare_exchange("e", type_name, passive=True)
    unbind()
    with fails(404):
        connection.session(b"other").declare_exchange("e", passive=True)


@pytest.mark.suite("exchange.DefaultExchangeRuleTests.testDefaultExchange")
def test_the_default_exchange_routes_by_the_names_of_queues(session: Session) -> None:
    session.declare("d")
    inbox(session, "d")
    assert arrives(session, "d", key="d")
    assert arrives(session, "d", exchange="", key="d")
    assert not arrives(session, "d", key="D")


# --- headers ------------------------------------------------------------------------------------------------


@pytest.fixture
def matched(session: Session) -> Callable[[dict[str, Any]], bool]:
    """Whether a message with these headers comes to queue `q` through amq.match, once and unchanged."""
    session.declare("q")
    inbox(session, "q")

    def match(headers: dict[str, Any]) -> bool:
        return arrives(session, "q", exchange="amq.match", headers=headers)

    return match


MATCHES = [
    pytest.param(
        {"x-match": "all", "name": "fred", "age": 3},
        [{"name": "fred", "age": 3}, {"name": "fred", "age": 3, "extra": "ignored"}],
        [{"name": "barney"}, {"name": 10}, {"name": "fred", "age": 2}, {"name": "fred"}],
        marks=pytest.mark.suite("exchange.HeadersExchangeTests.testMatchAll"),
        id="all",
    ),
    pytest.param(
        {"x-match": "any", "name": "fred", "age": 3},
        [{"name": "fred"}, {"name": "fred", "other": 10}, {"other": 10, "age": 3}],
        [{"irrelevant": 0}, {"name": "barney", "age": 4}],
        marks=pytest.mark.suite("exchange.HeadersExchangeTests.testMatchAny"),
        id="any",
    ),
    pytest.param(
        {"x-match": "any", "name": None},
        [{"name": "fred"}, {"name": "bob"}, {"name": None}, {"name": 5}],
        [{"irrelevant": 0}, {"Name": "fred"}],
        marks=pytest.mark.suite("exchange.HeadersExchangeTests.testMatchVoidValue"),
        id="void",
    ),
]


@pytest.mark.parametrize(("arguments", "matching", "others"), MATCHES)
def test_headers_exchange_routes_only_matching_headers(
    session: Session,
    matched: Callable[[dict[str, Any]], bool],
    arguments: dict[str, Any],
    matching: list[dict[str, Any]],
    others: list[dict[str, Any]],
) -> None:
    session.bind("q", "amq.match", None, **arguments)
    for headers in matching:
        assert matched(headers), headers
    for headers in ({}, *others):
        assert not matched(headers), headers
    session.publish(b"no headers", exchange="amq.match", properties=MessageProperties(content_type="text"))
    session.publish(b"no properties", exchange="amq.match")
    assert drained(session, "q") == []


@pytest.mark.suite("exchange.HeadersExchangeTests.testMultipleBindings")
def test_two_bindings_that_match_deliver_once(
    session: Session, matched: Callable[[dict[str, Any]], bool]
) -> None:
    session.bind("q", "amq.match", "one", **{"x-match": "any", "name": "fred"})
    session.bind("q", "amq.match", "two", **{"x-match": "all", "age": 3})
    assert matched({"name": "fred", "age": 3})
    assert matched({"name": "fred"}) and matched({"age": 3})
    session.unbind("q", "amq.match", "one")
    assert not matched({"name": "fred"}) and matched({"age": 3})


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_name", ["direct", "topic", "fanout"])
@pytest.mark.suite("exchange.DeclareMethodExchangeFieldReservedRuleTests.test_amq")
def test_names_that_begin_with_amq_are_reserved(connection: Connection, type_name: str) -> None:
    for reserved in ("amq.", "amq.abc123"):
        with fails(530):
            connection.session(b"refused").declare_exchange(reserved, type_name)
    session = connection.session(b"session")
    for legal in ("amq", "mq.", ".amq.", "abc.amq.", "abc.amq.def"):
        session.declare_exchange(legal, type_name)
        session.delete_exchange(legal)


@pytest.mark.suite("exchange.DeclareMethodPassiveFieldNotFoundRuleTests.test")
def test_passive_declare_of_a_missing_exchange_fails_with_404(session: Session) -> None:
    with fails(404):
        session.call(x.ExchangeDeclare(exchange="humpty", passive=True))


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testTypeNotKnown")
def test_the_type_must_be_known(connection: Connection, session: Session) -> None:
    with fails(404):
        session.declare_exchange("e", "no such type")
    with fails(404):
        connection.session(b"other").declare_exchange("e", passive=True)


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testDifferentDeclaredType")
def test_redeclare_of_an_exchange_with_another_type_fails_with_530(session: Session) -> None:
    session.declare_exchange("e", "direct")
    session.declare_exchange("e", "direct")
    with fails(530):
        session.declare_exchange("e", "topic")


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testReservedExchangeRedeclaredSameType")
def test_a_standard_exchange_can_be_declared_passively(session: Session) -> None:
    session.declare_exchange("amq.direct", "direct", passive=True)
    session.declare_exchange("amq.direct", "", passive=True)


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testReservedExchangeRedeclaredDifferentType")
def test_a_standard_exchange_keeps_its_type(connection: Connection, session: Session) -> None:
    with fails(530):
        session.declare_exchange("amq.direct", "topic")
    works_directly(connection.session(b"other"), "amq.direct")


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testDefaultAccessBind")
def test_bind_to_the_default_exchange_fails_with_542(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    with fails(542):
        session.bind("q", "", "another")


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testDefaultAccessUnbind")
def test_unbind_from_the_default_exchange_fails_with_542(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    with fails(542):
        session.unbind("q", "", "q")


@pytest.mark.suite("exchange.MiscellaneousErrorsTests.testDefaultAccessDelete")
def test_the_default_exchange_cannot_be_deleted(session: Session) -> None:
    with fails(542):
        session.delete_exchange("")
