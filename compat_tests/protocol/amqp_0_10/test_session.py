"""Class session of 0-10: attaching, detaching, and what is kept meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode, ErrorCode
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Control

rule = pytest.mark.rule


# --- attach ------------------------------------------------------------------------------------------
@rule("0-10/session.attach/reply#success", "0-10/session.attached/name")
def test_session_attached_echoes_session_name(client: Client) -> None:
    for channel, name in enumerate([b"plain", b"", bytes(range(256))]):
        assert (client.call(c.SessionAttach(name=name), c.SessionAttached, channel).name or b"") == name


@rule("0-10/session.attach/idempotence")
def test_repeated_session_attach_on_same_channel_keeps_session(client: Client) -> None:
    session = client.session(b"s").declare("q", exclusive=True, auto_delete=True)
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    session.perform(x.QueuePurge(queue="q"))  # The queue is this session's alone.
    assert session.query("q").queue == "q"


@rule("0-10/session.attach/reply#failure", "0-10/session.attach/one-transport-per-session")
@rule("0-10/session/detach-code-session-busy")
def test_attach_of_session_attached_elsewhere_fails_with_session_busy(server: Server, client: Client) -> None:
    session = client.session(b"s")
    for other, channel in ((client, 1), (server.open(), 0)):
        detached = other.call(c.SessionAttach(name=b"s"), c.SessionDetached, channel)
        assert (detached.name, detached.code) == (b"s", DetachCode.SESSION_BUSY)
    session.declare("q")


@rule("0-10/session.attach/reply#failure", "0-10/session.attach/one-session-per-transport")
@rule("0-10/session/detach-code-transport-busy")
def test_attach_on_channel_of_another_session_is_refused_with_transport_busy(client: Client) -> None:
    session = client.session(b"s")
    detached = client.call(c.SessionAttach(name=b"other"), c.SessionDetached)
    assert (detached.name, detached.code) == (b"other", DetachCode.TRANSPORT_BUSY)
    session.declare("q")


@rule("0-10/session/name#identifies", "0-10/session.attach/force#detaches")
@rule("0-10/session.attach/force#attaches", "0-10/session.detached/spontaneous")
def test_forced_attach_moves_session_from_its_other_transport(server: Server, client: Client) -> None:
    session = client.session(b"s").declare("q", exclusive=True, auto_delete=True)
    other = server.open().send(c.SessionAttach(name=b"s", force=True))
    assert client.expect(c.SessionDetached).name == b"s"
    other.expect(c.SessionAttached)
    taken = Session(other, b"s", 0).point(session.next_id)
    taken.perform(x.QueuePurge(queue="q"))  # The queue is this session's alone.
    assert taken.query("q").queue == "q", "the state came along"


@rule("0-10/session/name#scoped", "0-10/session.attach/scoping")
def test_equal_session_names_of_two_users_name_separate_sessions(server: Server, client: Client) -> None:
    server.state.access.add(User("two", "two", (), {"/": Permission()}))
    client.session(b"s")
    server.open(user="two", password="two").session(b"s")
    assert len(server.state.sessions) == 2


@rule("0-10/frame/channel-range#zero")
def test_channel_zero_carries_session_like_other_channels(client: Client) -> None:
    zero, nine = client.session(b"zero", 0), client.session(b"nine", 9)
    zero.declare("a")
    nine.declare("b")
    assert zero.query("b").queue == "b"


def test_session_completed_is_sent_before_detached_on_forced_attach(client: Client) -> None:
    client.session(b"s", 1)
    declared = client.command_bytes(x.QueueDeclare(queue="q"), 1)
    by_force = control_frame(2, c.SessionAttach(name=b"s", force=True).encode())
    client.send_bytes(declared + by_force)
    assert list(client.expect(c.SessionCompleted, 1).commands or ()) == [0]
    client.expect(c.SessionDetached, 1)
    client.expect(c.SessionAttached, 2)


# --- attachment --------------------------------------------------------------------------------------
@rule("0-10/session/attachment#answered", "0-10/session/attachment#discarded")
@rule("0-10/session/detach-code-not-attached")
@pytest.mark.parametrize(
    "control",
    [c.SessionFlush(completed=True), c.SessionCommandPoint(command_id=0), c.SessionRequestTimeout(timeout=1)],
    ids=lambda control: control.NAME,
)
def test_control_without_session_is_answered_with_not_attached(client: Client, control: Control) -> None:
    assert client.call(control, c.SessionDetached, 3).code == DetachCode.NOT_ATTACHED
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached, 3)
    client.send_command(x.ExecutionSync(), 3)
    assert client.expect(c.SessionDetached, 3).code == DetachCode.UNKNOWN_IDS, "no command point has counted"
    client.drop()
    assert not client.server.state.sessions, "no timeout has counted"


@rule("0-10/session/attachment#answered", "0-10/session/attachment#discarded")
def test_command_without_session_is_answered_with_not_attached(server: Server, client: Client) -> None:
    client.send_command(x.QueueDeclare(queue="q"), 3)
    assert client.expect(c.SessionDetached, 3).code == DetachCode.NOT_ATTACHED
    assert "q" not in server.vhost.queues


@rule("0-10/session.detach/confirmed", "0-10/session/detach-code-normal", "0-10/session.detached/reason")
def test_session_detach_is_confirmed_with_code_normal(session: Session) -> None:
    detached = session.detach()
    assert (detached.name, detached.code) == (b"s", DetachCode.NORMAL)


@rule("0-10/session.detach/name")
def test_detach_of_another_session_is_answered_with_not_attached(client: Client) -> None:
    session = client.session(b"s")
    assert client.call(c.SessionDetach(name=b"other"), c.SessionDetached).code == DetachCode.NOT_ATTACHED
    session.declare("q")


def test_channel_may_be_used_again_after_detach(client: Client) -> None:
    client.session(b"s").detach()
    client.session(b"t").declare("q")


def test_command_is_completed_before_session_detached_and_connection_close_ok(client: Client) -> None:
    """The client sends the command and the end in one piece."""
    client.session(b"s")
    declared = client.command_bytes(x.QueueDeclare(queue="q"))
    client.send_bytes(declared + control_frame(0, c.SessionDetach(name=b"s").encode()))
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0]
    client.expect(c.SessionDetached)
    client.session(b"s")
    client.send_bytes(declared + control_frame(0, c.ConnectionClose(reply_code=200).encode()))
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0]
    client.expect(c.ConnectionCloseOk)


# --- timeout -----------------------------------------------------------------------------------------
@rule("0-10/session.request-timeout/maximum-granted-timeout#largest")
@rule("0-10/session.request-timeout/maximum-granted-timeout#reported", "0-10/session.timeout/granted#absent")
@rule("0-10/session.timeout/granted#one-reply", "0-10/session.request-timeout/either-side")
def test_each_requested_session_timeout_is_granted(client: Client) -> None:
    session = client.session()
    for seconds in (30, 10, 0, None):
        client.send(c.SessionRequestTimeout(timeout=seconds))
        assert session.expect(c.SessionTimeout).timeout == seconds
        session.expect_nothing()


@rule("0-10/session.request-timeout/maximum-granted-timeout#bounded", "0-10/session.request-timeout/unset")
@rule("0-10/session.request-timeout/maximum-granted-timeout#reported", "0-10/session.timeout/granted#value")
@rows("seconds, kept, gone", (30, 29.5, 30.5), (10, 9.5, 10.5), (None, 10_000_000, None))
def test_session_is_kept_for_its_granted_timeout(
    server: Server, client: Client, seconds: int | None, kept: float, gone: float | None
) -> None:
    session = client.session(b"s", timeout=60).declare("q", exclusive=True, auto_delete=True)
    client.send(c.SessionRequestTimeout(timeout=seconds))
    assert session.expect(c.SessionTimeout).timeout == seconds
    client.drop()
    server.advance(kept)
    assert "q" in server.vhost.queues
    if gone is not None:
        server.advance(gone - kept)
        assert "q" not in server.vhost.queues


def test_session_without_timeout_ends_with_its_transport(server: Server, client: Client) -> None:
    client.session(b"s").declare("q", exclusive=True, auto_delete=True)
    client.drop()
    assert "q" not in server.vhost.queues
    assert not server.state.sessions


@rule("0-10/session.request-timeout/maximum-granted-timeout#largest")
@rule("0-10/session.request-timeout/maximum-granted-timeout#reported")
@pytest.mark.parametrize("asked", [61, 0xFFFFFFFF, None])
def test_granted_session_timeout_is_limited_by_broker(asked: int | None) -> None:
    known = personality("rabbitmq-4.3")
    choices = replace(known.extension(Amqp010Choices), longest_session_timeout=60)
    server = Server(replace(known, extensions={Amqp010Choices: choices}))
    client = server.open()
    session = client.session(b"s")
    client.send(c.SessionRequestTimeout(timeout=asked))
    assert session.expect(c.SessionTimeout).timeout == 60
    client.drop()
    server.advance(59)
    assert server.state.sessions
    server.advance(2)
    assert not server.state.sessions


@rule("0-10/session.request-timeout/meaning")
def test_only_detached_session_ends_after_its_timeout(server: Server, client: Client) -> None:
    client.session(b"s", timeout=60).declare("q", exclusive=True, auto_delete=True).detach()
    server.advance(59)
    assert "q" in server.vhost.queues
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    server.advance(100)
    assert "q" in server.vhost.queues, "an attached session does not run out"
    client.drop()
    server.advance(61)
    assert "q" not in server.vhost.queues
    assert not server.state.sessions


@rule("0-10/message.subscribe/lifetime#session")
def test_message_published_to_detached_session_is_delivered_later(server: Server, client: Client) -> None:
    session = client.session(b"s", timeout=60).declare("q")
    session.subscribe("q").completed(*range(session.end.outgoing.next_id))
    client.drop()
    server.session(b"p").publish(b"while away")
    other = server.open().send(c.SessionAttach(name=b"s"))
    assert b"while away" in [each.body for each in other.inbox]


def test_restart_ends_all_sessions(server: Server, client: Client) -> None:
    client.session(b"s", timeout=None)
    server.restart()
    assert not server.state.sessions


# --- command point -----------------------------------------------------------------------------------
@rule("0-10/session.command-point/newly-attached-transports#new", "0-10/session/detach-code-unknown-ids")
def test_command_before_command_point_detaches_with_unknown_ids(server: Server, client: Client) -> None:
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    detached = client.send_command(x.QueueDeclare(queue="q")).expect(c.SessionDetached)
    assert (detached.name, detached.code) == (b"s", DetachCode.UNKNOWN_IDS)
    assert "q" not in server.vhost.queues


@rule("0-10/session.command-point/numbering#id", "0-10/session/commands-numbered#commands")
@rule("0-10/session/commands-numbered#controls")
def test_commands_are_numbered_from_command_point(client: Client) -> None:
    session = client.session(at=1000)
    session.send(x.ExecutionSync())
    client.send(c.SessionFlush(completed=True))
    session.send(x.ExecutionSync(), sync=True)
    completed = [each.what for each in client.inbox if isinstance(each.what, c.SessionCompleted)]
    assert list(completed[-1].commands or ()) == [1000, 1001]


@rule("0-10/types/sequence-no")
def test_command_ids_wrap_around(client: Client) -> None:
    session = client.session(at=0xFFFFFFFE)
    for _ in range(4):
        session.perform(x.ExecutionSync())
    client.inbox.clear()
    client.send(c.SessionFlush(completed=True, expected=True))
    assert list(client.expect(c.SessionExpected).commands or ()) == [2]
    assert set(client.expect(c.SessionCompleted).commands or ()) == {0xFFFFFFFE, 0xFFFFFFFF, 0, 1}


@rule("0-10/session.command-point/zero-offset")
def test_rest_of_command_after_offset_zero_closes_connection_with_framing_error(client: Client) -> None:
    client.session()
    client.send_frame(b"rest", flags=0x05, kind=1, track=1).expect_close(501)


@rule("0-10/session.command-point/nonzero-offset")
def test_start_of_command_after_nonzero_offset_closes_connection_with_framing_error(client: Client) -> None:
    session = client.session(timeout=None)
    whole = x.QueueDeclare(queue="q").encode()
    client.send_frame(whole[:3], flags=0x0E, kind=1, track=1)
    session.point(0, 3)
    client.send_frame(whole, kind=1, track=1).expect_close(501)


@rule("0-10/session.command-point/numbering#offset", "0-10/session.command-point/nonzero-offset")
def test_command_cut_by_lost_transport_is_continued_at_command_offset(server: Server, client: Client) -> None:
    client.session(b"s", timeout=None)
    whole = x.QueueDeclare(queue="q").encode()
    client.send_frame(whole[:5], flags=0x0E, kind=1, track=1).drop()
    other = server.open()
    other.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    # Two bytes come again, as if the client did not know that they had arrived.
    other.send(c.SessionCommandPoint(command_id=0, command_offset=3))
    other.send_frame(whole[3:], flags=0x0D, kind=1, track=1)
    assert "q" in server.vhost.queues


def test_command_point_inside_unknown_command_detaches_session_with_unknown_ids(client: Client) -> None:
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.send(c.SessionCommandPoint(command_id=0, command_offset=3))
    assert client.expect(c.SessionDetached).code == DetachCode.UNKNOWN_IDS


@rule("0-10/session.command-point/server-sends", "0-10/session/symmetric")
def test_broker_numbers_its_commands_from_zero(client: Client) -> None:
    session = client.session(at=500)
    session.send(x.QueueQuery(queue="q"), sync=True)
    point = client.expect(c.SessionCommandPoint)
    assert (point.command_id, point.command_offset) == (0, 0)
    result = client.take()
    assert (result.id, result.what.command_id) == (0, 500)
    session.send(x.QueueQuery(queue="q"), sync=True)
    client.expect(c.SessionCompleted)
    assert client.take().id == 1


# --- flush, expected, confirmed, completed -----------------------------------------------------------
@rule("0-10/session.flush/expected", "0-10/session.expected/commands-empty-means-new-session#new")
@rule("0-10/session.expected/only-on-request")
def test_new_session_answers_flush_with_empty_expected_set(client: Client) -> None:
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    client.expect_nothing()
    expected = client.call(c.SessionFlush(expected=True), c.SessionExpected)
    assert not expected.commands and not expected.fragments


@rule("0-10/session.expected/commands-empty-means-new-session#known")
@rule("0-10/session.expected/include-next-command", "0-10/session.expected/minimal-fragments")
@rule("0-10/session.expected/no-overlaps")
def test_next_command_is_expected_even_if_partly_received(client: Client) -> None:
    client.session().perform(x.ExecutionSync())
    client.send_frame(x.QueueDeclare(queue="q").encode()[:4], flags=0x0E, kind=1, track=1)
    expected = client.call(c.SessionFlush(expected=True), c.SessionExpected)
    assert list(expected.commands or ()) == [1] and not expected.fragments


@rule("0-10/session.flush/confirmed", "0-10/session.flush/completed", "0-10/session.flush/combined")
@rule("0-10/session.flush/soon", "0-10/session.confirmed/on-flush", "0-10/session.confirmed/simple")
@rule("0-10/session.confirmed/no-overlaps", "0-10/session.confirmed/minimal-fragments")
@rule("0-10/session.completed/commands-completed-implies-confirmed")
def test_session_flush_is_answered_with_each_requested_set(client: Client) -> None:
    client.session().perform(x.ExecutionSync())
    client.send(c.SessionFlush(expected=True, confirmed=True, completed=True))
    assert list(client.expect(c.SessionExpected).commands or ()) == [1]
    confirmed = client.expect(c.SessionConfirmed)
    assert list(confirmed.commands or ()) == [0] and not confirmed.fragments
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0]


@rule("0-10/session.flush/completed", "0-10/session.flush/confirmed")
def test_session_flush_without_new_completed_commands_is_answered_with_empty_set(client: Client) -> None:
    client.call(c.SessionAttach(name=b"s"), c.SessionAttached)
    for ask, reply in (
        (c.SessionFlush(completed=True), c.SessionCompleted),
        (c.SessionFlush(confirmed=True), c.SessionConfirmed),
    ):
        assert list(client.call(ask, reply).commands or ()) == []
        client.expect_nothing()
    client.send(c.SessionCommandPoint(command_id=0, command_offset=0))
    completed = client.send_command(x.ExecutionSync()).expect(c.SessionCompleted)
    assert list(completed.commands or ()) == [0]
    client.send(c.SessionKnownCompleted(commands=completed.commands))
    again = client.call(c.SessionFlush(completed=True), c.SessionCompleted)
    assert list(again.commands or ()) == []


@rule("0-10/session.completed/merged-reply", "0-10/session.completed/full-set")
@rule("0-10/session.completed/commands-exclude-known-complete")
@rule("0-10/session.confirmed/commands-exclude-known-complete")
@rule("0-10/session.known-completed/commands-known-completed-implies-known-confirmed")
@rule("0-10/session.known-completed/stateless")
def test_commands_known_completed_are_not_reported_again(client: Client) -> None:
    session = client.session()
    for _ in range(3):
        session.perform(x.ExecutionSync())
    completed = client.call(c.SessionFlush(completed=True), c.SessionCompleted)
    assert list(completed.commands or ()) == [0, 1, 2]
    client.send(c.SessionKnownCompleted(commands=completed.commands))
    session.perform(x.ExecutionSync())
    client.send(c.SessionFlush(completed=True, confirmed=True))
    assert list(client.expect(c.SessionConfirmed).commands or ()) == [3]
    assert list(client.expect(c.SessionCompleted).commands or ()) == [3]


@rule("0-10/session/sync-flag")
def test_command_with_sync_flag_is_completed_at_once(client: Client) -> None:
    client.session().send(x.QueueDeclare(queue="q"), sync=True)
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0]


def test_commands_sent_together_are_completed_by_single_control(client: Client) -> None:
    session = client.session()
    octets = [client.command_bytes(x.ExecutionSync(), sync=True) for _ in range(5)]
    client.send_bytes(b"".join(octets))
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0, 1, 2, 3, 4]
    client.expect_nothing()
    del session


@rule("0-10/session.completed/timely-reply", "0-10/session.completed/known-completed-reply#asked")
@rule("0-10/session.known-completed/stateless")
def test_completion_with_timely_reply_is_answered_with_known_completed(client: Client) -> None:
    client.session().perform(x.QueueQuery(queue="q")).completed(0, timely_reply=True)
    assert list(client.expect(c.SessionKnownCompleted).commands or ()) == [0]


@rule("0-10/session.completed/delayed-reply", "0-10/session.completed/known-completed-reply#unasked")
@pytest.mark.deviates("0-10/session.completed/known-completed-reply#unasked")
def test_only_spec_personality_answers_completion_with_known_completed_unasked(session: Session) -> None:
    session.perform(x.QueueQuery(queue="q")).completed(0)
    if session.server.is_spec:
        assert list(session.client.expect(c.SessionKnownCompleted).commands or ()) == [0]
    session.client.expect_nothing()


# --- gap ---------------------------------------------------------------------------------------------
@rule("0-10/session.gap/gap-confirmation-and-completion#completed")
@rule("0-10/session.gap/gap-confirmation-and-completion#confirmed", "0-10/session.gap/continue")
@rule("0-10/session.gap/completed-or-confirmed-commands#completed")
@rule("0-10/session.gap/completed-or-confirmed-commands#confirmed")
def test_commands_of_session_gap_are_reported_completed_and_confirmed(client: Client) -> None:
    session = client.session().perform(x.QueueDeclare(queue="before"))
    client.send(c.SessionGap(commands=_ids(0, 1, 2)))
    session.next_id = 3
    session.perform(x.QueueDeclare(queue="behind"))
    client.inbox.clear()
    client.send(c.SessionFlush(completed=True, confirmed=True))
    assert list(client.expect(c.SessionConfirmed).commands or ()) == [0, 1, 2, 3]
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0, 1, 2, 3]
    for queue in ("before", "behind"):
        assert session.query(queue).queue == queue


@rule("0-10/session.gap/aborted-commands")
def test_partly_received_command_is_aborted_by_session_gap(server: Server, client: Client) -> None:
    session = client.session()
    client.send_frame(x.QueueDeclare(queue="half").encode()[:4], flags=0x0E, kind=1, track=1)
    client.send(c.SessionGap(commands=_ids(0)))
    session.next_id = 1
    session.perform(x.QueueDeclare(queue="whole"))
    assert "half" not in server.vhost.queues and "whole" in server.vhost.queues


@rule("0-10/session.gap/continue")
def test_session_gap_may_be_announced_before_earlier_command(client: Client) -> None:
    session = client.session()
    client.send(c.SessionGap(commands=_ids(1, 2)))
    session.perform(x.QueueDeclare(queue="zero"))
    client.inbox.clear()
    expected = client.call(c.SessionFlush(expected=True), c.SessionExpected)
    assert list(expected.commands or ()) == [3]


def _ids(*ids: int) -> SequenceSet:
    return SequenceSet.of(*ids)


# --- durability --------------------------------------------------------------------------------------
@rule("0-10/session.confirmed/durability")
def test_confirmed_publish_survives_crash(server: Server, client: Client) -> None:
    session = client.session().declare("q", durable=True).publish(b"kept", delivery_mode=2)
    octets = client.command_bytes(
        x.MessageTransfer(destination=""),
        header=[structs.DeliveryProperties(routing_key="q", delivery_mode=2)],
        body=b"cut off" * 20_000,
    )
    end = 0
    for _ in range(3):  # The command, its header, and the first part of its body.
        end += int.from_bytes(octets[end + 2 : end + 4], "big")
    assert 60_000 < end < len(octets)
    client.send_bytes(octets[:end]).inbox.clear()
    confirmed = client.call(c.SessionFlush(confirmed=True), c.SessionConfirmed)
    assert {0, 1, 2} & set(confirmed.commands or ()) == {0, 1}, "the last one has not come to its end"
    session = server.restart(crash=True).session(b"other")
    assert session.subscribe("q").bodies() == [b"kept"]


# --- exceptions --------------------------------------------------------------------------------------
@rule("0-10/execution.exception/correlates#code", "0-10/execution.exception/correlates#command")
def test_exception_is_sent_before_client_sends_session_expected(server: Server) -> None:
    """The client is to say which commands it has; the exception does not wait for that."""
    session = server.open().session(b"s", timeout=100).declare("q")
    session.publish().subscribe().client.drop()
    client = server.open().send(c.SessionAttach(name=b"s"))
    client.send(c.SessionCommandPoint(command_id=session.next_id, command_offset=0))
    client.send_command(x.MessageCancel(destination="none"))
    (exception,) = [each.what for each in client.inbox if isinstance(each.what, x.ExecutionException)]
    assert (exception.error_code, exception.command_id) == (ErrorCode.NOT_FOUND, session.next_id)


@rule("0-10/session.attach/force#attaches", "0-10/execution/ends-session#session")
def test_forced_attach_of_failed_session_creates_new_session(server: Server) -> None:
    """Its client never heard of the exception, since it had lost the transport by then."""
    server.open().session(b"s", timeout=100).send(x.MessageCancel(destination="none"))
    again = server.open().session(b"s", force=True)
    assert again.declare("q").query().queue == "q"


def test_transfers_without_accept_in_unlimited_window_are_not_kept(server: Server) -> None:
    """Apache's low-level client has window mode without limits and completes no transfer."""
    session = server.session().declare().subscribe(window=True, accept_mode=1)
    for _ in range(10):
        session.publish(accept_mode=1)
    assert len(session.transfers()) == 10
    assert session.end.outgoing.held == 0
    assert not session.end.ledger.outstanding


def test_transfers_in_limited_window_are_kept_until_completed(server: Server) -> None:
    session = server.session().declare().subscribe(window=True, credit=3)
    for _ in range(5):
        session.publish()
    ids = [each.id for each in session.transfers()]
    assert session.end.outgoing.held == 3
    assert session.completed(*ids).end.outgoing.held == 2
    assert len(session.transfers()) == 2
