"""What qpid.messaging, Apache's Python client, does when something goes wrong at a broker of AMQP 0-10."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.clients.qpid.remote import Remote, RemoteError
from fakeamqp import Broker

TIMEOUT = 10


@pytest.fixture
def messaging(remote: Remote) -> Any:
    return remote.module("qpid.messaging")


@pytest.fixture
def connection(broker: Broker, messaging: Any) -> Iterator[Any]:
    opened = messaging.Connection.establish(f"guest/guest@{broker.host}:{broker.port}", timeout=TIMEOUT)
    yield opened
    broker.faults.clear()
    try:
        opened.close(timeout=TIMEOUT)
    except RemoteError:
        broker.wait_for(lambda: not broker.connections)  # It had been lost.


@pytest.fixture
def session(connection: Any) -> Any:
    return connection.session()


def send(session: Any, *contents: bytes) -> None:
    sender = session.sender("orders; {create: always}")
    for content in contents:
        sender.send(content, sync=False)
    sender.sync(timeout=TIMEOUT)


def test_a_lost_delivery(broker: Broker, session: Any) -> None:
    """The command point says which transfer is next, so that what is accepted is what was got."""
    send(session, b"one", b"two", b"three")
    rule = broker.faults.on("message.transfer", direction="sent", body=b"two").drop()
    receiver = session.receiver("orders; {mode: consume}")
    receiver.capacity = 10
    assert [receiver.fetch(timeout=TIMEOUT).content for _ in range(2)] == [b"one", b"three"]
    session.acknowledge()
    assert rule.hits == 1
    [lost] = broker.queue("orders").messages
    assert (lost.body, lost.state) == (b"two", "unacked")


def test_receiver_gets_held_delivery_after_release_and_duplicated_delivery_twice(
    broker: Broker, session: Any
) -> None:
    send(session, b"one", b"two", b"three")
    late = broker.faults.on("message.transfer", direction="sent", body=b"one").hold()
    broker.faults.on("message.transfer", direction="sent", body=b"two").duplicate()
    receiver = session.receiver("orders")
    receiver.capacity = 10
    got = [receiver.fetch(timeout=TIMEOUT).content for _ in range(3)]
    assert got == [b"two", b"two", b"three"]
    assert late.release() == 1
    assert receiver.fetch(timeout=TIMEOUT).content == b"one"
    session.acknowledge()
    broker.queue("orders").wait_for(ready=0, unacked=0)


def test_a_failed_command(broker: Broker, session: Any) -> None:
    broker.faults.on("message.subscribe").exception("resource-limit-exceeded", "no more subscriptions")
    send(session, b"one")
    with pytest.raises(RemoteError, match="no more subscriptions"):
        session.receiver("orders")


def test_no_credit(broker: Broker, session: Any) -> None:
    send(session, b"one")
    with broker.faults.starve("orders"):
        receiver = session.receiver("orders")
        with pytest.raises(RemoteError, match="Empty"):
            receiver.fetch(timeout=0)
    assert receiver.fetch(timeout=TIMEOUT).content == b"one"


def test_a_full_broker(broker: Broker, session: Any) -> None:
    send(session)
    sender = session.sender("orders")
    alarm = broker.faults.memory_alarm()
    sender.send(b"one", sync=False)
    broker.queue("orders").wait_for(ready=1)
    sender.send(b"two", sync=False)
    with pytest.raises(RemoteError, match="Timeout"):
        sender.sync(timeout=0.2)
    assert broker.queue("orders").ready == 1
    alarm.remove()
    sender.sync(timeout=TIMEOUT)
    assert broker.queue("orders").ready == 2


def test_a_lost_connection_is_made_again(broker: Broker, messaging: Any) -> None:
    address = f"guest/guest@{broker.host}:{broker.port}"
    connection = messaging.Connection.establish(
        address, timeout=TIMEOUT, reconnect=True, reconnect_interval=0.01, reconnect_limit=100
    )
    session = connection.session()
    send(session, b"one")
    cut = broker.faults.on("message.transfer", direction="sent").once().cut("header", "reset")
    assert session.receiver("orders").fetch(timeout=TIMEOUT).content == b"one"
    session.acknowledge()
    assert cut.hits == 1
    assert broker.queue("orders").ready == 0
    connection.close(timeout=TIMEOUT)


@pytest.mark.parametrize("how", ["bad-flags", "unknown-type", "unknown-class", "cut-arguments"])
def test_malformed_frames(broker: Broker, session: Any, how: str) -> None:
    send(session, b"one")
    broker.faults.on("message.transfer", direction="sent").malform(how)
    with pytest.raises(RemoteError):
        session.receiver("orders").fetch(timeout=1)
    assert broker.queue("orders").ready + broker.queue("orders").unacked == 1
