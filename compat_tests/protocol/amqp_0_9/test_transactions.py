"""Local transactions of classes basic and message."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

rule = pytest.mark.rule


@rule("0-9/tx.rollback/undoes-acks#again")
@pytest.mark.deviates("0-9/tx.rollback/undoes-acks#outstanding")
@pytest.mark.letter
def test_lenient_rollback_redelivers_acked_messages_at_once(lenient: Server) -> None:
    """Clients in the field wait for it, without basic.recover, which the text forbids there."""
    client = lenient.client().declare("q")
    assert client.fill("q", b"1", b"2").perform(m.TxSelect()).consume("q").bodies() == [b"1", b"2"]
    client.ack(2, multiple=True).publish(b"dropped", routing_key="q").perform(m.TxRollback())
    assert client.bodies() == [b"1", b"2"]
    assert client.ack(0, multiple=True).perform(m.TxCommit()).close_channel().open_channel().count("q") == 0


@rule("0-9/tx.rollback/undoes-acks#outstanding", "0-9/tx.rollback/undoes-acks#again")
@pytest.mark.parametrize("how", [m.BasicAck, m.BasicReject], ids=lambda each: each.NAME)
def test_spec_rollback_restores_settled_deliveries_under_their_old_tags(
    spec: Server, how: type[m.BasicAck | m.BasicReject]
) -> None:
    client = spec.client().declare("q")
    client.fill("q", b"1", b"2", b"3").perform(m.TxSelect())
    for _ in range(3):
        client.get("q")
    client.send(how(delivery_tag=2)).perform(m.TxRollback()).call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    client.ack(2, multiple=True).perform(m.TxCommit())
    assert client.close_channel().open_channel().empty("q") == [b"3"]


@pytest.mark.deviates("0-9/tx.rollback/undoes-acks#outstanding")
@pytest.mark.letter
def test_lenient_rollback_requeues_an_acked_message_from_get(lenient: Server) -> None:
    client = lenient.client().declare("q")
    client.fill("q", b"1", b"2").perform(m.TxSelect())
    for _ in range(2):
        client.get("q")
    again = client.ack(1).perform(m.TxRollback()).fetch("q")
    assert (again.body, again.method.redelivered) == (b"1", True)
    client.ack(2).ack(again.method.delivery_tag).perform(m.TxCommit())
    assert client.close_channel().open_channel().count("q") == 0


def test_immediate_message_without_a_consumer_is_returned_at_commit(spec: Server) -> None:
    client = spec.client().declare("q").perform(m.TxSelect())
    client.publish(b"now", routing_key="q", immediate=True).expect_nothing()
    assert client.send(m.TxCommit()).expect_content(m.BasicReturn).method.reply_code == 313
    client.expect(m.TxCommitOk)
    assert client.count("q") == 0


# --- a connection that is lost around the commit ---------------------------------------------------------
@rule("0-9/tx/one-and-a-half-phase")
def test_committed_publish_is_kept_when_commit_ok_is_lost(server: Server) -> None:
    def work() -> Client:
        client = server.client()
        client.declare("q")
        client.call(m.TxSelect(), m.TxSelectOk)
        client.publish(b"work", routing_key="q")
        return client

    client = work()
    client.send(m.TxCommit()).drop()  # Before the client has read commit-ok.
    client = work()  # The client cannot tell, and does its work again.
    client.perform(m.TxCommit()).drop()
    assert server.client().empty("q") == [b"work", b"work"]


@rule("0-9/tx/one-and-a-half-phase")
def test_transaction_with_an_incomplete_commit_frame_has_no_effect(server: Server) -> None:
    client = server.client().declare("q")
    client.fill("q", b"to acknowledge").perform(m.TxSelect()).get("q")
    client.ack(1).publish(b"work", routing_key="q")
    client.send_bytes(client.method_frame(m.TxCommit())[:-1]).drop()
    assert server.client().empty("q") == [b"to acknowledge"]


@rule("0-9/tx/one-and-a-half-phase")
def test_acknowledgements_are_not_lost_with_the_confirmation_of_their_commit(server: Server) -> None:
    client = server.client().declare("q")
    client.fill("q", b"settled").perform(m.TxSelect()).get("q")
    client.ack(1).send(m.TxCommit()).drop()
    assert server.client().count("q") == 0


@pytest.fixture
def requester(client: Client) -> Requester:
    """Requests on channel 1, which is transactional, with a queue "q"."""
    client.declare("q").perform(m.TxSelect())
    return Requester(client)


def waiting(server: Server, queue: str = "q") -> list[bytes]:
    return [each.message.body for each in server.vhost.queues[queue].ready]


def commit(requester: Requester) -> Requester:
    requester.client.perform(m.TxCommit())
    return requester


def rollback(requester: Requester) -> Requester:
    requester.client.perform(m.TxRollback())
    return requester


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
    assert commit(requester).get("q") is None


def test_undeliverable_transfer_in_a_transaction_is_rejected_before_the_commit(requester: Requester) -> None:
    assert requester.call(m.MessageTransfer(routing_key="nowhere"), m.MessageReject).code == 0
    immediate = m.MessageTransfer(routing_key="q", immediate=True)
    assert requester.call(immediate, m.MessageReject).code == 1
    commit(requester)
    assert waiting(requester.server) == []


def test_accepted_immediate_message_is_queued_at_commit_although_its_consumer_has_left(
    server: Server, requester: Requester
) -> None:
    second = Requester(server.client()).consume("q", "d")
    requester.publish("q", b"1", immediate=True)
    second.call(m.MessageCancel(destination="d"), m.MessageOk)
    commit(requester)
    assert waiting(server) == [b"1"]


def test_transfer_by_reference_is_published_at_first_commit_after_message_close(requester: Requester) -> None:
    requester.call(m.MessageOpen(reference=b"r"), m.MessageOk)
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"r", by_reference=True)))
    commit(requester).ask(m.MessageClose(reference=b"r"))
    requester.client.inbox.clear()
    assert waiting(requester.server) == []
    commit(requester)
    assert waiting(requester.server) == [b""]


@pytest.mark.parametrize("reply", [m.MessageOk(), m.MessageReject()])
def test_answer_to_a_transfer_takes_effect_at_commit(requester: Requester, reply: Any) -> None:
    requester.client.declare("dead")
    requester.server.client().fill("q", b"1")
    requester.consume("q", "d").answer(requester.transfer().number, reply)
    assert len(requester.server.vhost.queues["q"].unacked) == 1
    assert len(commit(requester).server.vhost.queues["q"].unacked) == 0
    requester.client.drop()
    assert waiting(requester.server) == []


def test_transfer_answered_in_a_transaction_is_redelivered_after_rollback(requester: Requester) -> None:
    requester.server.client().fill("q", b"1", b"2")
    requester.consume("q", "d")
    first, second = requester.transfer(), requester.transfer()
    requester.answer(first.number)
    again = rollback(requester).transfer()
    assert (again.method.body.octets, again.method.redelivered) == (b"1", True)
    requester.client.expect_nothing()
    requester.answer(again.number).answer(second.number)
    commit(requester).client.drop()
    assert waiting(requester.server) == []


def test_message_from_get_answered_in_a_transaction_is_requeued_after_rollback(requester: Requester) -> None:
    requester.server.client().fill("q", b"1")
    asked = requester.get("q")
    assert asked is not None
    requester.answer(asked.number)
    rollback(requester)
    assert waiting(requester.server) == [b"1"]


def test_uncommitted_answer_is_undone_when_the_channel_closes(server: Server, requester: Requester) -> None:
    server.client().fill("q", b"1")
    requester.consume("q", "d").answer(requester.transfer().number).client.close_channel()
    assert waiting(server) == [b"1"]


@rule("0-9/message.transfer/transactional")
def test_a_distributed_transaction_has_transfers_and_answers(server: Server) -> None:
    client = server.client().declare("q").perform(m.DtxSelect())
    requester = Requester(client)
    client.perform(m.DtxStart(dtx_identifier="branch"))
    requester.publish("q", b"1")
    assert waiting(server) == []
