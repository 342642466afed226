"""What a restart leaves of queues and messages."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule

PERSISTENT, TRANSIENT = 2, 1


def received(server: Server, queue: str = "q") -> list[bytes | None]:
    session = server.session(b"looks")
    session.subscribe(queue, accept_mode=1)
    bodies = session.bodies()
    session.detach()
    return bodies


@rule("0-10/message/persistent-message#persistent", "0-10/message/persistent-message#transient")
@rule("0-10/message/delivery-mode-values#transient", "0-10/message/delivery-mode-values#persistent")
@pytest.mark.parametrize("crash", [False, True])
def test_only_persistent_messages_of_durable_queues_survive_restart(server: Server, crash: bool) -> None:
    session = server.session()
    session.declare("q", durable=True)
    session.declare("transient")
    for key in ("q", "transient"):
        session.publish(b"kept", key=key, delivery_mode=PERSISTENT)
        session.publish(b"lost", key=key, delivery_mode=TRANSIENT)
        session.publish(b"lost as well", key=key)
    server.restart(crash=crash)
    assert received(server) == [b"kept"]
    server.session(b"asks").fails(x.QueueDeclare(queue="transient", passive=True), 404)


def test_unaccepted_message_is_redelivered_after_restart(server: Server) -> None:
    session = server.session()
    session.declare("q", durable=True)
    session.publish(delivery_mode=PERSISTENT)
    session.subscribe()
    assert len(session.transfers()) == 1
    server.restart()
    session = server.session()
    session.subscribe()
    assert [each.redelivered for each in session.transfers()] == [True]


def test_priority_and_remaining_ttl_of_message_survive_restart(server: Server) -> None:
    session = server.session()
    session.declare("q", durable=True)
    session.publish(None, delivery_mode=PERSISTENT, priority=3, ttl=60_000)
    server.restart()
    server.advance(10)
    session = server.session()
    session.subscribe()
    (transfer,) = session.transfers()
    assert (transfer.body, transfer.delivery.priority, transfer.delivery.ttl) == (None, 3, 50_000)
