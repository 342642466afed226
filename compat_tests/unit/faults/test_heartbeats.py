"""Heartbeats that are lost, in either direction, and late ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.unit.faults.server import FaultServer
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


def beat(server: FaultServer, client: Client, seconds: float) -> None:
    """Time passes, in which the client sends a heartbeat every second."""
    for _ in range(int(seconds)):
        if not client.closed:
            client.send_bytes(HEARTBEAT)
        server.advance(1)


def heartbeats(client: Client) -> int:
    count = 0
    while client.inbox:
        assert client.take_frame().type == 8
        count += 1
    return count


def test_connection_with_dropped_client_heartbeats_is_aborted(server: FaultServer) -> None:
    rule = server.faults.on("heartbeat").drop()
    client = server.client(heartbeat=5)
    beat(server, client, 9)
    assert not client.closed
    beat(server, client, 6)
    assert client.connection.aborted
    assert rule.hits >= 10


def test_only_rules_that_drop_received_heartbeats_enforce_heartbeats(faults: Faults) -> None:
    held: list[bool] = []
    port: Any = SimpleNamespace(enforce_heartbeats=lambda: held.append(True))
    rules = [
        faults.on("heartbeat", direction="sent").drop(),
        faults.on("basic.publish").drop(),
        faults.on("heartbeat").delay(1),
    ]
    for rule in rules:
        rule._enforce_heartbeats(port)
    assert held == []
    faults.on("heartbeat").drop()._enforce_heartbeats(port)
    assert held == [True]


def test_client_with_dropped_heartbeats_stays_connected_while_it_sends_methods(server: FaultServer) -> None:
    server.faults.on("heartbeat").drop()
    client = server.client(heartbeat=5)
    for _ in range(5):
        beat(server, client, 6)
        client.send(m.QueueDeclare(queue="q"))
    assert not client.closed


def test_client_heartbeats_count_again_after_the_drop_rule_is_removed(server: FaultServer) -> None:
    client = server.client(heartbeat=5)
    with server.faults.on("heartbeat").drop():
        beat(server, client, 6)
    beat(server, client, 60)
    assert not client.closed


def test_heartbeats_are_dropped_on_the_named_connection_only(server: FaultServer) -> None:
    server.faults.on("heartbeat", connection="c1").drop()
    one, two = server.client(heartbeat=5), server.client(heartbeat=5)
    for _ in range(15):
        for client in (one, two):
            if not client.closed:
                client.send_bytes(HEARTBEAT)
        server.advance(1)
    assert (one.closed, two.closed) == (True, False)


def test_dropped_heartbeats_of_the_broker_are_not_sent(server: FaultServer) -> None:
    client = server.client(heartbeat=4)
    rule = server.faults.on("heartbeat", direction="sent").drop().times(2)
    beat(server, client, 5)
    assert (rule.hits, heartbeats(client)) == (2, 0)
    beat(server, client, 4)
    assert heartbeats(client) > 0


def test_delayed_heartbeat_of_the_broker_is_sent_late(server: FaultServer) -> None:
    client = server.client(heartbeat=8)
    server.faults.on("heartbeat", direction="sent").delay(3).once()
    server.advance(6)
    assert heartbeats(client) == 0
    server.advance(1.5)
    assert heartbeats(client) == 1
    server.advance(4.5)
    assert heartbeats(client) == 1


def test_delayed_client_heartbeats_keep_the_connection_open(server: FaultServer) -> None:
    """Their bytes have come, and they are on no channel that could wait."""
    server.faults.on("heartbeat").delay(1)
    client = server.client(heartbeat=5)
    beat(server, client, 20)
    client.send(m.QueueDeclare(queue="q"))
    assert not client.closed
