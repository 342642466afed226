"""Transfers and their acknowledgements in transactions."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

rule = pytest.mark.rule


@pytest.fixture
def requester(client: Client) -> Requester:
    """Requests on channel 1, which is transactional, with a queue "q"."""
    client.declare("q")
    client.call(m.TxSelect(), m.TxSelectOk)
    return Requester(client)


def waiting(server: Server, queue: str = "q") -> list[bytes]:
    return [each.message.body for each in server.vhost.queues[queue].ready]


def commit(requester: Requester) -> None:
    requester.client.call(m.TxCommit(), m.TxCommitOk)


def rollback(requester: Requester) -> None:
    requester.client.call(m.TxRollback(), m.TxRollbackOk)


@rule("0-9/message.transfer/transactional")
def test_a_message_is_distributed_at_commit(server: Server, requester: Requester) -> None:
    requester.publish("q", b"1", b"2")
    assert waiting(server) == []
    commit(requester)
    assert waiting(server) == [b"1", b"2"]


@rule("0-9/message.transfer/transactional", "0-9/request/hold-forever")
def test_a_publisher_is_answered_before_the_commit(requester: Requester) -> None:
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"1")))
    requester.response(m.MessageOk)
    rollback(requester)
    commit(requester)
    assert requester.get("q") is None


def test_undeliverable_transfer_in_a_transaction_is_rejected_before_the_commit(
    server: Server, requester: Requester
) -> None:
    assert requester.call(m.MessageTransfer(routing_key="nowhere"), m.MessageReject).code == 0
    immediate = m.MessageTransfer(routing_key="q", immediate=True)
    assert requester.call(immediate, m.MessageReject).code == 1
    commit(requester)
    assert waiting(server) == []


def test_accepted_immediate_message_is_queued_at_commit_although_its_consumer_has_left(
    server: Server, requester: Requester
) -> None:
    second = Requester(server.client())
    second.consume("q", "d")
    requester.publish("q", b"1", immediate=True)
    second.call(m.MessageCancel(destination="d"), m.MessageOk)
    commit(requester)
    assert waiting(server) == [b"1"]


def test_transfer_by_reference_is_published_at_first_commit_after_message_close(
    server: Server, requester: Requester
) -> None:
    requester.call(m.MessageOpen(reference=b"r"), m.MessageOk)
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"r", by_reference=True)))
    commit(requester)
    requester.ask(m.MessageClose(reference=b"r"))
    requester.client.inbox.clear()
    assert waiting(server) == []
    commit(requester)
    assert waiting(server) == [b""]


@pytest.mark.parametrize("reply", [m.MessageOk(), m.MessageReject()])
def test_answer_to_a_transfer_takes_effect_at_commit(
    server: Server, requester: Requester, reply: Any
) -> None:
    requester.client.declare("dead")
    server.client().fill("q", b"1")
    requester.consume("q", "d")
    requester.answer(requester.transfer().number, reply)
    assert len(server.vhost.queues["q"].unacked) == 1
    commit(requester)
    assert len(server.vhost.queues["q"].unacked) == 0
    requester.client.drop()
    assert waiting(server) == []


def test_transfer_answered_in_a_transaction_is_redelivered_after_rollback(
    server: Server, requester: Requester
) -> None:
    server.client().fill("q", b"1", b"2")
    requester.consume("q", "d")
    first, second = requester.transfer(), requester.transfer()
    requester.answer(first.number)
    rollback(requester)
    again = requester.transfer()
    assert (again.method.body.octets, again.method.redelivered) == (b"1", True)
    requester.client.expect_nothing()
    requester.answer(again.number)
    requester.answer(second.number)
    commit(requester)
    requester.client.drop()
    assert waiting(server) == []


def test_message_from_get_answered_in_a_transaction_is_requeued_after_rollback(
    server: Server, requester: Requester
) -> None:
    server.client().fill("q", b"1")
    asked = requester.get("q")
    assert asked is not None
    requester.answer(asked.number)
    rollback(requester)
    assert waiting(server) == [b"1"]


def test_uncommitted_answer_is_undone_when_the_channel_closes(server: Server, requester: Requester) -> None:
    server.client().fill("q", b"1")
    requester.consume("q", "d")
    requester.answer(requester.transfer().number)
    requester.client.close_channel()
    assert waiting(server) == [b"1"]


@rule("0-9/message.transfer/transactional")
def test_a_distributed_transaction_has_transfers_and_answers(server: Server) -> None:
    client = server.client()
    client.declare("q")
    client.call(m.DtxSelect(), m.DtxSelectOk)
    requester = Requester(client)
    client.call(m.DtxStart(dtx_identifier="branch"), m.DtxStartOk)
    requester.publish("q", b"1")
    assert waiting(server) == []
