"""Class tx of 0-9, where its text or its clients want something else than 0-9-1."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


@rule("0-9/tx.rollback/undoes-acks#again")
@pytest.mark.deviates("0-9/tx.rollback/undoes-acks#outstanding")
@pytest.mark.letter
def test_lenient_rollback_redelivers_acked_messages_at_once(lenient: Server) -> None:
    """Clients in the field wait for it, without basic.recover, which the text forbids there."""
    client = lenient.client()
    client.declare("q")
    client.fill("q", b"1", b"2")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.consume("q")
    assert client.bodies() == [b"1", b"2"]
    client.ack(2, multiple=True)
    client.publish(b"dropped", routing_key="q")
    client.call(m.TxRollback(), m.TxRollbackOk)
    assert client.bodies() == [b"1", b"2"]
    client.ack(0, multiple=True)
    client.call(m.TxCommit(), m.TxCommitOk)
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 0


@rule("0-9/tx.rollback/undoes-acks#outstanding", "0-9/tx.rollback/undoes-acks#again")
@pytest.mark.parametrize("how", [m.BasicAck, m.BasicReject], ids=lambda each: each.NAME)
def test_spec_rollback_restores_settled_deliveries_under_their_old_tags(
    spec: Server, how: type[m.BasicAck | m.BasicReject]
) -> None:
    client = spec.client()
    client.declare("q")
    client.fill("q", b"1", b"2", b"3")
    client.call(m.TxSelect(), m.TxSelectOk)
    for _ in range(3):
        client.get("q")
    client.send(how(delivery_tag=2))
    client.call(m.TxRollback(), m.TxRollbackOk)
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    client.ack(2, multiple=True)
    client.call(m.TxCommit(), m.TxCommitOk)
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"3"]


@pytest.mark.deviates("0-9/tx.rollback/undoes-acks#outstanding")
@pytest.mark.letter
def test_lenient_rollback_requeues_an_acked_message_from_get(lenient: Server) -> None:
    client = lenient.client()
    client.declare("q")
    client.fill("q", b"1", b"2")
    client.call(m.TxSelect(), m.TxSelectOk)
    for _ in range(2):
        client.get("q")
    client.ack(1)
    client.call(m.TxRollback(), m.TxRollbackOk)
    again = client.get("q")
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"1", True)
    client.ack(2)
    client.ack(again.method.delivery_tag)
    client.call(m.TxCommit(), m.TxCommitOk)
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 0


def test_immediate_message_without_a_consumer_is_returned_at_commit(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(b"now", routing_key="q", immediate=True)
    client.expect_nothing()
    client.send(m.TxCommit())
    assert client.expect_content(m.BasicReturn).method.reply_code == 313
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
    client.send(m.TxCommit())
    client.drop()  # Before the client has read commit-ok.
    client = work()  # The client cannot tell, and does its work again.
    client.call(m.TxCommit(), m.TxCommitOk)
    client.drop()
    assert server.client().empty("q") == [b"work", b"work"]


@rule("0-9/tx/one-and-a-half-phase")
def test_transaction_with_an_incomplete_commit_frame_has_no_effect(server: Server) -> None:
    client = server.client()
    client.declare("q")
    client.fill("q", b"to acknowledge")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.get("q")
    client.ack(1)
    client.publish(b"work", routing_key="q")
    client.send_bytes(client.method_frame(m.TxCommit())[:-1])
    client.drop()
    assert server.client().empty("q") == [b"to acknowledge"]


@rule("0-9/tx/one-and-a-half-phase")
def test_acknowledgements_are_not_lost_with_the_confirmation_of_their_commit(server: Server) -> None:
    client = server.client()
    client.declare("q")
    client.fill("q", b"settled")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.get("q")
    client.ack(1)
    client.send(m.TxCommit())
    client.drop()
    assert server.client().count("q") == 0
