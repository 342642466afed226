from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.unit.trace.pages import Row, data_of, elements_of, rows_of
from compat_tests.unit.trace.recordings import EVENTS
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, ModelEvent, Recorder, Trace
from fakeamqp.trace.html.rows import KINDS, Queues, is_problem, kind_of
from fakeamqp.trace.truncation import Truncated

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "<img src=x onerror=alert(1)>",
    "\"'><b>&amp;${title}$data",
    "]]>\u2028\u2029\u202e\0",
    "\udcff",
]


def frame(method: Method, direction: Any = "received", channel: int = 1, alias: str = "c1") -> FrameEvent:
    return FrameEvent(0.5, f"peer {alias}", alias, direction, 1, channel, method.encode())


def header(size: int, direction: Any = "received", channel: int = 1, **properties: Any) -> FrameEvent:
    payload = CONTENT_HEADER.pack(60, 0, size) + BasicProperties(**properties).encode()
    return FrameEvent(0.5, "peer c1", "c1", direction, 2, channel, payload)


def body(octets: bytes, direction: Any = "received", channel: int = 1) -> FrameEvent:
    return FrameEvent(0.5, "peer c1", "c1", direction, 3, channel, octets)


def published(**outcome: Any) -> ModelEvent:
    return ModelEvent(0.5, None, "", "published", {"outcome": SimpleNamespace(**outcome)})


def page(*events: Event, **options: Any) -> str:
    return Trace.of(events, **options).html()


def rows(*events: Event) -> list[Row]:
    return rows_of(page(*events))


PUBLISH = m.BasicPublish(exchange="events", routing_key="order.placed")


class TestRows:
    def test_publish_with_its_content_is_a_single_row(self):
        [row] = rows(frame(PUBLISH), header(10, message_id="m1"), body(b"two "), body(b"apples"))
        assert (row.kind, row.name, row.direction, row.channel) == ("method", "basic.publish", 0, 1)
        assert row.events == [0, 1, 2, 3]
        assert row.text == "exchange='events' routing_key='order.placed'"
        assert row.properties == [(0, "message_id", "m1", "s")]
        assert (row.body, row.size) == ("two apples", 10)

    def test_contents_on_two_channels_do_not_mix(self):
        first, second = rows(
            frame(PUBLISH, channel=1),
            frame(PUBLISH, channel=2),
            header(3, channel=2),
            header(3, channel=1),
            body(b"one", channel=1),
            body(b"two", channel=2),
        )
        assert (first.events, first.body) == ([0, 3, 4], "one")
        assert (second.events, second.body) == ([1, 2, 5], "two")

    def test_event_between_the_frames_of_a_content_has_its_own_row(self):
        published = ModelEvent(0.5, None, "", "alarm", {"reason": "memory"})
        names = [row.name for row in rows(frame(PUBLISH), header(1), published, body(b"x"))]
        assert names == ["basic.publish", "alarm"]

    def test_publish_with_an_empty_body_has_size_zero(self):
        [row] = rows(frame(PUBLISH), header(0))
        assert (row.events, row.body, row.size) == ([0, 1], None, 0)

    def test_incomplete_content_shows_the_received_part_of_its_body(self):
        [row] = rows(frame(PUBLISH), header(10), body(b"two"))
        assert (row.body, row.size) == ("two", 10)

    @pytest.mark.parametrize(
        "events",
        [
            [header(1)],
            [body(b"x")],
            [frame(m.QueueDeclare(queue="q")), body(b"x")],
            [frame(PUBLISH), body(b"x")],
            [frame(PUBLISH), header(1), header(1)],
            [frame(PUBLISH), header(1), body(b"xx")],
            [FrameEvent(0, "a", "c1", "received", 1, 1, b"\xff\xff\xff\xff")],
            [FrameEvent(0, "a", "c1", "received", 77, 1, b"x")],
        ],
    )
    def test_unexpected_frame_has_its_own_row_marked_as_a_problem(self, events: list[Event]):
        last = rows(*events)[-1]
        assert (last.kind, last.problem, last.events) == ("frame", True, [len(events) - 1])

    def test_binary_body_is_kept_byte_by_byte(self):
        octets = bytes(range(256))
        [row] = rows(frame(PUBLISH), header(256), body(octets))
        assert row.body == octets

    def test_truncated_body_shows_only_its_beginning(self):
        cut = Truncated("grün".encode() * 3000, 4098)  # in the middle of a character
        [row] = rows(frame(PUBLISH), header(20_000), body(cut), body(b"the end " * 625))
        assert row.body == ("grün" * 820)[: len(row.body or "")]
        assert len(str(row.body).encode()) == 4097
        assert row.size == 20_000

    def test_body_is_cut_after_16384_bytes(self):
        [row] = rows(frame(PUBLISH), header(40_000), *(body(b"x" * 4000) for _ in range(10)))
        assert (len(row.body or ""), row.size, len(row.events)) == (16_384, 40_000, 12)

    def test_nested_tables_are_shown_down_to_the_last_value(self):
        table = {"a": [1, {"b": True}], "x": b"\xff\x00", "when": Timestamp(0), "none": None, "utf": b"abc"}
        [row] = rows(frame(m.QueueDeclare(queue="q", arguments=table)))
        arguments = row.fields[[field[1] for field in row.fields].index("arguments") :]
        assert arguments == [
            (0, "arguments", "table of 5", "t"),
            (1, "a", "array of 2", "t"),
            (2, "[0]", "1", "n"),
            (2, "[1]", "table of 1", "t"),
            (3, "b", "true", "b"),
            (1, "x", "ff00", "x"),
            (1, "when", "0 (1970-01-01 00:00:00 UTC)", "n"),
            (1, "none", "void", "z"),
            (1, "utf", "abc", "s"),
        ]

    def test_table_is_cut_after_500_entries(self):
        [row] = rows(frame(m.QueueDeclare(queue="q", arguments={str(n): n for n in range(2000)})))
        assert row.fields[-1] == (0, "...", "only the first 500 are shown", "h")

    def test_rows_have_the_kind_of_their_event(self):
        found = rows(
            ConnectionEvent(0, "a", "c1", "connected", ""),
            ConnectionEvent(0, "a", "c1", "fault", "the confirm was lost"),
            FrameEvent(0, "a", "c1", "sent", 8, 0, b""),
            ModelEvent(0, None, "", "renamed", {"queue": "q"}),
        )
        assert [row.kind for row in found] == ["connection", "fault", "heartbeat", "model"]
        assert [row.problem for row in found] == [False, True, False, False]
        assert found[1].text == "the confirm was lost"

    def test_successive_heartbeats_of_a_connection_share_a_row(self):
        def heartbeat(time: float, client: str, direction: str) -> FrameEvent:
            return FrameEvent(time, client, client, direction, 8, 0, b"")  # type: ignore[arg-type]

        found = rows(
            *(
                heartbeat(30.0 * number, client, direction)
                for number in range(17)
                for client, direction in (("c1", "sent"), ("c1", "received"), ("c2", "received"))
            ),
            frame(PUBLISH),
            heartbeat(600.0, "c1", "sent"),
        )
        assert [(row.connection, row.direction, row.name, row.text) for row in found] == [
            ("c1", 1, "heartbeat", "17 heartbeats until 480.000"),
            ("c1", 0, "heartbeat", "17 heartbeats until 480.000"),
            ("c2", 0, "heartbeat", "17 heartbeats until 480.000"),
            ("c1", 0, "basic.publish", found[3].text),
            ("c1", 1, "heartbeat", ""),
        ]
        assert found[0].events == [3 * number for number in range(17)]

    def test_rows_of_a_virtual_clock_have_real_time(self):
        heartbeat = FrameEvent(60.0, "a", "c1", "sent", 8, 0, b"", real_time=0.25)
        opened = ConnectionEvent(0, "a", "c1", "connected", "")
        data = data_of(Trace.of([opened, heartbeat]).html())
        assert [row[14] for row in data["rows"]] == [None, 0.25]

    def test_text_of_a_message_event_begins_with_its_outcome_or_queue(self):
        message = SimpleNamespace(body=b"two apples", exchange="e", routing_key="k", publisher=None)
        outcome = "routed to orders"
        published, dropped, noticed = rows(
            ModelEvent(
                0, None, "", "published", {"message": message, "outcome": outcome, "virtual_host": "/"}
            ),
            ModelEvent(0, None, "", "dropped", {"message": message, "queue": "orders", "reason": "expired"}),
            ModelEvent(
                0, None, "", "noticed", {"message": message, "queue": "orders", "by": 7, "virtual_host": "/"}
            ),
        )
        assert noticed.text == "queue 'orders' by=7 message b'two apples'"
        assert published.text == "routed to orders: message with exchange='e' routing_key='k'"
        assert dropped.text == "from queue 'orders' because it had expired: message b'two apples'"
        assert (dropped.queues, dropped.body, dropped.problem) == (["orders"], "two apples", True)
        assert dropped.field("routing_key") == "k"


class TestQueues:
    def test_rows_of_deliveries_and_settlements_have_their_queue(self):
        deliveries = [
            frame(m.BasicDeliver(consumer_tag=tag, delivery_tag=number), "sent")
            for number, tag in enumerate(("t", "t", "u"), 1)
        ]
        found = rows(
            frame(m.BasicConsume(queue="orders", consumer_tag="t")),
            frame(m.BasicConsumeOk(consumer_tag="t"), "sent"),
            frame(m.BasicConsume(queue="bills")),
            frame(m.BasicConsumeOk(consumer_tag="u"), "sent"),
            *deliveries,
            frame(m.BasicAck(delivery_tag=1)),
            frame(m.BasicNack(delivery_tag=3, multiple=True)),
            frame(m.BasicAck(delivery_tag=3)),
            frame(m.BasicAck(delivery_tag=1), "sent"),
            frame(m.BasicCancel(consumer_tag="u")),
        )
        assert [row.queues for row in found[2:]] == [
            ["bills"],
            ["bills"],
            ["orders"],
            ["orders"],
            ["bills"],
            ["orders"],
            ["orders", "bills"],
            [],
            [],
            ["bills"],
        ]

    def test_rows_with_an_empty_queue_name_have_the_last_declared_queue(self):
        found = rows(
            frame(m.QueueDeclare()),
            frame(m.QueueDeclareOk(queue="generated"), "sent"),
            frame(m.BasicGet()),
            frame(m.BasicGetOk(delivery_tag=1), "sent"),
            frame(m.BasicReject(delivery_tag=1)),
        )
        assert [row.queues for row in found] == [[], *[["generated"]] * 4]

    def test_rows_of_a_publish_have_the_queues_of_its_outcome(self, server: Server, recorder: Recorder):
        client = server.client()
        client.declare("orders")
        client.bind("orders", "amq.topic", "order.*")
        client.publish(b"x", exchange="amq.topic", routing_key="order.placed")
        client.publish(b"y", routing_key="orders")
        found = rows_of(recorder.trace().html())
        assert [row.queues for row in found if row.name == "basic.publish"] == [["orders"], ["orders"]]


class TestHeader:
    def test_data_of_a_page_has_counts_clock_and_connections(self):
        data = data_of(
            page(
                ConnectionEvent(1.0, "a", "c1", "connected", ""),
                frame(
                    m.ConnectionStartOk(client_properties={"connection_name": "billing", "product": "pika"})
                ),
                frame(m.ConnectionOpen(virtual_host="/shop")),
                ConnectionEvent(3.5, "a", "c1", "closed", ""),
                dropped=7,
                clock="virtual",
            )
        )
        assert (data["events"], data["dropped"], data["clock"]) == (4, 7, "virtual")
        assert (data["began"], data["ended"]) == (1.0, 3.5)
        assert data["connections"] == [
            {
                "name": "a",
                "alias": "c1",
                "events": 4,
                "connection_name": "billing",
                "product": "pika",
                "virtual_host": "/shop",
            }
        ]

    def test_connections_are_in_the_order_of_their_short_names(self):
        events = [frame(m.ChannelOpen(), alias=alias) for alias in ("c10", "c2", "c1")]
        text = page(*events)
        assert [one["alias"] for one in data_of(text)["connections"]] == ["c1", "c2", "c10"]
        assert [row.connection for row in rows_of(text)] == ["c10", "c2", "c1"]

    def test_title_of_a_page_is_escaped(self):
        text = Trace.of(()).html(title="test_<b>&")
        assert "<title>test_&lt;b&gt;&amp;</title>" in text
        assert data_of(text)["title"] == "test_<b>&"

    def test_page_of_an_empty_trace_has_no_rows(self):
        data = data_of(page())
        assert (data["events"], data["rows"], data["connections"]) == (0, [], [])


class TestSafety:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_text_of_a_peer_does_not_become_markup(self, text: str):
        plain, hostile = (
            page(
                ConnectionEvent(0, said, "c1", said, said),
                frame(m.ConnectionStartOk(client_properties={"connection_name": said, "product": said})),
                frame(m.QueueDeclare(queue=said, arguments={said: said})),
                frame(m.BasicPublish(exchange=said, routing_key=said)),
                header(len(octets), headers={said: {said: said}}, message_id=said),
                body(octets),
                ModelEvent(0, said, said, said, {said: said, "queue": said}),
            )
            for said in ("event_to_json", text.replace("\0", ""))
            for octets in [said.encode("utf-8", "surrogateescape")]
        )
        assert elements_of(hostile).found == elements_of(plain).found
        assert not elements_of(hostile).comments

    def test_hostile_text_is_kept_in_the_data_of_the_page(self):
        text = HOSTILE[0]
        [row] = rows(frame(m.QueueDeclare(queue=text)))
        assert row.field("queue") == text
        assert row.queues == [text]

    def test_content_security_policy_allows_only_the_script_and_style_of_the_page(self):
        elements = elements_of(page(frame(PUBLISH)))
        [policy] = [
            attributes["content"] or ""
            for attributes, _ in elements.all("meta")
            if attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        allowed = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert allowed["default-src"] == "'none'"
        for tag, rule in (("style", "style-src"), ("script", "script-src")):
            text = elements.all(tag)[-1][1]
            assert (
                allowed[rule]
                == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            )

    def test_page_loads_no_external_resource(self):
        text = page()
        assert not re.search(
            r"https?://|@import|url\(|\b(?:src|srcset|action)=|fetch\(|XMLHttp|innerHTML", text
        )
        assert [attributes.get("href") for attributes, _ in elements_of(text).all("a")] == ["#list"]
        assert not elements_of(text).all("link")

    def test_page_of_a_broker_trace_does_not_show_the_login_response(
        self, server: Server, recorder: Recorder
    ):
        server.client()
        [row] = [row for row in rows_of(recorder.trace().html()) if row.name == "connection.start-ok"]
        assert row.field("response") == "12 bytes, not shown"
        assert "\\u0000guest" not in recorder.trace().html()


class TestEverything:
    @given(EVENTS)
    def test_each_event_is_in_exactly_one_row(self, events: list[Event]):
        text = page(*events)
        text.encode()
        found = rows_of(text)
        assert sorted(number for row in found for number in row.events) == list(range(len(events)))
        for row in found:
            first = events[row.events[0]]
            assert (row.time, row.connection) == (round(first.time, 6), first.alias or first.connection or "")

    def test_row_of_a_publish_has_its_body_and_nested_headers(self, server: Server, recorder: Recorder):
        client = server.client()
        client.declare("orders")
        client.publish(b'{"fruit": "apple"}', routing_key="orders", headers={"shop": {"town": "Ulm"}})
        [publish] = [row for row in rows_of(recorder.trace().html()) if row.name == "basic.publish"]
        assert publish.body == '{"fruit": "apple"}'
        assert (2, "town", "Ulm", "s") in (publish.properties or [])

    def test_repeated_bodies_are_written_once(self):
        events: list[Event] = []
        for number in range(2500):
            events += [
                frame(m.BasicPublish(routing_key="orders")),
                header(200, message_id=f"message-{number}"),
                body(b"x" * 200),
                frame(m.BasicAck(delivery_tag=number), "sent"),
            ]
        text = page(*events)
        assert text.count("x" * 200) == 1
        assert len(text) < 1_500_000

    def test_a_loaded_recording_gives_the_same_page(self, server: Server, recorder: Recorder, tmp_path: Path):
        client = server.client(client_properties={"product": "raw"})
        client.declare("orders", arguments={"x-max-length": 1})
        for octets in (b"two apples", b"\xff" * 5000, b"pears"):
            client.publish(octets, routing_key="orders", headers={"shop": [1, None, {"town": b"Ulm"}]})
        client.send(m.BasicGet(queue="missing"))
        trace = recorder.trace()
        trace.jsonl(tmp_path / "trace.jsonl")
        assert Trace.load(tmp_path / "trace.jsonl").html() == trace.html()

    def test_page_is_written_to_the_given_path(self, tmp_path: Path):
        path = tmp_path / "trace.html"
        text = Trace.of([frame(m.QueueDeclare(queue="grün"))]).html(path, title="grün")
        assert path.read_bytes().decode() == text


def test_model_events_have_the_kind_model():
    event = ModelEvent(0.0, None, "", "queue declared", {})
    assert KINDS[kind_of(event)] == "model"


@pytest.mark.parametrize(
    ("event", "is_one"),
    [
        (frame(m.BasicNack(), "sent"), True),
        (frame(m.BasicNack(), "received"), False),
        (frame(m.BasicCancel(), "sent"), True),
        (frame(m.BasicCancel(), "received"), False),
        (frame(m.BasicAck(), "sent"), False),
        (frame(m.ChannelClose(reply_code=404), "received"), True),
        (frame(m.ChannelClose(reply_code=200), "sent"), False),
        (frame(m.ConnectionClose(reply_code=0), "sent"), False),
        (header(1, "sent"), False),
        (frame(m.ConnectionClose(reply_code=320), "sent"), True),
        (frame(m.ConnectionClose(reply_code=200), "received"), False),
        (frame(m.BasicReturn(reply_code=312), "sent"), True),
        (FrameEvent(0.0, "a", "c1", "sent", 9, 0, b""), True),
        (ConnectionEvent(0.0, "a", "c1", "fault", ""), True),
        (ConnectionEvent(0.0, "a", "c1", "lost", ""), True),
        (ConnectionEvent(0.0, "a", "c1", "connected", ""), False),
        (ConnectionEvent(0.0, "a", "c1", "closed", ""), False),
        (published(queues=(), refused=()), True),
        (published(queues=("q",), refused=("q",)), True),
        (published(queues=("q",), refused=()), False),
        (published(queues=(), refused=(), delays=("e",)), False),
    ],
)
def test_problems_are_refusals_of_the_broker_losses_and_closes_with_an_error(event: Event, is_one: bool):
    assert is_problem(event) is is_one
    [row] = rows(event)
    assert row.problem is (is_one or row.kind == "frame")


def test_outcomes_of_publishes_to_the_same_address_go_to_their_rows_in_order():
    queues = Queues()
    first, second = [1], [2]
    publish = m.BasicPublish(exchange="x", routing_key="k")
    for row in (first, second):
        queues.published((1, 1, 0), publish, row)
    message = SimpleNamespace(exchange="x", routing_key="k")
    assert [queues.outcome(1, message) for _ in range(3)] == [first, second, None]
