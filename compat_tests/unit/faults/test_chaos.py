"""Faults that only chaos draws."""

from __future__ import annotations

import pytest

from compat_tests.unit.faults.server import FaultServer
from fakeamqp.model.access import Permission
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def test_chaos_cancels_the_consumers_of_the_queue_that_a_delivery_came_from(
    server: FaultServer,
) -> None:
    """In its virtual host, and of no other queue."""
    capable = {"capabilities": {"consumer_cancel_notify": True}}
    server.state.add_virtual_host("shop")
    server.state.access.users["guest"].permissions["shop"] = Permission()
    elsewhere = server.client(client_properties=capable)
    client = server.client(client_properties=capable, virtual_host="shop")
    for each in (elsewhere, client):
        for queue in ("q", "other"):
            each.declare(queue)
            each.consume(queue, f"of-{queue}")
    client.fill("q", b"m")
    tag = client.delivery().method.delivery_tag
    server.faults.chaos(1, {"cancel-consumers": 1.0})
    client.ack(tag)
    server.settle()
    assert client.expect(m.BasicCancel).consumer_tag == "of-q"
    client.expect_nothing()
    elsewhere.expect_nothing()
    queues = server.state.virtual_hosts["shop"].queues
    assert [len(queues[name].subscriptions) for name in ("q", "other")] == [0, 1]


def test_chaos_cancels_nothing_if_the_queue_of_a_delivery_has_no_consumer(server: FaultServer) -> None:
    client = server.client()
    client.declare("q")
    client.fill("q", b"m")
    client.send(m.BasicGet(queue="q"))
    tag = client.expect(m.BasicGetOk).delivery_tag
    client.inbox.clear()
    server.faults.chaos(1, {"cancel-consumers": 1.0})
    client.ack(tag)
    server.settle()
    assert not any("has failed" in each for each in server.said)
    client.expect_nothing()
    assert len(server.state.virtual_hosts["/"].queues["q"].unacked) == 0


def test_chaos_restarts_the_broker_without_a_crash(server: FaultServer) -> None:
    client = server.client()
    server.faults.chaos(1, {"restart": 1.0})
    client.publish()
    assert server.restarts == []
    server.settle()
    assert server.restarts == [(False, True)]


def test_restart_that_fails_is_reported_with_its_rule(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restart(**_how: bool) -> None:
        raise OSError("no")

    monkeypatch.setattr(server, "restart", restart)
    server.faults.chaos(1, {"restart": 1.0})
    server.client().publish()
    server.settle()
    assert any("has failed" in each for each in server.said)
