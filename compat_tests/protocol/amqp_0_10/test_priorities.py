"""The order in which messages are delivered, and the one in which they are discarded."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from compat_tests.tools.matrix import marked_rows

rule = pytest.mark.rule

PERSISTENT, TRANSIENT = 2, 1


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


LEVELS = rule(
    "0-10/message/priority-level-implementation#lowest",
    "0-10/message/priority-level-implementation#highest",
    "0-10/message/priority-level-implementation#between",
)


@rule("0-10/message.delivery-properties/priority")
@marked_rows(
    "personality, arguments, order",
    (rule("0-10/message/min-priority-levels"), "spec", {}, "9876543210"),
    (pytest.mark.deviates("0-10/message/min-priority-levels"), "rabbitmq-4.3", {}, "0123456789"),
    (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 1}, "0123456789"),
    (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 2}, "5678901234"),
    (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 3}, "5678940123"),
    (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 4}, "6789540123"),
    (LEVELS, "rabbitmq-4.3", {"x-qpid-priorities": 10}, "9876543210"),
)
def test_messages_are_delivered_by_descending_priority_in_as_many_levels_as_queue_has(
    personality: str, arguments: dict[str, int], order: str
) -> None:
    session = Server(personality).session().declare("q", arguments=arguments)
    for priority in range(10):
        session.publish(str(priority).encode(), priority=priority)
    session.subscribe()
    assert b"".join(each or b"" for each in session.bodies()).decode() == order


def test_spec_personality_delivers_message_without_priority_behind_higher_priorities(spec: Server) -> None:
    session = spec.session().declare("q")
    for priority in (1, 0, 9, 5, 9, None):
        session.publish(f"{priority}".encode(), priority=priority)
    assert session.subscribe().bodies()[:4] == [b"9", b"9", b"5", b"1"]


@rule("0-10/message/priority-delivery")
def test_messages_of_equal_priority_keep_their_order(session: Session) -> None:
    bodies = [f"{number}".encode() for number in range(10)]
    for number, body in enumerate(bodies):
        session.publish(body, priority=4, delivery_mode=PERSISTENT if number % 3 else TRANSIENT)
    assert session.subscribe().bodies() == bodies


@rule("0-10/message/non-persistent-message-discard")
def test_spec_personality_discards_lowest_priority_messages_above_max_length(spec: Server) -> None:
    session = spec.session()
    spec.client().declare("q", arguments={"x-max-length": 2})
    for priority in (5, 9, 1, 7):
        session.publish(str(priority).encode(), priority=priority, delivery_mode=TRANSIENT)
    assert spec.received() == [b"9", b"7"]
