"""The low-level API of Apache's Python client: commands of AMQP 0-10 as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compat_tests.clients.qpid.remote import Remote, RemoteError
from fakeamqp import Broker

TIMEOUT = 10
WITHOUT_END = 0xFFFFFFFF


@contextmanager
def connected(remote: Remote, broker: Broker, **options: Any) -> Iterator[Any]:
    """A connection, closed in the end."""
    sock = remote.module("qpid.util").connect(broker.host, broker.port)
    options = {"username": b"guest", "password": b"guest", **options}
    connection = remote.module("qpid.connection").Connection(sock, **options)
    connection.start(timeout=TIMEOUT)
    yield connection
    connection.close(timeout=TIMEOUT)


@pytest.fixture
def session(remote: Remote, broker: Broker) -> Iterator[Any]:
    with connected(remote, broker) as connection:
        yield connection.session(b"session", timeout=TIMEOUT)


def send(remote: Remote, session: Any, queue: str, body: bytes, **properties: Any) -> None:
    message = remote.module("qpid.datatypes").Message
    heading = session.delivery_properties(routing_key=queue, **properties)
    session.message_transfer(message=message(heading, body))


def test_declare_bind_query_publish_subscribe_and_accept_work(
    remote: Remote, broker: Broker, session: Any
) -> None:
    session.queue_declare(queue="orders")
    assert session.exchange_query(name="amq.topic").type == "topic"
    session.exchange_bind(queue="orders", exchange="amq.topic", binding_key="orders.#")
    assert not session.exchange_bound(exchange="amq.topic", queue="orders").queue_not_matched
    send(remote, session, "orders", b"one")
    assert session.queue_query(queue="orders").message_count == 1
    session.message_subscribe(queue="orders", destination="inbox")
    for unit in (0, 1):
        session.message_flow(destination="inbox", unit=unit, value=WITHOUT_END)
    message = session.incoming("inbox").get(timeout=TIMEOUT)
    assert message.body == b"one"
    assert broker.queue("orders").unacked == 1
    session.message_accept(remote.module("qpid.datatypes").RangedSet(message.id))
    assert (broker.queue("orders").ready, broker.queue("orders").unacked) == (0, 0)


def test_an_exception_names_the_command(session: Any) -> None:
    with pytest.raises(RemoteError) as raised:
        session.queue_delete(queue="absent")
    (exception,) = raised.value.of
    assert (exception.error_code, exception.class_code, exception.command_code) == (404, 8, 2)
    assert exception.description == "there is no queue 'absent'"


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_a_prepared_branch_outlives_the_broker(remote: Remote, broker: Broker, crash: bool) -> None:
    with connected(remote, broker) as connection:
        session = connection.session(b"before", timeout=TIMEOUT)
        session.queue_declare(queue="orders", durable=True)
        session.dtx_select()
        for name in (b"kept", b"forgotten"):
            xid = session.xid(format=0, global_id=name, branch_id=b"1")
            session.dtx_start(xid=xid)
            send(remote, session, "orders", name, delivery_mode=2)
            assert session.dtx_end(xid=xid).status == 0
            if name == b"kept":
                assert session.dtx_prepare(xid=xid).status == 0
    broker.restart(crash=crash)
    with connected(remote, broker) as connection:
        session = connection.session(b"after", timeout=TIMEOUT)
        (in_doubt,) = session.dtx_recover().in_doubt
        assert in_doubt.global_id == b"kept"
        assert broker.queue("orders").ready == 0
        assert session.dtx_commit(xid=in_doubt).status == 0
        assert session.dtx_recover().in_doubt in (None, [])
        assert session.queue_query(queue="orders").message_count == 1


def test_heartbeats_are_agreed_on(remote: Remote, broker: Broker) -> None:
    with connected(remote, broker, heartbeat=60):
        assert broker.connections[0].heartbeat == 60
