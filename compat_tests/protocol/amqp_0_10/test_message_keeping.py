"""How messages wait: what a restart leaves, which goes first, what happens when there is too much."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import UNLIMITED, Server, Session
from compat_tests.tools.matrix import marked
from fakeamqp.model.messages.message import Message, plain_properties
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule

PERSISTENT, TRANSIENT = 2, 1


@pytest.fixture
def session(session: Session) -> Session:
    session.declare("q")
    return session


def received(server: Server, queue: str = "q") -> list[bytes | None]:
    session = server.session(b"looks")
    session.subscribe(queue, accept_mode=1)
    bodies = session.bodies()
    session.detach()
    return bodies


# --- restart -----------------------------------------------------------------------------------------


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


# --- order -------------------------------------------------------------------------------------------


LEVELS = rule(
    "0-10/message/priority-level-implementation#lowest",
    "0-10/message/priority-level-implementation#highest",
    "0-10/message/priority-level-implementation#between",
)


@rule("0-10/message.delivery-properties/priority")
@pytest.mark.parametrize(
    ("personality", "arguments", "order"),
    marked(
        (rule("0-10/message/min-priority-levels"), "spec", {}, "9876543210"),
        (pytest.mark.deviates("0-10/message/min-priority-levels"), "rabbitmq-4.3", {}, "0123456789"),
        (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 1}, "0123456789"),
        (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 2}, "5678901234"),
        (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 3}, "5678940123"),
        (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 4}, "6789540123"),
        (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 10}, "9876543210"),
    ),
)
def test_messages_are_delivered_by_descending_priority_in_as_many_levels_as_queue_has(
    personality: str, arguments: dict[str, int], order: str
) -> None:
    session = Server(personality).session()
    session.declare("q", arguments=arguments)
    for priority in range(10):
        session.publish(str(priority).encode(), priority=priority)
    session.subscribe()
    assert b"".join(each or b"" for each in session.bodies()).decode() == order


def test_spec_personality_delivers_message_without_priority_behind_higher_priorities(spec: Server) -> None:
    session = spec.session()
    session.declare("q")
    for priority in (1, 0, 9, 5, 9, None):
        session.publish(f"{priority}".encode(), priority=priority)
    session.subscribe()
    assert session.bodies()[:4] == [b"9", b"9", b"5", b"1"]


@rule("0-10/message/priority-delivery")
def test_messages_of_equal_priority_keep_their_order(session: Session) -> None:
    bodies = [f"{number}".encode() for number in range(10)]
    for number, body in enumerate(bodies):
        session.publish(body, priority=4, delivery_mode=PERSISTENT if number % 3 else TRANSIENT)
    session.subscribe()
    assert session.bodies() == bodies


# --- too much ----------------------------------------------------------------------------------------


@rule("0-10/message/no-persistent-message-discard")
def test_messages_published_to_blocked_broker_are_not_lost(server: Server) -> None:
    session = server.session()
    session.declare("q", durable=True)
    server.state.block("memory")
    for number in range(5):
        session.publish(f"{number}".encode(), delivery_mode=PERSISTENT)
    assert not session.client.connection.reading
    if server.state.personality.name != "spec":
        session.expect_nothing()
    server.state.unblock()
    if server.state.personality.name != "spec":
        session.expect_nothing()
    assert session.client.connection.reading
    assert received(server) == [f"{number}".encode() for number in range(5)]


def test_transfers_received_together_wait_behind_first_while_broker_is_blocked(server: Server) -> None:
    session = server.session()
    session.declare("q")
    server.state.block("memory")
    transfer = session.client.command_bytes(
        x.MessageTransfer(accept_mode=1), header=[structs.DeliveryProperties(routing_key="q")], body=b"body"
    )
    session.client.send_bytes(transfer * 3)
    assert len(server.vhost.queues["q"].ready) == 1
    server.state.unblock()
    assert len(server.vhost.queues["q"].ready) == 3


@rule("0-10/message/grammar#peers", "0-10/message/throttling")
def test_spec_personality_sends_publisher_message_stop_when_blocked_and_flow_when_unblocked(
    spec: Server,
) -> None:
    session = spec.session()
    session.declare("q")
    session.declare_exchange("e", "fanout")
    session.publish()
    session.publish(exchange="e")
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
    session.publish()
    assert session.news(x.MessageStop).destination == ""
    session.publish()
    spec.state.unblock()
    session.news(x.MessageFlow)
    session.news(x.MessageFlow)
    session.expect_nothing()
    assert session.query().message_count == 2


def test_publisher_held_back_by_blocked_broker_still_receives_messages(server: Server) -> None:
    session = server.session()
    session.declare("q")
    session.subscribe()
    server.state.block("memory")
    session.publish(b"held back", key="nobody")
    server.vhost.publish(Message("", "q", plain_properties(), b"from the broker"))
    transfers = [each for each in session.client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert [each.body for each in transfers] == [b"from the broker"]


@rule("0-10/message/non-persistent-message-discard")
def test_spec_personality_discards_lowest_priority_messages_above_max_length(spec: Server) -> None:
    session = spec.session()
    spec.client().declare("q", arguments={"x-max-length": 2})
    for priority in (5, 9, 1, 7):
        session.publish(str(priority).encode(), priority=priority, delivery_mode=TRANSIENT)
    assert received(spec) == [b"9", b"7"]
