"""A consuming channel, between a broker and a store that the test plays."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Connection, refusal
from fakeamqp.spark.errors import AccessRefused, ConnectionLost, QueueNotFound, QueueRefused
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue import channel as channels
from fakeamqp.spark.queue.channel import Backlog, ConsumerState, ConsumingChannel, Status, WindowTooWide


class Store:
    """Keeps the bodies of its segments. It is full where it has `room` rows, which Spark has not taken."""

    def __init__(self, **more):
        self.acks_on_arrival = True
        self.on_disk = True
        self.least_window = 1
        self.committed = 0
        self.next = 0
        self.room = 1000
        self.segments = []
        self.settlements = []
        self.channels = 0
        self.repeated = set()
        self.__dict__.update(more)

    @property
    def visible(self):
        return self.next

    @property
    def full(self):
        return self.next >= self.room

    def new_channel(self):
        self.channels += 1

    def add(self, messages):
        assert [message.offset for message in messages] == list(range(self.next, self.next + len(messages)))
        self.segments.append([message.body for message in messages])
        self.next += len(messages)

    def settled(self, end):
        self.settlements.append(end)

    def repeats(self, queue, _properties, body):
        return (queue, body) in self.repeated


@pytest.fixture
def connection(monkeypatch):
    connection = Connection()
    monkeypatch.setattr(channels, "time", connection)
    return connection


GIVEN = {
    "amqp.url": "amqp://h",
    "queue": "q",
    "spoolDir": "/nowhere",
    "prefetch": "8",
    "spoolFlushRows": "3",
    "spoolFlushInterval": "2s",
    "prefetchBytes": "1000",
    "amqp.connectionTimeout": "5s",
}


def options(**more):
    given = {**GIVEN, **more}
    return read_options({key: each for key, each in given.items() if each is not None}, streaming=True)


def in_memory(mode="commit"):
    return {"ackMode": mode, **dict.fromkeys(("spoolDir", "spoolFlushRows", "spoolFlushInterval"))}


def consuming(connection, store, state=None, **more):
    found = ConsumingChannel(connection, options(**more), store, state or ConsumerState())
    connection.calls.clear()
    return found


def acks(connection):
    return [call[2] for call in connection.calls if call[1] == "ack"]


# --- consumers --------------------------------------------------------------------------------------------


def test_channel_consumes_each_queue_with_window_and_priority(connection):
    store, state = Store(), ConsumerState()
    ConsumingChannel(connection, options(queue="a,b"), store, state)
    assert connection.calls == [(1, "qos", 8), (1, "consume", "a"), (1, "consume", "b")]
    assert store.channels == 1
    state.window = 5
    ConsumingChannel(connection, options(consumerPriority="-7"), store, state)
    assert connection.calls[3:] == [(2, "qos", 5), (2, "consume", "q", {"x-priority": -7})]


@pytest.mark.parametrize(("code", "kind"), [(404, QueueNotFound), (403, AccessRefused), (405, QueueRefused)])
def test_refused_consumer_raises_error_of_its_cause_with_queue_name(connection, code, kind):
    connection.refuses = {"q": refusal(code, "ANY - text")}
    with pytest.raises(kind, match=f"^cannot consume from queue 'q': .*{code} ANY - text") as caught:
        consuming(connection, Store())
    assert type(caught.value) is kind


def test_connection_lost_while_consumer_opens_raises_connection_lost(connection):
    connection.answering = lambda: setattr(connection, "lost", "maintenance")
    with pytest.raises(ConnectionLost, match="maintenance"):
        consuming(connection, Store())


def test_cancelled_consumer_ends_channel_before_anything_is_acknowledged(connection):
    found = consuming(connection, Store())
    connection.deliver(b"0", b"1", b"2")
    connection.channels[0].lost = "the broker cancelled a consumer"
    with pytest.raises(ConnectionLost, match="the broker cancelled a consumer"):
        found.run_due_work()
    with pytest.raises(ConnectionLost, match="the broker cancelled a consumer"):
        found.flush()
    assert acks(connection) == []


# --- storing and acknowledging ----------------------------------------------------------------------------


def test_messages_are_stored_when_there_are_enough_or_after_a_while(connection):
    """And acknowledged once they are stored."""
    store, state = Store(), ConsumerState()
    found = consuming(connection, store, state)
    assert found.run_due_work() is None
    connection.deliver(b"0", b"1")
    assert found.run_due_work() == 2.0
    assert (store.segments, acks(connection)) == ([], [])
    assert (state.arrived, state.unacknowledged, state.held) == (2, 2, 2)
    connection.now += 0.5
    assert found.run_due_work() == 1.5
    connection.deliver(b"2")
    assert found.run_due_work() is None
    assert (store.segments, acks(connection)) == ([[b"0", b"1", b"2"]], [3])
    assert (1, "ack", 3, "multiple") in connection.calls
    assert (state.unacknowledged, state.held) == (0, 0)
    connection.deliver(b"3")
    found.run_due_work()
    connection.now += 1.75
    assert found.run_due_work() == 0.25
    assert len(store.segments) == 1
    connection.now += 0.25
    assert found.run_due_work() is None
    assert (store.segments[1:], acks(connection)) == ([[b"3"]], [3, 4])
    connection.deliver(b"x" * 998)  # With two bytes of properties as large as prefetchBytes.
    found.run_due_work()
    assert len(store.segments) == 3
    connection.deliver(*[b"%d" % number for number in range(7)])
    found.flush()
    assert [len(each) for each in store.segments[3:]] == [3, 3, 1]
    assert acks(connection)[3:] == [8, 11, 12]


def test_half_of_a_small_window_is_stored_at_once(connection):
    for window, rows in (("4", 2), ("1", 1), ("100", 3)):
        store = Store()
        found = consuming(connection, store, prefetch=window)
        for number in range(rows):
            assert store.segments == []
            connection.deliver(b"%d" % number)
            found.run_due_work()
        assert [len(each) for each in store.segments] == [rows]


def test_segments_are_split_at_byte_limit(connection, monkeypatch):
    monkeypatch.setattr(channels, "_SEGMENT_BYTES", 10)
    store = Store()
    found = consuming(connection, store)
    with cases() as case:
        for sizes, expected in [
            ([3, 3], [2]),
            ([3, 3, 3], [2, 1]),
            ([8, 8], [1, 1]),
            ([20, 1], [1, 1]),
            ([1, 20, 1], [1, 1, 1]),
            ([0, 0, 4], [3]),
        ]:
            with case(sizes):
                store.segments.clear()
                connection.deliver(*(bytes(size) for size in sizes))
                found.flush()
                assert [len(each) for each in store.segments] == expected


def test_messages_of_store_that_waits_for_spark_are_acknowledged_with_its_commit(connection):
    """Also if rows of an earlier channel are committed together with them."""
    store, state = Store(acks_on_arrival=False, on_disk=False, next=10), ConsumerState()
    found = consuming(connection, store, state, **in_memory())
    connection.deliver(b"0", b"1", b"2", b"3")
    found.run_due_work()
    found.flush()
    assert (store.next, acks(connection), state.unacknowledged, state.held) == (14, [], 4, 0)
    store.committed = 10
    found.run_due_work()
    assert acks(connection) == []
    store.committed = 13
    found.run_due_work()
    found.run_due_work()
    assert (acks(connection), state.unacknowledged) == ([3], 1)
    assert (1, "ack", 3, "multiple") in connection.calls


def test_a_full_store_leaves_messages_in_memory(connection):
    store, state = Store(room=3), ConsumerState()
    found = consuming(connection, store, state)
    connection.deliver(*[b"%d" % number for number in range(5)])
    found.flush()
    assert (store.next, acks(connection), state.unacknowledged, state.held) == (3, [3], 2, 2)
    connection.deliver(b"5")
    assert found.run_due_work() is None  # Until Spark takes some.
    state.unlimited = True
    found.flush()
    assert (store.next, acks(connection)) == (6, [3, 6])


def test_repeated_messages_are_dropped_counted_and_acknowledged_with_their_neighbours(connection):
    store, state = Store(repeated={("q", b"x")}), ConsumerState(backlog=Backlog())
    found = consuming(connection, store, state, queue="p,q")
    state.backlog.expect({"q": 4}, 0)
    connection.deliver(b"x")  # It is not redelivered.
    connection.deliver(b"x", redelivered=True)
    connection.deliver(b"2", redelivered=True)
    found.flush()
    assert (store.segments, acks(connection)) == ([[b"x", b"2"]], [3])
    assert (state.arrived, state.redelivered, dict(state.dropped)) == (3, 2, {"q": 1})
    assert state.backlog.row is None
    connection.deliver(b"x", redelivered=True)
    assert state.backlog.row == 2
    assert found.run_due_work() is None  # The backlog is complete.
    assert acks(connection) == [3]
    state.backlog = None
    assert found.run_due_work() == 2.0
    connection.now += 2.0
    found.run_due_work()
    assert (acks(connection), state.unacknowledged, dict(state.dropped)) == ([3, 4], 0, {"q": 2})


# --- questions --------------------------------------------------------------------------------------------


def test_status_request_counts_messages_delivered_before_its_answer(connection):
    """The answer to a request without effect says that it has processed the acknowledgements before."""
    store, state = Store(), ConsumerState()
    found = consuming(connection, store, state, queue="q,r")
    connection.ready = [4, 2]
    connection.deliver(b"0")
    connection.answering = lambda: connection.deliver(b"1")
    assert found.ask() == Status(visible=2, held=0, ready=6, arrived=2)
    assert [call[1:] for call in connection.calls] == [
        ("count", "q"),
        ("count", "r"),
        ("qos", 8),
        ("ack", 2, "multiple"),
    ]
    assert store.settlements == [0]
    assert state.depths == {"q": {"ready": 4, "consumers": 1}, "r": {"ready": 2, "consumers": 1}}
    assert (state.counted_at, state.arrived_before) == (1000.0, 1)


def test_acknowledgements_of_committed_rows_are_settled_once(connection):
    """The spool keeps large segments until then."""
    store = Store()
    found = consuming(connection, store)
    connection.deliver(b"0", b"1")
    found.flush()
    found.run_due_work()
    assert store.settlements == []
    store.committed = 1
    found.run_due_work()
    found.run_due_work()
    store.committed = 2
    found.run_due_work()
    assert store.settlements == [2]
    for unspooled in (Store(on_disk=False), Store(on_disk=False, acks_on_arrival=False)):
        found = consuming(connection, unspooled, **in_memory())
        connection.deliver(b"0")
        found.flush()
        unspooled.committed = 1
        found.run_due_work()
        assert unspooled.settlements == []


def test_rows_visible_only_when_settled_are_acknowledged_before_barrier_request(connection):
    store = Store(on_disk=False)
    found = consuming(connection, store, **in_memory("none"))
    connection.deliver(b"0")
    connection.answering = lambda: connection.deliver(b"1")
    assert found.ask().visible == 2
    assert store.settlements == [1], "the second one was acknowledged behind the request"
    assert [call[1] for call in connection.calls] == ["count", "ack", "qos", "ack"]


def test_much_that_comes_before_an_answer_is_stored_meanwhile(connection):
    store = Store()
    found = consuming(connection, store)
    sizes = []

    def call_all(methods, meanwhile):
        for _ in range(3):
            connection.deliver(bytes(600))
            meanwhile()
            sizes.append(store.next)
        return answer(methods, meanwhile)

    channel = connection.channels[0]
    answer, channel.call_all = channel.call_all, call_all
    assert found.ask().visible == 3
    assert sizes == [0, 2, 2]


# --- backlogs ---------------------------------------------------------------------------------------------


def test_backlog_ends_behind_last_message_of_each_queue():
    backlog = Backlog()
    backlog.expect({"a": 2, "b": 1, "empty": 0}, 5)
    for queue, end in (("a", 6), ("empty", 7), ("b", 8), ("b", 9)):
        backlog.message_arrived(queue, end)
        assert backlog.row is None
    backlog.message_arrived("a", 10)
    backlog.message_arrived("a", 11)
    assert backlog.row == 10
    backlog.expect({"a": 0}, 4)
    assert backlog.row == 4


def test_new_channel_makes_backlog_end_unknown_unless_end_is_stored():
    backlog = Backlog()
    backlog.expect({}, 8)
    backlog.restart(8)
    assert backlog.row == 8
    backlog.restart(7)
    assert backlog.row is None


def test_explicit_backlog_end_stays_when_missing_message_arrives():
    backlog = Backlog()
    backlog.expect({"a": 1}, 0)
    backlog.end_at(3)
    backlog.message_arrived("a", 4)
    assert backlog.row == 3


def test_backlog_is_counted_again_if_messages_arrive_during_count(connection):
    """Messages that arrive during a count may be in it or not."""
    store, state = Store(), ConsumerState()
    found = consuming(connection, store, state)
    connection.deliver(b"0")
    connection.ready = [5, 4, 3]
    # As large as prefetchBytes, so that it is stored at once.
    connection.answering = lambda: connection.deliver(bytes(998)) if connection.ready[0] > 3 else None
    backlog = state.backlog = Backlog()
    status = found.ask(backlog)
    assert (store.next, status.ready, status.visible) == (2, 4, 2)
    assert backlog._missing == {"q": 4}
    assert backlog.row is None
    # No acknowledgement while it is counted, so that the broker sends no more.
    assert [call[1] for call in connection.calls] == [*(["count", "qos"] * 2), "qos", "ack"]
    assert store.settlements == [0, 0, 0]
    connection.answering = lambda: None
    connection.deliver(b"2", b"3", b"4", b"5", b"6", b"7")
    assert backlog.row == 6
    found.flush()
    assert store.next == 6  # What came later is left to the broker.
    assert found.run_due_work() is None
    state.backlog = None
    found.flush()
    assert store.next == 8


def test_a_backlog_of_empty_queues_is_known_at_once(connection):
    store, state = Store(), ConsumerState()
    found = consuming(connection, store, state)
    connection.answering = lambda: connection.deliver(b"x") if state.arrived < 3 else None
    backlog = state.backlog = Backlog()
    found.ask(backlog)
    assert backlog.row == 1
    assert [call[1] for call in connection.calls].count("count") == 1


def test_a_new_channel_counts_a_backlog_again(connection):
    backlog = Backlog()
    backlog.expect({"q": 2}, 0)
    connection.ready = [3]
    state = ConsumerState(backlog=backlog)
    consuming(connection, Store(), state)
    assert backlog._missing == {"q": 3}
    backlog.end_at(7)
    consuming(connection, Store(next=7), state)
    assert backlog.row == 7
    consuming(connection, Store(next=6), state)
    assert backlog._missing == {"q": 3}


# --- too many bytes ---------------------------------------------------------------------------------------


def test_store_on_disk_takes_messages_beyond_its_room_before_window_narrows(connection):
    store, state = Store(room=1), ConsumerState()
    found = consuming(connection, store, state)
    connection.deliver(bytes(98))
    found.flush()
    connection.calls.clear()
    connection.deliver(*[bytes(298)] * 3)
    found.flush()
    assert store.next == 1
    connection.deliver(bytes(298))
    text = r"about 300 bytes: the prefetch window is 3 instead of 8 from now on"
    with pytest.raises(WindowTooWide, match=text):
        found.flush()
    assert state.window == 3
    assert store.segments[1:] == [[bytes(298)] * 3, [bytes(298)]]
    assert [call[1:] for call in connection.calls] == [
        ("ack", 4, "multiple"),
        ("ack", 5, "multiple"),
        ("close",),
    ]
    assert store.settlements == [5]


@pytest.mark.parametrize(("mode", "acked"), [("commit", 1), ("none", 2)])
def test_store_in_memory_leaves_unacknowledged_messages_to_next_channel_when_window_narrows(
    connection, mode, acked
):
    store = Store(room=2, on_disk=False, acks_on_arrival=mode == "none", least_window=2)
    state = ConsumerState()
    found = consuming(connection, store, state, **in_memory(mode))
    connection.deliver(b"0", b"1")
    found.flush()
    store.committed = 1
    found.run_due_work()
    connection.deliver(*[bytes(498)] * 2)
    with pytest.raises(WindowTooWide, match="the prefetch window is 2 instead of 8 from now on"):
        found.flush()
    assert (store.next, state.window) == (2, 2)
    assert acks(connection) == [acked]
    assert connection.calls[-1][1:] == ("close",)
    assert store.settlements == [2]


def test_window_narrows_also_while_a_backlog_is_counted_and_everything_is_acknowledged_first(connection):
    store = Store(room=0)
    found = consuming(connection, store)
    connection.answering = lambda: connection.deliver(bytes(998))
    with pytest.raises(WindowTooWide):
        found.ask(Backlog())
    assert [call[1:] for call in connection.calls] == [
        ("count", "q"),
        ("qos", 8),
        ("ack", 1, "multiple"),
        ("close",),
    ]
    assert (store.next, store.settlements) == (1, [1])


def test_the_smaller_window_depends_on_queues_and_sizes(connection):
    with cases() as case:
        for queues, sizes, window, expected in [
            ("q", [500, 500], "8", 2),
            ("q", [250] * 4, "8", 4),
            ("q", [200] * 5, "8", 4),
            ("q,r", [250] * 4, "8", 2),
            ("q", [1000], "8", 1),
            ("q", [1000], "2", 1),
            ("q", [2000], "9", 1),
            ("q", [1000], "1", None),
            ("q", [999], "8", None),
        ]:
            with case(queues, sizes, window):
                store, state = Store(room=0), ConsumerState()
                found = consuming(connection, store, state, queue=queues, prefetch=window)
                connection.deliver(*(bytes(size - 2) for size in sizes))
                if expected is None:
                    found.flush()
                else:
                    with pytest.raises(WindowTooWide):
                        found.flush()
                assert state.window == expected
                assert store.next == (0 if expected is None else len(sizes))


def test_at_the_end_of_a_channel_the_window_stays(connection):
    store, state = Store(room=0), ConsumerState()
    found = consuming(connection, store, state)
    connection.deliver(bytes(2000))
    found.flush(at_end=True)
    assert (store.next, state.window) == (0, None)
