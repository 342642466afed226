"""Credit that is ignored."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Session, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.faults import FaultError, Faults, Starvation


def test_starved_subscription_gets_no_message_until_starvation_is_removed(
    server: FaultServer, session: Session
) -> None:
    starvation = server.faults.starve("q")
    assert starvation.hits == 0
    session.subscribe("q", credit=2)
    assert starvation.hits == 1
    for body in (b"one", b"two", b"three"):
        session.publish(body)
    session.flow(0)
    session.call(x.MessageFlush(destination="d"))
    session.expect_nothing()
    session.flow(0xFFFFFFFF, unit=1)
    session.flow(2)
    session.expect_nothing()
    starvation.remove()
    assert session.bodies() == [b"one", b"two"]
    session.flow(1)
    assert session.bodies() == [b"three"]
    assert server.state.tap is server.recorder


def test_starvation_applies_to_matching_existing_subscriptions_only(session: Session, faults: Faults) -> None:
    session.declare("other")
    session.subscribe("q", "a")
    session.subscribe("q", "b")
    session.subscribe("other", "c")
    starvation = faults.starve(destination="a")
    of_queue = faults.starve("other")
    elsewhere = faults.starve(connection="elsewhere").optional()
    assert (starvation.hits, of_queue.hits, elsewhere.hits) == (1, 1, 0)
    for _ in range(4):
        session.publish(b"x")
        session.publish(b"y", key="other")
    assert {each.command.destination for each in session.transfers()} == {"b"}
    of_queue.remove()
    assert [each.command.destination for each in session.transfers()] == ["c"] * 4


def test_subscription_starved_twice_gets_messages_after_both_are_removed(
    session: Session, faults: Faults
) -> None:
    session.subscribe("q")
    one, other = faults.starve(), faults.starve("q")
    session.publish(b"x")
    one.remove()
    session.expect_nothing()
    other.remove()
    assert session.bodies() == [b"x"]


def test_completion_in_window_mode_gives_no_credit_while_starved(session: Session, faults: Faults) -> None:
    session.subscribe("q", credit=1, window=True)
    session.publish(b"one")
    session.publish(b"two")
    (transfer,) = session.transfers()
    with faults.starve("q"):
        session.completed(transfer.id)
        session.expect_nothing()
    assert session.bodies() == [b"two"]


def test_starvation_is_described_by_a_sentence_and_refuses_invalid_arguments(faults: Faults) -> None:
    starvation = faults.starve("orders", destination="d", connection="c1")
    assert isinstance(starvation, Starvation)
    assert str(starvation) == (
        "credit of subscriptions with destination 'd' to queue 'orders' on connection 'c1' is ignored"
    )
    with pytest.raises(FaultError, match="no argument 'que'; did you mean 'queue'"):
        faults.starve(que="orders")  # type: ignore[call-arg]
    with pytest.raises(FaultError, match="as a str, not 5"):
        faults.starve(5)  # type: ignore[arg-type]
