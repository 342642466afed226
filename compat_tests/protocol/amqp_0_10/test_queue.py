"""queue.declare, queue.delete, queue.purge and queue.query."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.protocol.amqp_0_10.driver import Client, Server, Session
from compat_tests.protocol.amqp_0_10.test_exchange import exists as exchange_exists
from compat_tests.protocol.amqp_0_10.test_exchange import got, refused
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_10 import commands as x
from fakeamqp.wire.amqp_0_10 import structs
from fakeamqp.wire.amqp_0_10.packed import Command


def exists(session: Session, name: str = "q") -> bool:
    return session.query(name).queue == name


# --- names -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue/name")
@pytest.mark.parametrize("name", ["_x", "9", "q", "ö", "ü" * 127 + "u", "q" * 255, "a-b.c d"])
def test_names_begin_with_a_letter_a_digit_or_an_underscore(session: Session, name: str) -> None:
    session.declare(name)
    assert exists(session, name)


@pytest.mark.rule("0-10/queue/name")
@pytest.mark.rule("0-10/queue.declare/no-server-names")
@pytest.mark.parametrize("name", ["", None, "-x", ".x", " "])
def test_other_names_are_illegal_by_the_text(spec: Server, name: str | None) -> None:
    refused(spec.open(), x.QueueDeclare(queue=name), 531, "queue")
    assert not spec.vhost.queues


@pytest.mark.rule("0-10/queue.declare/no-server-names")
@pytest.mark.parametrize("name", ["", None, "-x"])
def test_other_names_are_names_to_qpid_and_none_is_made_up(lenient: Server, name: str | None) -> None:
    session = lenient.session()
    session.call(x.QueueDeclare(queue=name))
    assert list(lenient.vhost.queues) == [name or ""]
    session.publish(key=name)
    assert got(session, name or "") == 1


@pytest.mark.rule("0-10/queue.declare/queue-reserved-prefix")
def test_reserved_names_cannot_be_declared_by_the_text(spec: Server, lenient: Server) -> None:
    command = x.QueueDeclare(queue="amq.mine")
    refused(spec.open(), command, 530, "queue")
    assert not spec.vhost.queues
    session = lenient.session()
    session.call(command)
    assert exists(session, "amq.mine")


@pytest.mark.rule("0-10/queue.declare/queue-reserved-prefix")
def test_a_queue_with_a_reserved_name_can_be_declared_passively(session: Session) -> None:
    session.client.server.vhost.declare_queue("amq.theirs", owner=None, reserved=True)
    session.call(x.QueueDeclare(queue="amq.theirs", passive=True))
    session.expect_nothing()


def test_the_name_for_direct_replies_is_nobodys_queue(lenient: Server) -> None:
    refused(lenient.open(), x.QueueDeclare(queue="amq.rabbitmq.reply-to"), 530, "queue")


# --- declare -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue/grammar")
def test_a_queue_is_declared_asked_about_purged_and_deleted(session: Session) -> None:
    session.declare("q")
    session.publish()
    assert session.query().message_count == 1
    session.call(x.QueuePurge(queue="q"))
    assert session.query().message_count == 0
    session.call(x.QueueDelete(queue="q"))
    assert not exists(session)


@pytest.mark.rule("0-10/queue.declare/minimum-queues")
def test_three_hundred_queues_fit(session: Session) -> None:
    for number in range(300):
        session.declare(f"q{number}")
    assert all(exists(session, f"q{number}") for number in range(300))


@pytest.mark.rule("0-10/queue.declare/passive-passive")
def test_a_passive_declaration_needs_the_queue(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.call(x.QueueDeclare(queue="q", passive=True))
    refused(client, x.QueueDeclare(queue="missing", passive=True), 404, "queue")
    assert not exists(session, "missing")


@pytest.mark.rule("0-10/queue.declare/durable-types")
@pytest.mark.rule("0-10/queue.declare/durable-pre-existence")
@pytest.mark.parametrize("durable", [False, True])
def test_whether_a_queue_is_durable_is_settled_once(session: Session, durable: bool) -> None:
    session.declare("q", durable=durable)
    session.declare("q", durable=not durable)
    assert session.query().durable is durable


@pytest.mark.rule("0-10/queue.declare/durable-types")
def test_transient_queues_are_there_where_0_9_1_has_none_any_more() -> None:
    session = Server("rabbitmq-4.3").session()
    session.declare("q")
    assert session.query().durable is False


@pytest.mark.rule("0-10/queue.declare/durable-persistence")
@pytest.mark.parametrize("crash", [False, True])
def test_durable_queues_survive(server: Server, crash: bool) -> None:
    session = server.session()
    session.declare("q", durable=True)
    session.declare("transient")
    session.publish(b"persistent", delivery_mode=2)
    session.publish(b"transient", delivery_mode=1)
    server.restart(crash=crash)
    session = server.session()
    assert not exists(session, "transient")
    session.publish(b"new")
    session.subscribe()
    assert session.bodies() == [b"persistent", b"new"]


@pytest.mark.rule("0-10/queue.declare/auto-delete-pre-existence")
@pytest.mark.parametrize("auto_delete", [False, True])
def test_whether_a_queue_deletes_itself_is_settled_once(session: Session, auto_delete: bool) -> None:
    session.declare("q", auto_delete=auto_delete)
    session.declare("q", auto_delete=not auto_delete)
    assert session.query().auto_delete is auto_delete
    session.subscribe()
    session.call(x.MessageCancel(destination="d"))
    assert exists(session) is not auto_delete


@pytest.mark.rule("0-10/queue.declare/auto-delete-last-consumer")
def test_an_auto_delete_queue_goes_with_its_last_subscription(session: Session) -> None:
    session.declare("q", auto_delete=True)
    session.subscribe(destination="one")
    session.subscribe(destination="two")
    session.call(x.MessageCancel(destination="one"))
    assert exists(session)
    session.call(x.MessageCancel(destination="two"))
    assert not exists(session)


@pytest.mark.rule("0-10/queue.declare/auto-delete-last-consumer")
def test_an_auto_delete_queue_goes_with_the_session_that_took_from_it(client: Client) -> None:
    session, other = client.session(), client.session(b"other", channel=1)
    other.declare("q", auto_delete=True)
    other.subscribe()
    other.detach()
    assert not exists(session)


@pytest.mark.rule("0-10/queue.declare/auto-delete-never-used")
def test_an_auto_delete_queue_that_was_never_used_stays(server: Server) -> None:
    client = server.open()
    session, other = client.session(), client.session(b"other", channel=1)
    other.declare("q", auto_delete=True)
    other.detach()
    server.advance(3600)
    assert exists(session)


# --- arguments ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue.declare/arguments-unknown-argument")
def test_unknown_arguments_are_refused_by_the_text_and_ignored_by_qpid(spec: Server, lenient: Server) -> None:
    command = x.QueueDeclare(queue="q", arguments={"x-nope": 1})
    refused(spec.open(), command, 540, "arguments")
    assert not spec.vhost.queues
    session = lenient.session()
    session.call(command)
    assert (session.query().arguments or {})["x-nope"] == 1


@pytest.mark.rule("0-10/queue.declare/arguments-passive")
def test_a_passive_declaration_ignores_arguments(session: Session) -> None:
    session.declare("q")
    session.call(x.QueueDeclare(queue="q", passive=True, arguments={"x-nope": 1}))
    session.expect_nothing()


def test_the_brokers_own_arguments_mean_what_they_mean_in_0_9_1(server: Server) -> None:
    session = server.session()
    session.declare("ttl", arguments={"x-message-ttl": 1000})
    session.declare("short", arguments={"x-max-length": 2})
    for queue in ("ttl", "short"):
        for body in (b"1", b"2", b"3"):
            session.publish(body, key=queue)
    assert (got(session, "ttl"), got(session, "short")) == (3, 2)
    server.advance(2)
    assert (got(session, "ttl"), got(session, "short")) == (0, 2)
    session.subscribe("short")
    assert session.bodies() == [b"2", b"3"]


@pytest.mark.parametrize("kind", ["quorum", "stream"])
@pytest.mark.parametrize("text", [str, str.encode])
def test_there_are_queues_of_every_type(server: Server, kind: str, text: Any) -> None:
    session = server.session()
    session.declare("q", durable=True, arguments={"x-queue-type": text(kind)})
    assert server.vhost.queues["q"].type_name == kind
    assert (session.query().arguments or {})["x-queue-type"] == kind


BAD_ARGUMENTS: list[dict[str, Any]] = [
    {"x-message-ttl": -1},
    {"x-message-ttl": "soon"},
    {"x-max-length": -1},
    {"x-dead-letter-exchange": 7},
    {"x-queue-type": "nosuch"},
    {"x-queue-type": "quorum"},  # Such queues are durable.
]


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS, ids=str)
def test_arguments_that_cannot_be_acted_on_are_invalid(client: Client, arguments: dict[str, Any]) -> None:
    refused(client, x.QueueDeclare(queue="q", arguments=arguments), 542, "arguments")
    assert not client.server.vhost.queues


def test_arguments_that_only_one_version_can_carry_are_told_all_the_same(lenient: Server) -> None:
    older = lenient.client()
    sent = {"text": "x" * 70_000, "number": -(2**40), "table": {"a": [1, None]}}
    older.call(m.QueueDeclare(queue="older", arguments=sent), m.QueueDeclareOk)
    told = lenient.session().query("older").arguments or {}
    assert [told[name] for name in sent] == [b"x" * 70_000, -(2**40), {"a": [1, None]}]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(2**63, str(2**63)), (UUID(int=7), str(UUID(int=7))), (b"text", "text"), (b"\xff", b"\xff")],
)
def test_arguments_become_what_every_version_can_carry(lenient: Server, sent: Any, kept: Any) -> None:
    session = lenient.session()
    session.declare("q", arguments={"a": sent})
    assert (session.query().arguments or {})["a"] == kept
    assert lenient.vhost.queues["q"].arguments["a"] == kept


# --- alternate exchanges -----------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-pre-existing-exchange")
@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("had", [None, "amq.fanout"])
def test_another_alternate_exchange_is_not_allowed(client: Client, had: str | None, passive: bool) -> None:
    session = client.session()
    session.declare("q", alternate_exchange=had)
    command = x.QueueDeclare(queue="q", passive=passive, alternate_exchange="amq.topic")
    refused(client, command, 530, "alternate_exchange")
    assert session.query().alternate_exchange == had


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-pre-existing-exchange")
@pytest.mark.parametrize("again", [None, "", "amq.fanout"])
def test_the_same_alternate_exchange_or_none_changes_nothing(session: Session, again: str | None) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    session.declare("q", alternate_exchange=again)
    assert session.query().alternate_exchange == "amq.fanout"


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-unknown-exchange")
def test_an_alternate_exchange_must_be_there(client: Client) -> None:
    refused(client, x.QueueDeclare(queue="q", alternate_exchange="missing"), 404, "alternate_exchange")
    assert not client.server.vhost.queues


def alternate(session: Session, **declaration: Any) -> None:
    """Queue q, whose alternate exchange leads to queue `kept`."""
    session.declare_exchange("alternate", "fanout")
    session.declare("kept")
    session.bind("kept", "alternate")
    session.declare("q", alternate_exchange="alternate", **declaration)


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-routing")
def test_rejected_messages_go_to_the_alternate_exchange(session: Session) -> None:
    alternate(session)
    session.publish(b"no")
    session.subscribe()
    session.reject(session.transfer().id)
    assert (got(session), got(session, "kept")) == (0, 1)


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-routing")
@pytest.mark.rule("0-10/queue.delete/orphans")
def test_orphans_go_to_the_alternate_exchange_in_their_order(session: Session) -> None:
    alternate(session)
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    session.call(x.QueueDelete(queue="q"))
    session.subscribe("kept")
    assert session.bodies() == [b"1", b"2", b"3"]


@pytest.mark.rule("0-10/queue.declare/alternate-exchange-routing")
@pytest.mark.parametrize("bound", [False, True])
def test_what_the_alternate_exchange_cannot_route_is_gone_all_the_same(session: Session, bound: bool) -> None:
    session.declare("q", alternate_exchange="amq.fanout")
    if bound:
        session.bind("q", "amq.fanout")  # It is on its way out itself.
    session.publish(b"no")
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    assert got(session) == 0
    session.expect_nothing()


@pytest.mark.rule("0-10/queue.delete/orphans")
def test_orphans_of_a_queue_without_alternate_exchange_are_discarded(session: Session) -> None:
    session.declare("q")
    session.declare("other")
    session.bind("other", "amq.fanout")
    session.publish()
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    assert (got(session), got(session, "other")) == (0, 0)


# --- delete and purge --------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue.delete/queue-empty-name")
@pytest.mark.parametrize("name", ["", None])
def test_deleting_no_queue_is_an_error(spec: Server, lenient: Server, name: str | None) -> None:
    refused(spec.open(), x.QueueDelete(queue=name), 542, "queue")
    refused(lenient.open(), x.QueueDelete(queue=name), 404, "queue")


@pytest.mark.rule("0-10/queue.purge/queue-empty-name")
@pytest.mark.parametrize("name", ["", None])
def test_purging_no_queue_is_an_error(spec: Server, lenient: Server, name: str | None) -> None:
    refused(spec.open(), x.QueuePurge(queue=name), 542, "queue")
    refused(lenient.open(), x.QueuePurge(queue=name), 531, "queue")


@pytest.mark.rule("0-10/queue.delete/queue-queue-exists")
@pytest.mark.rule("0-10/queue.purge/queue-queue-exists")
@pytest.mark.parametrize("kind", [x.QueueDelete, x.QueuePurge])
def test_a_queue_that_is_not_there(client: Client, kind: type[x.QueueDelete] | type[x.QueuePurge]) -> None:
    refused(client, kind(queue="missing"), 404, "queue")


def kept(client: Client, command: Command) -> None:
    """The command fails for what is in the queue or takes from it, and the queue stays."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, 406)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    assert "q" in client.server.vhost.queues


@pytest.mark.rule("0-10/queue.delete/if-unused-if-unused-flag")
def test_if_unused_spares_a_queue_with_a_subscription(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.subscribe()
    kept(client, x.QueueDelete(queue="q", if_unused=True))
    session.call(x.MessageCancel(destination="d"))
    session.call(x.QueueDelete(queue="q", if_unused=True))
    assert not exists(session)


@pytest.mark.rule("0-10/queue.delete/if-empty-not-empty")
def test_if_empty_spares_a_queue_with_a_message(client: Client) -> None:
    session = client.session()
    session.declare("q")
    session.publish()
    kept(client, x.QueueDelete(queue="q", if_empty=True))
    assert got(session) == 1
    session.call(x.QueuePurge(queue="q"))
    session.call(x.QueueDelete(queue="q", if_empty=True))
    assert not exists(session)


def test_bindings_go_with_their_queue(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.direct", "k")
    session.call(x.QueueDelete(queue="q"))
    session.declare("q")
    session.publish(exchange="amq.direct", key="k")
    assert got(session) == 0


@pytest.mark.rule("0-10/queue.purge/empty")
def test_a_purged_queue_is_empty(session: Session) -> None:
    session.declare("q")
    for _ in range(5):
        session.publish()
    assert got(session) == 5
    session.call(x.QueuePurge(queue="q"))
    assert got(session) == 0


@pytest.mark.rule("0-10/queue.purge/pending-messages")
def test_what_was_sent_and_not_accepted_is_not_purged(session: Session) -> None:
    session.declare("q")
    session.publish(b"held")
    session.publish(b"waits")
    session.subscribe(credit=1)
    held = session.transfer()
    session.call(x.QueuePurge(queue="q"))
    session.release(held.id)
    assert got(session) == 1
    session.flow(1)
    assert session.bodies() == [b"held"]


@pytest.mark.rule("0-10/queue.purge/subscribers-stay")
def test_subscriptions_survive_a_purge(session: Session) -> None:
    session.declare("q")
    session.subscribe()
    session.call(x.QueuePurge(queue="q"))
    session.publish(b"after")
    assert session.bodies() == [b"after"]


# --- query -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue.query/result")
def test_what_a_query_tells(session: Session) -> None:
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
    session.declare(
        "q",
        alternate_exchange="amq.fanout",
        durable=True,
        exclusive=True,
        auto_delete=True,
        arguments=arguments,
    )
    session.publish()
    session.publish()
    session.subscribe(credit=None)
    found = session.query()
    assert (found.queue, found.alternate_exchange) == ("q", "amq.fanout")
    assert (found.durable, found.exclusive, found.auto_delete) == (True, True, True)
    assert found.arguments is not None and found.arguments.items() >= arguments.items()
    assert (found.message_count, found.subscriber_count) == (2, 1)


@pytest.mark.rule("0-10/queue.query/result")
def test_numbers_are_told_even_if_they_are_nought(session: Session) -> None:
    session.declare("q")
    found = session.query()
    assert (found.durable, found.exclusive, found.auto_delete) == (False, False, False)
    assert (found.message_count, found.subscriber_count) == (0, 0)
    assert found.alternate_exchange is None


@pytest.mark.rule("0-10/queue.query/result")
def test_messages_that_are_held_do_not_count(session: Session) -> None:
    session.declare("q")
    session.publish()
    session.publish()
    session.subscribe(credit=1)
    held = session.transfer()
    assert got(session) == 1
    session.release(held.id)
    assert got(session) == 2


@pytest.mark.rule("0-10/queue.query/missing")
def test_a_query_for_what_is_missing_is_no_error(session: Session) -> None:
    found = session.query("missing")
    assert found == structs.QueueQueryResult()
    assert exchange_exists(session, "amq.direct")
