"""exchange.bound: what is asked about bindings, and which flags say no."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import exists
from compat_tests.scripted.amqp_0_10 import Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule

FLAGS = ("exchange_not_found", "queue_not_found", "queue_not_matched", "key_not_matched", "args_not_matched")


def bound(session: Session, exchange: str | None = None, **asked: Any) -> set[str]:
    """The flags that are set in the answer."""
    result = session.call(x.ExchangeBound(exchange=exchange, **asked))
    assert isinstance(result, structs.ExchangeBoundResult)
    return {flag for flag in FLAGS if getattr(result, flag)}


@pytest.fixture
def asking(session: Session) -> Session:
    """Queue `used` is bound to amq.direct by key `k`, queue `other` by `l`, queue `unused` not at all."""
    for queue in ("used", "other", "unused"):
        session.declare(queue)
    session.bind("used", "amq.direct", "k")
    session.bind("other", "amq.direct", "l")
    return session


@rule("0-10/exchange.bound/exchange-not-found", "0-10/exchange.bound/queue-not-found")
@rule("0-10/exchange.bound/no-exception")
@pytest.mark.parametrize(
    ("exchange", "queue", "flags"),
    [
        ("missing", None, {"exchange_not_found"}),
        ("missing", "used", {"exchange_not_found"}),
        ("missing", "missing", {"exchange_not_found", "queue_not_found"}),
        ("amq.direct", "missing", {"queue_not_found"}),
        ("amq.direct", "used", set()),
        (None, "missing", {"queue_not_found"}),
    ],
)
def test_exchange_bound_returns_flags_for_missing_exchange_or_queue(
    asking: Session, exchange: str | None, queue: str | None, flags: set[str]
) -> None:
    assert bound(asking, exchange, queue=queue) == flags
    if flags:  # Nothing else is looked at.
        assert bound(asking, exchange, queue=queue, binding_key="x", arguments={"a": 1}) == flags
    assert exists(asking, "amq.direct")


@rule("0-10/exchange.bound/queue-not-matched")
def test_exchange_bound_sets_queue_not_matched_until_queue_is_bound(asking: Session) -> None:
    assert bound(asking, "amq.direct", queue="unused") == {"queue_not_matched"}
    asking.bind("unused", "amq.direct", "m")
    assert bound(asking, "amq.direct", queue="unused") == set()


@rule("0-10/exchange.bound/key-not-matched", "0-10/exchange.bound/queue-not-matched")
@rule("0-10/exchange.bound/wildcards")
@pytest.mark.parametrize(
    ("queue", "key", "flags"),
    [
        (None, "k", set()),
        (None, "x", {"key_not_matched"}),
        ("", "k", set()),
        ("used", None, set()),
        ("used", "", set()),
        ("used", "k", set()),
        ("used", "x", {"key_not_matched"}),
        ("unused", "k", {"queue_not_matched"}),
        ("unused", "x", {"queue_not_matched", "key_not_matched"}),
        ("used", "l", {"key_not_matched"}),
        (None, None, set()),
    ],
)
@pytest.mark.parametrize("arguments", [None, {}])
def test_exchange_bound_returns_flags_for_queue_and_binding_key(
    asking: Session, queue: str | None, key: str | None, flags: set[str], arguments: Any
) -> None:
    assert bound(asking, "amq.direct", queue=queue, binding_key=key, arguments=arguments) == flags


A, B = {"x-match": "all", "a": 1}, {"x-match": "all", "b": 2}


@rule("0-10/exchange.bound/args-not-matched")
@pytest.mark.parametrize(
    ("queue", "key", "arguments", "flags"),
    [
        (None, None, A, set()),
        (None, None, {"x-match": "any", "a": 1}, {"args_not_matched"}),
        (None, None, {"a": 1}, {"args_not_matched"}),
        ("used", None, A, set()),
        ("used", None, {}, set()),
        ("used", "k", A, set()),
        ("used", None, B, {"args_not_matched"}),
        ("unused", None, A, {"queue_not_matched"}),
        ("unused", "x", {"c": 3}, {"queue_not_matched", "key_not_matched", "args_not_matched"}),
        ("unused", None, {"c": 3}, {"queue_not_matched", "args_not_matched"}),
        (None, "x", A, {"key_not_matched"}),
        (None, "l", A, {"key_not_matched", "args_not_matched"}),
        ("used", "l", A, {"key_not_matched"}),
        ("used", "k", B, {"args_not_matched"}),
        ("used", "l", B, {"key_not_matched", "args_not_matched"}),
    ],
)
def test_exchange_bound_returns_flags_for_arguments_queue_and_binding_key(
    session: Session, queue: str | None, key: str | None, arguments: dict[str, Any], flags: set[str]
) -> None:
    for name in ("used", "other", "unused"):
        session.declare(name)
    session.bind("used", "amq.match", "k", arguments=A)
    session.bind("other", "amq.match", "l", arguments=B)
    assert bound(session, "amq.match", queue=queue, binding_key=key, arguments=arguments) == flags


def test_exchange_bound_matches_key_and_arguments_only_in_same_binding(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.match", "k", arguments=A)
    session.bind("q", "amq.match", "l", arguments=B)
    assert bound(session, "amq.match", queue="q", binding_key="k", arguments=A) == set()
    both = {"key_not_matched", "args_not_matched"}
    assert bound(session, "amq.match", queue="q", binding_key="k", arguments=B) == both


@rule("0-10/exchange.bound/default")
@pytest.mark.parametrize("exchange", [None, ""])
@pytest.mark.parametrize(
    ("queue", "key", "flags"),
    [
        ("q", None, set()),
        ("q", "q", set()),
        (None, "q", set()),
        ("q", "other", {"key_not_matched"}),
        (None, "nothing", {"key_not_matched"}),
        ("missing", None, {"queue_not_found"}),
    ],
)
def test_queues_are_bound_to_the_default_exchange_by_their_names(
    session: Session, exchange: str | None, queue: str | None, key: str | None, flags: set[str]
) -> None:
    session.declare("q")
    session.declare("other")
    assert bound(session, exchange, queue=queue, binding_key=key) == flags
