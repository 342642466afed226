from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import arguments, field, queue_declare, table
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import constants, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame

rule = pytest.mark.rule
otherwise_in_0_9 = pytest.mark.protocols("0-9-1")
MISSING = m.QueueDeclare(queue="missing", passive=True)


# --- what ends a channel, what a connection ----------------------------------------------------------------
@rule("0-9-1/errors/operational-is-channel#missing")
def test_passive_declare_of_missing_queue_closes_only_the_channel(connect: Callable[..., Client]) -> None:
    client = connect(channels=2)
    client.fails(MISSING, 404)
    assert not client.declare("q", channel=2).open_channel().declare("q").closed


@pytest.mark.needs("settings")
@rule("0-9-1/errors/operational-is-channel#rights", "0-9-1/reply-code/access-refused")
def test_missing_configure_permission_closes_only_the_channel(server: Server) -> None:
    server.state.access.add(User("worker", "secret", permissions={"/": Permission(configure="^mine")}))
    client = server.client(channels=2, user="worker", password="secret")
    client.fails(m.QueueDeclare(queue="yours"), 403)
    client.declare("mine", channel=2)


@rule("0-9-1/errors/structural-is-connection#arguments", "0-9-1/errors/structural-is-connection#sequence")
@rows(
    "payload",
    pytest.param(m.ConnectionTuneOk(10, 8192, 0).encode(), id="out-of-order"),
    pytest.param(arguments(50, 10, b"\0"), id="truncated"),
    pytest.param(arguments(60, 999), id="unknown"),
)
@pytest.mark.parametrize("channel", [0, 1])
def test_invalid_method_frame_closes_the_connection(server: Server, payload: bytes, channel: int) -> None:
    client, other = server.client(), server.client()
    client.send_frame(1, channel, payload)
    if client.explained_to or payload[2:4] != b"\x03\xe7":
        client.expect(m.ConnectionClose, 0)
        client.expect_nothing()
    else:
        client.expect_silent_end()  # It does not know the method.
    other.declare("others-are-not-concerned")


def too_large(server: Server) -> Client:
    small = server.varied(largest_message=10, largest_message_condition="content-too-large")
    return small.client(channels=2).publish(bytes(11), routing_key="q")


def access_refused(server: Server) -> Client:
    return server.client(channels=2).send(m.ExchangeDelete(exchange="amq.direct"))


def not_found(server: Server) -> Client:
    return server.client(channels=2).send(m.BasicConsume(queue="missing"))


def resource_locked(server: Server) -> Client:
    server.client().declare("locked", exclusive=True)
    return server.client(channels=2).send(m.QueueDeclare(queue="locked"))


def precondition_failed(server: Server) -> Client:
    return server.client(channels=2).send(m.BasicAck(delivery_tag=1))


@rule("0-9-1/errors/soft-error-class")
@rows(
    "code, provoke",
    pytest.param(311, too_large, marks=pytest.mark.needs("personality of choices")),
    (403, access_refused),
    (404, not_found),
    pytest.param(405, resource_locked, marks=otherwise_in_0_9),
    (406, precondition_failed),
)
def test_soft_errors_close_channel(server: Server, code: int, provoke: Callable[[Server], Client]) -> None:
    client = provoke(server)
    close = client.expect_channel_close(code)
    assert close.reply_text.startswith(constants.REPLY_NAMES[code] + " - ")
    client.declare("another-channel-goes-on", channel=2)


def connection_forced(server: Server) -> Client:
    client = server.client()
    next(iter(server.state.connections)).close_by_operator(320, "CONNECTION_FORCED - because")
    return client


def invalid_path(server: Server) -> Client:
    client = server.tuned(channel_max=10, frame_max=8192, heartbeat=0)
    return client.send(m.ConnectionOpen(virtual_host="/missing"), 0)


def frame_error(server: Server) -> Client:
    return server.client().send_frame(3, 1, bytes(200_000))


def syntax_error(server: Server) -> Client:
    return server.client().send_frame(1, 1, queue_declare("q", fields=table(field("a", b"z"))))


def command_invalid(server: Server) -> Client:
    return server.client().send(m.ConnectionOpen(virtual_host="/"), 1)


def channel_error(server: Server) -> Client:
    return server.client().send(m.QueueDeclare(queue="q"), 5)


def unexpected_frame(server: Server) -> Client:
    return server.client().send_frame(3, 1, b"body")


def not_allowed(server: Server) -> Client:
    client = server.client().declare("q").consume("q", "tag")
    return client.send(m.BasicConsume(queue="q", consumer_tag="tag"))


def not_implemented(server: Server) -> Client:
    return server.client().send_frame(1, 1, arguments(60, 999))


HARD_ERRORS = [
    (320, connection_forced),
    (503, command_invalid),
    (504, channel_error),
    pytest.param(505, unexpected_frame, marks=otherwise_in_0_9),
    (530, not_allowed),
]
HARD_ERRORS_OF_THE_DOCUMENTS = [
    (402, invalid_path),
    (501, frame_error),
    (502, syntax_error),
    (540, not_implemented),
]


@pytest.mark.needs("inspection")
@rule("0-9-1/errors/hard-error-class")
@pytest.mark.parametrize(("code", "provoke"), HARD_ERRORS)
def test_hard_errors_close_connection(server: Server, code: int, provoke: Callable[[Server], Client]) -> None:
    client = provoke(server)
    close = client.expect_connection_close(code)
    assert close.reply_text.startswith(constants.REPLY_NAMES[code] + " - ")
    assert client.connection not in server.state.connections


@rule("0-9-1/errors/hard-error-class")
@pytest.mark.parametrize(("code", "provoke"), HARD_ERRORS_OF_THE_DOCUMENTS)
def test_spec_personality_closes_the_connection_with_402_501_502_and_540(
    spec: Server, code: int, provoke: Callable[[Server], Client]
) -> None:
    close = provoke(spec).expect_connection_close(code)
    assert close.reply_text.startswith(constants.REPLY_NAMES[code] + " - ")


@rule("0-9-1/errors/rfc-severity")
@rows(
    "method, digit, others_go_on",
    (MISSING, 4, True),
    (m.BasicAck(delivery_tag=9), 4, True),
    (m.BasicConsume(queue="missing"), 4, True),
    (m.ChannelOpen(), 5, False),
    (m.ConnectionTuneOk(), 5, False),
    ids=lambda value: getattr(value, "NAME", None),
)
def test_reply_code_4xx_closes_the_channel_and_5xx_the_connection(
    server: Server, method: m.Method, digit: int, others_go_on: bool
) -> None:
    client = server.client(channels=2).send(method)
    close = client.expect(m.ChannelClose) if others_go_on else client.expect(m.ConnectionClose, 0)
    assert close.reply_code // 100 == digit
    if others_go_on:
        client.declare("q", channel=2)
    else:
        assert client.send(m.ConnectionCloseOk(), 0).closed


@pytest.mark.needs("own broker")
def test_first_digit_of_reply_code_matches_its_severity() -> None:
    codes = set(constants.REPLY_NAMES)
    assert {code // 100 for code in codes} == {2, 3, 4, 5}
    assert {code for code in codes if code < 300} == {200}, "only success is a completion"
    assert codes - {200} == constants.SOFT_ERRORS | constants.HARD_ERRORS
    assert not constants.SOFT_ERRORS & constants.HARD_ERRORS
    assert {code for code in codes if code >= 500} <= constants.HARD_ERRORS, "5 is for protocol errors"


# --- what a close says -------------------------------------------------------------------------------------
@rule("0-9-1/errors/reply-code-and-text#channel-close")
@rows(
    "method",
    MISSING,
    pytest.param(m.QueueDeclare(queue="amq.reserved"), marks=otherwise_in_0_9),
    m.BasicAck(delivery_tag=7),
    m.BasicConsume(queue="missing"),
    pytest.param(m.BasicGet(), marks=otherwise_in_0_9),
)
def test_channel_close_has_a_soft_error_code_and_a_text(client: Client, method: m.Method) -> None:
    close = client.send(method).expect(m.ChannelClose)
    assert close.reply_code in constants.SOFT_ERRORS
    name, _, explanation = close.reply_text.partition(" - ")
    assert name == constants.REPLY_NAMES[close.reply_code]
    assert explanation


@rule("0-9-1/errors/reply-code-and-text#connection-close")
@pytest.mark.parametrize("method", [m.ChannelOpen(), m.BasicConsume(queue="q", consumer_tag="t")])
def test_connection_close_has_a_hard_error_code_and_a_text(client: Client, method: m.Method) -> None:
    close = client.declare("q").consume("q", "t").send(method).expect(m.ConnectionClose, 0)
    assert close.reply_code in constants.HARD_ERRORS
    name, _, explanation = close.reply_text.partition(" - ")
    assert name == constants.REPLY_NAMES[close.reply_code]
    assert explanation


@rule("0-9-1/errors/reply-code-and-text#return")
def test_basic_return_has_reply_code_and_text(client: Client) -> None:
    returned = client.publish(routing_key="nowhere", mandatory=True).expect_content(m.BasicReturn).method
    assert (returned.reply_code, returned.reply_text) == (312, "NO_ROUTE")


@rule("0-9-1/errors/reply-code-and-text#channel-close")
def test_reply_text_longer_than_255_octets_is_truncated(client: Client) -> None:
    client.send(m.ExchangeDeclare(exchange="x" * 127, passive=True))
    assert len(client.expect_channel_close(404).reply_text) < 255
    client.open_channel().send(m.BasicPublish(exchange="x" * 240, routing_key="q"))
    client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000000 0000"))
    close = client.expect_channel_close(404)
    assert len(close.reply_text.encode()) == 255
    assert close.reply_text.endswith("x...")


@rule("0-9-1/errors/failing-method")
def test_channel_close_names_class_and_method_of_the_failed_method(client: Client) -> None:
    close = client.fails(m.QueuePurge(queue="missing"), 404)
    assert (close.class_id, close.method_id) == (50, 30)
    close = client.open_channel().publish(exchange="missing").expect_channel_close(404)
    assert (close.class_id, close.method_id) == (60, 40)


@rule("0-9-1/errors/failing-method")
def test_channel_close_names_a_failed_repeated_publish(client: Client) -> None:
    client.declare_exchange("e").publish(exchange="e").perform(m.ExchangeDelete(exchange="e"))
    client.publish(exchange="e").expect_channel_close(404, at=(60, 40))


@rule("0-9-1/errors/failing-method")
def test_connection_close_names_a_repeated_publish_with_invalid_header(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    client.publish(routing_key="q").count("q")
    client.send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, bytes.fromhex("0032 0000 0000000000000000 0000"))
    client.expect_connection_close(505, at=(60, 40))


@pytest.mark.needs("inspection")
@rule("0-9-1/errors/failing-method")
def test_operator_close_has_class_and_method_zero(server: Server) -> None:
    client = server.client()
    client.fails(MISSING, 404)
    next(iter(server.state.connections)).close_by_operator(200, "Goodbye")
    client.expect_connection_close(200, at=(0, 0))


@rule("0-9-1/errors/no-positive-confirmation")
def test_successful_publish_and_ack_are_not_answered(client: Client) -> None:
    client.declare("q").publish(routing_key="q").expect_nothing()
    client.get("q")
    client.send(m.BasicAck(delivery_tag=1)).expect_nothing()


# --- opening and closing -----------------------------------------------------------------------------------
@rule("0-9-1/errors/open-when#channel")
def test_methods_pipelined_behind_channel_open_are_answered(server: Server) -> None:
    client = server.client(channels=0)
    methods = (m.ChannelOpen(), m.QueueDeclare(queue="q"))
    client.send_bytes(b"".join(method_frame(1, method.encode()) for method in methods))
    client.expect(m.ChannelOpenOk)
    assert client.expect(m.QueueDeclareOk).queue == "q"


@rule("0-9-1/errors/open-when#connection", "0-9-1/errors/open-when#channel")
def test_methods_pipelined_behind_connection_open_are_answered(server: Server) -> None:
    client = invalid_path(server)
    client.expect(m.ConnectionClose, 0)
    client = server.connect()
    client.send_bytes(client.protocol_header).login()
    client.send(m.ConnectionTuneOk(10, 8192, 0), 0).send(m.ConnectionOpen(virtual_host="/"), 0)
    client.send(m.ChannelOpen()).send(m.QueueDeclare(queue="q"))
    for method, channel in (
        (m.ConnectionStart, 0),
        (m.ConnectionTune, 0),
        (m.ConnectionOpenOk, 0),
        (m.ChannelOpenOk, 1),
        (m.QueueDeclareOk, 1),
    ):
        client.expect(method, channel)


@rule("0-9-1/errors/close-handshake")
def test_broker_waits_for_close_ok_before_it_ends_the_socket(client: Client) -> None:
    client.send_frame(3, 0, b"body").expect(m.ConnectionClose, 0)
    assert not client.closed
    client.send(m.ConnectionCloseOk(), 0).expect_silent_end()


@rule("0-9/errors/close-ok-answer")
@rule("0-9-1/errors/close-must-answer#channel", "0-9-1/errors/close-must-answer#connection")
def test_channel_close_and_connection_close_are_answered_with_close_ok(client: Client) -> None:
    client.perform(m.ChannelClose(reply_code=200)).perform(m.ConnectionClose(reply_code=200), channel=0)


@rule("0-9-1/errors/crossed-close#channel")
def test_crossed_channel_closes_are_both_answered(client: Client) -> None:
    client.declare("q")
    client.send_bytes(
        method_frame(1, MISSING.encode()) + method_frame(1, m.ChannelClose(reply_code=200).encode())
    )
    assert client.expect(m.ChannelClose).reply_code == 404
    client.expect(m.ChannelCloseOk)
    client.send(m.QueueDelete(queue="q")).expect_nothing()
    client.send(m.ChannelCloseOk()).open_channel().declare("q", passive=True)


@pytest.mark.needs("inspection")
@rule("0-9-1/errors/pre-open-error#login")
@rows(
    "octets",
    pytest.param(method_frame(0, m.ConnectionTuneOk(10, 8192, 0).encode()), id="out-of-order"),
    pytest.param(method_frame(0, arguments(10, 11, b"\xff")), id="truncated"),
    pytest.param(method_frame(0, arguments(10, 999)), id="unknown-method"),
    pytest.param(b"\x09\0\0\0\0\0\0\xce", id="unknown-frame"),
    pytest.param(b"\x03\0\0\xff\xff\xff\xff", id="oversized"),
    pytest.param(b"\x08\0\0\0\0\0\0\0", id="bad-frame-end"),
    pytest.param(b"\x02\0\0\0\0\0\0\xce", id="content"),
)
def test_error_before_tune_ends_the_socket_silently(server: Server, octets: bytes) -> None:
    server.started().send_bytes(octets).expect_silent_end()
    assert not server.state.connections


@pytest.mark.deviates("0-9-1/errors/pre-open-error#tuning")
@rule("0-9-1/errors/pre-open-error#tuning")
def test_spec_personality_ends_the_socket_silently_on_an_error_before_open(server: Server) -> None:
    client = server.tuned(channel_max=10, frame_max=8192, heartbeat=0).send_frame(3, 0, b"body")
    if server.is_spec:
        client.expect_silent_end()
    else:
        client.expect_connection_close(505)
