"""Messages: subscriptions, browsing and acquiring, releasing, rejecting, time to live."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.clients.amqp_0_10.checks import bodies, drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import UNLIMITED, Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, AcquireMode, FlowMode
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties

TEN = [f"message {number}".encode() for number in range(1, 11)]
BROWSING = AcquireMode.NOT_ACQUIRED


def suite(name: str) -> pytest.MarkDecorator:
    return pytest.mark.suite(f"message.MessageTests.{name}")


@pytest.fixture(autouse=True)
def q(session: Session) -> None:
    """There is a queue `q`."""
    session.declare("q", exclusive=True, auto_delete=True)


def fill(session: Session, messages: list[bytes] = TEN, queue: str = "q") -> None:
    for body in messages:
        session.publish(body, key=queue)


# --- subscriptions ------------------------------------------------------------------------------------------


@suite("test_consume_exclusive")
def test_beside_an_exclusive_subscription_there_is_no_other(session: Session) -> None:
    session.subscribe("q", "first", exclusive=True)
    with fails(405):
        session.subscribe("q", "second")


@suite("test_consume_exclusive2")
def test_beside_another_subscription_there_is_no_exclusive_one(session: Session) -> None:
    session.subscribe("q", "first")
    with fails(405):
        session.subscribe("q", "second", exclusive=True)


@suite("test_consume_queue_not_found")
def test_there_is_no_subscription_to_an_unknown_queue(session: Session) -> None:
    with fails(404):
        session.subscribe("nowhere", "d")


@suite("test_consume_queue_not_specified")
def test_there_is_no_subscription_to_a_queue_without_a_name(session: Session) -> None:
    with fails(531):
        session.subscribe(None, "d")


@suite("test_consume_unique_consumers")
def test_a_destination_is_used_once_in_a_session(session: Session) -> None:
    session.subscribe("q", "d")
    with fails(530):
        session.subscribe("q", "d")


@suite("test_cancel")
def test_a_cancelled_subscription_gets_no_more(connection: Connection, session: Session) -> None:
    fill(session, [b"one"])
    session.subscribe("q", "d")
    session.cancel("d")
    fill(session, [b"two"])
    assert drained(session, "d") == [b"one"]
    with fails(404):
        session.cancel("d")
    with fails(404):
        connection.session(b"other").cancel("never there")


# --- browsing and acquiring ---------------------------------------------------------------------------------


@suite("test_subscribe_not_acquired")
def test_two_browsing_subscriptions_get_all_messages_and_remove_no_message(session: Session) -> None:
    fill(session, TEN[:5])
    for destination in ("a", "b"):
        session.subscribe("q", destination, acquire_mode=BROWSING)
    fill(session, TEN[5:])
    for destination in ("a", "b"):
        messages = session.drain(destination)
        assert bodies(messages) == TEN
        session.complete(*messages)
    assert session.depth("q") == 10


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(AcceptMode.NONE, marks=suite("test_acquire_with_no_accept_and_credit_flow"), id="none"),
        pytest.param(AcceptMode.EXPLICIT, marks=suite("test_acquire"), id="explicit"),
    ],
)
def test_browsed_message_can_be_acquired_and_is_removed(
    connection: Connection, session: Session, mode: AcceptMode
) -> None:
    session.declare("shared")
    fill(session, [b"acquire me"], "shared")
    session.subscribe("shared", "d", acquire_mode=BROWSING, accept_mode=mode, mode=FlowMode.CREDIT)
    message = session.get("d")
    assert session.depth("shared") == 1
    assert message.id in session.acquire(message)
    assert session.depth("shared") == 0
    if mode is AcceptMode.EXPLICIT:
        session.accept(message)
    session.close()
    assert connection.session(b"other").depth("shared") == 0, "it is gone for good"


def test_acquire_skips_a_message_acquired_by_another_subscription(session: Session) -> None:
    fill(session, TEN[:2])
    for destination in ("a", "b"):
        session.subscribe("q", destination, acquire_mode=BROWSING)
    first, second = session.drain("a")
    assert list(session.acquire(first)) == [first.id]
    assert list(session.acquire(*session.drain("b"))) == [second.id + 2]


@suite("test_subscribe_not_acquired_2")
def test_browsing_window_moves_on_over_the_remaining_messages(session: Session) -> None:
    fill(session)
    session.subscribe("q", "d", credit=5, mode=FlowMode.CREDIT)
    for body in TEN[:5]:
        message = session.get("d")
        assert message.body == body
        session.accept(message)
    session.subscribe("q", "browser", credit=1, acquire_mode=BROWSING)
    for body in TEN[5:]:
        message = session.get("browser")
        assert message.body == body
        session.release(message)
        session.complete(message)
    assert drained(session, "browser") == []
    assert session.depth("q") == 5


@suite("test_subscribe_not_acquired_3")
def test_second_browsing_subscription_gets_messages_not_acquired_by_the_first(session: Session) -> None:
    fill(session)
    session.subscribe("q", "first", credit=10, acquire_mode=BROWSING)
    for number, message in enumerate(session.drain("first")):
        assert message.body == TEN[number]
        if number % 2 == 0:
            assert message.id in session.acquire(message)
            session.accept(message)
        else:
            session.release(message)
        session.complete(message)
    session.subscribe("q", "second", credit=1, acquire_mode=BROWSING)
    for body in TEN[1::2]:
        message = session.get("second")
        assert message.body == body
        session.complete(message)
    assert drained(session, "second") == []
    assert session.depth("q") == 5


@suite("test_release_unacquired")
def test_release_of_an_unacquired_message_leaves_it_once_in_the_queue(session: Session) -> None:
    fill(session, [b"single"])
    for destination in ("a", "b"):
        session.subscribe("q", destination, acquire_mode=BROWSING)
        session.release(session.get(destination))
    for destination in ("a", "b"):
        session.cancel(destination)
    session.subscribe("q", "d")
    (message,) = session.drain("d")
    session.accept(message)
    assert drained(session, "d") == []
    assert session.depth("q") == 0


# --- settling -----------------------------------------------------------------------------------------------


@suite("test_reject")
def test_rejected_message_goes_to_the_alternate_exchange_of_its_queue(session: Session) -> None:
    session.declare("source", exclusive=True, auto_delete=True, alternate_exchange="amq.fanout")
    session.bind("q", "amq.fanout")
    inbox(session, "source")
    inbox(session, "q")
    session.publish(b"not wanted", key="source")
    message = session.get("source")
    assert drained(session, "q") == []
    session.reject(message)
    assert drained(session, "q") == [b"not wanted"]
    assert session.depth("source") == 0


@suite("test_release")
def test_released_message_is_ready_again_in_its_queue(session: Session) -> None:
    fill(session, [b"release me"])
    session.subscribe("q", "d")
    message = session.get("d")
    session.cancel("d")
    assert session.depth("q") == 0
    session.release(message)
    assert session.depth("q") == 1


@suite("test_release_ordering")
def test_messages_released_together_are_redelivered_in_order(session: Session) -> None:
    fill(session)
    session.subscribe("q", "d", credit=10)
    messages = session.drain("d")
    assert bodies(messages) == TEN
    session.release(*messages)
    session.complete(*messages)
    assert drained(session, "d") == TEN


@suite("test_release_order")
def test_messages_released_separately_keep_their_order(session: Session) -> None:
    fill(session)
    session.subscribe("q", "first", credit=10)
    for number, message in enumerate(session.drain("first")):
        assert message.body == TEN[number]
        (session.release if number % 2 else session.accept)(message)
    session.subscribe("q", "second")
    assert drained(session, "second") == TEN[1::2]


@suite("test_ranged_ack")
def test_unaccepted_message_is_redelivered_when_its_session_ends(
    connection: Connection, session: Session
) -> None:
    other = connection.session(b"other", timeout=10)
    other.declare("shared", auto_delete=True)
    fill(other, queue="shared")
    other.subscribe("shared", "d", credit=10)
    messages = other.drain("d")
    assert bodies(messages) == TEN
    other.accept(*messages[:3], *messages[4:])
    session.subscribe("shared", "checker", credit=None, octets=None)  # It keeps the queue.
    other.close()
    session.flow("checker", UNLIMITED, UNLIMITED)
    assert drained(session, "checker") == [TEN[3]]


def test_a_released_message_may_be_marked_as_redelivered(session: Session) -> None:
    fill(session, [b"again"])
    session.subscribe("q", "d")
    message = session.get("d")
    assert not message.delivery.redelivered
    session.release(message)
    message = session.get("d")
    assert not message.delivery.redelivered
    session.release(message, set_redelivered=True)
    assert session.get("d").delivery.redelivered


# --- what a message has -------------------------------------------------------------------------------------


@suite("test_empty_body")
def test_empty_body_and_missing_body_arrive_as_different_values(session: Session) -> None:
    session.subscribe("q", "d")
    fill(session, [b""])
    session.publish(None, key="q")
    first, second = session.drain("d")
    assert (first.body, second.body) == (b"", None)
    session.accept(first, second)


def test_a_large_message_comes_in_many_frames(broker: Broker) -> None:
    octets = bytes(range(256)) * 8192
    with connect(broker, max_frame_size=4096) as connection:
        session = connection.session(b"large")
        session.declare("large")
        session.publish(octets, key="large")
        inbox(session, "large")
        assert session.get("large").body == octets


@pytest.fixture
def timeless() -> Iterator[Broker]:
    """A broker whose time stands still."""
    with Broker(seed=1, clock="virtual") as running:
        yield running
        assert running.failures == ()


@suite("test_ttl")
def test_a_message_expires_when_its_time_to_live_is_over(timeless: Broker) -> None:
    with connect(timeless) as connection:
        session = connection.session(b"session")
        session.declare("q")
        session.publish(b"half a second", key="q", ttl=500)
        session.publish(b"five minutes", key="q", ttl=300_000)
        timeless.clock.advance(1)
        session.subscribe("q", "d", credit=2)
        (message,) = session.drain("d")
        assert message.body == b"five minutes"
        assert 0 < (message.delivery.ttl or 0) <= 300_000
        session.release(message)
        session.cancel("d")
        timeless.clock.advance(300)
        assert session.depth("q") == 0


def test_message_without_a_header_is_delivered_with_its_exchange_as_only_property(session: Session) -> None:
    session.bind("q", "amq.fanout")
    session.call(x.MessageTransfer(destination="amq.fanout"), body=b"body")
    inbox(session, "q")
    message = session.get("q")
    assert message.body == b"body"
    assert message.header == (DeliveryProperties(exchange="amq.fanout"),)
