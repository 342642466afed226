"""One pool of connections for the readers and writers of a process."""

from __future__ import annotations

import os
import threading

import pytest

from compat_tests.unit.spark.wire.peers import content, options
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost
from fakeamqp.spark.wire import pool
from fakeamqp.spark.wire.lease import is_held, take_lease
from fakeamqp.spark.wire.pool import close_idle, lend


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker
        close_idle()


@pytest.fixture
def given(broker):
    return options(broker.url)


def no_thread():
    return "amqp pool" not in [thread.name for thread in threading.enumerate()]


def test_eleven_loans_in_a_row_use_one_connection(broker, given):
    used = set()
    for _ in range(11):
        with lend(given) as connection:
            used.add(connection)
            connection.channel().call(m.QueueDeclare(queue="q"))
    assert len(used) == 1
    assert len(broker.connections) == 1


def test_loans_at_the_same_time_and_with_other_options_have_connections_of_their_own(broker, given):
    other = options(broker.url, **{"amqp.clientName": "other"})
    with lend(given) as first, lend(given) as second, lend(other) as third:
        assert len({first, second, third}) == 3
    with lend(other) as again:
        assert again is third
    with lend(given) as again:
        assert again in (first, second)


def test_connection_comes_back_without_channels(broker, given):
    with lend(given) as connection:
        channel = connection.channel()
        channel.call(m.QueueDeclare(queue="q"))
        broker.publish(b"m", routing_key="q")
        channel.consume("q", lambda *_: None)
        channel.wait_for(lambda: broker.queue("q").unacked == 1, 5, "deliver")
    assert (broker.queue("q").ready, broker.queue("q").consumers) == (1, ())
    with lend(given) as again:
        assert again is connection
        assert again.channels == {}


def test_connection_with_a_lease_is_not_kept(given):
    with lend(given) as connection:
        take_lease(connection, "amqp.lease.x", 0)
    with lend(given) as other:
        assert other is not connection
        assert not is_held(other, "amqp.lease.x")


def test_blocked_connection_is_closed_without_waiting_for_its_channels(broker, given, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.wire.connection._GOODBYE", 0.01)  # The broker does not read.
    with lend(given) as connection:
        channel = connection.channel()
        channel.close = None
        alarm = broker.faults.memory_alarm()
        connection.send(content(m.BasicPublish(routing_key="q"), b"m"))
        connection.wait_for(lambda: connection.blocked is not None, 5, "block")
    alarm.remove()
    with lend(given) as other:
        assert other is not connection


def test_connection_is_not_kept_after_an_error_or_if_a_channel_does_not_close(broker, given):
    with pytest.raises(ZeroDivisionError), lend(given) as first:
        raise ZeroDivisionError
    with lend(given) as second:
        assert second is not first
        channel = second.channel()
        channel._timeout = 0.01
        broker.faults.on("channel.close").drop()
    with lend(given) as third:
        assert third is not second
    assert len(broker.connections) == 1


def test_connection_that_was_lost_while_idle_is_replaced(broker, given):
    with lend(given) as first:
        pass
    broker.connections[0].close(320, "maintenance")
    with lend(given) as second:
        assert second is not first
        assert second.lost is None


def test_connection_lost_in_its_block_is_not_kept(broker, given):
    with pytest.raises(ConnectionLost, match="maintenance"), lend(given) as first:
        broker.connections[0].close(320, "maintenance")
        first.channel()
    with lend(given) as second:
        assert second is not first


def test_unreachable_broker_is_an_error_before_the_block():
    with Broker() as broker:
        closed = options(broker.url)
    with pytest.raises(BrokerUnreachable), lend(closed):
        raise AssertionError


def test_idle_connections_are_closed_by_a_thread_that_ends(broker, given, monkeypatch):
    monkeypatch.setattr(pool, "_IDLE", 0.01)
    with lend(given), lend(given):
        pass
    broker.wait_for(lambda: not broker.connections)
    broker.wait_for(no_thread)
    with lend(given):
        assert len(broker.connections) == 1


def test_closing_idle_connections_ends_the_thread(broker, given):
    with lend(given):
        pass
    close_idle()
    broker.wait_for(no_thread, timeout=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_process_uses_no_connection_of_its_parent(broker, given):
    with lend(given) as connection:
        pass
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        told = b"failed"
        try:
            with lend(given) as own:
                told = b"same" if own is connection else b"own"
            close_idle()
        finally:
            os.write(writing, told)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"own"
    os.waitpid(child, 0)
    with lend(given) as again:
        assert again is connection
        assert again.channel().is_open
