"""Leases: exclusive queues, by which only one of several connections goes on."""

from __future__ import annotations

from hashlib import sha256

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.links import Link as PlayedLink
from fakeamqp.spark import lease
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.lease import LeaseRefused, LeaseTaken, is_held, lease_name, take_lease
from fakeamqp.spark.options import read_options


def test_a_lease_is_waited_for_with_growing_pauses(monkeypatch):
    link, between = PlayedLink(), []
    monkeypatch.setattr(lease, "time", link)
    refusals = ["405 RESOURCE_LOCKED"] * 6
    monkeypatch.setattr(lease, "_refusal", lambda *_: refusals.pop(0) if refusals else None)
    take_lease(link, "name", 9.0, lambda: between.append(link.now))
    assert link.pauses == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]
    assert len(between) == 6
    link.pauses.clear()
    refusals[:] = ["405 RESOURCE_LOCKED"] * 99
    with pytest.raises(LeaseTaken, match=r"the lease 'name' was held by another connection for 0\.25 s"):
        take_lease(link, "name", 0.25)
    assert link.pauses == pytest.approx([0.05, 0.1, 0.1])
    refusals[:] = ["403 ACCESS_REFUSED", "405 RESOURCE_LOCKED"]
    with pytest.raises(LeaseRefused, match="cannot declare the lease 'name': 403 ACCESS_REFUSED"):
        take_lease(link, "name", 9.0)


def test_a_lease_is_an_exclusive_queue_of_its_connection(broker):
    options = read_options({"amqp.url": broker.url, "queue": "orders"}).connection
    with Link(options) as link:
        with Link(options) as other:
            take_lease(other, "amqp.lease.x", 0)
            assert is_held(link, "amqp.lease.x")
            assert not is_held(link, "amqp.lease.y")
            assert not is_held(other, "amqp.lease.x")
            with pytest.raises(LeaseTaken):
                take_lease(link, "amqp.lease.x", 0)
            assert link.lost is None
        take_lease(link, "amqp.lease.x", 10)
        broker.connections[0].close(320, "maintenance")
        with pytest.raises(ConnectionLost, match="maintenance"):
            take_lease(link, "amqp.lease.z", 10)


def test_lease_name_has_id_and_queue_or_hash_of_long_queue_name():
    assert lease_name("id") == "amqp.lease.id"
    assert lease_name("id", "orders") == "amqp.lease.id.orders"
    assert lease_name("id", "x" * 241) == "amqp.lease.id." + "x" * 241
    assert lease_name("id", "x" * 242) == f"amqp.lease.id.{sha256(b'x' * 242).hexdigest()}"
    assert len(lease_name("id", "é" * 200)) < 100
    long, longer = lease_name("id", "x" * 255), lease_name("id", "x" * 254)
    assert long != longer
    assert len(long) <= 255
