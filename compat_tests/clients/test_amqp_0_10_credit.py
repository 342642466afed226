"""Credit: of messages and of bytes, given once or moved on by a window."""

from __future__ import annotations

import pytest

from compat_tests.clients.amqp_0_10.checks import bodies, drained
from compat_tests.clients.amqp_0_10.client import UNLIMITED, Session
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, FlowMode

TEN = [f"message {number}".encode() for number in range(1, 11)]


def suite(name: str) -> pytest.MarkDecorator:
    return pytest.mark.suite(f"message.MessageTests.{name}")


@pytest.fixture(autouse=True)
def q(session: Session) -> None:
    """There is a queue `q`."""
    session.declare("q", exclusive=True, auto_delete=True)


def fill(session: Session, messages: list[bytes] = TEN, queue: str = "q") -> None:
    for body in messages:
        session.publish(body, key=queue)


OCTETS = b"abcdefgh"
COST = 19
"""Bytes of credit that such a message takes: 11 of its header, which has an exchange and a key, and 8."""


@suite("test_credit_flow_messages")
def test_credit_for_so_many_messages(session: Session) -> None:
    session.subscribe("q", "d", credit=None, octets=None, mode=FlowMode.CREDIT)
    fill(session)
    session.flow("d", 5)
    assert drained(session, "d") == [], "nothing comes without credit of bytes"
    session.flow("d", octets=UNLIMITED)
    assert drained(session, "d") == TEN[:5]
    for body in TEN[5:]:
        session.flow("d", 1)
        assert drained(session, "d") == [body]


@suite("test_credit_flow_bytes")
def test_credit_for_so_many_octets(session: Session) -> None:
    session.subscribe("q", "d", credit=None, octets=None, mode=FlowMode.CREDIT)
    fill(session, [OCTETS] * 10)
    session.flow("d", UNLIMITED, COST * 5)
    assert drained(session, "d") == [OCTETS] * 5
    for _ in range(5):
        session.flow("d", octets=COST - 1)
        assert drained(session, "d") == []
        session.flow("d", octets=1)
        assert drained(session, "d") == [OCTETS]


@suite("test_window_flow_messages")
def test_message_window_moves_on_by_each_completed_transfer_once(session: Session) -> None:
    session.subscribe("q", "d", credit=None, octets=None, mode=FlowMode.WINDOW)
    fill(session)
    session.flow("d", 5, UNLIMITED)
    messages = session.drain("d")
    assert bodies(messages) == TEN[:5]
    session.complete(*messages)
    assert drained(session, "d") == TEN[5:]
    session.complete(*messages)  # Once more: it is not counted twice.
    fill(session, [b"too many"])
    assert drained(session, "d") == []


@suite("test_window_flow_bytes")
def test_byte_window_moves_on_by_each_completed_transfer(session: Session) -> None:
    session.subscribe("q", "d", credit=None, octets=None, mode=FlowMode.WINDOW)
    fill(session, [OCTETS] * 10)
    session.flow("d", UNLIMITED, COST * 5)
    messages = session.drain("d")
    assert bodies(messages) == [OCTETS] * 5
    for message in reversed(messages):
        session.complete(message)
        assert drained(session, "d") == [OCTETS]


@suite("test_window_flush_ack_flow")
def test_flow_after_flush_opens_the_window_again(session: Session) -> None:
    session.subscribe("q", "d", mode=FlowMode.WINDOW, accept_mode=AcceptMode.EXPLICIT)
    fill(session, [b"a"])
    message = session.get("d")
    session.flush("d")
    session.complete(message)
    session.accept(message)
    fill(session, [b"b"])
    assert drained(session, "d") == [], "a flush has used the credit up"
    session.flow("d", UNLIMITED, UNLIMITED)
    assert session.get("d").body == b"b"


@suite("test_window_stop")
def test_stopped_window_stays_closed_until_new_flow(session: Session) -> None:
    session.subscribe("q", "d", credit=5, mode=FlowMode.WINDOW)
    fill(session)
    messages = session.drain("d")
    assert bodies(messages) == TEN[:5]
    session.stop("d")
    session.complete(*messages)
    assert drained(session, "d") == []
    session.flow("d", 5, UNLIMITED)
    assert drained(session, "d") == TEN[5:]


@suite("test_credit_window_after_messagestop")
def test_completion_of_transfers_before_stop_does_not_widen_the_new_window(session: Session) -> None:
    fill(session, [*TEN, b"the eleventh"])
    session.subscribe("q", "d", credit=5, mode=FlowMode.WINDOW)
    messages = session.drain("d")
    assert bodies(messages) == TEN[:5]
    session.stop("d")
    session.flow("d", 5, UNLIMITED)
    session.complete(*messages)
    assert drained(session, "d") == TEN[5:]


@suite("test_no_credit_wrap")
def test_credit_does_not_run_over(session: Session) -> None:
    session.subscribe("q", "d", credit=0xFFFFFFFA, mode=FlowMode.CREDIT)
    session.flow("d", 10)
    many = [f"message {number}".encode() for number in range(49)]
    fill(session, many)
    session.flush("d")
    assert drained(session, "d") == many
