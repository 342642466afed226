"""Queues that belong to one session: who may use them, and what becomes of them when the session ends."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import got
from compat_tests.protocol.amqp_0_10.test_queue import exists
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule


def locked(client: Client, command: Command) -> Client:
    """The command fails for another session, be it of the same connection."""
    client.inbox.clear()  # Completions of what was published before.
    exception = client.session(b"locked", channel=9).fails(command, 405)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    return client


USES: list[Command] = [
    x.QueueDeclare(queue="q"),
    x.QueueDeclare(queue="q", exclusive=True),
    x.QueueDeclare(queue="q", exclusive=True, passive=True),
    x.QueueDelete(queue="q"),
    x.QueuePurge(queue="q"),
    x.ExchangeBind(queue="q", exchange="amq.direct", binding_key="k"),
    x.ExchangeUnbind(queue="q", exchange="amq.fanout", binding_key=""),
    x.MessageSubscribe(queue="q", destination="d", accept_mode=0, acquire_mode=0),
]


@rule("0-10/queue.declare/exclusive-in-use#declare", "0-10/queue.declare/exclusive-in-use#bind")
@rule("0-10/queue.declare/exclusive-in-use#subscribe", "0-10/queue.declare/exclusive-in-use#delete")
@rule("0-10/queue.declare/exclusive-per-session#sessions")
@pytest.mark.parametrize("command", USES, ids=lambda each: each.NAME)
@pytest.mark.parametrize("same_connection", [False, True])
def test_exclusive_queue_is_locked_to_others(server: Server, command: Command, same_connection: bool) -> None:
    client = server.open()
    owner = client.session().declare("q", exclusive=True)
    owner.bind("q", "amq.fanout").publish()
    locked(client if same_connection else server.open(), command)
    assert got(owner) == 1
    owner.publish(exchange="amq.fanout")
    assert got(owner) == 2


@rule("0-10/queue.declare/exclusive-in-use#own")
@pytest.mark.parametrize("command", USES, ids=lambda each: each.NAME)
def test_owner_session_may_use_its_exclusive_queue(session: Session, command: Command) -> None:
    session.declare("q", exclusive=True).bind("q", "amq.fanout").call(command)
    session.expect_nothing()


@rule("0-10/queue.declare/exclusive-in-use#passive")
@pytest.mark.deviates("0-10/queue.declare/exclusive-in-use#passive")
def test_only_spec_refuses_passive_declaration_of_exclusive_queue_of_another_session(server: Server) -> None:
    server.session().declare("q", exclusive=True)
    command = x.QueueDeclare(queue="q", passive=True)
    if server.is_spec:
        locked(server.open(), command)
    else:
        other = server.session(b"other")
        other.call(command)
        other.expect_nothing()


def test_other_sessions_may_publish_to_and_query_exclusive_queue(server: Server) -> None:
    server.session().declare("q", exclusive=True)
    found = server.session(b"other").publish().query()
    assert (found.exclusive, found.message_count) == (True, 1)


@rule("0-10/queue.declare/exclusive-types#exclusive", "0-10/queue.declare/exclusive-types#shared")
@pytest.mark.parametrize("exclusive", [False, True])
def test_queue_is_shared_or_exclusive_as_declared(server: Server, exclusive: bool) -> None:
    assert server.session().declare("q", exclusive=exclusive).query().exclusive is exclusive
    if not exclusive:
        server.session(b"other").declare("q")


def test_passive_exclusive_declaration_of_shared_queue_fails_with_resource_locked(client: Client) -> None:
    session = client.session().declare("q")
    locked(client, x.QueueDeclare(queue="q", exclusive=True, passive=True))
    assert session.query().exclusive is False


@pytest.mark.parametrize("taker", ["other", "own", None])
def test_shared_queue_becomes_exclusive_unless_subscribed_to(client: Client, taker: str | None) -> None:
    session, other = client.session(), client.session(b"other", channel=1)
    session.declare("q")
    if taker is not None:
        (session if taker == "other" else other).subscribe()
    command = x.QueueDeclare(queue="q", exclusive=True)
    if taker == "other":
        assert other.fails(command, 405).command_code == command.CODE
        assert session.query().exclusive is False
        return
    other.call(command)
    locked(client, x.QueuePurge(queue="q"))
    other.detach()
    assert session.query().exclusive is False
    session.perform(x.QueuePurge(queue="q"))


def test_exclusive_redeclaration_of_quorum_queue_fails_with_resource_locked(client: Client) -> None:
    session = client.session().declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    locked(client, x.QueueDeclare(queue="q", exclusive=True))
    assert session.query().exclusive is False


# --- the end of the session --------------------------------------------------------------------------
def end_by_detach(session: Session) -> None:
    session.detach()


def end_by_exception(session: Session) -> None:
    session.fails(x.QueueDelete(queue="missing"), 404)


def end_by_loss(session: Session) -> None:
    session.client.drop()


ENDS = [end_by_detach, end_by_exception, end_by_loss]


@rule("0-10/queue.declare/auto-delete-exclusive")
@pytest.mark.parametrize("end", ENDS)
def test_exclusive_auto_delete_queue_is_deleted_with_its_session(server: Server, end: Any) -> None:
    session = server.session().declare("q", exclusive=True, auto_delete=True)
    session.subscribe().perform(x.MessageCancel(destination="d"))
    assert exists(session), "its last subscription does not matter"
    end(session)
    assert not exists(server.session(b"other"))


@rule("0-10/queue.declare/exclusive-without-auto-delete#stays")
@rule("0-10/queue.declare/exclusive-without-auto-delete#open")
@rule("0-10/queue.declare/exclusive-per-session#until")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("exclusive", [False, True])
def test_exclusive_queue_without_auto_delete_becomes_available_when_its_session_ends(
    server: Server, end: Any, exclusive: bool
) -> None:
    session = server.session().declare("q", exclusive=True).publish(b"left behind")
    end(session)
    other = server.session(b"other")
    assert other.query().exclusive is False
    assert other.perform(x.QueueDeclare(queue="q", exclusive=exclusive)).query().exclusive is exclusive
    assert other.subscribe().bodies() == [b"left behind"]


@rule("0-10/queue.declare/exclusive-per-session#until")
def test_detached_session_keeps_its_exclusive_queue_until_timeout(server: Server) -> None:
    server.open().session(timeout=60).declare("q", exclusive=True).client.drop()
    locked(server.open(), x.QueuePurge(queue="q"))
    server.advance(61)
    server.session(b"other").perform(x.QueuePurge(queue="q"))


@rule("0-10/queue.declare/durable-persistence")
def test_durable_exclusive_queue_survives_restart_unless_auto_delete(server: Server) -> None:
    session = server.session().declare("q", durable=True, exclusive=True)
    session.declare("auto", durable=True, exclusive=True, auto_delete=True)
    session.publish(b"persistent", delivery_mode=2)
    session = server.restart().session()
    assert not exists(session, "auto")
    assert session.subscribe().bodies() == [b"persistent"]


# --- clients of other versions -----------------------------------------------------------------------
def test_exclusive_queues_are_locked_across_protocol_versions(server: Server) -> None:
    session = server.session().declare("newer", exclusive=True)
    older = server.client().perform(m.QueueDeclare(queue="older", exclusive=True))
    locked(server.open(), x.QueuePurge(queue="older"))
    older.fails(m.QueuePurge(queue="newer"), 405)
    session.detach()
    older.perform(m.ChannelOpen()).perform(m.QueuePurge(queue="newer"))


def test_queue_declared_by_0_10_can_be_used_and_deleted_by_0_9_1(server: Server) -> None:
    session, older = server.session(), server.client()
    session.declare("q")
    older.perform(m.QueueDeclare(queue="q", passive=True)).publish(b"from 0-9-1", routing_key="q")
    assert session.subscribe().bodies() == [b"from 0-9-1"]
    older.perform(m.QueueDelete(queue="q"))
    assert not server.vhost.queues


def test_0_9_1_queue_made_exclusive_by_session_is_shared_after_session_ends(server: Server) -> None:
    older, session = server.client(), server.session()
    older.declare("q")
    session.perform(x.QueueDeclare(queue="q", exclusive=True))
    older.fails(m.QueuePurge(queue="q"), 405)
    session.detach()
    older.perform(m.ChannelOpen()).perform(m.QueuePurge(queue="q"))
