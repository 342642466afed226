"""Leases: exclusive queues, by which only one of several connections goes on."""

from __future__ import annotations

from hashlib import sha256

import pytest

from compat_tests.unit.spark.wire.peers import options
from compat_tests.unit.spark.wire.played import Connection, refusal
from fakeamqp import Broker
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.wire import lease
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.lease import (
    LeaseRefused,
    LeaseTaken,
    is_held,
    lease_name,
    release_lease,
    take_lease,
)


def test_a_lease_is_waited_for_with_growing_pauses(monkeypatch):
    played, between = Connection(), []
    monkeypatch.setattr(lease, "time", played)
    played.ready = [refusal(405, "RESOURCE_LOCKED")] * 6 + [0]
    take_lease(played, "name", 9.0, lambda: between.append(played.now))
    assert played.pauses == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]
    assert len(between) == 6
    assert played.leases == {"name"}
    played.pauses.clear()
    played.ready = [refusal(405, "RESOURCE_LOCKED")]
    with pytest.raises(LeaseTaken, match=r"the lease 'other' was held by another connection for 0\.25 s"):
        take_lease(played, "other", 0.25)
    assert played.pauses == pytest.approx([0.05, 0.1, 0.1])
    played.ready = [refusal(403, "ACCESS_REFUSED")]
    with pytest.raises(LeaseRefused, match=r"cannot declare the lease 'other': .* 403 ACCESS_REFUSED"):
        take_lease(played, "other", 9.0)
    assert played.leases == {"name"}


def test_error_between_two_attempts_ends_the_wait():
    played = Connection()
    played.ready = [refusal(405, "RESOURCE_LOCKED")]

    def stop():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        take_lease(played, "name", 9.0, stop)
    assert played.pauses == []


def test_a_lease_is_an_exclusive_queue_of_its_connection():
    with Broker() as broker, WireConnection(options(broker.url)) as connection:
        with WireConnection(options(broker.url)) as other:
            take_lease(other, "amqp.lease.x", 0)
            assert is_held(connection, "amqp.lease.x")
            assert not is_held(connection, "amqp.lease.y")
            assert not is_held(other, "amqp.lease.x")
            with pytest.raises(LeaseTaken):
                take_lease(connection, "amqp.lease.x", 0)
            assert connection.lost is None
        take_lease(connection, "amqp.lease.x", 10)
        assert connection.channels == {}
        broker.connections[0].close(320, "maintenance")
        with pytest.raises(ConnectionLost, match="maintenance"):
            take_lease(connection, "amqp.lease.z", 10)


def test_released_lease_is_free_while_the_connection_stays_open():
    with (
        Broker() as broker,
        WireConnection(options(broker.url)) as connection,
        WireConnection(options(broker.url)) as other,
    ):
        take_lease(connection, "amqp.lease.x", 0)
        release_lease(other, "amqp.lease.x")  # It is not its own.
        assert is_held(other, "amqp.lease.x")
        release_lease(connection, "amqp.lease.x")
        release_lease(connection, "amqp.lease.x")
        assert connection.leases == set()
        take_lease(other, "amqp.lease.x", 0)


def test_lease_name_has_id_and_queue_or_hash_of_long_queue_name():
    assert lease_name("id") == "amqp.lease.id"
    assert lease_name("id", "orders") == "amqp.lease.id.orders"
    assert lease_name("id", "x" * 241) == "amqp.lease.id." + "x" * 241
    assert lease_name("id", "x" * 242) == f"amqp.lease.id.{sha256(b'x' * 242).hexdigest()}"
    assert len(lease_name("id", "é" * 200)) < 100
    long, longer = lease_name("id", "x" * 255), lease_name("id", "x" * 254)
    assert long != longer
    assert len(long) <= 255
