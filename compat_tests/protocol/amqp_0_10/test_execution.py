"""Class execution of 0-10: sync, results, and exceptions with their codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault, SessionFault, short_text

rule = pytest.mark.rule


# --- sync and result ---------------------------------------------------------------------------------
@rule("0-10/execution.sync/barrier")
def test_execution_sync_is_completed_together_with_all_earlier_commands(session: Session) -> None:
    client = session.client
    octets = [client.command_bytes(x.QueueDeclare(queue=f"q{number}")) for number in range(3)]
    client.send_bytes(b"".join(octets) + client.command_bytes(x.ExecutionSync(), sync=True))
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0, 1, 2, 3]


@rule("0-10/execution.result/carries", "0-10/execution.result/with-completion")
def test_execution_result_names_its_command_and_precedes_completion(session: Session) -> None:
    session.perform(x.ExecutionSync()).send(x.ExchangeQuery(name="amq.direct"), sync=True)
    result = session.expect(x.ExecutionResult)
    assert result.command_id == 1
    assert isinstance(result.value, structs.ExchangeQueryResult) and result.value.type == "direct"
    completed = session.client.expect(c.SessionCompleted)
    assert 1 in (completed.commands or ())


# --- exceptions --------------------------------------------------------------------------------------
@rule("0-10/execution/ends-session#session", "0-10/execution/ends-session#connection")
@rule("0-10/execution.exception/no-later-effects", "0-10/execution.exception/correlates#code")
@rule("0-10/execution.exception/correlates#command", "0-10/execution.exception/correlates#method")
def test_execution_exception_ends_session_but_not_connection(server: Server) -> None:
    client = server.open()
    session, other = client.session(b"s", 0), client.session(b"other", 1)
    session.perform(x.ExecutionSync())
    octets = [
        client.command_bytes(each)
        for each in (x.QueuePurge(queue="nowhere"), x.QueueDeclare(queue="late"), x.ExecutionSync())
    ]
    client.send_bytes(b"".join(octets))
    exception = session.expect(x.ExecutionException)
    assert (exception.error_code, exception.command_id) == (404, 1)
    assert (exception.class_code, exception.command_code) == (8, 3)
    assert exception.description and "nowhere" in exception.description
    assert session.expect(c.SessionDetach).name == b"s"
    client.expect_nothing()
    assert "late" not in server.vhost.queues
    other.declare("still here")
    client.send(c.SessionDetached(name=b"s", code=0)).expect_nothing()
    client.session(b"s", 0).declare("anew")


@rule("0-10/execution/ends-session#session")
def test_failed_session_answers_only_detach(server: Server) -> None:
    client = server.open()
    session = client.session(timeout=None)
    session.send(x.QueuePurge(queue="nowhere"))
    client.inbox.clear()
    session.send(x.QueueDeclare(queue="late"))
    session.control(c.SessionFlush(completed=True)).control(c.SessionRequestTimeout(timeout=7))
    client.expect_nothing()
    assert client.call(c.SessionDetach(name=b"s"), c.SessionDetached).code == 0
    assert not server.state.sessions, "a session that has failed is not kept"


def test_earlier_commands_are_completed_before_execution_exception(session: Session) -> None:
    client = session.client
    octets = [client.command_bytes(each) for each in (x.ExecutionSync(), x.QueuePurge(queue="nowhere"))]
    client.send_bytes(b"".join(octets))
    assert list(client.expect(c.SessionCompleted).commands or ()) == [0]
    session.expect(x.ExecutionException)


def test_unaccepted_message_is_requeued_when_session_fails(server: Server) -> None:
    session = server.session().declare("q")
    session.publish(b"held").subscribe("q").transfer()
    session.send(x.QueuePurge(queue="nowhere"))
    (queued,) = server.vhost.queues["q"].ready
    assert queued.redelivered


@rule("0-10/execution.exception/correlates#field", "0-10/execution.exception/index-zero-based#zero")
@rule("0-10/encoding/required-fields")
def test_field_index_of_execution_exception_counts_from_zero(session: Session) -> None:
    exception = session.fails(x.MessageSubscribe(destination="d"), _empty_name_code(session))
    assert exception.field_index == 0


@rule("0-10/execution.exception/index-zero-based#absent")
def test_execution_exception_without_faulty_field_has_no_field_index(session: Session) -> None:
    session.perform(x.TxSelect())
    session.declare("q", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    exception = session.publish().fails(x.TxCommit(), 506)
    assert (exception.class_code, exception.command_code, exception.field_index) == (5, 2, None)


def _empty_name_code(session: Session) -> int:
    choices = session.server.state.personality.extension(Amqp010Choices)
    return {"illegal-argument": 531, "invalid-argument": 542}[choices.missing_queue_name]


def test_execution_exception_of_client_ends_session(server: Server) -> None:
    session = server.session().declare("q")
    session.subscribe("q").send(x.ExecutionException(error_code=541, description="cannot"))
    assert not server.vhost.queues["q"].subscriptions
    session.client.expect_nothing()
    assert session.detach().code == 0


# --- codes -------------------------------------------------------------------------------------------
def _unauthorized(server: Server) -> tuple[Session, Any]:
    server.state.access.add(User("reader", "r", (), {"/": Permission("^$", "^$", ".*")}))
    return server.session(user="reader", password="r"), x.QueueDeclare(queue="q")


def _locked(server: Server) -> tuple[Session, Any]:
    server.session(b"owner").declare("q", exclusive=True)
    return server.session(), x.QueueDeclare(queue="q")


def _in_use(server: Server) -> tuple[Session, Any]:
    session = server.session().declare("q")
    session.publish(b"there").perform(x.ExecutionSync())
    return session, x.QueueDelete(queue="q", if_empty=True)


def _full(server: Server) -> tuple[Session, Any]:
    server.vhost.limits = VirtualHostLimits(max_queues=1)
    session = server.session().declare("one")
    return session, x.QueueDeclare(queue="two")


def _illegal_state(server: Server) -> tuple[Session, Any]:
    session = server.session().perform(x.DtxSelect())
    xid = structs.Xid(format=1, global_id=b"g", branch_id=b"b")
    session.perform(x.DtxStart(xid=xid)).publish(b"associated")
    return session, x.DtxPrepare(xid=xid)


@rows(
    "code, prepare",
    pytest.param(403, _unauthorized, marks=rule("0-10/execution/unauthorized-access")),
    pytest.param(
        404,
        lambda server: (server.session(), x.QueuePurge(queue="nowhere")),
        marks=rule("0-10/execution/not-found"),
    ),
    pytest.param(405, _locked, marks=rule("0-10/execution/resource-locked")),
    pytest.param(406, _in_use, marks=rule("0-10/execution/precondition-failed")),
    pytest.param(409, _illegal_state, marks=rule("0-10/execution/illegal-state")),
    pytest.param(
        530,
        lambda server: (server.session(), x.ExchangeDelete(exchange="amq.topic")),
        marks=rule("0-10/execution/not-allowed"),
    ),
    pytest.param(
        542,
        lambda server: (server.session(), x.ExchangeDelete(exchange="")),
        marks=rule("0-10/execution/invalid-argument"),
    ),
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_failed_command_ends_session_with_error_code_of_its_cause(
    server: Server, code: int, prepare: Callable[[Server], tuple[Session, Any]]
) -> None:
    session, command = prepare(server)
    session.fails(command, code)


@rule("0-10/execution/resource-limit-exceeded")
def test_queue_above_limit_of_virtual_host_fails_with_code_506(server: Server) -> None:
    session, command = _full(server)
    session.fails(command, 506)
    assert list(server.vhost.queues) == ["one"]
    server.session(b"other").perform(x.QueueDeclare(queue="one"))  # One that is there counts once.


@rule("0-10/execution/resource-deleted")
def test_subscriber_of_deleted_queue_receives_exception_with_code_408(server: Server) -> None:
    session = server.session().declare("q").subscribe("q")
    server.session(b"other").perform(x.QueueDelete(queue="q"))
    assert session.expect(x.ExecutionException).error_code == 408


@rule("0-10/execution/command-invalid")
@pytest.mark.parametrize(
    "octets",
    [b"\x08\x01", x.QueueDeclare(queue="q").encode() + b"\x00", x.QueueDeclare(queue="q").encode()[:-1]],
    ids=["no header", "bytes left over", "bytes missing"],
)
def test_segment_that_cannot_be_decoded_fails_with_code_503(server: Server, octets: bytes) -> None:
    session = server.session()
    session.client.send_frame(octets, kind=1, track=1)
    exception = session.expect(x.ExecutionException)
    assert (exception.error_code, exception.command_id) == (503, 0)
    assert "q" not in server.vhost.queues


@rule("0-10/encoding/domain-check#outside", "0-10/execution/illegal-argument")
def test_value_outside_its_domain_fails_with_code_531(session: Session) -> None:
    session.declare("q").perform(x.MessageSubscribe(queue="q", destination="d"))
    # message.flow: destination "d", unit 7, value 1
    body = b"\x04\x0a\x01\x00" + b"\x07\x00" + b"\x01d" + b"\x07" + b"\x00\x00\x00\x01"
    session.client.send_frame(body, kind=1, track=1)
    assert session.expect(x.ExecutionException).error_code == 531


@rule("0-10/execution/not-implemented")
@pytest.mark.parametrize(
    "command",
    [x.FileQosOk(), x.FileConsumeOk(), x.StreamQosOk(), x.StreamConsumeOk()],
    ids=lambda command: command.NAME,
)
def test_commands_meant_for_clients_fail_with_code_540(session: Session, command: Any) -> None:
    session.fails(command, 540)


def test_short_text_is_cut_to_255_octets() -> None:
    assert short_text("x" * 255) == "x" * 255
    assert short_text("x" * 256) == "x" * 252 + "..."
    assert short_text("\u017c" * 128) == "\u017c" * 126 + "..."
    assert short_text("\u017c" * 9, 10) == "\u017c" * 3 + "..."


def test_text_of_fault_is_its_description() -> None:
    assert str(SessionFault("not-found", "what happened")) == "what happened"
    assert str(ConnectionFault("framing-error", "what happened")) == "what happened"
