"""Class queue: declare, delete, purge and query."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import exists as exchange_exists, got, refused
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.scripted.contents_0_10 import Session as FilesAndStreams
from compat_tests.tools.matrix import marked, rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule


def exists(session: Session, name: str = "q") -> bool:
    return session.query(name).queue == name


# --- names -------------------------------------------------------------------------------------------
@rule("0-10/queue/name#longest", "0-10/queue/name#utf-8")
@pytest.mark.parametrize("name", ["_x", "9", "q", "ö", "ü" * 127 + "u", "q" * 255, "a-b.c d"])
def test_queue_name_may_hold_utf_8_and_255_octets(session: Session, name: str) -> None:
    session.declare(name)
    assert exists(session, name)


def declare(queue: str | None, **fields: Any) -> x.QueueDeclare:
    return x.QueueDeclare(queue=queue, **fields)


LENIENT, SPEC, BOTH = ["rabbitmq-4.3"], ["spec"], ["rabbitmq-4.3", "spec"]
INVALID_NAME = rule(
    "0-10/queue/name#empty",
    "0-10/queue/name#first",
    "0-10/queue.declare/no-server-names#required",
    "0-10/queue.declare/no-server-names#none",
)
RESERVED = rule("0-10/queue.declare/queue-reserved-prefix#active")
UNKNOWN_ARGUMENT = rule("0-10/queue.declare/arguments-unknown-argument")
UNSUITABLE = rule("0-10/encoding/domain-check#unsuitable")
MISSING = rule("0-10/queue.declare/passive-passive")
MISSING_ALTERNATE = rule("0-10/queue.declare/alternate-exchange-unknown-exchange")
ANOTHER_ALTERNATE = rule("0-10/queue.declare/alternate-exchange-pre-existing-exchange#another")


@pytest.mark.parametrize(
    ("personalities", "command", "code", "field"),
    marked(
        *((INVALID_NAME, SPEC, declare(name), 531, "queue") for name in ("", None, "-x", ".x", " ")),
        (RESERVED, SPEC, declare("amq.mine"), 530, "queue"),
        ((), LENIENT, declare("amq.rabbitmq.reply-to"), 530, "queue"),
        (MISSING, BOTH, declare("missing", passive=True), 404, "queue"),
        (MISSING_ALTERNATE, BOTH, declare("new", alternate_exchange="missing"), 404, "alternate_exchange"),
        *(
            (ANOTHER_ALTERNATE, BOTH, declare(name, **again), 530, "alternate_exchange")
            for name in ("q", "has alternate")
            for again in (
                {"alternate_exchange": "amq.topic"},
                {"alternate_exchange": "amq.topic", "passive": True},
            )
        ),
        (UNKNOWN_ARGUMENT, SPEC, declare("new", arguments={"x-nope": 1}), 540, "arguments"),
        ((), SPEC, declare("new", arguments={"qpid.max_count": 5}), 540, "arguments"),
        ((), SPEC, declare("new", arguments={"qpid.max_size": 5}), 540, "arguments"),
        *(
            ((), LENIENT, declare("new", arguments={name: value}), 542, "arguments")
            for name in ("qpid.max_count", "qpid.max_size")
            for value in (-1, 1.5, "many", "2.5", 3.14)
        ),
        ((), LENIENT, declare("new", arguments={"qpid.policy_type": "flow_to_disk"}), 542, "arguments"),
        ((), LENIENT, declare("new", arguments={"qpid.priorities": "many"}), 542, "arguments"),
        *(
            (UNSUITABLE, BOTH, declare("new", arguments=arguments), 542, "arguments")
            for arguments in (
                {"x-message-ttl": -1},
                {"x-message-ttl": "soon"},
                {"x-max-length": -1},
                {"x-dead-letter-exchange": 7},
                {"x-queue-type": "nosuch"},
                {"x-queue-type": "quorum"},  # Such queues are durable.
            )
        ),
    ),
    ids=repr,
)
def test_invalid_declaration_fails_and_changes_no_queue(
    personalities: list[str], command: x.QueueDeclare, code: int, field: str
) -> None:
    for name in personalities:
        client = Server(name).open()
        session = client.session().declare("q").declare("has alternate", alternate_exchange="amq.fanout")
        before = [session.query(queue) for queue in ("q", "has alternate")]
        exception = refused(client, command, code, field)
        if name_of_argument := next((each for each in command.arguments or () if "qpid" in each), None):
            assert name_of_argument in (exception.description or "")
        assert [session.query(queue) for queue in client.server.vhost.queues] == before


def test_qpid_queue_limits_may_be_texts(lenient: Server) -> None:
    session = lenient.session()
    for name in ("qpid.max_count", "qpid.max_size"):
        session.declare(name, arguments={name: "5"})


@pytest.mark.deviates("0-10/queue/name#empty", "0-10/queue/name#first")
@rule("0-10/queue.declare/no-server-names#none")
@pytest.mark.deviates("0-10/queue.declare/no-server-names#required")
@pytest.mark.parametrize("name", ["", None, "-x"])
def test_default_personality_declares_queue_with_unusual_name(lenient: Server, name: str | None) -> None:
    session = lenient.session().perform(x.QueueDeclare(queue=name))
    assert list(lenient.vhost.queues) == [name or ""]
    session.publish(key=name)
    assert got(session, name or "") == 1


@pytest.mark.deviates("0-10/queue.declare/queue-reserved-prefix#active")
def test_default_personality_accepts_declaration_of_reserved_queue_name(lenient: Server) -> None:
    session = lenient.session().perform(x.QueueDeclare(queue="amq.mine"))
    assert exists(session, "amq.mine")


@rule("0-10/queue.declare/queue-reserved-prefix#passive", "0-10/queue.declare/passive-passive")
@rule("0-10/queue.declare/arguments-passive")
def test_passive_declaration_ignores_reserved_name_and_arguments(session: Session) -> None:
    session.server.vhost.queues.declare("amq.theirs", reserved=True)
    session.declare("q").perform(declare("amq.theirs", passive=True))
    session.perform(declare("q", passive=True, arguments={"x-nope": 1})).expect_nothing()


# --- declare -----------------------------------------------------------------------------------------
@rule("0-10/queue/grammar")
def test_queue_can_be_declared_queried_purged_and_deleted(session: Session) -> None:
    assert session.declare("q").publish().query().message_count == 1
    assert session.perform(x.QueuePurge(queue="q")).query().message_count == 0
    session.perform(x.QueueDelete(queue="q"))
    assert not exists(session)


@rule("0-10/queue.declare/minimum-queues")
def test_three_hundred_queues_can_be_declared(session: Session) -> None:
    for number in range(300):
        session.declare(f"q{number}")
    assert all(exists(session, f"q{number}") for number in range(300))


@rule("0-10/queue.declare/durable-types#durable", "0-10/queue.declare/durable-types#transient")
@rule("0-10/queue.declare/durable-pre-existence")
@pytest.mark.parametrize("durable", [False, True])
def test_redeclaration_does_not_change_durability_of_queue(session: Session, durable: bool) -> None:
    session.declare("q", durable=durable)
    assert session.declare("q", durable=not durable).query().durable is durable


@rule("0-10/queue.declare/durable-persistence")
@pytest.mark.parametrize("crash", [False, True])
def test_durable_queue_and_its_persistent_message_survive_restart(server: Server, crash: bool) -> None:
    session = server.session().declare("q", durable=True).declare("transient")
    session.publish(b"persistent", delivery_mode=2).publish(b"transient", delivery_mode=1)
    session = server.restart(crash=crash).session()
    assert not exists(session, "transient")
    assert session.publish(b"new").subscribe().bodies() == [b"persistent", b"new"]


@rule("0-10/queue.declare/auto-delete-pre-existence")
@pytest.mark.parametrize("auto_delete", [False, True])
def test_redeclaration_does_not_change_auto_delete_of_queue(session: Session, auto_delete: bool) -> None:
    session.declare("q", auto_delete=auto_delete)
    assert session.declare("q", auto_delete=not auto_delete).query().auto_delete is auto_delete
    session.subscribe().perform(x.MessageCancel(destination="d"))
    assert exists(session) is not auto_delete


@rule("0-10/queue.declare/auto-delete-last-consumer")
@pytest.mark.parametrize("how", ["cancel", "detach"])
def test_auto_delete_queue_is_deleted_with_its_last_subscription(client: Client, how: str) -> None:
    session, other = client.session(), client.session(b"other", channel=1)
    session.declare("q", auto_delete=True).subscribe(destination="one")
    other.subscribe(destination="two")
    session.perform(x.MessageCancel(destination="one"))
    assert exists(session)
    if how == "cancel":
        other.perform(x.MessageCancel(destination="two"))
    else:
        other.detach()
    assert not exists(session)


@rule("0-10/queue.declare/auto-delete-never-used")
def test_auto_delete_queue_never_subscribed_is_not_deleted(server: Server) -> None:
    client = server.open()
    session, other = client.session(), client.session(b"other", channel=1)
    other.declare("q", auto_delete=True).detach()
    server.advance(3600)
    assert exists(session)


# --- arguments ---------------------------------------------------------------------------------------
@pytest.mark.deviates("0-10/queue.declare/arguments-unknown-argument")
def test_default_personality_accepts_unknown_queue_arguments(lenient: Server) -> None:
    session = lenient.session().declare("q", arguments={"x-nope": 1})
    assert (session.query().arguments or {})["x-nope"] == 1


def test_x_message_ttl_and_x_max_length_arguments_apply_to_queue(server: Server) -> None:
    session = server.session().declare("ttl", arguments={"x-message-ttl": 1000})
    session.declare("short", arguments={"x-max-length": 2})
    for queue in ("ttl", "short"):
        for body in (b"1", b"2", b"3"):
            session.publish(body, key=queue)
    assert (got(session, "ttl"), got(session, "short")) == (3, 2)
    server.advance(2)
    assert (got(session, "ttl"), got(session, "short")) == (0, 2)
    assert session.subscribe("short").bodies() == [b"2", b"3"]


@pytest.mark.parametrize("kind", ["quorum", "stream"])
@pytest.mark.parametrize("text", [str, str.encode])
def test_quorum_and_stream_queues_can_be_declared(server: Server, kind: str, text: Any) -> None:
    session = server.session().declare("q", durable=True, arguments={"x-queue-type": text(kind)})
    assert server.vhost.queues["q"].type_name == kind
    assert (session.query().arguments or {})["x-queue-type"] == kind


def test_queue_query_returns_arguments_declared_by_0_9_1_client(lenient: Server) -> None:
    older = lenient.client()
    sent = {"text": "x" * 70_000, "number": -(2**40), "table": {"a": [1, None]}}
    older.perform(m.QueueDeclare(queue="older", arguments=sent))
    told = lenient.session().query("older").arguments or {}
    assert [told[name] for name in sent] == [b"x" * 70_000, -(2**40), {"a": [1, None]}]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(2**63, str(2**63)), (UUID(int=7), str(UUID(int=7))), (b"text", "text"), (b"\xff", b"\xff")],
)
def test_queue_arguments_are_converted_to_all_protocols_types(lenient: Server, sent: Any, kept: Any) -> None:
    session = lenient.session().declare("q", arguments={"a": sent})
    assert (session.query().arguments or {})["a"] == kept
    assert lenient.vhost.queues["q"].arguments["a"] == kept


@pytest.mark.parametrize("passive", [False, True])
def test_declaration_of_existing_queue_renews_its_x_expires(server: Server, passive: bool) -> None:
    session = server.session().declare("q", arguments={"x-expires": 10_000})
    session.after(6).declare("q", passive=passive)
    server.advance(6)
    assert exists(session)
    server.advance(6)
    assert not exists(session)


@rule("0-10/queue/any-content#any", "0-10/queue/any-content#independently")
def test_queue_delivers_messages_files_and_streams_to_consumers_of_their_class(session: Session) -> None:
    session.declare("q").publish(b"message")
    contents = [FilesAndStreams(session, content_class) for content_class in ("file", "stream")]
    for each in contents:
        each.publish(each.content_class.encode())
    assert session.query().message_count == 3
    assert session.subscribe(credit=1).bodies() == [b"message"]
    contents[0].qos(prefetch_count=1)
    for each in contents:
        each.consume(tag=each.content_class)
        assert each.bodies() == [each.content_class.encode()]
    assert session.query().message_count == 0


def _nameless(command: str) -> list[pytest.MarkDecorator]:
    return [
        rule(f"0-10/queue.{command}/queue-empty-name#raises", f"0-10/queue.{command}/queue-empty-name#code"),
        pytest.mark.deviates(f"0-10/queue.{command}/queue-empty-name#code"),
    ]


@rows(
    "kind, codes",
    pytest.param(x.QueueDelete, {"rabbitmq-4.3": 404, "spec": 542}, marks=_nameless("delete")),
    pytest.param(x.QueuePurge, {"rabbitmq-4.3": 531, "spec": 542}, marks=_nameless("purge")),
)
@rule("0-10/queue.delete/queue-queue-exists", "0-10/queue.purge/queue-queue-exists")
def test_delete_and_purge_without_queue_name_or_of_missing_queue_fail(
    client: Client, kind: type[x.QueueDelete] | type[x.QueuePurge], codes: dict[str, int]
) -> None:
    code = codes[client.server.state.personality.name]
    for name in ("", None):
        refused(client, kind(queue=name), code, "queue")
    refused(client, kind(queue="missing"), 404, "queue")


def kept(client: Client, command: Command) -> None:
    """The command fails for what is in the queue or takes from it, and the queue stays."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"refused", channel=9).fails(command, 406)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    assert "q" in client.server.vhost.queues


@rule("0-10/queue.delete/if-unused-if-unused-flag")
def test_queue_delete_with_if_unused_fails_while_queue_has_subscription(client: Client) -> None:
    session = client.session().declare("q").subscribe()
    kept(client, x.QueueDelete(queue="q", if_unused=True))
    session.perform(x.MessageCancel(destination="d")).perform(x.QueueDelete(queue="q", if_unused=True))
    assert not exists(session)


@rule("0-10/queue.delete/if-empty-not-empty")
def test_queue_delete_with_if_empty_fails_while_queue_has_message(client: Client) -> None:
    session = client.session().declare("q").publish()
    kept(client, x.QueueDelete(queue="q", if_empty=True))
    assert got(session) == 1
    session.perform(x.QueuePurge(queue="q")).perform(x.QueueDelete(queue="q", if_empty=True))
    assert not exists(session)


def test_deletion_of_queue_removes_its_bindings(session: Session) -> None:
    session.declare("q").bind("q", "amq.direct", "k").perform(x.QueueDelete(queue="q"))
    session.declare("q").publish(exchange="amq.direct", key="k")
    assert got(session) == 0


@rule("0-10/queue.purge/empty")
def test_purge_removes_all_ready_messages(session: Session) -> None:
    session.declare("q")
    for _ in range(5):
        session.publish()
    assert got(session) == 5
    session.perform(x.QueuePurge(queue="q"))
    assert got(session) == 0


@rule("0-10/queue.purge/pending-messages")
def test_purge_does_not_remove_delivered_unaccepted_message(session: Session) -> None:
    session.declare("q").publish(b"held").publish(b"waits")
    held = session.subscribe(credit=1).transfer()
    session.perform(x.QueuePurge(queue="q")).release(held.id)
    assert got(session) == 1
    assert session.flow(1).bodies() == [b"held"]


@rule("0-10/queue.purge/subscribers-stay")
def test_subscription_receives_messages_after_purge(session: Session) -> None:
    session.declare("q").subscribe().perform(x.QueuePurge(queue="q"))
    assert session.publish(b"after").bodies() == [b"after"]


# --- query -------------------------------------------------------------------------------------------
@rule("0-10/queue.query/result#declaration", "0-10/queue.query/result#counts")
def test_queue_query_returns_declaration_and_counts(session: Session) -> None:
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
    session.declare(
        "q",
        alternate_exchange="amq.fanout",
        durable=True,
        exclusive=True,
        auto_delete=True,
        arguments=arguments,
    )
    found = session.publish().publish().subscribe(credit=None).query()
    assert (found.queue, found.alternate_exchange) == ("q", "amq.fanout")
    assert (found.durable, found.exclusive, found.auto_delete) == (True, True, True)
    assert found.arguments is not None and found.arguments.items() >= arguments.items()
    assert (found.message_count, found.subscriber_count) == (2, 1)


@rule("0-10/queue.query/result#declaration", "0-10/queue.query/result#counts")
def test_queue_query_returns_false_and_zero_values(session: Session) -> None:
    found = session.declare("q").query()
    assert (found.durable, found.exclusive, found.auto_delete) == (False, False, False)
    assert (found.message_count, found.subscriber_count) == (0, 0)
    assert found.alternate_exchange is None


@rule("0-10/queue.query/result#counts")
def test_queue_query_does_not_count_unaccepted_messages(session: Session) -> None:
    session.declare("q").publish().publish()
    held = session.subscribe(credit=1).transfer()
    assert got(session) == 1
    session.release(held.id)
    assert got(session) == 2


@rule("0-10/queue.query/missing")
def test_queue_query_of_missing_queue_returns_empty_result(session: Session) -> None:
    found = session.query("missing")
    assert found == structs.QueueQueryResult()
    assert exchange_exists(session, "amq.direct")
