"""The socket of a connection: heartbeats in both directions, partial writes, waking, and every way to end."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from compat_tests.unit.spark.wire.peers import (
    CLOSED,
    OPENED,
    START,
    content,
    opened,
    options,
    pair,
    received,
    sent,
    tune,
)
from fakeamqp import Broker, ServerTLS
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused, UnreadableAnswer
from fakeamqp.spark.wire import transport
from fakeamqp.spark.wire.connection import WireConnection


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock of connections."""
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now, time_ns=lambda: int(clock.now * 1e9))
    monkeypatch.setattr(transport, "time", clock)
    return clock


# --- heartbeats -------------------------------------------------------------------------------------------


def test_heartbeat_is_sent_half_an_interval_after_the_last_bytes(clock):
    with opened(tune(heartbeat=10)) as (connection, peer):
        received(peer)
        clock.now += 4.75
        connection.turn(0.0)
        assert received(peer) == []
        assert connection._pause(None) == 0.25
        for _ in range(2):
            clock.now += 5.0
            connection.turn()  # It does not wait.
            peer.sendall(HEARTBEAT_FRAME)
            assert received(peer) == [HEARTBEAT_FRAME]
            connection.turn(0.0)
            assert received(peer) == []
        clock.now += 4.9
        connection.send(HEARTBEAT_FRAME)
        received(peer)
        clock.now += 4.9
        connection.turn(0.0)
        assert received(peer) == []


def test_broker_that_is_silent_for_two_intervals_is_lost(clock):
    with opened(tune(heartbeat=10)) as (connection, peer):
        clock.now += 19.9
        peer.sendall(HEARTBEAT_FRAME)
        before = connection.received_at
        connection.wait_for(lambda: connection.received_at != before, 5, "send a heartbeat")
        clock.now += 19.9
        connection.turn(0.0)
        assert connection.lost is None
        clock.now += 0.1
        connection.turn()
        with pytest.raises(
            ConnectionLost, match=r"ended: the broker sent nothing for 20 s, not even a heart"
        ):
            connection.check()


def test_connection_waits_without_heartbeats_while_the_broker_does_not_read(clock):
    """RabbitMQ reads nothing while it blocks publishers: heartbeats would only add up."""
    with opened(tune(heartbeat=10)) as (connection, peer):
        connection.send(bytes(16 << 20))
        unsent = connection.unsent
        assert unsent
        clock.now += 9.0
        peer.sendall(HEARTBEAT_FRAME)
        connection.turn(0.0)
        assert connection.unsent == unsent
        assert connection._pause(None) == 20.0
        assert connection._pause(1.0) == 1.0


def test_connection_without_heartbeats_waits_for_ever(clock):
    with opened(tune(heartbeat=0)) as (connection, peer):
        received(peer)
        clock.now += 1e6
        connection.turn(0.0)
        assert (connection.lost, received(peer), connection._pause(None)) == (None, [], None)


def test_silence_of_a_broker_ends_the_connection_and_closing_it_takes_no_answer(clock):
    with Broker() as broker:
        connection = WireConnection(options(broker.url, **{"amqp.heartbeat": "2"}))
        connection.open()
        broker.faults.silence(broker.connections[0])
        clock.now += 4.0
        with pytest.raises(ConnectionLost, match="sent nothing for 4 s"):
            connection.wait_for(lambda: False, 60.0, "answer")
        connection.close()


@pytest.mark.parametrize(
    ("url", "option", "expected"), [("", None, 60), ("?heartbeat=30", None, 30), ("?heartbeat=30", "7", 7)]
)
def test_heartbeat_is_that_of_the_option_or_of_the_url_or_of_the_broker(url, option, expected):
    with Broker() as broker:
        given = {} if option is None else {"amqp.heartbeat": option}
        with WireConnection(options(f"{broker.url}{url}", **given)):
            assert broker.connections[0].heartbeat == expected


# --- writing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
def test_what_the_network_does_not_take_at_once_is_sent_by_turns(tls):
    if tls:
        pytest.importorskip("trustme")
    messages, body = 40, bytes(range(256)) * 1024
    with Broker(tls=tls) as broker:
        given = {"amqp.caFile": broker.tls.ca_file} if tls else {}
        with WireConnection(options(broker.url, **given)) as connection:
            channel = connection.channel()
            channel.call(m.QueueDeclare(queue="q"))
            silence = broker.faults.silence(broker.connections[0])
            frames = content(m.BasicPublish(routing_key="q"), body, channel.number, limit=100_000)
            for _ in range(messages):
                connection.send(frames)
                connection.turn(0.0)
            assert connection.unsent > 1 << 20
            silence.remove()
            connection.wait_for(lambda: not connection.unsent, 10, "read")
            assert channel.count("q").message_count == messages
        assert {bytes(each.body) for each in broker.published} == {body}


def test_failed_write_ends_the_connection_with_what_the_broker_said_before(monkeypatch):
    monkeypatch.setattr(transport, "_READ", 100)
    with opened() as (connection, peer):
        close = m.ConnectionClose(reply_code=320, reply_text="CONNECTION_FORCED - maintenance")
        peer.sendall(HEARTBEAT_FRAME * 100 + sent(close))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        while connection._broken is None:
            connection.send(HEARTBEAT_FRAME)
        assert connection.lost is None  # Nothing was received while sending.
        connection.turn(5)
        with pytest.raises(ConnectionLost, match="ended: 320 CONNECTION_FORCED - maintenance"):
            connection.check()
        connection.send(HEARTBEAT_FRAME)
        assert connection.unsent == 0


def test_failed_write_ends_the_connection_if_the_broker_said_nothing():
    with opened() as (connection, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        while connection._broken is None:
            connection.send(HEARTBEAT_FRAME)
        connection.turn()
        with pytest.raises(ConnectionLost, match="the connection to the broker ended: "):
            connection.check()


# --- waiting and waking -----------------------------------------------------------------------------------


def test_another_thread_can_end_a_wait():
    with opened() as (connection, _peer):
        thread = threading.Thread(target=connection.wake)
        began = time.monotonic()
        thread.start()
        connection.turn(10)
        assert time.monotonic() - began < 10
        thread.join()


def test_wakes_before_a_wait_and_after_the_end_do_nothing():
    with opened() as (connection, _peer):
        for _ in range(100_000):  # More than their socket takes.
            connection.wake()
        while connection._woken in [key.fileobj for key, _ in connection._selector.select(0.0)]:
            connection.turn(0.0)
        connection.abandon()
        connection.wake()


def test_wake_never_writes_to_a_socket_that_got_the_number_of_a_closed_one():
    with opened() as (connection, _peer):
        stop = threading.Event()

        def wake():
            while not stop.is_set():
                connection.wake()

        thread = threading.Thread(target=wake)
        thread.start()
        number = connection._waker.fileno()
        connection.abandon()
        others = [socket.socketpair() for _ in range(8)]
        numbers = {end.fileno() for pair in others for end in pair}
        stop.set()
        thread.join()
        for one, other in others:
            one.setblocking(False)
            other.setblocking(False)
            for end in (one, other):
                with pytest.raises(BlockingIOError):
                    end.recv(1)
            one.close()
            other.close()
        assert number in numbers


def test_timeout_of_a_wait_names_what_the_broker_did_not_do():
    said = r"^the broker did not answer within 0\.01 s$"
    with opened() as (connection, _peer), pytest.raises(ConnectionLost, match=said):
        connection.wait_for(lambda: False, 0.01, "answer")


# --- ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_end_of_the_socket_is_noticed(how):
    with opened() as (connection, peer):
        received(peer)
        if how == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        reason = "the broker closed the socket" if how == "closed" else "Connection reset by peer"
        with pytest.raises(ConnectionLost, match=f"^the connection to the broker ended: {reason}$"):
            connection.wait_for(lambda: False, 5, "answer")
        connection.turn()  # It does not wait for what cannot come.


@pytest.mark.parametrize(
    "octets",
    [
        b"HTTP/1.1 400 Bad Request",
        HEARTBEAT_FRAME[:-1] + b"\x00",
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x63\x00\x63\xce",
        b"\x01\x00\x00\x00\x00\x00\x02\x00\x0a\xce",
        b"\x03\x00\x01\x7f\xff\xff\xff" + b"a body",
    ],
    ids=["no frame", "frame end", "unknown method", "no method", "too large"],
)
def test_bytes_that_cannot_be_read_end_the_connection_for_good(octets):
    with opened() as (connection, peer):
        peer.sendall(octets)
        with pytest.raises(UnreadableAnswer, match=r"^cannot read what the broker sent: FrameError: "):
            connection.wait_for(lambda: False, 5, "answer")


def test_error_of_a_receiver_is_raised_and_ends_the_connection():
    """The frames behind are lost."""
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()

        def fail(_method):
            raise ZeroDivisionError

        channel.confirms = fail
        peer.sendall(sent(m.BasicAck(delivery_tag=1), 1))
        with pytest.raises(ZeroDivisionError):
            connection.turn(5)
        with pytest.raises(ConnectionLost, match="what it sent was not received completely"):
            channel.check()


def test_connection_may_be_closed_again_and_leaves_no_socket_and_no_thread():
    before = len(os.listdir("/dev/fd")), threading.active_count()
    with Broker() as broker:
        served = len(os.listdir("/dev/fd")), threading.active_count()
        with WireConnection(options(broker.url)) as connection:
            connection.channel()
        connection.close()
        broker.wait_for(lambda: not broker.connections)
        with pytest.raises(BrokerUnreachable):
            WireConnection(options(f"{broker.url}1,{broker.url}2")).open()
        broker.wait_for(lambda: (len(os.listdir("/dev/fd")), threading.active_count()) == served)
    closed = options(broker.url)
    with pytest.raises(BrokerUnreachable):
        WireConnection(closed).open()
    assert (len(os.listdir("/dev/fd")), threading.active_count()) == before


def test_closing_waits_for_the_answer_and_not_for_ever(monkeypatch):
    with pair() as (connection, peer):
        peer.sendall(START + tune() + OPENED)
        connection.open()
        peer.sendall(CLOSED)
        connection.close()
        assert received(peer)[-1] == m.ConnectionClose(reply_code=200, reply_text="bye")
    monkeypatch.setattr("fakeamqp.spark.wire.connection._GOODBYE", 0.01)
    with opened() as (connection, peer):
        connection.close()
        received(peer)
        assert peer.recv(1) == b""


def test_messages_that_come_while_a_connection_closes_are_dropped():
    got = []
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        peer.sendall(sent(m.BasicConsumeOk(), 1))
        tag = channel.consume("q", lambda *content: got.append(content))
        peer.sendall(content(m.BasicDeliver(consumer_tag=tag), b"m") + CLOSED)
        connection.close()
    assert got == []


def test_broker_that_ends_while_a_connection_closes_is_no_error():
    with opened() as (connection, peer):
        peer.close()
        connection.close()


# --- TLS --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", ["true", "false"])
def test_tls_connection_opens_with_ca_file_or_without_verification(verify):
    pytest.importorskip("trustme")
    with Broker(tls=True) as broker:
        others = {"amqp.caFile": broker.tls.ca_file} if verify == "true" else {"amqp.verify": "false"}
        with WireConnection(options(broker.url, **others)):
            assert len(broker.connections) == 1


@pytest.mark.parametrize("host", ["localhost", "elsewhere.example"])
def test_certificate_has_to_be_that_of_the_host(host):
    pytest.importorskip("trustme")
    with Broker(tls=True) as authority:
        made = authority.tls.client_certificate(host)
        with Broker(tls=ServerTLS.from_files(made.certificate, made.key)) as broker:
            url = f"amqps://localhost:{broker.port}/"
            given = options(url, **{"amqp.caFile": authority.tls.ca_file})
            refused = pytest.raises(LoginRefused, match=r"(?i)certificate verify failed")
            with nullcontext() if host == "localhost" else refused, WireConnection(given):
                assert len(broker.connections) == 1


def test_an_unknown_authority_is_refused():
    pytest.importorskip("trustme")
    with Broker(tls=True) as broker, pytest.raises(LoginRefused, match=r"(?i)certificate verify failed"):
        WireConnection(options(broker.url)).open()
