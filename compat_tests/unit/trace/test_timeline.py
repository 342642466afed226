from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.trace import FrameEvent, Recorder

NAME = "127.0.0.1:50001 -> 127.0.0.1:0"
HEARTBEAT = frame(8, 0, b"")


def publish_frames(channel: int, body: bytes, limit: int = 4096) -> list[bytes]:
    publish = m.BasicPublish(routing_key="orders").encode()
    properties = BasicProperties().encode()
    return [method_frame(channel, publish), *content_frames(channel, 60, properties, body, limit)]


def test_timeline_shows_each_method_and_event_in_its_own_line(server: Server, recorder: Recorder):
    client = server.client(client_properties={"product": "raw"})
    client.declare("orders")
    client.publish(b"two apples", routing_key="orders", delivery_mode=2)
    server.advance(1.25)
    client.fails(m.BasicGet(queue="missing"), 404)
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
        "    0.000  c1 -> 1    basic.publish exchange='' routing_key='orders' body_size=10 delivery_mode=2 "
        "body=b'two apples'",
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


def test_no_byte_of_a_peer_breaks_a_line(server: Server, recorder: Recorder):
    client = server.client()
    client.declare("a\nb")
    client.publish(b"\n\r\x0b\x0c\x1c\x85", routing_key="x\ny", headers={"\u2028": "\x1e"})
    trace = recorder.trace()
    contents = sum(isinstance(each, FrameEvent) and each.part in ("header", "body") for each in trace.events)
    assert contents == 2
    assert len(trace.timeline().splitlines()) + contents == len(trace) == len(trace.events)


def test_frames_of_other_channels_do_not_part_a_method_from_its_content(server: Server, recorder: Recorder):
    client = server.client()
    client.open_channel(2)
    recorder.clear()
    publish, *content = publish_frames(1, b"two " + b"apples" * 20, limit=60)
    other, *other_content = publish_frames(2, b"")
    client.send_bytes(
        b"".join((publish, other, *other_content, content[0], content[1], HEARTBEAT, *content[2:]))
    )
    lines = recorder.trace().timeline().splitlines()
    assert [line.partition("->")[2] for line in lines[1:] if "->" in line] == [
        " 1    basic.publish exchange='' routing_key='orders' body_size=124 "
        f"body={(b'two ' + b'apples' * 20)[:60]!r}... (124 bytes)",
        " 2    basic.publish exchange='' routing_key='orders' body_size=0 body=b''",
        " 0    heartbeat",
    ]


def test_the_line_of_a_method_says_that_its_content_is_not_complete(server: Server, recorder: Recorder):
    client = server.client()
    recorder.clear()
    publish, header, body = publish_frames(1, b"two apples")
    seen = []
    for octets in (publish, header, body):
        client.send_bytes(octets)
        seen.append(recorder.trace().timeline().splitlines()[1].partition("'orders'")[2])
    rest = "(the rest of the content has not come)"
    assert seen == [f" {rest}", f" body_size=10 {rest}", " body_size=10 body=b'two apples'"]


def test_successive_heartbeats_share_a_line_until_another_frame_of_their_connection(
    server: Server, recorder: Recorder
):
    north, south = server.connect(port=1), server.connect(port=2)
    for client in (north, south):
        client.handshake()
    recorder.clear()
    for _ in range(17):
        for client in (north, south):
            client.send_bytes(HEARTBEAT)
        recorder.frame(north.connection.name, "sent", 8, 0, b"")
        recorder.event("queue purged", None, None, "q", 0, north.connection.name)
        server.advance(30)
    north.open_channel()
    north.send_bytes(HEARTBEAT)
    south.send_bytes(HEARTBEAT)
    lines = recorder.trace().timeline().splitlines()
    assert [line for line in lines[2:] if "purged" not in line] == [
        "    0.000  c1 -> 0    17 heartbeats until 480.000",
        "    0.000  c2 -> 0    18 heartbeats until 510.000",
        "    0.000  c1 <- 0    17 heartbeats until 480.000",
        "  510.000  c1 -> 1    channel.open",
        "  510.000  c1 <- 1    channel.open-ok",
        "  510.000  c1 -> 0    heartbeat",
    ]


def test_a_limit_keeps_the_latest_faults_before_the_latest_lines():
    recorder = Recorder(lambda: 0.0)
    recorder.connection("a", "connected")
    for number in range(50):
        if number in (5, 10, 15, 45):
            recorder.connection("a", "fault", f"number {number}")
        recorder.event("memory alarm over", None, None, number)
    timeline = recorder.trace().timeline
    assert [line.split("      ")[-1] for line in timeline(limit=2).splitlines()] == [
        "(18 earlier events left out)",
        "(c1 is a)",
        "fault: number 15",
        "(30 events left out)",
        "fault: number 45",
        "(3 events left out)",
        "memory alarm over octets=48",
        "memory alarm over octets=49",
    ]
    assert [line for line in timeline(limit=40).splitlines() if "fault" in line] == [
        line for line in timeline().splitlines() if "fault" in line
    ]


def test_faults_are_shown_after_the_trace_has_dropped_them():
    now, real = [0.0], [0.0]
    recorder = Recorder(lambda: now[0], capacity=3, clock="virtual", real_time=lambda: real[0])
    recorder.connection("a", "connected")
    for number in range(9):
        now[0], real[0] = 60.0 * number, float(number)
        if number in (1, 3):
            recorder.connection("a", "fault", f"number {number}")
        recorder.event("memory alarm over", None, None, number)
        if number == 2:
            mark = recorder.mark()
    assert [" ".join(line.split()) for line in recorder.trace().timeline(limit=2).splitlines()] == [
        "(9 earlier events are no longer kept, except faults)",
        "(c1 is a)",
        "60.000 [real 1.000] c1 -- fault: number 1",
        "180.000 [real 3.000] c1 -- fault: number 3",
        "(1 events left out)",
        "420.000 [real 7.000] == memory alarm over octets=7",
        "480.000 [real 8.000] == memory alarm over octets=8",
    ]
    faults = [line for line in recorder.trace(mark).timeline(limit=1).splitlines() if "fault:" in line]
    assert [" ".join(line.split()) for line in faults] == ["60.000 [real 1.000] c1 -- fault: number 3"]
    assert "fault" not in recorder.trace().timeline(limit=0, connection="b")
    recorder.clear()
    assert recorder.trace().timeline() == ""


def test_real_time_is_in_a_second_column_where_it_differs():
    now, real = [0.0], [100.0]
    recorder = Recorder(lambda: now[0], clock="virtual", real_time=lambda: real[0])
    recorder.connection("a", "connected")
    now[0], real[0] = 60.0, 100.25
    recorder.frame("a", "sent", 8, 0, b"")
    mark = recorder.mark()
    recorder.connection("a", "closed")
    assert recorder.trace().timeline().splitlines() == [
        "    0.000                  c1 --      connected: a",
        "   60.000 [real    0.250]  c1 <- 0    heartbeat",
        "   60.000 [real    0.250]  c1 --      closed",
    ]
    assert recorder.trace(mark).timeline().splitlines() == ["(c1 is a)", "    0.000  c1 --      closed"]
    real[0] = 200.0
    recorder.clear()
    recorder.connection("b", "connected")
    assert recorder.trace().events[0].real_time == 0.0


def test_real_times_are_dropped_with_their_entries():
    real = [0.0]
    recorder = Recorder(lambda: 7.0, capacity=3, clock="virtual", real_time=lambda: real[0])
    for number in range(5):
        real[0] = float(number)
        recorder.event("memory alarm over", None, None, number)
    assert [event.real_time for event in recorder.trace().events] == [2.0, 3.0, 4.0]
    assert recorder.real_times(2) == (3.0, 4.0)
    recorder.shrink(200)
    assert [event.real_time for event in recorder.trace().events] == [4.0]


def test_lines_of_a_real_clock_have_no_second_column(server: Server, recorder: Recorder):
    server.client()
    assert all(event.real_time is None for event in recorder.trace().events)


def test_an_empty_timeline_is_empty():
    assert Recorder(lambda: 0.0).trace().timeline() == ""


def test_limit_shows_the_latest_lines_and_counts_the_omitted_events(server: Server, recorder: Recorder):
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


def test_timeline_counts_dropped_events():
    recorder = Recorder(lambda: 0.0, capacity=1)
    recorder.connection("a", "connected")
    recorder.frame("a", "sent", 8, 0, b"")
    assert recorder.trace().timeline().splitlines() == [
        "(1 earlier events are no longer kept)",
        "(c1 is a)",
        "    0.000  c1 <- 0    heartbeat",
    ]


@pytest.mark.parametrize("by", ["name", "alias"])
def test_timeline_of_a_connection_has_the_outcomes_of_its_messages(
    server: Server, recorder: Recorder, by: str
):
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
    assert len(lines) == 4
    assert lines[-2].endswith("c2 ==      message with exchange='' routing_key='b': unroutable")
    assert lines[-1].endswith("c2 ==      message b'south' dropped because no queue was there for it")
    assert recorder.trace().timeline(connection="nobody") == ""


def test_times_and_short_names_are_aligned():
    recorder = Recorder(lambda: 0.0)
    for number in range(12):
        recorder.connection(f"peer {number}", "connected")
    recorder.event("memory alarm over", None, None, 100)
    lines = recorder.trace().timeline().splitlines()
    assert lines[0] == "    0.000  c1  --      connected: peer 0"
    assert lines[11] == "    0.000  c12 --      connected: peer 11"
    assert lines[12] == "    0.000      ==      memory alarm over octets=100"


def test_malformed_frame_has_a_line_in_the_timeline(server: Server, recorder: Recorder):
    client = server.client()
    client.send_frame(1, 1, b"\0\x3c\0\x28\0")
    assert "-> 1    basic.publish: malformed: " in recorder.trace().timeline()
    client.expect_connection_close(501)
