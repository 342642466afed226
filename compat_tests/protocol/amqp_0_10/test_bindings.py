"""exchange.bind, exchange.unbind and exchange.bound."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import exists, got, refused
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule


def unbind(session: Session, exchange: str, key: str | None = None, queue: str = "q") -> Session:
    return session.perform(x.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=key))


def headers(**sent: Any) -> structs.MessageProperties:
    return structs.MessageProperties(application_headers=sent)


# --- bind --------------------------------------------------------------------------------------------
@rule("0-10/exchange.bind/duplicates#ignored", "0-10/exchange.bind/duplicates#arguments")
def test_duplicate_binding_keeps_first_arguments_and_is_removed_by_single_unbind(session: Session) -> None:
    session.declare("q").bind("q", "amq.match", "k", arguments={"x-match": "all", "first": 1})
    session.bind("q", "amq.match", "k", arguments={"x-match": "all", "second": 2})
    session.publish(exchange="amq.match", message=headers(second=2))
    assert got(session) == 0
    session.publish(exchange="amq.match", message=headers(first=1))
    assert got(session) == 1
    assert len(session.server.vhost.exchanges["amq.match"].bindings) == 1
    unbind(session, "amq.match", "k").publish(exchange="amq.match", message=headers(first=1, second=2))
    assert got(session) == 1


@rule("0-10/exchange.bind/durable-exchange")
def test_binding_between_durable_exchange_and_queue_survives_restart(server: Server) -> None:
    session = server.session().declare_exchange("e", durable=True)
    session.declare("q", durable=True).bind("q", "e", "k")
    session = server.restart().session().publish(b"after", exchange="e", key="k")
    assert session.subscribe().bodies() == [b"after"]


@rule("0-10/exchange.bind/binding-count")
def test_queue_receives_messages_from_many_bound_exchanges(session: Session) -> None:
    session.declare("q")
    for number in range(20):
        session.declare_exchange(f"e{number}").bind("q", f"e{number}", "k")
    for number in range(20):
        session.publish(exchange=f"e{number}", key="k")
    assert got(session) == 20


@rule("0-10/exchange.bind/multiple-bindings")
def test_message_matching_several_bindings_of_queue_is_queued_once(session: Session) -> None:
    session.declare("q")
    for key in ("animals.#", "*.dogs.#", "animals.dogs.chihuahua"):
        session.bind("q", "amq.topic", key)
    session.publish(exchange="amq.topic", key="animals.dogs.chihuahua")
    assert got(session) == 1


MISSING = rule(
    "0-10/exchange.bind/exchange-exchange-existence", "0-10/exchange.unbind/exchange-non-existent-exchange"
)
NAMELESS = rule(
    "0-10/exchange.bind/exchange-exchange-name-required",
    "0-10/exchange.unbind/exchange-exchange-name-required",
    "0-10/exchange/default-access#bound",
    "0-10/exchange/default-access#unbound",
)


@pytest.mark.parametrize("kind", [x.ExchangeBind, x.ExchangeUnbind])
@marked_rows(
    "ends, code, field",
    (rule("0-10/exchange.bind/queue-empty-queue"), {"exchange": "amq.direct", "queue": ""}, 542, "queue"),
    (
        rule("0-10/exchange.bind/queue-queue-existence", "0-10/exchange.unbind/queue-non-existent-queue"),
        {"exchange": "amq.direct", "queue": "missing"},
        404,
        "queue",
    ),
    (MISSING, {"exchange": "missing", "queue": "q"}, 404, "exchange"),
    (NAMELESS, {"exchange": "", "queue": "q"}, 542, "exchange"),
    (NAMELESS, {"queue": "q"}, 542, "exchange"),
)
def test_bind_and_unbind_with_missing_or_unnamed_queue_or_exchange_fail(
    client: Client,
    ends: dict[str, str],
    code: int,
    field: str,
    kind: type[x.ExchangeBind] | type[x.ExchangeUnbind],
) -> None:
    client.session().declare("q")
    refused(client, kind(**ends, binding_key="q"), code, field)


@rule("0-10/exchange.bind/arguments-unknown-argument")
@pytest.mark.deviates("0-10/exchange.bind/arguments-unknown-argument")
def test_unknown_binding_arguments_are_refused_by_spec_and_ignored_by_default_personality(
    client: Client,
) -> None:
    session = client.session().declare("q")
    command = x.ExchangeBind(queue="q", exchange="amq.direct", binding_key="k", arguments={"x-nope": 1})
    spec = client.server.is_spec
    if spec:
        refused(client, command, 540, "arguments")
    else:
        session.call(command)
    session.publish(exchange="amq.direct", key="k")
    assert got(session) == (0 if spec else 1)


@rule("0-10/exchange.bind/binding-key-identity")
def test_unbind_removes_only_binding_with_given_key(session: Session) -> None:
    session.declare("q").bind("q", "amq.direct", "one").bind("q", "amq.direct", "two")
    unbind(session, "amq.direct", "one").publish(exchange="amq.direct", key="one")
    assert got(session) == 0
    session.publish(exchange="amq.direct", key="two")
    assert got(session) == 1


@rule("0-10/exchange.bind/binding-key-identity")
@pytest.mark.parametrize("kind", ["fanout", "headers", "direct"])
def test_bind_without_key_creates_binding_with_empty_key(session: Session, kind: str) -> None:
    session.declare_exchange("e", kind, auto_delete=True).declare("q")
    session.perform(
        x.ExchangeBind(queue="q", exchange="e", arguments={"x-match": "any"} if kind == "headers" else None)
    )
    unbind(session, "e", "")
    assert not exists(session, "e")


@rule("0-10/execution/internal-error")
def test_headers_binding_without_x_match_fails_only_with_default_personality(
    lenient: Server, spec: Server
) -> None:
    command = x.ExchangeBind(queue="q", exchange="amq.match", binding_key="", arguments={"a": 1})
    client = lenient.open()
    client.session().declare("q")
    refused(client, command, 541, "arguments")
    session = spec.session()
    session.declare("q").call(command)
    session.publish(exchange="amq.match", message=headers(a=1))
    assert got(session) == 1


def test_headers_binding_with_unknown_x_match_is_invalid(client: Client) -> None:
    client.session().declare("q")
    command = x.ExchangeBind(
        queue="q", exchange="amq.match", binding_key="", arguments={"x-match": "sometimes"}
    )
    refused(client, command, 542, "arguments")


def test_headers_binding_accepts_x_match_and_values_as_octets(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.match", arguments={"x-match": b"any", "a": b"\xc3\xa4", "b": b"\xff"})
    session.publish(exchange="amq.match", message=headers(a="ä"))
    session.publish(exchange="amq.match", message=headers(b=b"\xff"))
    session.publish(exchange="amq.match", message=headers(a="b"))
    assert got(session) == 2


# --- unbind ------------------------------------------------------------------------------------------
@rule("0-10/exchange.unbind/binding-key-non-existent-binding-key")
@pytest.mark.deviates("0-10/exchange.unbind/binding-key-non-existent-binding-key")
@pytest.mark.parametrize("key", ["never", "K", ""])
def test_unbind_of_unbound_key_is_refused_by_spec_and_ignored_by_default_personality(
    client: Client, key: str
) -> None:
    session = client.session().declare("q").bind("q", "amq.direct", "k")
    command = x.ExchangeUnbind(queue="q", exchange="amq.direct", binding_key=key)
    if client.server.is_spec:
        refused(client, command, 404, "binding_key")
    else:
        session.call(command)
    session.publish(exchange="amq.direct", key="k")
    assert got(session) == 1


@rule("0-10/exchange.unbind/removes")
@pytest.mark.parametrize("exchange", ["amq.direct", "amq.topic", "amq.fanout"])
def test_unbound_queue_receives_no_message(session: Session, exchange: str) -> None:
    session.declare("q").declare("other")
    session.bind("q", exchange, "k").bind("other", exchange, "k")
    unbind(session, exchange, "k").publish(exchange=exchange, key="k")
    assert (got(session), got(session, "other")) == (0, 1)


def test_unbind_removes_all_bindings_of_0_9_1_client_with_that_key(server: Server) -> None:
    older = server.client().declare("q")
    for number in (1, 2):
        arguments = {"x-match": "all", "a": number}
        bind = m.QueueBind(queue="q", exchange="amq.match", routing_key="k", arguments=arguments)
        older.call(bind, m.QueueBindOk)
    session = unbind(server.session(), "amq.match", "k").publish(exchange="amq.match", message=headers(a=1))
    session.publish(exchange="amq.match", message=headers(a=2))
    assert got(session) == 0


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
    return session.bind("used", "amq.direct", "k").bind("other", "amq.direct", "l")


@rule("0-10/exchange.bound/exchange-not-found", "0-10/exchange.bound/queue-not-found")
@rule("0-10/exchange.bound/no-exception")
@rows(
    "exchange, queue, flags",
    ("missing", None, {"exchange_not_found"}),
    ("missing", "used", {"exchange_not_found"}),
    ("missing", "missing", {"exchange_not_found", "queue_not_found"}),
    ("amq.direct", "missing", {"queue_not_found"}),
    ("amq.direct", "used", set()),
    (None, "missing", {"queue_not_found"}),
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
@rows(
    "queue, key, flags",
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
)
@pytest.mark.parametrize("arguments", [None, {}])
def test_exchange_bound_returns_flags_for_queue_and_binding_key(
    asking: Session, queue: str | None, key: str | None, flags: set[str], arguments: Any
) -> None:
    assert bound(asking, "amq.direct", queue=queue, binding_key=key, arguments=arguments) == flags


A, B = {"x-match": "all", "a": 1}, {"x-match": "all", "b": 2}


@rule("0-10/exchange.bound/args-not-matched")
@rows(
    "queue, key, arguments, flags",
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
)
def test_exchange_bound_returns_flags_for_arguments_queue_and_binding_key(
    session: Session, queue: str | None, key: str | None, arguments: dict[str, Any], flags: set[str]
) -> None:
    for name in ("used", "other", "unused"):
        session.declare(name)
    session.bind("used", "amq.match", "k", arguments=A).bind("other", "amq.match", "l", arguments=B)
    assert bound(session, "amq.match", queue=queue, binding_key=key, arguments=arguments) == flags


def test_exchange_bound_matches_key_and_arguments_only_in_same_binding(session: Session) -> None:
    session.declare("q").bind("q", "amq.match", "k", arguments=A).bind("q", "amq.match", "l", arguments=B)
    assert bound(session, "amq.match", queue="q", binding_key="k", arguments=A) == set()
    both = {"key_not_matched", "args_not_matched"}
    assert bound(session, "amq.match", queue="q", binding_key="k", arguments=B) == both


@rule("0-10/exchange.bound/default")
@pytest.mark.parametrize("exchange", [None, ""])
@rows(
    "queue, key, flags",
    ("q", None, set()),
    ("q", "q", set()),
    (None, "q", set()),
    ("q", "other", {"key_not_matched"}),
    (None, "nothing", {"key_not_matched"}),
    ("missing", None, {"queue_not_found"}),
)
def test_queues_are_bound_to_the_default_exchange_by_their_names(
    session: Session, exchange: str | None, queue: str | None, key: str | None, flags: set[str]
) -> None:
    session.declare("q").declare("other")
    assert bound(session, exchange, queue=queue, binding_key=key) == flags
