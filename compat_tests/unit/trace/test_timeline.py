from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import Recorder

NAME = "127.0.0.1:50001 -> 127.0.0.1:0"


def test_the_whole_text(server: Server, recorder: Recorder):
    client = server.client(client_properties={"product": "raw"})
    client.declare("orders")
    client.publish(b"two apples", routing_key="orders", delivery_mode=2)
    server.advance(1.25)
    client.send(m.BasicGet(queue="missing"))
    client.expect_channel_close(404)
    client.call(m.ConnectionClose(reply_code=200, reply_text="bye"), m.ConnectionCloseOk, 0)
    lines = recorder.trace().timeline().splitlines()
    assert lines[1].startswith("    0.000  c1 <- 0    connection.start version_major=0 ")
    assert [lines[0], *lines[2:]] == [
        f"    0.000  c1 --      connected: {NAME} AMQP 0-0-9-1",
        "    0.000  c1 -> 0    connection.start-ok client_properties={'product': 'raw'} mechanism='PLAIN' "
        "response=(12 bytes) locale='en_US'",
        "    0.000  c1 <- 0    connection.tune channel_max=2047 frame_max=131072 heartbeat=60",
        "    0.000  c1 -> 0    connection.tune-ok channel_max=2047 frame_max=131072 heartbeat=0",
        "    0.000  c1 -> 0    connection.open virtual_host='/'",
        "    0.000  c1 <- 0    connection.open-ok",
        "    0.000  c1 --      opened: virtual host '/'",
        "    0.000  c1 -> 1    channel.open",
        "    0.000  c1 <- 1    channel.open-ok",
        "    0.000  c1 -> 1    queue.declare queue='orders'",
        "    0.000  c1 ==      queue 'orders' of type classic declared",
        "    0.000  c1 <- 1    queue.declare-ok queue='orders' message_count=0 consumer_count=0",
        "    0.000  c1 -> 1    basic.publish exchange='' routing_key='orders'",
        "    0.000  c1 -> 1    content header body_size=10 delivery_mode=2",
        "    0.000  c1 -> 1    content body b'two apples'",
        "    0.000  c1 ==      message with exchange='' routing_key='orders': routed to orders",
        "    0.000  c1 ==      message b'two apples' enqueued in queue 'orders'",
        "    1.250  c1 -> 1    basic.get queue='missing'",
        "    1.250  c1 <- 1    channel.close reply_code=404 "
        "reply_text=\"NOT_FOUND - no queue 'missing' in vhost '/'\" method=basic.get",
        "    1.250  c1 -> 1    channel.close-ok",
        "    1.250  c1 -> 0    connection.close reply_code=200 reply_text='bye'",
        "    1.250  c1 <- 0    connection.close-ok",
        "    1.250  c1 --      closed: closed by the client",
    ]


def test_there_is_one_line_per_event(server: Server, recorder: Recorder):
    client = server.client()
    client.declare("a\nb")
    client.publish(b"\n\r\x0b\x0c\x1c\x85", routing_key="x\ny", headers={"\u2028": "\x1e"})
    trace = recorder.trace()
    assert len(trace.timeline().splitlines()) == len(trace) == len(trace.events)


def test_an_empty_timeline_is_empty():
    assert Recorder(lambda: 0.0).trace().timeline() == ""


def test_a_limit_shows_the_latest_and_says_what_is_missing(server: Server, recorder: Recorder):
    client = server.client()
    for number in range(3):
        client.declare(f"queue-{number}")
    trace = recorder.trace()
    assert trace.timeline(limit=3).splitlines() == [
        f"({len(trace) - 3} earlier events left out)",
        f"(c1 is {NAME})",
        "    0.000  c1 -> 1    queue.declare queue='queue-2'",
        "    0.000  c1 ==      queue 'queue-2' of type classic declared",
        "    0.000  c1 <- 1    queue.declare-ok queue='queue-2' message_count=0 consumer_count=0",
    ]
    assert trace.timeline(limit=1000) == trace.timeline()
    assert trace.timeline(limit=0) == f"({len(trace)} earlier events left out)"


def test_events_that_are_no_longer_kept_are_counted():
    recorder = Recorder(lambda: 0.0, capacity=1)
    recorder.connection("a", "connected")
    recorder.frame("a", "sent", 8, 0, b"")
    assert recorder.trace().timeline().splitlines() == [
        "(1 earlier events are no longer kept)",
        "(c1 is a)",
        "    0.000  c1 <- 0    heartbeat",
    ]


@pytest.mark.parametrize("by", ["name", "alias"])
def test_one_connection_alone_with_what_became_of_its_messages(server: Server, recorder: Recorder, by: str):
    north, south = server.connect(port=1), server.connect(port=2)
    for client in (north, south):
        client.handshake()
        client.open_channel()
    recorder.clear()
    north.publish(b"north", routing_key="a")
    south.publish(b"south", routing_key="b")
    which = {"name": south.connection.name, "alias": "c2"}[by]
    lines = recorder.trace().timeline(connection=which).splitlines()
    assert lines[0] == f"(c2 is {south.connection.name})"
    assert len(lines) == 6
    assert lines[-2].endswith("c2 ==      message with exchange='' routing_key='b': unroutable")
    assert lines[-1].endswith("c2 ==      message b'south' dropped because no queue was there for it")
    assert recorder.trace().timeline(connection="nobody") == ""


def test_times_and_short_names_line_up():
    recorder = Recorder(lambda: 0.0)
    for number in range(12):
        recorder.connection(f"peer {number}", "connected")
    recorder.model("alarm", reason="memory")
    lines = recorder.trace().timeline().splitlines()
    assert lines[0] == "    0.000  c1  --      connected: peer 0"
    assert lines[11] == "    0.000  c12 --      connected: peer 11"
    assert lines[12] == "    0.000      ==      alarm reason='memory'"


def test_malformed_frames_have_their_line(server: Server, recorder: Recorder):
    client = server.client()
    client.send_frame(1, 1, b"\0\x3c\0\x28\0")
    assert "-> 1    basic.publish: malformed: " in recorder.trace().timeline()
    client.expect_connection_close(501)
