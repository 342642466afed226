"""Distributed transactions of 0-9, with a test for a coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.broker.test_amqp_0_9 import Client
from fakeamqp import Broker
from fakeamqp.model.errors import ModelError
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.public import Coordinator

OPTIONS = {"clock": "virtual"}


@pytest.fixture
def coordinator(broker: Broker) -> Coordinator:
    return broker.admin.amqp_0_9.coordinator()


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    """A client that has published to a durable queue "q" in transaction "t"."""
    client = Client(broker)
    client.call(m.QueueDeclare(queue="q", durable=True), m.QueueDeclareOk)
    client.call(m.DtxSelect(), m.DtxSelectOk)
    client.call(m.DtxStart(dtx_identifier="t"), m.DtxStartOk)
    client.publish(b"body", routing_key="q", delivery_mode=2)
    assert count(client) == 0
    yield client
    client.drop()


def count(client: Client) -> int:
    return client.call(m.QueueDeclare(queue="q", passive=True), m.QueueDeclareOk).message_count


@pytest.mark.rule("0-9/dtx/model")
@pytest.mark.parametrize("prepared", [False, True])
def test_commit_by_the_coordinator_publishes_the_messages(
    client: Client, coordinator: Coordinator, prepared: bool
) -> None:
    (transaction,) = coordinator.transactions
    assert transaction == ("t", "active", 1, 0)
    if prepared:
        coordinator.prepare("t")
        assert coordinator.transactions[0].state == "prepared"
    assert count(client) == 0
    coordinator.commit("t")
    assert count(client) == 1
    assert coordinator.transactions == ()
    client.publish(b"on its own", routing_key="q", delivery_mode=2)
    assert count(client) == 2


@pytest.mark.rule("0-9/dtx/model")
def test_rollback_by_the_coordinator_discards_the_messages(client: Client, coordinator: Coordinator) -> None:
    coordinator.rollback("t")
    assert count(client) == 0
    assert coordinator.transactions == ()
    assert "0 transactions" in repr(coordinator)


def test_timed_out_transaction_cannot_be_prepared_or_committed(
    client: Client, coordinator: Coordinator, broker: Broker
) -> None:
    broker.clock.advance(61)
    for decide in (coordinator.prepare, coordinator.commit):
        with pytest.raises(ModelError, match=r"transaction 't' is rolled back \(xa-rbtimeout\)"):
            decide("t")
    assert count(client) == 0
    assert coordinator.transactions == ()


def test_prepared_transaction_survives_a_crash(
    client: Client, coordinator: Coordinator, broker: Broker
) -> None:
    coordinator.prepare("t")
    broker.restart(crash=True)
    assert [each.identifier for each in coordinator.transactions] == ["t"]
    coordinator.commit("t")
    assert broker.queue("q").messages[0].body == b"body"


def test_decision_on_an_unknown_transaction_is_refused(coordinator: Coordinator, broker: Broker) -> None:
    for decide in (coordinator.prepare, coordinator.commit, coordinator.rollback):
        with pytest.raises(ModelError, match="no branch"):
            decide("unknown")
    with pytest.raises(ModelError):
        broker.admin.amqp_0_9.coordinator("/missing")
