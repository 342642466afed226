"""Sessions that lose their transport: over a network that fails, nothing is lost and nothing comes twice."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.clients.amqp_0_10.checks import XID, carry_out, drained, fails
from compat_tests.clients.amqp_0_10.client import (
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Session,
    SessionDetached,
    SessionLost,
    connect,
)
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

MANY = [f"message {number}".encode() for number in range(200)]
FOR_EVER = None


def attach(broker: Broker, session: Session) -> None:
    """Attach it to a connection of its own, however often that takes."""
    while not session.attached:
        try:
            # By force: the broker may not know yet that the last connection has gone.
            session.attach(connect(broker), force=True)
        except ConnectionLost:
            continue


def result(broker: Broker, session: Session, id_: int) -> Any:
    """Wait until a command is done, by whatever number of connections."""
    while True:
        try:
            return session.result(id_)
        except ConnectionLost:
            attach(broker, session)


def hang_up(*sessions: Session) -> None:
    for session in sessions:
        if session.connection is not None:
            session.connection.close()


@pytest.fixture
def q(broker: Broker) -> None:
    """There is a queue `q`."""
    with connect(broker) as connection:
        connection.session(b"setup").declare("q")


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("frames", [25, 64, 199])
def test_publisher_with_repeated_connection_losses_publishes_each_message_once(
    broker: Broker, q: None, frames: int, how: str
) -> None:
    cut = broker.faults.network.cut_after(frames=frames, how=how, direction="received")
    publisher = Session(b"publisher", FOR_EVER)
    attach(broker, publisher)
    for body in MANY:
        id_ = publisher.publish(body, key="q", wait=False)
    result(broker, publisher, id_)
    assert cut.hits > 200 * 3 // frames - 1, "a message is three frames"
    cut.remove()
    assert [message.body for message in broker.queue("q").messages] == MANY
    attach(broker, publisher)
    hang_up(publisher)


def consume(broker: Broker, consumer: Session, count: int) -> list[bytes | None]:
    """Take and accept so many messages, one after the other, by whatever number of connections."""
    seen = []
    while len(seen) < count:
        try:
            message = consumer.get("d")
        except ConnectionLost:
            attach(broker, consumer)
            continue
        seen.append(message.body)
        consumer.complete(message)
        result(broker, consumer, consumer.send(x.MessageAccept(transfers=SequenceSet.of(message.id))))
    return seen


@pytest.mark.parametrize("direction", ["sent", "received"])
@pytest.mark.parametrize("octets", [900, 2345])
def test_subscriber_with_repeated_connection_losses_gets_each_message_once(
    broker: Broker, q: None, octets: int, direction: str
) -> None:
    with connect(broker) as connection:
        publisher = connection.session(b"publisher")
        for body in MANY:
            publisher.publish(body, key="q", wait=False)
        publisher.sync()
    cut = broker.faults.network.cut_after(bytes=octets, how="reset", direction=direction)
    consumer = Session(b"consumer", FOR_EVER)
    attach(broker, consumer)
    for command in (
        x.MessageSubscribe(queue="q", destination="d"),
        x.MessageFlow(destination="d", unit=0, value=5),
        x.MessageFlow(destination="d", unit=1, value=0xFFFFFFFF),
    ):
        result(broker, consumer, consumer.send(command))
    assert consume(broker, consumer, len(MANY)) == MANY
    assert cut.hits > 3
    cut.remove()
    attach(broker, consumer)
    assert drained(consumer, "d") == []
    broker.queue("q").wait_for(ready=0, unacked=0)
    hang_up(consumer)


def test_the_result_of_a_command_comes_by_another_transport(broker: Broker, q: None) -> None:
    session = Session(b"session", FOR_EVER)
    attach(broker, session)
    broker.faults.network.cut_after(bytes=0, direction="sent")
    id_ = session.send(x.QueueQuery(queue="q"))
    with pytest.raises(ConnectionLost):
        session.result(id_)
    broker.faults.network.restore()
    attach(broker, session)
    assert session.result(id_).queue == "q"
    hang_up(session)


def test_transaction_continues_after_connection_loss(broker: Broker, q: None) -> None:
    session = Session(b"session", FOR_EVER)
    attach(broker, session)
    session.call(x.TxSelect())
    session.publish(b"before", key="q")
    broker.faults.network.disconnect()
    session.publish(b"behind", key="q", wait=False)
    assert broker.queue("q").ready == 0
    result(broker, session, session.send(x.TxCommit()))
    assert [message.body for message in broker.queue("q").messages] == [b"before", b"behind"]
    hang_up(session)


def test_branch_continues_after_connection_loss(broker: Broker, q: None) -> None:
    session = Session(b"session", FOR_EVER)
    attach(broker, session)
    session.call(x.DtxSelect())
    carry_out(session, x.DtxStart(xid=XID))
    session.publish(b"before", key="q")
    broker.faults.network.disconnect()
    result(broker, session, session.publish(b"behind", key="q", wait=False))
    carry_out(session, x.DtxEnd(xid=XID))
    assert session.depth("q") == 0
    carry_out(session, x.DtxCommit(xid=XID, one_phase=True))
    assert [message.body for message in broker.queue("q").messages] == [b"before", b"behind"]
    hang_up(session)


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_session_cannot_be_resumed_after_a_broker_restart(broker: Broker, q: None, crash: bool) -> None:
    session = Session(b"session", FOR_EVER)
    attach(broker, session)
    session.publish(b"before", key="q")
    broker.restart(crash=crash)
    with pytest.raises((ConnectionLost, ConnectionClosed)):
        session.sync()
    with connect(broker) as connection, pytest.raises(SessionLost):
        session.attach(connection)


# --- attaching ----------------------------------------------------------------------------------------------


def test_a_name_is_attached_once_unless_by_force(broker: Broker, connection: Connection) -> None:
    first = connection.session(b"name", timeout=60)
    first.declare("q", exclusive=True)
    with connect(broker) as other:
        with pytest.raises(SessionDetached) as refused:
            other.session(b"name")
        assert refused.value.code is DetachCode.SESSION_BUSY
        taken = other.session(b"name", timeout=60, force=True)
        taken.publish(b"by who has it now", key="q")
        assert taken.depth("q") == 1
        with pytest.raises(SessionDetached) as lost:
            first.sync()
        assert lost.value.code is DetachCode.SESSION_BUSY


def test_a_session_goes_on_in_another_program(broker: Broker) -> None:
    """It knows the name and nothing else: what it is told is where to go on, and what is not confirmed."""
    first = connect(broker)
    session = first.session(b"name", timeout=FOR_EVER)
    session.declare("q", exclusive=True)
    session.publish(b"one", key="q")
    session.subscribe("q", "d")
    assert session.get("d").body == b"one"
    first.drop()
    with connect(broker) as second:
        again = second.session(b"name", timeout=FOR_EVER, force=True)
        message = again.get("d")
        assert message.body == b"one"
        again.accept(message)
        again.publish(b"two", key="q")
        assert again.get("d").body == b"two"
        again.close()


def test_connection_has_many_sessions_each_on_its_own_channel(broker: Broker, connection: Connection) -> None:
    sessions = [connection.session(f"session {number}".encode()) for number in range(50)]
    assert len({session.channel for session in sessions}) == 50
    for session in sessions:
        session.declare(session.name.decode(), exclusive=True, auto_delete=True)
    sessions[7].close()
    replacement = connection.session(b"replacement")
    assert replacement.channel == sessions[7].channel
    with fails(404):
        replacement.declare("session 7", passive=True)


# --- time ---------------------------------------------------------------------------------------------------


def test_detached_session_holds_its_message_until_its_timeout_which_starts_at_each_detach() -> None:
    with Broker(seed=1, clock="virtual") as broker:
        connection = connect(broker)
        session = connection.session(b"session", timeout=30)
        session.declare("q", exclusive=True)
        session.publish(b"held", key="q")
        session.subscribe("q", "d")
        assert session.get("d").body == b"held"
        for _ in range(2):
            connection.drop()
            broker.wait_for(lambda: not broker.connections)
            broker.clock.advance(29)
            connection = connect(broker)
            session.attach(connection)
            assert (session.depth("q"), session.timeout) == (0, 30), "it still holds the message"
            broker.clock.advance(100)  # While it is attached it has all the time it wants.
            session.sync()
        connection.drop()
        broker.wait_for(lambda: not broker.connections)
        broker.clock.advance(30)
        assert broker._reader.read(lambda state: state.sessions) == {}
        with connect(broker) as again:
            with pytest.raises(SessionLost):
                session.attach(again)
            other = again.session(b"other")
            assert other.depth("q") == 1, "what it held waits again"
            other.subscribe("q", "d")
            assert other.get("d").delivery.redelivered
        assert broker.admin.failures == ()
