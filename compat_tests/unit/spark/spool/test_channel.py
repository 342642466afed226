"""A consuming channel, between a broker and a store that the test plays."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.links import Link
from fakeamqp.spark.errors import ConnectionLost, QueueRefused
from fakeamqp.spark.options import read_options
from fakeamqp.spark.spool import channel as channels
from fakeamqp.spark.spool.backlog import Backlog
from fakeamqp.spark.spool.channel import ConsumingChannel, SharedState, SpoolStatus, WindowTooWide

PASSIVE = "passive"


class Store:
    """Keeps the bodies of its segments. It is full where it has `room` rows, which Spark has not taken."""

    def __init__(self, **more):
        self.acks_on_arrival = True
        self.on_disk = True
        self.least_window = 1
        self.shows_when_settled = False
        self.settle_wanted = False
        self.committed_tag = 0
        self.next = 0
        self.room = 1000
        self.segments = []
        self.settlements = []
        self.channels = 0
        self.ids = set()
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
        self.settle_wanted = False

    def known(self, queue, message_id):
        return (queue, message_id) in self.ids


@pytest.fixture
def link(monkeypatch):
    link = Link()
    monkeypatch.setattr(channels, "time", link)
    monkeypatch.setattr(
        channels, "check_is_no_stream", lambda *given: link.calls.append(("no stream?", given[1]))
    )
    return link


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


def consuming(link, store, shared=None, **more):
    given = {**GIVEN, **more}
    if "ackMode" in given:
        given = {key: each for key, each in given.items() if not key.startswith("spool")}
    found = ConsumingChannel(link, read_options(given), store, shared or SharedState())
    link.calls.clear()
    return found


def acks(link):
    return [call[2] for call in link.calls if call[1] == "basic_ack"]


def test_each_queue_is_checked_and_consumed_with_the_window(link):
    store, shared = Store(), SharedState()
    given = read_options({**GIVEN, "queue": "a,b"})
    ConsumingChannel(link, given, store, shared)
    assert link.calls == [
        ("no stream?", "a"),
        (1, "queue_declare", "a", PASSIVE),
        ("no stream?", "b"),
        (1, "queue_declare", "b", PASSIVE),
        (1, "basic_qos", 8),
        (1, "consume", "a"),
        (1, "consume", "b"),
    ]
    assert store.channels == 1
    shared.window = 5
    ConsumingChannel(link, given, store, shared)
    assert (2, "basic_qos", 5) in link.calls


@pytest.mark.parametrize(("is_open", "kind"), [(True, QueueRefused), (False, ConnectionLost)])
@pytest.mark.parametrize("when", ["declare", "consume"])
def test_the_error_names_the_refused_queue(link, is_open, kind, when):
    error = ConnectionLost("404 NOT_FOUND")

    class Closed(Link):
        def channel(self):
            found = super().channel()
            found.connection.is_open = is_open
            return found

    link.__class__ = Closed
    if when == "declare":
        link.ready = [error]
    else:
        link.refuses = {"q": "404 NOT_FOUND"}
    with pytest.raises(ConnectionLost, match="cannot consume from queue 'q': 404 NOT_FOUND") as caught:
        consuming(link, Store())
    assert type(caught.value) is kind


def test_a_consumer_that_the_broker_cancels_ends_the_channel(link):
    consuming(link, Store())
    link.channels[0].cancelled(None)
    assert link.lost == "the broker cancelled a consumer; was its queue deleted?"
    link.lost = "maintenance"
    link.channels[0].cancelled(None)
    assert link.lost == "maintenance"


def test_messages_are_stored_when_there_are_enough_or_after_a_while(link):
    """And acknowledged once they are stored."""
    store, shared = Store(), SharedState()
    found = consuming(link, store, shared)
    assert found.idle_limit() is None
    link.deliver(b"0", b"1")
    found.run_due_work()
    assert (store.segments, acks(link)) == ([], [])
    assert (shared.arrived, shared.unacknowledged, shared.held) == (2, 2, 2)
    assert found.idle_limit() == 2.0
    link.now += 0.5
    assert found.idle_limit() == 1.5
    link.deliver(b"2")
    found.run_due_work()
    assert (store.segments, acks(link)) == ([[b"0", b"1", b"2"]], [3])
    assert found.idle_limit() is None
    assert (shared.unacknowledged, shared.held) == (0, 0)
    link.deliver(b"3")
    found.run_due_work()
    link.now += 1.99
    found.run_due_work()
    assert len(store.segments) == 1
    link.now += 0.01
    assert found.idle_limit() == pytest.approx(0.0, abs=1e-6)
    link.now += 5.0
    assert found.idle_limit() == 0.0
    found.run_due_work()
    assert (store.segments[1:], acks(link)) == ([[b"3"]], [3, 4])
    link.deliver(b"x" * 998)  # With two bytes of properties as large as prefetchBytes.
    found.run_due_work()
    assert len(store.segments) == 3
    link.deliver(*[b"%d" % number for number in range(7)])
    found.flush()
    assert [len(each) for each in store.segments[3:]] == [3, 3, 1]
    assert acks(link)[3:] == [8, 11, 12]


def test_half_of_a_small_window_is_stored_at_once(link):
    for window, rows in (("4", 2), ("1", 1), ("100", 3)):
        store = Store()
        found = consuming(link, store, prefetch=window)
        for number in range(rows):
            assert store.segments == []
            link.deliver(b"%d" % number)
            found.run_due_work()
        assert [len(each) for each in store.segments] == [rows]


def test_segments_are_split_at_byte_limit(link, monkeypatch):
    monkeypatch.setattr(channels, "_SEGMENT_OCTETS", 10)
    store = Store()
    found = consuming(link, store)
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
                link.deliver(*(bytes(size) for size in sizes))
                found.flush()
                assert [len(each) for each in store.segments] == expected


def test_messages_of_a_store_that_waits_for_spark_are_acknowledged_with_its_word(link):
    store, shared = Store(acks_on_arrival=False, on_disk=False), SharedState()
    found = consuming(link, store, shared, ackMode="commit")
    link.deliver(b"0", b"1", b"2", b"3")
    found.run_due_work()
    assert (store.next, acks(link), shared.unacknowledged, shared.held) == (4, [], 4, 0)
    store.committed_tag = 3
    found.run_due_work()
    found.run_due_work()
    assert (acks(link), shared.unacknowledged) == ([3], 1)
    assert (1, "basic_ack", 3, "multiple") in link.calls


def test_a_full_store_leaves_messages_in_memory(link):
    store, shared = Store(room=3), SharedState()
    found = consuming(link, store, shared)
    link.deliver(*[b"%d" % number for number in range(5)])
    found.flush()
    assert (store.next, acks(link), shared.unacknowledged, shared.held) == (3, [3], 2, 2)
    link.deliver(b"5")
    found.run_due_work()
    assert found.idle_limit() is None  # Until Spark takes some.
    shared.unlimited = True
    found.flush()
    assert (store.next, acks(link)) == (6, [3, 6])


def test_messages_that_the_store_has_already_are_dropped(link, caplog):
    caplog.set_level("INFO", "fakeamqp.spark")
    store, shared = Store(ids={("q", "a")}), SharedState(backlog=Backlog())
    found = consuming(link, store, shared)
    assert shared.backlog is not None
    shared.backlog.expect({"q": 5}, 0)
    known, unknown = {"message_id": "a"}, {"message_id": "b"}
    link.deliver(b"0", properties=known)
    link.deliver(b"1", properties=unknown, redelivered=True)
    link.deliver(b"2", redelivered=True)
    found.run_due_work()
    assert (shared.arrived, shared.redelivered, shared.unacknowledged) == (3, 2, 0)
    assert store.segments == [[b"0", b"1", b"2"]]
    link.deliver(b"3", properties=known, redelivered=True)
    assert (shared.arrived, shared.redelivered) == (4, 3)
    found.flush()
    assert acks(link)[-1] == 4
    link.deliver(b"3", properties=known, redelivered=True)
    assert shared.backlog.row == 3
    assert len(store.segments) == 1
    found.run_due_work()
    assert acks(link)[-1] == 4
    link.now += 2.0
    found.run_due_work()
    assert acks(link)[-1] == 5
    assert caplog.text.count("dropped 1 redelivered messages that the spool has already") == 2
    found.flush()
    assert caplog.text.count("dropped") == 2
    elsewhere = Store(ids={("q", "a")})
    found = consuming(link, elsewhere, queue="q,r")
    link.deliver(b"4", properties=known, redelivered=True)  # The consumer of r has it.
    found.flush()
    assert elsewhere.segments == [[b"4"]]


def test_status_request_counts_messages_delivered_before_its_answer(link):
    """The answer to a request without effect says that it has processed the acknowledgements before."""
    store, shared = Store(), SharedState()
    found = consuming(link, store, shared, queue="q,r")
    link.ready = [4, 2]
    link.deliver(b"0")
    link.answering = lambda: link.deliver(b"1")
    assert found.ask(None) == SpoolStatus(visible=2, held=0, ready=6, arrived=2)
    assert [call[1:] for call in link.calls] == [
        ("queue_declare", "q", PASSIVE),
        ("queue_declare", "r", PASSIVE),
        ("basic_qos", 8),
        ("basic_ack", 2, "multiple"),
    ]
    assert store.settlements == [0]
    assert shared.depths == {"q": {"ready": 4, "consumers": 1}, "r": {"ready": 2, "consumers": 1}}
    assert (shared.counted_at, shared.arrived_before) == (1000.0, 1)
    link.answering = lambda: None
    store.settle_wanted = True
    found.run_due_work()
    assert (store.settlements, store.settle_wanted) == ([0, 2], False)
    found.run_due_work()
    assert len(store.settlements) == 2


def test_rows_visible_only_when_settled_are_acknowledged_before_barrier_request(link):
    store = Store(shows_when_settled=True, on_disk=False)
    found = consuming(link, store, ackMode="none")
    link.deliver(b"0")
    assert found.ask(None).visible == 1
    assert store.settlements == [1]
    assert [call[1] for call in link.calls] == ["queue_declare", "basic_ack", "basic_qos"]


def test_much_that_comes_before_an_answer_is_stored_meanwhile(link):
    store = Store()
    found = consuming(link, store)
    sizes = []

    def arrive():
        link.deliver(bytes(600))
        sizes.append(store.next)

    late = []

    def qos(*, prefetch_count, callback):
        late.append(callback)

    link.channels[0].basic_qos = qos
    link.turns = [arrive, arrive, arrive, lambda: late[0](None)]
    assert found.ask(None).visible == 3
    assert sizes == [0, 0, 2]
    link.channels[0].basic_qos = lambda **_: None
    with pytest.raises(ConnectionLost, match="did not answer <lambda> within 5 s"):
        found.ask(None)
    link.lost = "maintenance"
    with pytest.raises(ConnectionLost, match="maintenance"):
        found.count()


# --- backlogs ---------------------------------------------------------------------------------------------


def test_backlog_is_counted_again_if_messages_arrive_during_count(link):
    """Messages that arrive during a count may be in it or not."""
    store, shared = Store(), SharedState()
    found = consuming(link, store, shared)
    link.deliver(b"0")
    link.ready = [5, 4, 3]
    # As large as prefetchBytes, so that it is stored at once.
    link.answering = lambda: link.deliver(bytes(998)) if link.ready[0] > 3 else None
    backlog = shared.backlog = Backlog()
    status = found.ask(backlog)
    assert (store.next, status.ready, status.visible) == (2, 4, 2)
    assert backlog._missing == {"q": 4}
    assert backlog.pending
    # No acknowledgement while it is counted, so that the broker sends no more.
    assert [call[1] for call in link.calls] == [
        *(["queue_declare", "basic_qos"] * 2),
        "basic_qos",
        "basic_ack",
    ]
    link.answering = lambda: None
    link.deliver(b"2", b"3", b"4", b"5", b"6", b"7")
    found.flush()
    assert backlog.row == 6
    assert store.next == 6  # What came later is left to the broker.
    assert found.idle_limit() is None
    shared.backlog = None
    found.flush()
    assert store.next == 8


def test_a_backlog_of_empty_queues_is_known_at_once(link):
    store, shared = Store(), SharedState()
    found = consuming(link, store, shared)
    link.answering = lambda: link.deliver(b"x") if store.next + len(found._buffer) < 3 else None
    backlog = shared.backlog = Backlog()
    found.ask(backlog)
    assert backlog.row == 1
    assert [call[1] for call in link.calls].count("queue_declare") == 1


def test_a_new_channel_counts_a_backlog_again(link):
    backlog = Backlog()
    backlog.expect({"q": 2}, 0)
    link.ready = [0, 3]
    shared = SharedState(backlog=backlog)
    consuming(link, Store(), shared)
    assert backlog._missing == {"q": 3}
    backlog.end_at(7)
    consuming(link, Store(next=7), shared)
    assert backlog.row == 7
    consuming(link, Store(next=6), shared)
    assert backlog.row is None or backlog._missing == {"q": 3}


# --- too many bytes ---------------------------------------------------------------------------------------


def test_a_store_keeps_messages_beyond_its_room_and_narrows_the_window(link):
    store, shared = Store(room=1), SharedState()
    found = consuming(link, store, shared)
    link.deliver(bytes(98))
    found.flush()
    link.calls.clear()
    link.deliver(*[bytes(298)] * 3)
    found.flush()
    assert store.next == 1
    link.deliver(bytes(298))
    text = r"about 300 bytes: the prefetch window is 3 instead of 8 from now on"
    with pytest.raises(WindowTooWide, match=text):
        found.flush()
    assert shared.window == 3
    assert store.segments[1:] == [[bytes(298)] * 3, [bytes(298)]]
    assert [call[1:] for call in link.calls] == [
        ("basic_ack", 4, "multiple"),
        ("basic_ack", 5, "multiple"),
        ("discard",),
        ("basic_qos", 3),
    ]
    assert store.settlements == [5]


def test_the_smaller_window_depends_on_queues_and_sizes(link):
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
                store, shared = Store(room=0), SharedState()
                found = consuming(link, store, shared, queue=queues, prefetch=window)
                link.deliver(*(bytes(size - 2) for size in sizes))
                if expected is None:
                    found.flush()
                else:
                    with pytest.raises(WindowTooWide):
                        found.flush()
                assert shared.window == expected
                assert store.next == (0 if expected is None else len(sizes))


def test_at_the_end_of_a_channel_the_window_stays(link):
    store, shared = Store(room=0), SharedState()
    found = consuming(link, store, shared)
    link.deliver(bytes(2000))
    found.flush(at_end=True)
    assert (store.next, shared.window) == (0, None)


def test_full_memory_store_requeues_surplus_messages_and_narrows_prefetch_window(link, caplog):
    """The same channel goes on with other consumers, once the queue has the messages."""
    store = Store(room=1, on_disk=False, acks_on_arrival=False, least_window=2)
    shared = SharedState()
    found = consuming(link, store, shared, ackMode="commit")
    link.deliver(b"0")
    found.flush()
    link.calls.clear()
    link.deliver(*[bytes(598)] * 2)
    found.flush()  # Only noted until the broker has sent what it has.
    assert link.calls == [(1, "redirect", "q 1")]
    link.deliver(b"3", b"4")
    assert [each[:5] for each in found._surplus] == [(tag, False, b"", b"", b"") for tag in (4, 5)]
    assert [each.offset for each in found._surplus] == [3, 4]
    assert (shared.arrived, found._next_offset) == (5, 5)
    link.ready = [1, 3, 4]
    backlog = shared.backlog = Backlog()
    backlog.expect({"q": 3}, 3)
    link.calls.clear()
    found.run_due_work()
    assert [call[1:] for call in link.calls] == [
        ("redirect", "q 1"),
        ("basic_cancel", "q 1"),
        ("basic_qos", 2),
        *(("basic_nack", tag, "requeue") for tag in (2, 3, 4, 5)),
        *([("queue_declare", "q", PASSIVE)] * 3),
        ("basic_qos", 2),
        ("consume", "q"),
    ]
    assert link.pauses == [0.01, 0.01]
    assert backlog._missing == {"q": 5}
    assert (shared.window, shared.unacknowledged, shared.held) == (2, 1, 0)
    assert "about 600 bytes: the prefetch window is 2 instead of 8 from now on" in caplog.text
    # Messages come again, and the room of Spark lets them in.
    store.room = 99
    shared.backlog = None
    link.channels[0].tag = 5
    link.deliver(b"1", b"2")
    found.run_due_work()
    assert store.segments == [[b"0"], [b"1"], [b"2"]] or store.segments == [[b"0"], [b"1", b"2"]]
    assert (shared.unacknowledged, shared.held) == (3, 0)
    store.committed_tag = 7
    found.run_due_work()
    assert (acks(link), shared.unacknowledged) == ([7], 0)


def test_returned_messages_are_waited_for_a_second(link):
    store = Store(room=0, on_disk=False, acks_on_arrival=False)
    found = consuming(link, store, ackMode="commit")
    link.deliver(bytes(1000))
    found.flush()
    link.deliver(b"1")
    link.ready = [1]
    found.flush()
    assert link.now == pytest.approx(1001.0, abs=0.02)


def test_surplus_messages_are_kept_until_backlog_count_ends(link):
    """Messages that return meanwhile would be missing from the count, or counted twice."""
    store = Store(room=0, on_disk=False, acks_on_arrival=False)
    found = consuming(link, store, ackMode="commit")
    found._counting = True
    link.deliver(bytes(1000))
    found.flush()
    link.deliver(b"1")
    found.flush()
    assert found._surplus
    found._counting = False
    found.flush(at_end=True)
    assert found._surplus
    link.ready = [2]
    found.flush()
    assert not found._surplus
