from __future__ import annotations

import gc
import tracemalloc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.tap import report_settled
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
from fakeamqp.trace import FrameEvent, ModelEvent, Recorder
from fakeamqp.trace.recorder import Peers


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- real traffic -------------------------------------------------------------------------------------


def test_frames_are_typed_and_decoded_when_asked(server: Server, recorder: Recorder):
    client = server.client(channels=2)
    recorder.clear()
    client.publish(b"two apples", routing_key="orders", channel=2, message_id="m-1")
    method, header, body, published, _ = recorder.trace().events
    assert isinstance(method, FrameEvent) and isinstance(header, FrameEvent) and isinstance(body, FrameEvent)
    assert (method.type, method.channel, method.direction) == (1, 2, "received")
    assert method.method == m.BasicPublish(routing_key="orders")
    assert (method.properties, header.method, body.method) == (None, None, None)
    assert isinstance(header.properties, BasicProperties)
    assert header.properties.message_id == "m-1"
    assert (body.payload, body.size) == (b"two apples", 10)
    assert isinstance(published, ModelEvent)
    assert str(published.facts["outcome"]) == "unroutable"


# --- bounds -------------------------------------------------------------------------------------------


def test_only_the_latest_events_are_kept(clock: Clock):
    recorder = Recorder(clock, capacity=3)
    for channel in range(5):
        recorder.frame("a", "sent", 8, channel, b"")
    trace = recorder.trace()
    assert [event.channel for event in trace.events] == [2, 3, 4]
    assert (len(trace), trace.dropped) == (3, 2)
    assert repr(trace) == "<Trace of 3 events and 2 that are no longer kept>"


def test_trace_has_at_most_capacity_events_from_entries_of_several_events(server: Server):
    recorder = server.state.tap = Recorder(server.clock.now, capacity=4)
    client = server.client()
    client.declare("q")
    client.publish(b"m", routing_key="q")
    client.get("q", no_ack=True)
    trace = recorder.trace()
    names = ["delivered", "basic.get-ok", "content header", "content body"]
    assert [event.name for event in trace.events] == names
    assert len(trace) == 4
    # Four entries are kept, for seven events: "published", "enqueued" and "basic.get" are left out.
    assert trace.dropped == recorder.count - 4 + 3


def test_deliveries_settled_together_are_limited_by_the_capacity(clock: Clock):
    recorder = Recorder(clock, capacity=3)
    queue = SimpleNamespace(name="q")
    queued = SimpleNamespace(message=SimpleNamespace(body=b""))
    deliveries: Any = [SimpleNamespace(queue=queue, queued=queued, holder=None, tag=tag) for tag in range(10)]
    peer: Any = SimpleNamespace(name="a", heard_at=0.0)
    report_settled(recorder, "acked", deliveries, peer, 1)
    trace = recorder.trace()
    assert [event.facts["delivery_tag"] for event in trace.events] == [7, 8, 9]
    assert trace.dropped == 7


def test_memory_stays_bounded_with_large_bodies(server: Server):
    recorder = server.state.tap = Recorder(server.clock.now, capacity=200)
    client = server.client()
    client.declare("q")
    client.consume("q")
    mebibyte = bytes(1024 * 1024)

    def publish_and_ack(first: int, last: int) -> None:
        for number in range(first, last):
            client.publish(mebibyte, routing_key="q")
            client.send(m.BasicAck(delivery_tag=number))
            client.take_bytes()

    publish_and_ack(1, 20)
    tracemalloc.start()
    try:
        publish_and_ack(20, 60)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(recorder.trace()) == 200
    assert size < 200 * 8192


def test_trace_does_not_change_with_later_events(clock: Clock):
    recorder = Recorder(clock, capacity=2)
    recorder.frame("a", "sent", 8, 1, b"")
    trace = recorder.trace()
    recorder.frame("a", "sent", 8, 2, b"")
    recorder.frame("a", "sent", 8, 3, b"")
    assert [event.channel for event in trace.events] == [1]
    assert repr(trace) == "<Trace of 1 events>"


def test_times_of_frames_received_together_do_not_decrease(clock: Clock):
    recorder = Recorder(clock)
    peer = SimpleNamespace(name="a", heard_at=clock())
    for _ in range(2):
        clock.now += 1
        recorder.received(peer, 8, 0, b"")
        recorder.sending(peer, HEARTBEAT_FRAME)
    assert [event.time for event in recorder.trace().events] == [0, 1, 1, 2]


def test_only_the_first_4096_bytes_of_a_body_are_kept(clock: Clock):
    recorder = Recorder(clock)
    recorder.frame("a", "sent", 3, 1, b"x" * 100_000)
    recorder.frame("a", "sent", 3, 1, b"x" * 4096)
    long, short = recorder.trace().events
    assert (len(long.payload), long.size) == (4096, 100_000)
    assert (len(short.payload), short.size) == (4096, 4096)
    assert "(100000 bytes)" in long.text


def test_method_is_kept_whole_up_to_a_size_limit(clock: Clock):
    recorder = Recorder(clock)
    for size in (10_000, 100_000):
        method = m.QueueDeclare(queue="q", arguments={"x": "y" * size})
        recorder.frame("a", "received", 1, 1, method.encode())
    long, very_long = recorder.trace().events
    assert long.method is not None
    assert long.text.startswith("queue.declare queue='q' arguments={'x': 'yyy")
    assert (very_long.name, very_long.method) == ("queue.declare", None)
    assert "too long to be kept whole" in very_long.text


def test_recorder_does_not_keep_a_long_message_alive(clock: Clock):
    class Message(SimpleNamespace):
        pass

    recorder = Recorder(clock)
    publisher = SimpleNamespace(name="a")
    long = Message(body=b"x" * 100_000, exchange="e", routing_key="k", publisher=publisher)
    gone = weakref.ref(long)
    recorder.frame("a", "received", 1, 1, b"")
    recorder.event("published", None, long, "unroutable", "/")
    recorder.event("returned", None, long, 312, "NO_ROUTE", "/")
    recorder.event("expired", None, long, "q", "/")
    recorder.event("dead-lettered", None, long, "q", "expired", "dead", "routed to d", "/")
    recorder.event("dropped", None, [long], "q", "purged", "the queue was purged", "/")
    peer = SimpleNamespace(name="b", heard_at=0.0)
    recorder.event("delivered", peer, long, "q", "tag", 1, 1, False)
    recorder.event("acked", peer, long, "q", None, 1, 1)
    del long
    gc.collect()
    assert gone() is None
    _, published, returned, expired, dead_lettered, dropped, delivered, acked = recorder.trace().events
    assert "(100000 bytes) returned to its publisher" in returned.text
    assert "(100000 bytes) expired in queue 'q'" in expired.text
    assert "(100000 bytes) dead-lettered from queue 'q'" in dead_lettered.text
    assert "(100000 bytes) delivered from queue 'q'" in delivered.text
    assert "(100000 bytes) of queue 'q' acked" in acked.text
    assert published.text == "message with exchange='e' routing_key='k': unroutable"
    assert "(100000 bytes) dropped from queue 'q'" in dropped.text
    assert (published.connection, published.alias) == ("a", "c1")


def test_facts_of_expired_dead_lettered_and_dropped_events_have_names(clock: Clock):
    recorder = Recorder(clock)
    message = SimpleNamespace(body=b"m", publisher=SimpleNamespace(name="a"))
    queue = SimpleNamespace(name="d")
    outcome = SimpleNamespace(queues=(queue,))
    recorder.event("expired", None, message, "q", "there")
    recorder.event("dead-lettered", None, message, "q", "expired", "dead", outcome, "there")
    recorder.event("dropped", None, (message,), None, "unroutable", "no queue was there for it", "there")
    expired, dead_lettered, enqueued, dropped = recorder.trace().events
    about = {"message": message, "virtual_host": "there"}
    assert expired.facts == {**about, "queue": "q"}
    assert dead_lettered.facts == {
        **about,
        "queue": "q",
        "reason": "expired",
        "exchange": "dead",
        "outcome": outcome,
    }
    assert enqueued.facts == {**about, "queue": "d"}
    assert dropped.facts == {
        **about,
        "queue": None,
        "reason": "unroutable",
        "detail": "no queue was there for it",
    }
    names = ["expired", "dead-lettered", "enqueued", "dropped"]
    assert [event.name for event in (expired, dead_lettered, enqueued, dropped)] == names


def test_messages_dropped_together_are_separate_events(clock: Clock):
    recorder = Recorder(clock, capacity=3)
    lost = [SimpleNamespace(body=b"%d" % number) for number in range(5)]
    recorder.event("dropped", None, lost, "q", "purged", "the queue was purged", "/")
    trace = recorder.trace()
    assert [event.facts["message"].body for event in trace.events] == [b"2", b"3", b"4"]
    assert (len(trace), trace.dropped) == (3, 2)
    assert trace.events[0].text == "message b'2' dropped from queue 'q' because the queue was purged"


def test_clear_removes_all_events_and_restarts_time_and_short_names(clock: Clock):
    recorder = Recorder(clock, capacity=1)
    recorder.connection("a", "connected")
    recorder.connection("b", "connected")
    clock.now += 5
    recorder.clear()
    assert (len(recorder.trace()), recorder.trace().dropped) == (0, 0)
    clock.now += 2
    recorder.connection("c", "connected")
    [event] = recorder.trace().events
    assert (event.time, event.alias) == (2.0, "c1")


# --- short names --------------------------------------------------------------------------------------


def test_connections_get_short_names_in_order_and_keep_them(clock: Clock):
    recorder = Recorder(clock)
    recorder.connection("a", "connected")
    recorder.connection("b", "connected")
    recorder.frame("b", "sent", 8, 0, b"")
    recorder.frame("a", "sent", 8, 0, b"")
    assert [event.alias for event in recorder.trace().events] == ["c1", "c2", "c2", "c1"]


def test_connection_that_reuses_a_name_has_a_new_short_name(clock: Clock):
    recorder = Recorder(clock)
    for _ in range(2):
        recorder.connection("a", "connected")
        recorder.frame("a", "sent", 8, 0, b"")
        message = SimpleNamespace(body=b"", publisher=SimpleNamespace(name="a"))
        recorder.event("dropped", None, [message], "q", "purged", "the queue was purged", "/")
        recorder.connection("a", "closed")
    assert [event.alias for event in recorder.trace().events] == ["c1"] * 4 + ["c2"] * 4


def test_connection_with_a_reused_name_does_not_get_the_protocol_of_the_closed_connection(clock: Clock):
    peers = Peers()
    known = peers.add("a", "AMQP 1-1-0-10")
    assert known == ("a", "c1", "0-10")
    assert peers.add("a") == ("a", "c2", "0-10"), "it is known until the connection is closed"
    peers.close(known)
    assert peers.add("a") == ("a", "c3", "0-9-1")


def test_shrinking_drops_events_until_the_rest_fits(clock: Clock):
    recorder = Recorder(clock)
    for number in range(10):
        recorder.event("queue declared", None, None, f"q{number}")
    recorder.shrink(1_000_000)
    assert len(recorder.trace().events) == 10
    recorder.shrink(0)
    assert not recorder.trace().events


def test_size_counts_payloads_and_each_uncharged_message_once(clock: Clock):
    recorder = Recorder(clock)
    kept = SimpleNamespace(body=b"x" * 100, properties_bytes=b"p" * 10, charge=None)
    charged = SimpleNamespace(body=b"x" * 100, properties_bytes=b"", charge=object())
    for message in (kept, kept, charged):
        recorder.event("published", None, message)
    for _ in range(97):
        recorder.frame("a", "sent", 8, 0, b"12345")
    assert recorder.size() == 0, "a few entries are not looked at"
    recorder.frame("a", "sent", 8, 0, b"12345")
    size = recorder.size()
    assert size == 101 * 160 + 98 * 5 + 100 + 3 * 10
    for _ in range(101):
        recorder.frame("a", "sent", 8, 0, b"")
    assert recorder.size() == size, "nor are new ones, up to half of all"
    recorder.frame("a", "sent", 8, 0, b"")
    assert recorder.size() == size + 102 * 160
    recorder.shrink(102 * 160 + 5 + 100)
    assert len(recorder.trace().events) == 102
    assert recorder.size() == 102 * 160


def test_shrink_counts_charged_messages(clock: Clock):
    recorder = Recorder(clock)
    charged = SimpleNamespace(body=b"x" * 100, properties_bytes=b"", charge=object())
    for _ in range(2):
        recorder.event("published", None, charged)
    recorder.shrink(2 * 160 + 100)
    assert len(recorder.trace().events) == 2
    recorder.shrink(2 * 160 + 99)
    assert len(recorder.trace().events) == 1


def test_late_event_of_a_closed_connection_has_its_short_name(clock: Clock):
    recorder = Recorder(clock)
    recorder.connection("a", "connected")
    recorder.connection("a", "closed")
    recorder.connection("a", "aborted")
    assert {event.alias for event in recorder.trace().events} == {"c1"}


def test_model_event_has_the_short_name_of_its_connection(clock: Clock):
    recorder = Recorder(clock, capacity=1)
    recorder.connection("a", "connected")
    recorder.event("consumer added", None, None, "q", "tag", "a", 1)
    [event] = recorder.trace().events
    assert (event.connection, event.alias) == ("a", "c1")


def test_connection_older_than_the_recorder_gets_a_short_name(clock: Clock):
    recorder = Recorder(clock)
    recorder.frame("a", "sent", 8, 0, b"")
    recorder.connection("b", "closed")
    assert [event.alias for event in recorder.trace().events] == ["c1", "c2"]


def test_short_names_of_closed_connections_are_freed_from_memory(clock: Clock):
    recorder = Recorder(clock, capacity=10)
    recorder.connection("alive", "connected")
    for number in range(5000):
        recorder.connection(f"peer {number}", "connected")
        recorder.connection(f"peer {number}", "closed")
    recorder.frame("alive", "sent", 8, 0, b"")
    assert recorder.trace().events[-1].alias == "c1"
    assert len(recorder._peers) < 1500
    assert len(recorder._peers._closed) < 1500


# --- off ----------------------------------------------------------------------------------------------


def test_recorder_removed_from_the_broker_records_no_events(server: Server, recorder: Recorder):
    server.state.tap = None
    client = server.client()
    client.publish(routing_key="x")
    assert len(recorder.trace()) == 0


def test_trace_has_the_wall_time_of_its_beginning():
    instants = iter([10.0, 20.0])
    recorder = Recorder(lambda: 0.0, time=lambda: next(instants), clock="virtual")
    assert (recorder.trace().wall_time, recorder.trace().clock) == (10.0, "virtual")
    recorder.clear()
    assert recorder.trace().wall_time == 20.0
    assert (Recorder(lambda: 0.0).trace().wall_time, Recorder(lambda: 0.0).trace().clock) == (None, "real")


# --- since a mark -------------------------------------------------------------------------------------


def test_trace_since_a_mark_has_only_later_events(clock: Clock) -> None:
    recorder = Recorder(clock, 3)
    recorder.event("expired", None, None)
    clock.now += 2
    mark = recorder.mark()
    assert len(recorder.trace(mark)) == 0
    clock.now += 0.5
    recorder.event("acked", None, None)
    since = recorder.trace(mark)
    assert [(event.time, event.name, since.dropped) for event in since.events] == [(0.5, "acked", 0)]
    for _ in range(4):
        recorder.event("acked", None, None)
    since = recorder.trace(mark)
    assert (len(since), since.dropped, recorder.trace().dropped) == (3, 2, 3)
    recorder.clear()
    recorder.event("expired", None, None)
    assert [event.name for event in recorder.trace(mark).events] == ["expired"]


# --- from outside a test --------------------------------------------------------------------------------


def test_entries_are_read_from_a_serial_number(clock: Clock):
    recorder = Recorder(clock, capacity=5)
    for number in range(8):
        recorder.event("queue deleted", None, None, f"{number}")

    def read(serial: int, most: int | None = None) -> tuple[int, list[str | None]]:
        first, entries = recorder.entries_from(serial, most)
        return first, [event.queue for event in recorder.events_of(entries) if isinstance(event, ModelEvent)]

    assert recorder.count == 8
    assert read(6) == (6, ["6", "7"])
    assert read(0) == (3, ["3", "4", "5", "6", "7"])
    assert read(0, most=2) == (6, ["6", "7"])
    assert read(8) == read(9) == (8, [])
    clears = recorder.clears
    recorder.clear()
    assert recorder.clears == clears + 1 and read(0) == (0, [])


# --- contents that have come as a whole -----------------------------------------------------------------


def test_content_received_in_one_piece_is_recorded_as_separate_frames(
    server: Server, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    client = server.client()
    client.declare("q")
    octets = b"".join(
        (
            method_frame(1, m.BasicPublish(routing_key="q").encode()),
            *content_frames(1, 60, BasicProperties().encode(), b"body", 131072),
        )
    )
    recorded = []
    for pieces in ([octets[:-5], octets[-5:]], [octets], [octets]):
        recorder.clear()
        if recorded:
            # The properties are known by now; see `Amqp091Channel.take_content`.
            monkeypatch.setattr(Amqp091Channel, "receive_header", None)
        for piece in pieces:
            client.send_bytes(piece)
        recorded.append([(each.name, getattr(each, "payload", None)) for each in recorder.trace().events])
    assert recorded[0] == recorded[1] == recorded[2]
    assert [name for name, _ in recorded[0]][:3] == ["basic.publish", "content header", "content body"]
