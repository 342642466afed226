"""Clients of AMQP 0-10 over real sockets: what a test does to them, and what it sees of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from compat_tests.clients.amqp_0_10.client import (
    ConnectionClosed,
    ConnectionLost,
    LoginFailed,
    Session,
    SessionFailed,
    connect,
)
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec.constants import FlowMode


@pytest.fixture
def session(broker: Broker) -> Iterator[Session]:
    """A session that has declared "orders" and subscribed to it without credit."""
    with connect(broker) as connection:
        session = connection.session(b"shop")
        session.declare("orders")
        session.subscribe("orders", "inbox", credit=None, octets=None)
        yield session


# --- what is seen -------------------------------------------------------------------------------------


def test_views_show_connections_sessions_and_subscriptions(broker: Broker) -> None:
    with connect(broker) as connection:
        session = connection.session(b"shop", timeout=300)
        session.declare("orders")
        session.subscribe("orders", "inbox", credit=5, octets=None, mode=FlowMode.CREDIT)
        [client] = broker.connections
        assert (client.protocol, client.user, client.heartbeat) == ("0-10", "guest", 0)
        [seen] = client.sessions
        assert (seen.name, seen.channel, seen.timeout) == ("shop", session.channel, 300)
        [subscription] = seen.subscriptions
        assert (subscription.tag, subscription.queue, subscription.credit.messages) == ("inbox", "orders", 5)
        assert broker.consumers == (subscription,)
        connection.drop()
        broker.wait_for(lambda: not broker.connections)
        [kept] = broker.sessions
        assert (kept.attached, kept.timeout) == (False, 300)
        assert 299 < kept.left <= 300
    assert "session 'shop' attached" in broker.trace.timeline()


def test_0_10_connection_closed_by_the_test_gets_code_and_text(broker: Broker) -> None:
    connection = connect(broker)
    [client] = broker.connections
    client.close(320, "maintenance")
    with pytest.raises(ConnectionClosed, match="320: maintenance"):
        connection.wait(lambda: False)
    connection.drop()
    broker.wait_for(lambda: not broker.connections)


def test_blocked_0_10_connection_is_read_again_after_unblock(broker: Broker, session: Session) -> None:
    [client] = broker.connections
    client.block("low on memory")
    [client] = broker.connections
    assert client.blocked == "low on memory"
    session.publish(b"one", key="orders", wait=False)
    session.publish(b"two", key="orders", wait=False)
    # Its transfer is the last thing that is read from it.
    broker.queue("orders").wait_for(ready=1)
    client.unblock()
    session.sync()
    assert broker.queue("orders").ready == 2


# --- what goes wrong ----------------------------------------------------------------------------------


def test_exception_fault_fails_the_session_with_its_code_and_text(broker: Broker, session: Session) -> None:
    broker.faults.on("queue.declare", queue="new").exception("resource-limit-exceeded", "no more queues")
    with pytest.raises(SessionFailed, match="506: no more queues"):
        session.declare("new")
    assert session.failure is not None and session.failure.command_code == 1


def test_starve_fault_stops_deliveries_until_removed(broker: Broker, session: Session) -> None:
    session.publish(b"two apples", key="orders")
    starvation = broker.faults.starve("orders")
    session.flow("inbox", 10, 10_000)
    session.flush("inbox")
    session.flow("inbox", 10, 10_000)
    assert session.drain("inbox") == []
    starvation.remove()
    assert session.get("inbox").body == b"two apples"


def test_message_cut_during_delivery_is_delivered_after_reattach(broker: Broker) -> None:
    connection = connect(broker)
    session = connection.session(b"shop", timeout=60)
    session.declare("orders")
    session.subscribe("orders", "inbox")
    broker.faults.on("message.transfer", direction="sent").once().cut("header", "reset")
    with pytest.raises(ConnectionLost):
        session.publish(b"two apples", key="orders")
    with connect(broker) as again:
        session.attach(again)
        message = session.get("inbox")
        assert message.body == b"two apples"
        session.accept(message)
        assert session.depth("orders") == 0
        session.detach()


def test_held_transfer_is_processed_in_order_after_its_release(broker: Broker, session: Session) -> None:
    rule = broker.faults.on("message.transfer", body=b"one").hold()
    first = session.publish(b"one", key="orders", wait=False)
    second = session.publish(b"two", key="orders", wait=False)
    rule.wait()
    assert broker.queue("orders").ready == 0
    releasing = threading.Timer(0.0, rule.release)
    releasing.start()
    session.result(second)
    assert session.is_done(first)
    releasing.join()
    assert [bytes(each.body) for each in broker.queue("orders").messages] == [b"one", b"two"]


def test_network_faults_slice_and_cut_0_10_connections(broker: Broker) -> None:
    broker.faults.network.slice(1)
    with connect(broker) as connection:
        session = connection.session(b"shop")
        session.declare("orders")
        session.publish(b"x" * 300, key="orders")
        session.subscribe("orders", "inbox")
        assert session.get("inbox").body == b"x" * 300
    broker.faults.clear()
    cut = broker.faults.network.cut_after(frames=4, direction="sent")
    with pytest.raises(ConnectionLost):
        connect(broker).session(b"shop").declare("orders")
    cut.wait()
    frames = [
        event.name
        for event in broker.trace.events
        if getattr(event, "direction", "") == "sent" and event.alias == "c2"
    ]
    assert frames[:4] == ["connection.start", "connection.tune", "connection.open-ok", "session.attached"]


def test_refuse_login_fault_refuses_a_single_login(broker: Broker) -> None:
    broker.faults.on("connection.start-ok").once().refuse_login()
    with pytest.raises((LoginFailed, ConnectionClosed)):
        connect(broker)
    connect(broker).close()


def test_crash_fault_loses_its_transfer_and_keeps_durable_messages(broker: Broker, session: Session) -> None:
    session.declare("kept", durable=True)
    session.publish(b"one", key="kept", delivery_mode=2)
    broker.faults.on("message.transfer", body=b"two").once().crash()
    with pytest.raises(ConnectionLost):
        session.publish(b"two", key="kept", delivery_mode=2)
    with connect(broker) as connection:
        assert connection.session(b"shop").depth("kept") == 1


def test_fault_rule_counts_publishes_of_0_9_1_and_0_10_together(broker: Broker, session: Session) -> None:
    pika = pytest.importorskip("pika")
    published = broker.faults.on("basic.publish", "message.transfer").after(1).drop()
    client = pika.BlockingConnection(pika.URLParameters(broker.url))
    client.channel().basic_publish("", "orders", b"from 0-9-1")
    broker.queue("orders").wait_for(ready=1)
    session.publish(b"from 0-10", key="orders", wait=False)
    published.wait()
    client.close()
    assert broker.queue("orders").ready == 1


def test_silenced_0_10_connection_ends_after_two_heartbeat_intervals() -> None:
    """Nothing passes, and twice the agreed delay without a sign of life is the end."""
    with Broker(clock="virtual") as broker:
        connection = connect(broker, heartbeat=10)
        [client] = broker.connections
        assert client.heartbeat == 10
        broker.clock.advance(100)
        assert len(broker.connections) == 1  # The client lives by another clock.
        broker.faults.silence(client)
        broker.clock.advance(21)
        assert broker.connections == ()
        connection.drop()
