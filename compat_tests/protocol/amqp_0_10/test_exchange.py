"""exchange.declare, exchange.delete and exchange.query: what an exchange is, and how long it is there."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command


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


def refused(client: Client, command: Command, code: int, field: str) -> None:
    """The command ends a session of its own with this code, for this field; others live on."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, code)
    assert blames(exception, command, field), exception


def got(session: Session, queue: str = "q") -> int:
    count = session.query(queue).message_count
    assert count is not None
    return count


# --- types and instances -----------------------------------------------------------------------------


@pytest.mark.rule("0-10/exchange/required-types#direct")
@pytest.mark.rule("0-10/exchange/required-types#fanout")
@pytest.mark.rule("0-10/exchange/recommended-types#topic")
@pytest.mark.rule("0-10/exchange/recommended-types#headers")
@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_direct_fanout_topic_and_headers_exchanges_can_be_declared(session: Session, kind: str) -> None:
    session.call(x.ExchangeDeclare(exchange="e", type=kind))
    assert query(session, "e").type == kind


@pytest.mark.rule("0-10/exchange/extensions")
@pytest.mark.parametrize("kind", ["x-consistent-hash", "x-random"])
def test_exchange_types_of_plugins_can_be_declared(lenient: Server, kind: str) -> None:
    session = lenient.session()
    session.call(x.ExchangeDeclare(exchange="e", type=kind))
    assert query(session, "e").type == kind
    session.declare("q")
    session.bind("q", "e", "1")
    session.publish(b"routed", exchange="e")
    assert session.query().message_count == 1


@pytest.mark.rule("0-10/exchange/required-instances#types")
@pytest.mark.rule("0-10/exchange/required-instances#nameless")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
        ("", "direct"),
    ],
)
def test_predeclared_exchanges_exist_with_their_types(session: Session, name: str, kind: str) -> None:
    found = query(session, name)
    assert (found.type, found.durable, found.not_found) == (kind, True, False)


@pytest.mark.rule("0-10/exchange/name#characters")
@pytest.mark.parametrize("name", ["e_1", "E", "9", "_", "n" * 255])
def test_exchange_name_may_hold_letters_digits_and_underscores(session: Session, name: str) -> None:
    session.declare_exchange(name)
    assert exists(session, name)


@pytest.mark.parametrize("name", ["with space", "söme/name", "amq", "mq.x", ".amq.", "abc.amq.x"])
def test_exchange_name_may_hold_spaces_dots_and_other_characters(session: Session, name: str) -> None:
    session.declare_exchange(name)
    assert exists(session, name)


# --- declare -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/exchange.declare/minimum")
def test_hundred_exchanges_can_be_declared(session: Session) -> None:
    for number in range(100):
        session.declare_exchange(f"e{number}")
    assert all(exists(session, f"e{number}") for number in range(100))


@pytest.mark.rule("0-10/exchange.declare/exchange-reserved-names")
@pytest.mark.parametrize("name", ["amq.", "amq.mine"])
def test_declaration_of_reserved_exchange_name_fails_with_not_allowed(client: Client, name: str) -> None:
    refused(client, x.ExchangeDeclare(exchange=name, type="direct"), 530, "exchange")
    assert not exists(client.session(), name)


def test_only_default_personality_reserves_exchange_names_with_qpid_prefix(
    lenient: Server, spec: Server
) -> None:
    command = x.ExchangeDeclare(exchange="qpid.mine", type="direct")
    refused(lenient.open(), command, 530, "exchange")
    session = spec.session()
    session.call(command)
    assert exists(session, "qpid.mine")


@pytest.mark.rule("0-10/exchange.declare/exchange-reserved-names")
def test_predeclared_exchange_can_only_be_declared_passively(client: Client) -> None:
    session = client.session()
    session.call(x.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True))
    refused(client, x.ExchangeDeclare(exchange="amq.direct", type="direct"), 530, "exchange")
    refused(client, x.ExchangeDeclare(exchange="amq.direct", type="topic"), 530, "exchange")


@pytest.mark.rule("0-10/exchange.declare/exchange-exchange-name-required")
@pytest.mark.rule("0-10/exchange/default-access#declared")
@pytest.mark.parametrize("name", ["", None])
@pytest.mark.parametrize("passive", [False, True])
def test_declaration_of_default_exchange_fails_with_invalid_argument(
    client: Client, name: str | None, passive: bool
) -> None:
    refused(client, x.ExchangeDeclare(exchange=name, type="direct", passive=passive), 542, "exchange")


@pytest.mark.rule("0-10/exchange.declare/type-typed")
@pytest.mark.parametrize("passive", [False, True])
def test_redeclaration_of_exchange_with_another_type_fails_with_not_allowed(
    client: Client, passive: bool
) -> None:
    session = client.session()
    session.declare_exchange("e", "direct")
    refused(client, x.ExchangeDeclare(exchange="e", type="fanout", passive=passive), 530, "type")
    assert query(session, "e").type == "direct"


@pytest.mark.rule("0-10/exchange.declare/type-exchange-type-not-found")
@pytest.mark.parametrize("kind", ["nosuch", "", None])
def test_declaration_with_unknown_exchange_type_fails_with_not_found(
    client: Client, kind: str | None
) -> None:
    refused(client, x.ExchangeDeclare(exchange="e", type=kind), 404, "type")
    assert not exists(client.session(), "e")


def test_exchange_type_absent_from_spec_personality_fails_with_not_found(spec: Server) -> None:
    refused(spec.open(), x.ExchangeDeclare(exchange="e", type="x-random"), 404, "type")


@pytest.mark.rule("0-10/exchange.declare/passive-not-found")
@pytest.mark.parametrize("kind", ["direct", "nosuch", None])
def test_passive_declaration_of_missing_exchange_fails_with_not_found(
    client: Client, kind: str | None
) -> None:
    refused(client, x.ExchangeDeclare(exchange="missing", type=kind, passive=True), 404, "exchange")
    assert not exists(client.session(), "missing")


@pytest.mark.rule("0-10/exchange.declare/passive-not-found")
def test_passive_declaration_of_exchange_may_omit_type(session: Session) -> None:
    session.declare_exchange("e", "topic")
    session.call(x.ExchangeDeclare(exchange="e", passive=True))
    session.call(x.ExchangeDeclare(exchange="e", type="topic", passive=True))
    session.expect_nothing()


@pytest.mark.rule("0-10/exchange.declare/durable-support#durable")
@pytest.mark.rule("0-10/exchange.declare/durable-support#transient")
@pytest.mark.rule("0-10/exchange.declare/durable-sticky")
@pytest.mark.parametrize("durable", [False, True])
def test_redeclaration_does_not_change_durability_of_exchange(session: Session, durable: bool) -> None:
    session.declare_exchange("e", durable=durable)
    session.declare_exchange("e", durable=not durable)
    assert query(session, "e").durable is durable


@pytest.mark.rule("0-10/exchange.declare/durable-survives")
def test_durable_exchange_survives_restart(server: Server) -> None:
    session = server.session()
    session.declare_exchange("durable", durable=True)
    session.declare_exchange("transient")
    server.restart()
    session = server.session()
    assert exists(session, "durable")
    assert exists(session, "transient") is server.state.personality.transient_exchanges_survive


@pytest.mark.rule("0-10/exchange.declare/auto-delete#last")
@pytest.mark.rule("0-10/exchange.declare/auto-delete#earlier")
def test_auto_delete_exchange_is_deleted_with_its_last_binding(session: Session) -> None:
    session.declare_exchange("e", auto_delete=True)
    session.declare("q")
    session.bind("q", "e", "one")
    session.bind("q", "e", "two")
    session.call(x.ExchangeUnbind(queue="q", exchange="e", binding_key="one"))
    assert exists(session, "e")
    session.call(x.ExchangeUnbind(queue="q", exchange="e", binding_key="two"))
    assert not exists(session, "e")


@pytest.mark.rule("0-10/exchange.declare/auto-delete#last")
def test_auto_delete_exchange_is_deleted_with_last_bound_queue(session: Session) -> None:
    session.declare_exchange("e", auto_delete=True)
    session.declare("q")
    session.bind("q", "e")
    session.call(x.QueueDelete(queue="q"))
    assert not exists(session, "e")


@pytest.mark.rule("0-10/exchange.declare/auto-delete#first")
def test_auto_delete_exchange_never_bound_is_not_deleted(server: Server) -> None:
    session = server.session()
    session.declare_exchange("e", auto_delete=True)
    server.advance(3600)
    assert exists(session, "e")


@pytest.mark.rule("0-10/exchange.declare/auto-delete-sticky")
@pytest.mark.parametrize("auto_delete", [False, True])
def test_redeclaration_does_not_change_auto_delete_of_exchange(session: Session, auto_delete: bool) -> None:
    session.declare_exchange("e", auto_delete=auto_delete)
    session.declare_exchange("e", auto_delete=not auto_delete)
    session.declare("q")
    session.bind("q", "e")
    session.call(x.ExchangeUnbind(queue="q", exchange="e", binding_key=""))
    assert exists(session, "e") is not auto_delete


# --- arguments ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/exchange.declare/arguments-unknown-argument")
def test_spec_personality_refuses_unknown_exchange_arguments_with_540(spec: Server) -> None:
    client = spec.open()
    command = x.ExchangeDeclare(exchange="e", type="direct", arguments={"x-nope": 1})
    refused(client, command, 540, "arguments")
    assert not exists(client.session(), "e")


@pytest.mark.deviates("0-10/exchange.declare/arguments-unknown-argument")
def test_default_personality_accepts_unknown_exchange_arguments(lenient: Server) -> None:
    session = lenient.session()
    session.declare_exchange("e", arguments={"x-nope": 1})
    assert query(session, "e").arguments == {"x-nope": 1}


@pytest.mark.rule("0-10/exchange.declare/arguments-passive")
def test_passive_declaration_of_exchange_ignores_arguments(session: Session) -> None:
    session.declare_exchange("e")
    session.call(x.ExchangeDeclare(exchange="e", type="direct", passive=True, arguments={"x-nope": 1}))
    session.expect_nothing()


def test_exchange_arguments_of_wrong_type_are_invalid(lenient: Server) -> None:
    client = lenient.open()
    for arguments in ({"alternate-exchange": 7}, {"x-delayed-type": 7}):
        command = x.ExchangeDeclare(exchange="e", type="x-delayed-message", arguments=arguments)
        refused(client, command, 542, "arguments")


# --- delete ------------------------------------------------------------------------------------------


DELETIONS: list[Any] = [
    pytest.param("missing", 404, marks=pytest.mark.rule("0-10/exchange.delete/exchange-exists")),
    pytest.param("", 542, marks=pytest.mark.rule("0-10/exchange.delete/exchange-exchange-name-required")),
    pytest.param(None, 542, marks=pytest.mark.rule("0-10/exchange/default-access#deleted")),
    pytest.param("amq.direct", 530, marks=pytest.mark.rule("0-10/exchange.delete/predeclared")),
    pytest.param("amq.missing", 404, marks=pytest.mark.rule("0-10/exchange.delete/exchange-exists")),
]


@pytest.mark.parametrize(("name", "code"), DELETIONS)
def test_deletion_of_missing_default_or_predeclared_exchange_fails(
    client: Client, name: str | None, code: int
) -> None:
    before = dict(client.server.vhost.exchanges)
    refused(client, x.ExchangeDelete(exchange=name), code, "exchange")
    assert client.server.vhost.exchanges == before


@pytest.mark.rule("0-10/exchange.delete/exchange-used-as-alternate#queue")
@pytest.mark.rule("0-10/exchange.delete/exchange-used-as-alternate#exchange")
@pytest.mark.parametrize("user", ["queue", "exchange"])
def test_exchange_in_use_as_alternate_cannot_be_deleted(client: Client, user: str) -> None:
    session = client.session()
    session.declare_exchange("alternate")
    if user == "queue":
        session.declare("q", alternate_exchange="alternate")
    else:
        session.declare_exchange("e", alternate_exchange="alternate")
    refused(client, x.ExchangeDelete(exchange="alternate"), 530, "exchange")
    assert exists(session, "alternate")
    session.call(x.QueueDelete(queue="q") if user == "queue" else x.ExchangeDelete(exchange="e"))
    session.call(x.ExchangeDelete(exchange="alternate"))
    assert not exists(session, "alternate")


@pytest.mark.rule("0-10/exchange.delete/if-unused-exchange-in-use")
def test_exchange_delete_with_if_unused_fails_while_exchange_has_bindings(client: Client) -> None:
    session = client.session()
    session.declare_exchange("e")
    session.declare("q")
    session.bind("q", "e")
    refused(client, x.ExchangeDelete(exchange="e", if_unused=True), 406, "if_unused")
    assert exists(session, "e")
    session.call(x.ExchangeUnbind(queue="q", exchange="e", binding_key=""))
    session.call(x.ExchangeDelete(exchange="e", if_unused=True))
    assert not exists(session, "e")


@pytest.mark.rule("0-10/exchange.delete/cancels-bindings")
def test_deletion_of_exchange_removes_its_bindings(session: Session) -> None:
    session.declare_exchange("e")
    session.declare("q")
    session.bind("q", "e", "k")
    session.call(x.ExchangeDelete(exchange="e"))
    session.declare_exchange("e")
    session.publish(exchange="e", key="k")
    assert got(session) == 0


# --- query -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/exchange.query/default")
@pytest.mark.parametrize("name", ["", None])
def test_exchange_query_without_name_describes_default_exchange(session: Session, name: str | None) -> None:
    found = query(session, name)
    assert (found.type, found.not_found) == ("direct", False)


@pytest.mark.rule("0-10/exchange.query/result#fields")
def test_exchange_query_returns_type_durability_and_arguments(lenient: Server) -> None:
    session = lenient.session()
    session.declare_exchange("e", "fanout", durable=True, arguments={"a": 1, "b": "text", "c": [True, None]})
    found = query(session, "e")
    assert (found.type, found.durable, found.not_found) == ("fanout", True, False)
    assert found.arguments == {"a": 1, "b": "text", "c": [True, None]}


@pytest.mark.rule("0-10/exchange.query/result#missing")
def test_exchange_query_of_missing_exchange_returns_not_found_without_error(session: Session) -> None:
    found = query(session, "missing")
    assert found.not_found is True
    assert found.type is None
    assert exists(session, "amq.direct")
