"""exchange.declare, exchange.delete and exchange.query: what an exchange is, and how long it is there."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule


def query(session: Session, name: str | None) -> structs.ExchangeQueryResult:
    """What the broker says of an exchange."""
    result = session.call(x.ExchangeQuery(name=name))
    assert isinstance(result, structs.ExchangeQueryResult)
    return result


def exists(session: Session, name: str) -> bool:
    return not query(session, name).not_found


def blames(exception: x.ExecutionException, command: Command, field: str) -> bool:
    """Whether the exception names this command and this field of it."""
    names = [name for name, _ in command.FIELDS]
    where = (exception.class_code, exception.command_code, exception.field_index)
    return where == (command.CLASS, command.CODE, names.index(field))


def refused(client: Client, command: Command, code: int, field: str) -> x.ExecutionException:
    """The command ends a session of its own with this code, for this field; others live on."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, code)
    assert blames(exception, command, field), exception
    return exception


def got(session: Session, queue: str = "q") -> int:
    count = session.query(queue).message_count
    assert count is not None
    return count


# --- types and instances -----------------------------------------------------------------------------
@rule("0-10/exchange/required-types#direct", "0-10/exchange/required-types#fanout")
@rule("0-10/exchange/recommended-types#topic", "0-10/exchange/recommended-types#headers")
@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_direct_fanout_topic_and_headers_exchanges_can_be_declared(session: Session, kind: str) -> None:
    session.perform(x.ExchangeDeclare(exchange="e", type=kind))
    assert query(session, "e").type == kind


@rule("0-10/exchange/extensions")
@pytest.mark.parametrize("kind", ["x-consistent-hash", "x-random"])
def test_exchange_types_of_plugins_can_be_declared(lenient: Server, kind: str) -> None:
    session = lenient.session().perform(x.ExchangeDeclare(exchange="e", type=kind))
    assert query(session, "e").type == kind
    session.declare("q").bind("q", "e", "1")
    assert session.publish(b"routed", exchange="e").query().message_count == 1


@rule("0-10/exchange/required-instances#types", "0-10/exchange/required-instances#nameless")
@rows(
    "name, kind",
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.topic", "topic"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
    ("", "direct"),
)
def test_predeclared_exchanges_exist_with_their_types(session: Session, name: str, kind: str) -> None:
    found = query(session, name)
    assert (found.type, found.durable, found.not_found) == (kind, True, False)


@rule("0-10/exchange/name#characters")
@rows("name", "e_1", "E", "9", "_", "n" * 255, "with space", "söme/name", "amq", "mq.x", ".amq.", "abc.amq.x")
def test_exchange_name_may_hold_any_characters(session: Session, name: str) -> None:
    session.declare_exchange(name)
    assert exists(session, name)


# --- declare -----------------------------------------------------------------------------------------
@rule("0-10/exchange.declare/minimum")
def test_hundred_exchanges_can_be_declared(session: Session) -> None:
    for number in range(100):
        session.declare_exchange(f"e{number}")
    assert all(exists(session, f"e{number}") for number in range(100))


def declare(exchange: str | None, type: str | None = "direct", **fields: Any) -> x.ExchangeDeclare:
    return x.ExchangeDeclare(exchange=exchange, type=type, **fields)


RESERVED = rule("0-10/exchange.declare/exchange-reserved-names")
NAMELESS = rule(
    "0-10/exchange.declare/exchange-exchange-name-required", "0-10/exchange/default-access#declared"
)
UNKNOWN_TYPE = rule("0-10/exchange.declare/type-exchange-type-not-found")
TYPED = rule("0-10/exchange.declare/type-typed")
MISSING = rule("0-10/exchange.declare/passive-not-found")
ANOTHER_ALTERNATE = rule("0-10/exchange.declare/alternate-exchange-pre-existing-exchange#another")


@marked_rows(
    "command, code, field",
    (RESERVED, declare("amq."), 530, "exchange"),
    (RESERVED, declare("amq.mine"), 530, "exchange"),
    (RESERVED, declare("amq.direct"), 530, "exchange"),
    (RESERVED, declare("amq.direct", "topic"), 530, "exchange"),
    (NAMELESS, declare(""), 542, "exchange"),
    (NAMELESS, declare(None), 542, "exchange"),
    (NAMELESS, declare("", passive=True), 542, "exchange"),
    (NAMELESS, declare(None, passive=True), 542, "exchange"),
    (TYPED, declare("e", "fanout"), 530, "type"),
    (TYPED, declare("e", "fanout", passive=True), 530, "type"),
    (UNKNOWN_TYPE, declare("new", "nosuch"), 404, "type"),
    (UNKNOWN_TYPE, declare("new", ""), 404, "type"),
    (UNKNOWN_TYPE, declare("new", None), 404, "type"),
    (MISSING, declare("missing", passive=True), 404, "exchange"),
    (MISSING, declare("missing", "nosuch", passive=True), 404, "exchange"),
    (MISSING, declare("missing", None, passive=True), 404, "exchange"),
    (
        rule("0-10/exchange.declare/unknown-alternate"),
        declare("new", alternate_exchange="missing"),
        404,
        "alternate_exchange",
    ),
    *(
        (
            ANOTHER_ALTERNATE,
            declare(name, alternate_exchange="amq.topic", passive=passive),
            530,
            "alternate_exchange",
        )
        for name in ("e", "has alternate")
        for passive in (False, True)
    ),
    (rule("0-10/exchange.delete/exchange-exists"), x.ExchangeDelete(exchange="missing"), 404, "exchange"),
    (rule("0-10/exchange.delete/exchange-exists"), x.ExchangeDelete(exchange="amq.missing"), 404, "exchange"),
    (
        rule("0-10/exchange.delete/exchange-exchange-name-required"),
        x.ExchangeDelete(exchange=""),
        542,
        "exchange",
    ),
    (rule("0-10/exchange/default-access#deleted"), x.ExchangeDelete(exchange=None), 542, "exchange"),
    (rule("0-10/exchange.delete/predeclared"), x.ExchangeDelete(exchange="amq.direct"), 530, "exchange"),
    ids=repr,
)
def test_invalid_declaration_or_deletion_fails_and_changes_no_exchange(
    client: Client, command: Command, code: int, field: str
) -> None:
    session = client.session().declare_exchange("e")
    session.declare_exchange("has alternate", alternate_exchange="amq.fanout")
    exchanges = client.server.vhost.exchanges
    before = {name: query(session, name) for name in exchanges}
    refused(client, command, code, field)
    assert {name: query(session, name) for name in exchanges} == before


@marked_rows(
    "personality, command, code, field",
    ((), "rabbitmq-4.3", declare("qpid.mine"), 530, "exchange"),
    (
        (),
        "rabbitmq-4.3",
        declare("e", "x-delayed-message", arguments={"x-delayed-type": 7}),
        542,
        "arguments",
    ),
    ((), "rabbitmq-4.3", declare("e", arguments={"alternate-exchange": 7}), 542, "arguments"),
    ((), "spec", declare("e", "x-random"), 404, "type"),
    (
        rule("0-10/exchange.declare/arguments-unknown-argument"),
        "spec",
        declare("e", arguments={"x-nope": 1}),
        540,
        "arguments",
    ),
    ids=repr,
)
def test_declaration_invalid_in_one_personality_fails(
    personality: str, command: Command, code: int, field: str
) -> None:
    client = Server(personality).open()
    before = dict(client.server.vhost.exchanges)
    refused(client, command, code, field)
    assert client.server.vhost.exchanges == before


def test_spec_personality_does_not_reserve_exchange_names_with_qpid_prefix(spec: Server) -> None:
    session = spec.session().perform(declare("qpid.mine"))
    assert exists(session, "qpid.mine")


@rule("0-10/exchange.declare/passive-not-found", "0-10/exchange.declare/arguments-passive")
@rule("0-10/exchange.declare/exchange-reserved-names")
def test_passive_declaration_may_omit_type_and_ignores_arguments_and_reserved_names(session: Session) -> None:
    session.declare_exchange("e", "topic")
    for command in (
        declare("e", None, passive=True),
        declare("e", "topic", passive=True, arguments={"x-nope": 1}),
        declare("amq.direct", passive=True),
    ):
        session.call(command)
    session.expect_nothing()


@rule("0-10/exchange.declare/durable-support#durable", "0-10/exchange.declare/durable-support#transient")
@rule("0-10/exchange.declare/durable-sticky")
@pytest.mark.parametrize("durable", [False, True])
def test_redeclaration_does_not_change_durability_of_exchange(session: Session, durable: bool) -> None:
    session.declare_exchange("e", durable=durable).declare_exchange("e", durable=not durable)
    assert query(session, "e").durable is durable


@rule("0-10/exchange.declare/durable-survives")
def test_durable_exchange_survives_restart(server: Server) -> None:
    session = server.session().declare_exchange("durable", durable=True).declare_exchange("transient")
    session = server.restart().session()
    assert exists(session, "durable")
    assert exists(session, "transient") is server.state.personality.transient_exchanges_survive


@rule("0-10/exchange.declare/auto-delete#last", "0-10/exchange.declare/auto-delete#earlier")
@rows("end", x.ExchangeUnbind(queue="q", exchange="e", binding_key="two"), x.QueueDelete(queue="q"), ids=repr)
def test_auto_delete_exchange_is_deleted_with_its_last_binding(session: Session, end: Command) -> None:
    session.declare_exchange("e", auto_delete=True).declare("q")
    session.bind("q", "e", "one").bind("q", "e", "two")
    session.perform(x.ExchangeUnbind(queue="q", exchange="e", binding_key="one"))
    assert exists(session, "e")
    session.call(end)
    assert not exists(session, "e")


@rule("0-10/exchange.declare/auto-delete#first")
def test_auto_delete_exchange_never_bound_is_not_deleted(server: Server) -> None:
    session = server.session().declare_exchange("e", auto_delete=True)
    server.advance(3600)
    assert exists(session, "e")


@rule("0-10/exchange.declare/auto-delete-sticky")
@pytest.mark.parametrize("auto_delete", [False, True])
def test_redeclaration_does_not_change_auto_delete_of_exchange(session: Session, auto_delete: bool) -> None:
    session.declare_exchange("e", auto_delete=auto_delete)
    session.declare_exchange("e", auto_delete=not auto_delete).declare("q")
    session.bind("q", "e").perform(x.ExchangeUnbind(queue="q", exchange="e", binding_key=""))
    assert exists(session, "e") is not auto_delete


# --- arguments ---------------------------------------------------------------------------------------
@pytest.mark.deviates("0-10/exchange.declare/arguments-unknown-argument")
def test_default_personality_accepts_unknown_exchange_arguments(lenient: Server) -> None:
    session = lenient.session().declare_exchange("e", arguments={"x-nope": 1})
    assert query(session, "e").arguments == {"x-nope": 1}


# --- delete ------------------------------------------------------------------------------------------
@rule("0-10/exchange.delete/exchange-used-as-alternate#queue")
@rule("0-10/exchange.delete/exchange-used-as-alternate#exchange")
@pytest.mark.parametrize("user", ["queue", "exchange"])
def test_exchange_in_use_as_alternate_cannot_be_deleted(client: Client, user: str) -> None:
    session = client.session().declare_exchange("alternate")
    if user == "queue":
        session.declare("q", alternate_exchange="alternate")
    else:
        session.declare_exchange("e", alternate_exchange="alternate")
    refused(client, x.ExchangeDelete(exchange="alternate"), 530, "exchange")
    assert exists(session, "alternate")
    session.call(x.QueueDelete(queue="q") if user == "queue" else x.ExchangeDelete(exchange="e"))
    session.perform(x.ExchangeDelete(exchange="alternate"))
    assert not exists(session, "alternate")


@rule("0-10/exchange.delete/if-unused-exchange-in-use")
def test_exchange_delete_with_if_unused_fails_while_exchange_has_bindings(client: Client) -> None:
    session = client.session().declare_exchange("e")
    session.declare("q").bind("q", "e")
    refused(client, x.ExchangeDelete(exchange="e", if_unused=True), 406, "if_unused")
    assert exists(session, "e")
    session.perform(x.ExchangeUnbind(queue="q", exchange="e", binding_key=""))
    session.perform(x.ExchangeDelete(exchange="e", if_unused=True))
    assert not exists(session, "e")


@rule("0-10/exchange.delete/cancels-bindings")
def test_deletion_of_exchange_removes_its_bindings(session: Session) -> None:
    session.declare_exchange("e").declare("q").bind("q", "e", "k").perform(x.ExchangeDelete(exchange="e"))
    session.declare_exchange("e").publish(exchange="e", key="k")
    assert got(session) == 0


# --- query -------------------------------------------------------------------------------------------
@rule("0-10/exchange.query/default")
@pytest.mark.parametrize("name", ["", None])
def test_exchange_query_without_name_describes_default_exchange(session: Session, name: str | None) -> None:
    found = query(session, name)
    assert (found.type, found.not_found) == ("direct", False)


@rule("0-10/exchange.query/result#fields")
def test_exchange_query_returns_type_durability_and_arguments(lenient: Server) -> None:
    session = lenient.session()
    session.declare_exchange("e", "fanout", durable=True, arguments={"a": 1, "b": "text", "c": [True, None]})
    found = query(session, "e")
    assert (found.type, found.durable, found.not_found) == ("fanout", True, False)
    assert found.arguments == {"a": 1, "b": "text", "c": [True, None]}


@rule("0-10/exchange.query/result#missing")
def test_exchange_query_of_missing_exchange_returns_not_found_without_error(session: Session) -> None:
    found = query(session, "missing")
    assert found.not_found is True
    assert found.type is None
    assert exists(session, "amq.direct")
