from __future__ import annotations

import logging

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.octets import cut
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.constants import PROTOCOL_HEADER

HEARTBEAT = bytes.fromhex("08 0000 00000000 ce")


def tuned(server: Server, heartbeat: int) -> Client:
    """A client that has sent tune-ok and nothing after it."""
    client = server.connect()
    client.send_octets(PROTOCOL_HEADER)
    client.expect(m.ConnectionStart, 0)
    client.login()
    client.expect(m.ConnectionTune, 0)
    client.send(m.ConnectionTuneOk(channel_max=9, frame_max=8192, heartbeat=heartbeat), 0)
    return client


def listen(server: Server, client: Client, seconds: float, step: float = 0.1) -> list[float]:
    """Stay in touch for so long; the times, from now on, at which heartbeats came."""
    came = []
    for number in range(1, round(seconds / step) + 1):
        server.advance(step)
        client.send_octets(HEARTBEAT)
        came += [round(number * step, 3) for each in cut(client.take_octets()) if each.type == 8]
        assert not client.closed
    return came


@pytest.mark.rule("0-9-1/heartbeat/format")
def test_a_heartbeat_is_eight_octets(server: Server) -> None:
    client = server.client(heartbeat=1)
    server.advance(1)
    assert client.take_octets() == HEARTBEAT


@pytest.mark.rule("0-9-1/heartbeat/channel-zero")
@pytest.mark.parametrize("channel", [1, 2], ids=["open", "not-open"])
def test_a_heartbeat_on_another_channel_is_an_error(server: Server, channel: int) -> None:
    client = server.client()
    client.send_frame(8, channel, b"")
    close = client.expect_connection_close(501 if server.state.personality.name == "spec" else 505)
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.rule("0-9-1/heartbeat/channel-zero")
def test_a_heartbeat_with_a_payload_is_a_frame_error(client: Client) -> None:
    client.send_frame(8, 0, b"x")
    client.expect_connection_close(501)


@pytest.mark.rule("0-9-1/heartbeat/discard-if-unsupported")
def test_heartbeats_nobody_asked_for_are_discarded(server: Server) -> None:
    client = server.client(heartbeat=0)
    client.send_octets(HEARTBEAT * 3)
    client.expect_nothing()
    client.declare("still-served")


@pytest.mark.rule("0-9-1/heartbeat/discard-if-unsupported")
def test_a_heartbeat_may_come_in_the_midst_of_a_content(client: Client) -> None:
    client.declare("q")
    client.send(m.BasicPublish(routing_key="q"))
    client.send_octets(HEARTBEAT)
    client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000002 0000"))
    client.send_frame(3, 1, b"a")
    client.send_octets(HEARTBEAT)
    client.send_frame(3, 1, b"b")
    message = client.get("q")
    assert message is not None
    assert message.body == b"ab"


@pytest.mark.rule("0-9-1/heartbeat/start-after-tune")
def test_the_server_sends_heartbeats_from_tune_ok_on(server: Server) -> None:
    client = tuned(server, heartbeat=1)
    server.advance(1)
    assert client.take_octets() == HEARTBEAT


@pytest.mark.rule("0-9-1/heartbeat/start-after-tune")
def test_the_server_expects_signs_of_life_from_tune_ok_on(server: Server) -> None:
    client = tuned(server, heartbeat=1)
    server.advance(3)
    assert client.connection.aborted


@pytest.mark.rule("0-9-1/heartbeat/interval")
def test_an_idle_server_sends_one_heartbeat_in_each_interval(server: Server) -> None:
    client = server.client(heartbeat=1)
    times = listen(server, client, 3.5)
    assert len(times) == 3
    assert all(later - earlier <= 1 for earlier, later in zip([0, *times], times, strict=False))


@pytest.mark.rule("0-9-1/heartbeat/interval")
def test_a_busy_server_sends_no_heartbeats(server: Server) -> None:
    client = server.client(heartbeat=1)
    for _ in range(40):
        server.advance(0.1)
        client.declare("q")
        client.expect_nothing()


@pytest.mark.rule("0-9-1/heartbeat/interval")
@pytest.mark.parametrize("moment", [0.1, 0.4, 0.6, 0.9])
def test_a_server_that_falls_idle_sends_a_heartbeat_within_an_interval(server: Server, moment: float) -> None:
    client = server.client(heartbeat=1)
    server.advance(moment)
    client.take_octets()
    client.declare("q")
    server.advance(1)
    assert HEARTBEAT in client.take_octets()


@pytest.mark.rule("0-9-1/heartbeat/any-octet-counts")
def test_any_method_is_a_sign_of_life(server: Server) -> None:
    client = server.client(heartbeat=1)
    for _ in range(20):
        server.advance(0.5)
        client.send(m.QueueDeclare(queue="q"))
        assert not client.closed


@pytest.mark.rule("0-9-1/heartbeat/any-octet-counts")
def test_a_part_of_a_frame_is_a_sign_of_life(server: Server) -> None:
    client = server.client(heartbeat=1)
    for octet in HEARTBEAT:
        server.advance(0.9)
        client.send_octets(bytes((octet,)))
        assert not client.closed


@pytest.mark.rule("0-9-1/heartbeat/missed-two")
def test_after_two_silent_intervals_the_socket_is_closed_without_a_word(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.client(heartbeat=10)
    other = server.client()
    other.declare("q")
    other.publish(routing_key="q")
    client.get("q")
    server.advance(19.9)
    assert not client.closed
    server.advance(10.1)
    assert client.connection.aborted
    assert {each.type for each in client.inbox} == {8}
    assert "missed heartbeats from client, timeout: 10s" in caplog.text
    assert caplog.records[-1].levelno >= logging.WARNING
    assert other.count("q") == 1, "what it held goes back"


@pytest.mark.rule("0-9-1/heartbeat/missed-two")
def test_silence_in_one_interval_is_forgiven(server: Server) -> None:
    client = server.client(heartbeat=1)
    for _ in range(10):
        server.advance(1.9)
        client.send_octets(HEARTBEAT)
        assert not client.closed


@pytest.mark.rule("0-9-1/heartbeat/during-close")
def test_heartbeats_go_on_while_a_close_is_not_answered(server: Server) -> None:
    client = server.client(heartbeat=1)
    client.send(m.QueueDeclare(), 0)
    client.expect(m.ConnectionClose, 0)
    assert len(listen(server, client, 3.5)) == 3
    client.send(m.ConnectionCloseOk(), 0)
    client.expect_silent_end()
    server.advance(10)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/heartbeat/during-close")
def test_silence_counts_while_a_close_is_not_answered(server: Server) -> None:
    client = server.client(heartbeat=1)
    client.send(m.QueueDeclare(), 0)
    server.advance(3)
    assert client.connection.aborted


@pytest.mark.rule("0-9-1/heartbeat/zero-disables")
def test_zero_means_neither_heartbeats_nor_timeouts(server: Server) -> None:
    client = server.client(heartbeat=0)
    server.advance(1_000_000)
    client.expect_nothing()
    client.declare("still-served")


@pytest.mark.rule("0-9-1/heartbeat/client-chooses")
@pytest.mark.parametrize("chosen", [2, 60, 120])
def test_the_interval_is_the_one_the_client_returns(server: Server, chosen: int) -> None:
    client = server.client(heartbeat=chosen)
    times = listen(server, client, chosen * 3, step=chosen / 4)
    assert len(times) == 3
    assert times[1] - times[0] == chosen
    server.advance(chosen * 1.9)
    assert not client.closed
    server.advance(chosen * 1.1)
    assert client.closed
