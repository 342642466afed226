"""Publishers while the broker is blocked."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import UNLIMITED, Server
from fakeamqp.model.messages.message import Message, plain_properties
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule

PERSISTENT = 2


@rule("0-10/message/no-persistent-message-discard")
def test_messages_published_to_blocked_broker_are_not_lost(server: Server) -> None:
    session = server.session().declare("q", durable=True)
    server.state.block("memory")
    for number in range(5):
        session.publish(f"{number}".encode(), delivery_mode=PERSISTENT)
    assert not session.client.connection.reading
    server.state.unblock()
    assert session.client.connection.reading
    assert server.received() == [f"{number}".encode() for number in range(5)]


def test_default_personality_tells_publisher_nothing_while_blocked(lenient: Server) -> None:
    session = lenient.session().declare("q")
    lenient.state.block("memory")
    session.publish().expect_nothing()
    lenient.state.unblock()
    session.expect_nothing()


def test_transfers_received_together_wait_behind_first_while_broker_is_blocked(server: Server) -> None:
    session = server.session().declare("q")
    server.state.block("memory")
    transfer = session.client.command_bytes(
        x.MessageTransfer(accept_mode=1), header=[structs.DeliveryProperties(routing_key="q")], body=b"body"
    )
    session.client.send_bytes(transfer * 3)
    assert len(server.vhost.queues["q"].ready) == 1
    server.state.unblock()
    assert len(server.vhost.queues["q"].ready) == 3


@rule("0-10/message/grammar#peers", "0-10/message/throttling")
def test_spec_sends_publisher_message_stop_when_blocked_and_flow_when_unblocked(spec: Server) -> None:
    session = spec.session().declare("q").declare_exchange("e", "fanout")
    session.publish().publish(exchange="e")
    spec.state.block("memory")
    assert [session.news(x.MessageStop).destination for _ in range(2)] == ["", "e"]
    session.publish()  # Who goes on all the same is not told again.
    session.expect_nothing()
    spec.state.unblock()
    told = [session.news(x.MessageFlow) for _ in range(4)]
    assert [(each.destination, each.unit, each.value) for each in told] == [
        (destination, unit, UNLIMITED) for destination in ("", "e") for unit in (0, 1)
    ]
    session.expect_nothing()


def test_spec_personality_sends_message_stop_to_publisher_that_starts_while_blocked(spec: Server) -> None:
    spec.session(b"other").declare("q")
    spec.state.block("memory")
    session = spec.session()
    assert session.publish().news(x.MessageStop).destination == ""
    session.publish()
    spec.state.unblock()
    session.news(x.MessageFlow)
    session.news(x.MessageFlow)
    session.expect_nothing()
    assert session.query().message_count == 2


def test_publisher_held_back_by_blocked_broker_still_receives_messages(server: Server) -> None:
    session = server.session().declare("q").subscribe()
    server.state.block("memory")
    session.publish(b"held back", key="nobody")
    server.vhost.publish(Message("", "q", plain_properties(), b"from the broker"))
    transfers = [each for each in session.client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert [each.body for each in transfers] == [b"from the broker"]
