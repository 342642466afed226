"""queue.declare: what a queue is, and how long it is there."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.protocol.amqp_0_10.driver import Client, Server, Session
from compat_tests.protocol.amqp_0_10.test_exchange import got, refused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x


def exists(session: Session, name: str = "q") -> bool:
    return session.query(name).queue == name


# --- names -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/queue/name#longest")
@pytest.mark.rule("0-10/queue/name#utf-8")
@pytest.mark.parametrize("name", ["_x", "9", "q", "ö", "ü" * 127 + "u", "q" * 255, "a-b.c d"])
def test_names_begin_with_a_letter_a_digit_or_an_underscore(session: Session, name: str) -> None:
    session.declare(name)
    assert exists(session, name)


@pytest.mark.rule("0-10/queue/name#empty")
@pytest.mark.rule("0-10/queue/name#first")
@pytest.mark.rule("0-10/queue.declare/no-server-names#required")
@pytest.mark.rule("0-10/queue.declare/no-server-names#none")
@pytest.mark.parametrize("name", ["", None, "-x", ".x", " "])
def test_other_names_are_illegal_by_the_text(spec: Server, name: str | None) -> None:
    refused(spec.open(), x.QueueDeclare(queue=name), 531, "queue")
    assert not spec.vhost.queues


@pytest.mark.deviates("0-10/queue/name#empty")
@pytest.mark.deviates("0-10/queue/name#first")
@pytest.mark.rule("0-10/queue.declare/no-server-names#none")
@pytest.mark.deviates("0-10/queue.declare/no-server-names#required")
@pytest.mark.parametrize("name", ["", None, "-x"])
def test_other_names_are_names_to_qpid_and_none_is_made_up(lenient: Server, name: str | None) -> None:
    session = lenient.session()
    session.call(x.QueueDeclare(queue=name))
    assert list(lenient.vhost.queues) == [name or ""]
    session.publish(key=name)
    assert got(session, name or "") == 1


@pytest.mark.rule("0-10/queue.declare/queue-reserved-prefix#active")
def test_reserved_names_cannot_be_declared_by_the_text(spec: Server) -> None:
    refused(spec.open(), x.QueueDeclare(queue="amq.mine"), 530, "queue")
    assert not spec.vhost.queues


@pytest.mark.deviates("0-10/queue.declare/queue-reserved-prefix#active")
def test_reserved_names_are_names_to_qpid(lenient: Server) -> None:
    session = lenient.session()
    session.call(x.QueueDeclare(queue="amq.mine"))
    assert exists(session, "amq.mine")


@pytest.mark.rule("0-10/queue.declare/queue-reserved-prefix#passive")
def test_a_queue_with_a_reserved_name_can_be_declared_passively(session: Session) -> None:
    session.client.server.vhost.queues.declare("amq.theirs", reserved=True)
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


@pytest.mark.rule("0-10/queue.declare/durable-types#durable")
@pytest.mark.rule("0-10/queue.declare/durable-types#transient")
@pytest.mark.rule("0-10/queue.declare/durable-pre-existence")
@pytest.mark.parametrize("durable", [False, True])
def test_whether_a_queue_is_durable_is_settled_once(session: Session, durable: bool) -> None:
    session.declare("q", durable=durable)
    session.declare("q", durable=not durable)
    assert session.query().durable is durable


@pytest.mark.rule("0-10/queue.declare/durable-types#transient")
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
def test_unknown_arguments_are_refused_by_the_text(spec: Server) -> None:
    refused(spec.open(), x.QueueDeclare(queue="q", arguments={"x-nope": 1}), 540, "arguments")
    assert not spec.vhost.queues


@pytest.mark.deviates("0-10/queue.declare/arguments-unknown-argument")
def test_unknown_arguments_are_ignored_by_qpid(lenient: Server) -> None:
    session = lenient.session()
    session.declare("q", arguments={"x-nope": 1})
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


@pytest.mark.rule("0-10/encoding/domain-check#unsuitable")
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


@pytest.mark.parametrize("name", ["qpid.max_count", "qpid.max_size"])
def test_arguments_of_apaches_brokers_are_for_clients_written_for_those(
    lenient: Server, spec: Server, name: str
) -> None:
    for value in (-1, 1.5, "many"):
        refused(lenient.open(), x.QueueDeclare(queue="q", arguments={name: value}), 542, "arguments")
    assert not lenient.vhost.queues
    lenient.session().declare("q", arguments={name: "5"})
    refused(spec.open(), x.QueueDeclare(queue="q", arguments={name: 5}), 540, "arguments")


@pytest.mark.parametrize("passive", [False, True])
def test_asking_for_a_queue_keeps_it_from_expiring(server: Server, passive: bool) -> None:
    session = server.session()
    session.declare("q", arguments={"x-expires": 10_000})
    server.advance(6)
    session.declare("q", passive=passive)
    server.advance(6)
    assert exists(session)
    server.advance(6)
    assert not exists(session)
