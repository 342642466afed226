"""How channels and connections end, and the codes that say why."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import constants, methods as m

rule = pytest.mark.rule

CHANNEL_ERROR = m.QueueDeclare(queue="missing", passive=True)
CONNECTION_ERROR = m.ExchangeDeclare(exchange="x", type="no-such-type")


@rule("0-9/errors/close-handshake")
@pytest.mark.letter
def test_a_connection_is_not_ended_before_its_close_was_answered(client: Client) -> None:
    client.send(CONNECTION_ERROR).expect(m.ConnectionClose, 0)
    client.expect_nothing()
    assert not client.closed, "the reply code must not be lost"
    assert client.send(m.ConnectionCloseOk(), 0).closed


@rule("0-9/errors/close-ok-answer")
def test_close_with_blank_fields_is_answered_with_close_ok(client: Client) -> None:
    """Clients in the field leave all its fields blank."""
    client.perform(m.ChannelClose()).perform(m.ConnectionClose(), channel=0)


@rule("0-9/errors/fail-fast#channel", "0-9/errors/fail-fast#connection")
@pytest.mark.letter
def test_methods_behind_a_channel_or_connection_error_are_discarded(client: Client) -> None:
    client.send(CHANNEL_ERROR).send(m.QueueDeclare(queue="never"))
    client.publish(routing_key="never").expect_channel_close(404)
    client.expect_nothing()
    client.open_channel().fails(m.QueueDeclare(queue="never", passive=True), 404)
    client.open_channel().send(CONNECTION_ERROR).ends(m.QueueDeclare(queue="never"), 503)


@rule("0-9/connection.close/stability")
@pytest.mark.parametrize("close", [m.ConnectionClose(reply_code=200), m.ConnectionCloseOk()])
@pytest.mark.letter
def test_closing_connection_discards_all_methods_except_close_and_close_ok(
    client: Client, close: m.ConnectionClose
) -> None:
    client.send(CONNECTION_ERROR).expect(m.ConnectionClose, 0)
    client.send(m.QueueDeclare(queue="q")).send(m.ChannelOpen(), 5).expect_nothing()
    client.send(close, 0)  # One that has crossed the other is answered: or both would wait for ever.
    if isinstance(close, m.ConnectionClose):
        client.expect(m.ConnectionCloseOk, 0)
        client.send(m.ConnectionCloseOk(), 0)
    assert client.closed


@rule("0-9/channel.close/stability")
@pytest.mark.parametrize("close", [m.ChannelClose(reply_code=200), None], ids=["crossed", "answered"])
def test_closing_channel_discards_all_methods_except_close_and_close_ok(
    client: Client, close: m.ChannelClose | None
) -> None:
    client.send(CHANNEL_ERROR).expect(m.ChannelClose)
    client.send(m.QueueDeclare(queue="q")).publish(routing_key="q").expect_nothing()
    if close is not None:
        client.call(close, m.ChannelCloseOk)
    client.send(m.ChannelCloseOk()).open_channel().fails(m.QueueDeclare(queue="q", passive=True), 404)


def test_there_is_no_code_for_unexpected_frames() -> None:
    assert 505 not in constants.SOFT_ERRORS | constants.HARD_ERRORS


@rule("0-9/errors/code-first-digit")
@rows(
    "method, code, channel",
    (CHANNEL_ERROR, 404, 1),
    (m.BasicConsume(queue="missing"), 404, 1),
    (m.ChannelOpen(), 504, 0),
    (CONNECTION_ERROR, 503, 0),
    ids=["declare", "consume", "open", "type"],
)
def test_channel_error_has_a_4xx_code_and_connection_error_a_5xx_code(
    spec: Server, method: m.Method, code: int, channel: int
) -> None:
    """4 ends a channel, and the same may succeed when somebody else has done something; 5 needs a person."""
    client = spec.client(channels=2)
    close = client.send(method).expect(m.ChannelClose if channel else m.ConnectionClose, channel)
    assert close.reply_code == code
    if channel:
        client.send(m.ChannelCloseOk()).open_channel()
        client.declare("missing").send(method)
        assert not isinstance(client.take_frame().method, m.ChannelClose)


def test_every_code_is_soft_or_hard(server: Server) -> None:
    assert {311, 312, 313, 403, 404, 405, 406} <= constants.SOFT_ERRORS
    assert {320, 402, 501, 502, 503, 504, 506, 530, 540, 541} == constants.HARD_ERRORS
    assert not constants.SOFT_ERRORS & constants.HARD_ERRORS
