"""What a restart leaves of queues and messages."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule

PERSISTENT, TRANSIENT = 2, 1


@rule("0-10/message/persistent-message#persistent", "0-10/message/persistent-message#transient")
@rule("0-10/message/delivery-mode-values#transient", "0-10/message/delivery-mode-values#persistent")
@pytest.mark.parametrize("crash", [False, True])
def test_only_persistent_messages_of_durable_queues_survive_restart(server: Server, crash: bool) -> None:
    session = server.session().declare("q", durable=True).declare("transient")
    for key in ("q", "transient"):
        session.publish(b"kept", key=key, delivery_mode=PERSISTENT)
        session.publish(b"lost", key=key, delivery_mode=TRANSIENT).publish(b"lost as well", key=key)
    server.restart(crash=crash)
    assert server.received() == [b"kept"]
    server.session(b"asks").fails(x.QueueDeclare(queue="transient", passive=True), 404)


def test_unaccepted_message_is_redelivered_after_restart(server: Server) -> None:
    session = server.session().declare("q", durable=True)
    assert len(session.publish(delivery_mode=PERSISTENT).subscribe().transfers()) == 1
    session = server.restart().session().subscribe()
    assert [each.redelivered for each in session.transfers()] == [True]


def test_priority_and_remaining_ttl_of_message_survive_restart(server: Server) -> None:
    session = server.session().declare("q", durable=True)
    session.publish(None, delivery_mode=PERSISTENT, priority=3, ttl=60_000)
    server.restart()
    server.advance(10)
    session = server.session()
    (transfer,) = session.subscribe().transfers()
    assert (transfer.body, transfer.delivery.priority, transfer.delivery.ttl) == (None, 3, 50_000)
