"""Credit: message.flow, set-flow-mode, stop and flush, completions, and messages too large for the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_10 import UNLIMITED, Server, Session
from fakeamqp.model.limits import Bounds
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule


CREDIT, WINDOW = 0, 1
MESSAGE, BYTE = 0, 1
#: A header with a key of one byte and the name of the default exchange, and a body of eight, in personality
#: rabbitmq-4.2; by the text there is a timestamp.
BODY = b"12345678"


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


def fill(session: Session, count: int = 5) -> Session:
    for number in range(count):
        session.publish(BODY[:-1] + str(number).encode())
    return session


def subscribe(session: Session, mode: int | None = None, destination: str = "d", **arguments: int) -> Session:
    """Subscribe, with no credit at all."""
    session.perform(x.MessageSubscribe(queue="q", destination=destination, **arguments))
    if mode is not None:
        session.perform(x.MessageSetFlowMode(destination=destination, flow_mode=mode))
    return session


def cost(session: Session) -> int:
    """What one of the messages costs."""
    return 11 + len(BODY) + (8 if session.end.choices.stamps_arrival else 0)


# --- the beginning -----------------------------------------------------------------------------------
@rule("0-10/message.subscribe/default-flow-mode", "0-10/message.set-flow-mode/default-flow-mode")
def test_subscription_starts_in_window_mode(session: Session) -> None:
    fill(session)
    subscribe(session).flow(UNLIMITED, unit=BYTE).flow(1)
    for _ in range(5):
        (transfer,) = session.transfers()
        session.completed(transfer.id)
    session.expect_nothing()


@rule("0-10/message.set-flow-mode/both-needed#message", "0-10/message.set-flow-mode/both-needed#byte")
@rule("0-10/message.subscribe/initial-credit")
@pytest.mark.parametrize("first", [MESSAGE, BYTE])
def test_delivery_requires_both_message_and_byte_credit(session: Session, first: int) -> None:
    fill(session)
    subscribe(session).expect_nothing()
    session.flow(UNLIMITED, unit=first).expect_nothing()
    assert len(session.flow(UNLIMITED, unit=1 - first).transfers()) == 5


@rule("0-10/message/flow-mode-values")
def test_message_set_flow_mode_accepts_only_modes_0_and_1(session: Session) -> None:
    subscribe(session)
    for mode in (CREDIT, WINDOW, CREDIT):
        session.perform(x.MessageSetFlowMode(destination="d", flow_mode=mode))
    illegal(session, x.MessageSetFlowMode(destination="d", flow_mode=1))


@rule("0-10/message/credit-unit-values#others")
def test_message_flow_of_unit_2_fails_with_illegal_argument(session: Session) -> None:
    subscribe(session)
    illegal(session, x.MessageFlow(destination="d", unit=1))


def illegal(session: Session, command: Command) -> None:
    """The command, with 2 for the last of its bytes."""
    octets = command.encode()[:-1] + b"\2"
    session.client.send_frame(octets, kind=1, track=1, channel=session.channel)
    exception = session.news(x.ExecutionException)
    assert (exception.error_code, exception.field_index) == (531, 1)


@rule("0-10/message.set-flow-mode/unknown-destination")
@pytest.mark.parametrize("kind", [x.MessageSetFlowMode, x.MessageFlow, x.MessageStop, x.MessageFlush])
def test_flow_for_unknown_destination_fails_with_not_found(session: Session, kind: type[Command]) -> None:
    session.fails(kind(destination="nope"), 404)


# --- bytes ------------------------------------------------------------------------------------------
@rule("0-10/message.set-flow-mode/byte-accounting#content", "0-10/message/credit-unit-values#byte")
@pytest.mark.parametrize("mode", [CREDIT, WINDOW])
def test_byte_credit_counts_octets_of_header_and_body(session: Session, mode: int) -> None:
    fill(session)
    subscribe(session, mode).flow(UNLIMITED).flow(cost(session) - 1, unit=BYTE).expect_nothing()
    (transfer,) = session.flow(1, unit=BYTE).transfers()
    assert transfer.cost == cost(session)
    assert len(session.flow(2 * cost(session), unit=BYTE).transfers()) == 2


@rule("0-10/message.set-flow-mode/byte-accounting#frames")
def test_byte_credit_does_not_count_frame_headers(server: Server) -> None:
    session = server.open(max_frame_size=4096).session()
    session.declare("q").publish(b"x" * 20_000)
    (transfer,) = subscribe(session).flow(1).flow(20_000 + cost(session) - len(BODY), unit=BYTE).transfers()
    assert len(transfer.body or b"") == 20_000


@pytest.mark.parametrize("how", ["redelivered", "ttl", "0-9-1"])
def test_byte_cost_of_message_equals_octets_sent_to_client(session: Session, how: str) -> None:
    if how == "0-9-1":
        session.server.client().publish(BODY, routing_key="q")
    else:
        session.publish(BODY, redelivered=how == "redelivered", ttl=60_000 if how == "ttl" else None)
    (measured,) = session.subscribe(destination="measures", acquire_mode=1).transfers()
    subscribe(session).flow(1).flow(measured.cost - 1, unit=BYTE).expect_nothing()
    (transfer,) = session.flow(1, unit=BYTE).transfers()
    assert transfer.cost == measured.cost
    assert session.end.subscriptions["d"].grant.octets == 0


@rule("0-10/message.set-flow-mode/no-partial")
def test_message_larger_than_byte_credit_waits_for_more_credit(session: Session) -> None:
    session.publish(b"x" * 1000)
    subscribe(session).flow(10).flow(999, unit=BYTE).expect_nothing()
    session.flow(100, unit=BYTE)
    assert [len(body or b"") for body in session.bodies()] == [1000]


# --- modes -------------------------------------------------------------------------------------------
@rule("0-10/message.set-flow-mode/credit-mode#message", "0-10/message.set-flow-mode/credit-mode#byte")
@rule("0-10/message.set-flow-mode/credit-mode#nothing-back")
@pytest.mark.parametrize("unit", [MESSAGE, BYTE])
def test_completion_and_accept_restore_no_credit_in_credit_mode(session: Session, unit: int) -> None:
    fill(session)
    subscribe(session, CREDIT).flow(2 if unit == MESSAGE else 2 * cost(session), unit=unit)
    transfers = session.flow(UNLIMITED, unit=1 - unit).transfers()
    assert len(transfers) == 2
    session.completed(*(each.id for each in transfers))
    session.accept(*(each.id for each in transfers)).expect_nothing()


@rule("0-10/message.set-flow-mode/window-mode#message", "0-10/message.set-flow-mode/window-mode#byte")
@pytest.mark.parametrize("unit", [MESSAGE, BYTE])
def test_completion_restores_credit_in_window_mode(session: Session, unit: int) -> None:
    fill(session)
    subscribe(session, WINDOW).flow(2 if unit == MESSAGE else 2 * cost(session), unit=unit)
    first, second = session.flow(UNLIMITED, unit=1 - unit).transfers()
    third, _ = session.completed(first.id, second.id).transfers()
    assert len(session.completed(third.id).transfers()) == 1


@rule("0-10/session.completed/out-of-order")
def test_completions_in_any_order_restore_credit_once(session: Session) -> None:
    fill(session)
    first, second = subscribe(session, WINDOW).flow(2).flow(UNLIMITED, unit=BYTE).transfers()
    (third,) = session.completed(second.id).transfers()
    session.completed(second.id).expect_nothing()
    assert len(session.completed(first.id, second.id, third.id).transfers()) == 2


@rule("0-10/message.set-flow-mode/only-completion-refills#completed")
@rule("0-10/message.set-flow-mode/only-completion-refills#settled")
@rule("0-10/message.set-flow-mode/only-completion-refills#transactions")
def test_only_completion_restores_window_credit(session: Session) -> None:
    session.perform(x.TxSelect())
    fill(session, 6).perform(x.TxCommit())
    subscribe(session, WINDOW).flow(4).flow(UNLIMITED, unit=BYTE)
    one, two, three, four = (each.id for each in session.transfers())
    session.accept(one).perform(x.TxCommit())
    session.release(two).reject(three).accept(four).perform(x.TxRollback())
    session.control(c.SessionConfirmed(commands=x.SequenceSet.of(one, two, three, four))).expect_nothing()
    assert len(session.completed(one).transfers()) == 1


@rule("0-10/message.set-flow-mode/mode-switching#refused")
@pytest.mark.parametrize("unit", [MESSAGE, BYTE])
def test_spec_refuses_flow_mode_change_while_subscription_has_credit(spec: Server, unit: int) -> None:
    session = subscribe(spec.session().declare("q"))
    session.flow(1, unit=unit).fails(x.MessageSetFlowMode(destination="d", flow_mode=CREDIT), 409)


@rule("0-10/message.set-flow-mode/mode-switching#allowed")
def test_flow_mode_may_change_after_message_stop(server: Server) -> None:
    session = server.session().declare("q")
    subscribe(session).flow(1).perform(x.MessageStop(destination="d"))
    session.perform(x.MessageSetFlowMode(destination="d", flow_mode=CREDIT))
    session.flow(2).flow(UNLIMITED, unit=BYTE)
    transfers = fill(session).transfers()
    assert len(transfers) == 2
    session.completed(*(each.id for each in transfers)).expect_nothing()


@pytest.mark.deviates("0-10/message.set-flow-mode/mode-switching#refused")
def test_default_personality_allows_flow_mode_change_while_subscription_has_credit(lenient: Server) -> None:
    session = lenient.session().declare("q")
    subscribe(session).flow(2).perform(x.MessageSetFlowMode(destination="d", flow_mode=CREDIT))
    session.flow(UNLIMITED, unit=BYTE)
    transfers = fill(session).transfers()
    session.completed(*(each.id for each in transfers))
    assert len(transfers) == 2
    session.expect_nothing()


def test_completion_restores_no_credit_after_change_to_credit_mode(lenient: Server) -> None:
    session = fill(lenient.session().declare("q"))
    (transfer,) = subscribe(session, WINDOW).flow(UNLIMITED, unit=BYTE).flow(1).transfers()
    session.perform(x.MessageSetFlowMode(destination="d", flow_mode=CREDIT))
    session.completed(transfer.id).expect_nothing()


# --- flow --------------------------------------------------------------------------------------------
@rule("0-10/message.flow/adds", "0-10/message/credit-unit-values#message")
def test_message_flow_adds_to_credit(session: Session) -> None:
    subscribe(session)
    session.flow(UNLIMITED, unit=BYTE).flow(1).flow(1)
    assert len(fill(session).transfers()) == 2


@rule("0-10/message.flow/infinite#largest", "0-10/message.flow/infinite#absent")
@rule("0-10/message.flow/infinite#stop", "0-10/message.flow/infinite#flush")
@pytest.mark.parametrize("value", [UNLIMITED, None])
@pytest.mark.parametrize("end", [x.MessageStop, x.MessageFlush])
def test_credit_of_largest_or_absent_value_is_unlimited_until_stop_or_flush(
    session: Session, value: int | None, end: type[Command]
) -> None:
    fill(session)
    subscribe(session, CREDIT)
    for unit in (MESSAGE, BYTE):
        session.flow(value, unit=unit)
    assert len(session.transfers()) == 5
    session.perform(end(destination="d"))
    fill(session).expect_nothing()


@rule("0-10/message.flow/unlimited-not-decremented")
def test_unlimited_credit_is_not_used_up_by_deliveries(session: Session) -> None:
    subscribe(session, CREDIT)
    for unit in (MESSAGE, BYTE):
        session.flow(UNLIMITED, unit=unit)
    assert len(fill(session, 1000).transfers()) == 1000


@pytest.mark.parametrize("unit", [MESSAGE, BYTE])
def test_credit_does_not_overflow_above_largest_value(session: Session, unit: int) -> None:
    subscribe(session, CREDIT)
    session.flow(UNLIMITED, unit=1 - unit).flow(UNLIMITED - 5, unit=unit).flow(10, unit=unit)
    assert len(fill(session, 20).transfers()) == 20


def test_message_flow_of_value_zero_grants_no_credit(session: Session) -> None:
    fill(session)
    subscribe(session).flow(0).flow(0, unit=BYTE).expect_nothing()


def test_each_subscription_has_separate_credit(session: Session) -> None:
    for destination, credit in (("a", 1), ("b", 2)):
        subscribe(session, CREDIT, destination).flow(UNLIMITED, destination=destination, unit=BYTE)
        session.flow(credit, destination=destination)
    fill(session)
    assert sorted(each.command.destination or "" for each in session.transfers()) == ["a", "b", "b"]


# --- stop --------------------------------------------------------------------------------------------
@rule("0-10/message.stop/zero-credit#message", "0-10/message.stop/zero-credit#byte")
@rule("0-10/message.stop/zero-credit#new")
def test_no_message_is_delivered_after_stop_until_both_credits_are_granted_again(session: Session) -> None:
    subscribe(session).flow(10).flow(UNLIMITED, unit=BYTE).perform(x.MessageStop(destination="d"))
    fill(session).expect_nothing()
    session.flow(1).expect_nothing()
    assert len(session.flow(UNLIMITED, unit=BYTE).transfers()) == 1


@pytest.mark.parametrize("command", [x.MessageStop, x.MessageFlush])
def test_completion_of_transfers_before_stop_or_flush_restores_no_credit(
    session: Session, command: type[Command]
) -> None:
    """A window never grows beyond what was granted since."""
    fill(session, 9)
    before = subscribe(session, WINDOW).flow(UNLIMITED, unit=BYTE).flow(3).transfers()
    assert len(before) == 3
    session.perform(command(destination="d")).completed(before[0].id).expect_nothing()
    since = session.flow(UNLIMITED, unit=BYTE).flow(2).completed(*(each.id for each in before)).transfers()
    assert len(since) == 2
    assert len(session.completed(*(each.id for each in since)).transfers()) == 2


# --- flush -------------------------------------------------------------------------------------------
@rule("0-10/message.flush/exhausts#zero", "0-10/message.flush/exhausts#used-up")
@pytest.mark.parametrize(("credit", "delivered"), [(10, 3), (2, 2)])
def test_message_flush_delivers_what_credit_allows_and_sets_the_rest_to_zero(
    session: Session, credit: int, delivered: int
) -> None:
    fill(session, 3)
    subscribe(session, CREDIT)
    session.flow(UNLIMITED, unit=BYTE).flow(credit).perform(x.MessageFlush(destination="d"))
    assert len(session.transfers()) == delivered
    fill(session, 3).expect_nothing()


@pytest.mark.parametrize("mode", [CREDIT, WINDOW])
def test_only_credit_granted_after_flush_counts(session: Session, mode: int) -> None:
    fill(session)
    subscribe(session, mode)
    for round_ in range(3):
        session.flow(UNLIMITED, unit=BYTE).flow(1).perform(x.MessageFlush(destination="d"))
        (transfer,) = session.transfers()
        assert transfer.body == BODY[:-1] + str(round_).encode()
        session.completed(transfer.id).expect_nothing()


@rule("0-10/message.flush/exhausts#available")
def test_message_flush_sends_messages_held_back_by_full_transport(session: Session) -> None:
    """Every message that credit allows is sent before the flush is completed."""
    connection = session.client.connection
    big = bytes(800_000)
    for _ in range(4):
        session.publish(big)
    subscribe(session, CREDIT).flow(UNLIMITED, unit=BYTE)
    command = session.client.command_bytes(x.MessageFlow(destination="d", value=4), session.channel)
    flush = session.client.command_bytes(x.MessageFlush(destination="d"), session.channel)
    session.next_id += 2
    connection.receive(command)
    assert session.server.vhost.queues["q"].ready  # The rest waits for the transport.
    connection.receive(flush)
    assert not session.server.vhost.queues["q"].ready
    for _ in range(2):  # From here on it is as full as before.
        session.publish(big)
    connection.receive(
        session.client.command_bytes(x.MessageFlow(destination="d", unit=BYTE), session.channel)
    )
    connection.receive(command)
    session.next_id += 2
    assert len(session.server.vhost.queues["q"].ready) == 2
    assert len(session.transfers()) == 6


# --- transports --------------------------------------------------------------------------------------
def test_full_transport_delays_deliveries_until_octets_are_sent(session: Session) -> None:
    other = session.server.session(b"other")
    connection = session.client.connection
    session.subscribe().client.take_bytes()
    for _ in range(20):
        other.publish(bytes(200_000))
    ready = other.query().message_count or 0
    assert 0 < ready < 20
    octets = b"".join(connection.pending())
    assert other.query().message_count == ready  # They are on their way, which is not gone.
    connection.sent(len(octets))
    assert (other.query().message_count or 0) < ready


def test_commands_wait_while_client_does_not_read_answers(server: Server) -> None:
    server.state.bounds = Bounds(outbox_deliveries=500, outbox_input=1000)
    session = server.session()
    client, connection = session.client, session.client.connection
    client.send_bytes(client.command_bytes(x.QueueQuery(queue="q"), session.channel) * 100)
    assert 1000 <= connection.unsent < 1100
    assert not connection.reading
    count = -1
    while count != len(client.inbox):
        count = len(client.inbox)
    assert sum(isinstance(each.what, x.ExecutionResult) for each in client.inbox) == 100
    assert connection.reading


def test_large_body_is_shared_without_copy_by_all_subscribers(session: Session) -> None:
    body = bytes(range(256)) * 2048
    others = [session.server.session(b"other-%d" % number) for number in range(3)]
    for number, other in enumerate(others):
        other.declare(f"q{number}")
        other.bind(f"q{number}", "amq.fanout")
        other.subscribe(f"q{number}")
        other.client.take_bytes()
    session.publish(body, exchange="amq.fanout")
    shared = []
    for other in others:
        pieces = other.client.connection.pending()
        views = [each for each in pieces if isinstance(each, memoryview) and each.nbytes < len(each.obj)]
        assert b"".join(views) == body
        shared += [each.obj for each in views]
    assert len({id(each) for each in shared}) == 1


def test_message_properties_count_as_byte_credit(lenient: Server) -> None:
    session = lenient.session().declare("q")
    session.publish(BODY, message=structs.MessageProperties(content_type="a"))
    subscribe(session).flow(1).flow(19, unit=BYTE).expect_nothing()
    assert session.flow(10, unit=BYTE).transfer().cost == 29


_LARGE = b"large" * 100
_SMALL = b"small"
_FEW_OCTETS = 60


def _is_got(server: Server) -> None:
    got = server.client().get("q", no_ack=True)
    assert got is not None and got.body == _LARGE


def _is_acquired(server: Server) -> None:
    browser = server.session(b"browser").subscribe(acquire_mode=1, credit=1)
    browser.perform(x.MessageAcquire(transfers=SequenceSet.of(browser.transfer().id)))


def _is_taken(server: Server) -> None:
    server.session(b"other").subscribe(credit=1)


def _expires(server: Server) -> None:
    server.advance(1)


@rule("0-10/message.set-flow-mode/no-partial")
@pytest.mark.parametrize("acquire_mode", [0, 1], ids=["subscription", "browser"])
@pytest.mark.parametrize("goes", [_is_got, _is_acquired, _is_taken, _expires])
def test_next_message_is_delivered_after_too_large_message_goes_another_way(
    server: Server, acquire_mode: int, goes: Callable[[Server], None]
) -> None:
    session = server.session(b"taker").declare("q")
    session.publish(_LARGE, ttl=1000).publish(_SMALL)
    assert session.subscribe(octets=_FEW_OCTETS, acquire_mode=acquire_mode).bodies() == []
    goes(server)
    assert session.bodies() == [_SMALL]


def test_browser_receives_next_message_after_too_large_message_behind_another_expires(server: Server) -> None:
    session = server.session(b"publisher").declare("q")
    session.publish(b"1").publish(b"x" * 500, ttl=300).publish(b"3")
    browser = server.session(b"browser")
    assert browser.subscribe(octets=60, credit=10, acquire_mode=1).bodies() == [b"1"]
    assert browser.after(1).bodies() == [b"3"]


def test_browser_with_restored_credit_skips_expired_message_behind_another(server: Server) -> None:
    session = server.session(b"publisher").declare("q").publish(b"1")
    session.publish(b"2" * 30, ttl=300)  # Small enough once the credit for the first is back.
    browser = server.session(b"browser")
    shown = browser.subscribe(octets=_FEW_OCTETS, credit=2, acquire_mode=1).transfer()
    assert shown.body == b"1"
    browser.expect_nothing()
    browser.after(0.5).completed(shown.id).expect_nothing()
    assert len(server.vhost.queues["q"].ready) == 2
    session.publish(b"3")
    assert browser.bodies() == [b"3"]


def test_cancel_of_waiting_browser_removes_its_timer(server: Server) -> None:
    server.session(b"publisher").declare("q").publish(b"x" * 500, ttl=60_000)
    browser = server.session(b"browser").subscribe(octets=60, credit=10, acquire_mode=1)
    before = len(list(server.state.timers.pending()))
    browser.perform(x.MessageCancel(destination="d"))
    assert len(list(server.state.timers.pending())) == before - 1
