"""The inspector without a browser: who may use it, what it tells, and what it does."""

from __future__ import annotations

import json
import logging
import threading
from base64 import b64encode
from typing import Any

import pika
import pytest

from compat_tests.management.control_client import ControlClient, Refusal
from compat_tests.management.inspector_client import Page, inspector_of
from fakeamqp import Broker, Proxy
from fakeamqp.management.inspector import app, details, snapshot as snapshots

JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream looks at the broker more often than it does for a page."""
    monkeypatch.setattr(app, "_PERIOD", 0.01)
    monkeypatch.setattr(app, "_SHARE", 1.0)


@pytest.fixture
def page(broker: Broker) -> Page:
    return Page.of(broker)


def queue(name: str) -> str:
    return f"1:/{name}"


# --- who may use it, and from where ---------------------------------------------------------------------


def basic(name: str, password: str) -> dict[str, str]:
    return {**JSON, "authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize("name", ["", "page.css", "page.js"])
def test_page_needs_no_login_and_contains_no_data(page: Page, broker: Broker, name: str):
    broker.admin.add_user("carla", "secret")
    status, headers, body = page.send("GET", name)
    assert status == 200
    assert b"carla" not in body and page.token.encode() not in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_address_without_a_path_redirects_to_the_page(broker: Broker):
    page = Page(broker.admin.inspector_url.replace("/inspector/", "/"))
    assert page.send("GET", "")[1]["location"].endswith("/inspector/")
    assert page.send("GET", "inspector")[1]["location"].endswith("/inspector/")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Basic !"}, 401),
        (basic("guest", "wrong"), 401),
        (basic("nobody", ""), 401),
        (basic("carla", "secret"), 403),
        (basic("guest", "guest"), 200),
    ],
)
def test_events_and_questions_need_the_token_or_an_administrator(
    page: Page, broker: Broker, headers: dict[str, str], status: int
):
    broker.admin.add_user("carla", "secret", tags=["management"])
    for method, path in (("GET", "events"), ("POST", "ask/fault-offers"), ("POST", "ask/end-hold")):
        if status == 200 and path != "ask/fault-offers":
            continue
        found, answer_headers, body = page.send(method, path, b"{}", {**JSON, **headers})
        assert found == status, (path, body)
        # A browser that remembered a login would send it with requests of other sites.
        assert "www-authenticate" not in answer_headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost.evil.example:80"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"host": "localhost:1234"}, 200),
        ({"host": "[::1]:1234"}, 200),
        ({"host": "192.168.1.7"}, 200),
        ({"host": "app.localhost"}, 200),
    ],
)
def test_requests_of_other_sites_are_refused_even_with_the_token(
    page: Page, headers: dict[str, str], status: int
):
    sent = {**page.headers, **headers}
    found, answer_headers, _ = page.send("POST", "ask/fault-offers", b"{}", sent)
    assert found == status
    assert "access-control-allow-origin" not in answer_headers
    # A link on another site may lead to the page, which says nothing.
    assert page.send("GET", "", None, sent)[0] == (421 if status == 421 else 200)


def test_request_of_the_own_origin_is_accepted(page: Page):
    own = {"origin": f"http://127.0.0.1:{page.port}", "sec-fetch-site": "same-origin"}
    assert page.send("POST", "ask/fault-offers", b"{}", {**page.headers, **own})[0] == 200


def test_a_name_of_management_hosts_is_accepted_in_any_case_with_a_port():
    with Broker("localhost", management=True, management_hosts=["ci-runner"]) as broker:
        page = Page.of(broker)
        named = {**page.headers, "host": "CI-runner:80"}
        assert page.send("POST", "ask/fault-offers", b"{}", named)[0] == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b"[" * 100_000, {}, 400),
    ],
)
def test_body_other_than_a_json_object_is_refused(
    page: Page, body: bytes, headers: dict[str, str], status: int
):
    assert page.send("POST", "ask/messages", body, {**page.headers, **headers})[0] == status


def test_get_of_a_question_is_refused_with_405(page: Page):
    assert page.send("GET", "ask/messages", None, page.headers)[0] == 405


def test_unknown_question_is_a_404_error(page: Page):
    with pytest.raises(Refusal, match="404 not_found: there is no question 'why'"):
        page.ask("why")


def test_listening_on_all_addresses_logs_a_warning(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    with Broker("0.0.0.0", management=True) as broker:
        assert broker.admin.inspector_url.startswith("http://127.0.0.1:")
        assert "can be reached from other machines" in caplog.text
    caplog.clear()
    with Broker(management=True):
        assert "other machines" not in caplog.text


def test_each_broker_has_a_token_of_its_own_which_a_restart_keeps(broker: Broker):
    address = broker.admin.inspector_url
    broker.restart()
    broker.reset()
    assert broker.admin.inspector_url == address
    with Broker(management=True) as other:
        assert Page.of(other).token != Page.of(broker).token


# --- the event stream -----------------------------------------------------------------------------------


def test_event_stream_begins_with_the_complete_state(page: Page, broker: Broker, channel: Any):
    broker.admin.set_policy("short", "invoices", {"max-length": 9})
    channel.exchange_declare("orders", "topic", arguments={"alternate-exchange": "rest"})
    channel.queue_declare("invoices", arguments={"x-dead-letter-exchange": "dead"})
    channel.queue_bind("invoices", "orders", "order.*")
    channel.queue_bind("invoices", "orders", "x", {"a": 1, "b": "c"})
    channel.basic_qos(prefetch_count=1)
    tag = channel.basic_consume("invoices", print)
    channel.basic_publish("orders", "order.1", b"one")
    channel.basic_publish("orders", "order.2", b"two")
    channel.basic_publish("orders", "nowhere", b"")
    broker.wait_until_idle()
    rule = broker.faults.on("basic.nack", optional=True).drop()
    with page.events() as events:
        assert events.response.getheader("content-type", "").startswith("text/event-stream")
        assert events.response.readline() == b"retry: 1000\n"
        kind, state = events.next()
    assert kind == "state"
    host, port = broker.host, broker.port
    (client,) = broker.connections
    invoices, orders = queue("invoices"), queue("orders")
    assert state["queues"] == {
        invoices: {
            **{"name": "invoices", "virtual_host": "/", "type": "classic", "policy": "short"},
            **{"durable": False, "exclusive": False, "auto_delete": False},
            **{"ready": 1, "unacked": 1, "set_aside": 0, "consumers": 1},
            **{"dead_letter_exchange": "dead", "dead_letter_routing_key": None, "max_length": 9},
        }
    }
    assert state["exchanges"][orders] == {
        **{"name": "orders", "virtual_host": "/", "type": "topic", "durable": False, "internal": False},
        **{"delayed": 0, "alternate_exchange": "rest"},
    }
    assert state["bindings"] == {
        f"queue {len(orders)} {orders} {invoices}": {
            **{"source": orders, "kind": "queue", "destination": invoices},
            **{"keys": ["order.*", "x a=1, b='c'"], "count": 2},
        }
    }
    assert state["consumers"] == {
        f"{invoices} {client.name} 1 {tag}": {
            **{"tag": tag, "queue": invoices, "connection": client.name, "channel": 1},
            **{"no_ack": False, "exclusive": False, "prefetch": 1, "unacked": 1},
        }
    }
    assert state["connections"] == {
        client.name: {
            **{"name": client.name, "alias": "c1", "called": "billing", "user": "guest"},
            **{"client": f"Pika Python Client Library {pika.__version__}", "virtual_host": "/"},
            **{"protocol": "0-9-1", "heartbeat": 60, "blocked": None, "unsent": 0},
            "channels": [
                {"number": 1, "consumers": 1, "unacked": 1, "prefetch": 1, "mode": None, "links": []}
            ],
        }
    }
    [fault] = state["faults"].values()
    assert fault == ControlClient(broker.admin.control_url).get("/faults")[0]
    assert (fault["sentence"], fault["hits"], fault["near_misses"]) == (str(rule), 0, [])
    assert state["broker"] == {
        **{"personality": broker._state.personality.name, "address": f"{host}:{port}", "running": True},
        **{"virtual_hosts": ["/"], "blocked": None, "trace": True, "held": None},
        **{"behind": "", "impossible": [], "failure": None},
        "histories": {"published": 3, "returned": 0, "dead-lettered": 0, "dropped": 1},
    }
    time = state["time"]
    assert [timer for timer in time.pop("timers") if "queue" in timer[1]] == []
    assert time == {
        **{"mode": "virtual", "now": broker._state.clock.now(), "elapsed": 0, "rate": 0.0, "more": 0},
        "offset": round(broker._state.clock.time() - broker._state.clock.now(), 3),
    }
    source = queue("orders")
    assert state["flows"] == {
        f"p{source}": 3, f"u{source}": 1, f"r{len(source)} {source}{queue('invoices')}": 2
    }  # fmt: skip
    names = [line[7] for line in state["timeline"]["lines"]]
    assert names[:2] == ["connected", "connection.start"]
    assert "basic.publish" in names and "content header" not in names
    assert not any("guest" in line[8] and "password" in line[8] for line in state["timeline"]["lines"])


def test_event_stream_sends_each_change_of_the_state(page: Page, broker: Broker):
    with page.events() as events:
        assert events.next()[0] == "state"
        broker.publish(b"lost", routing_key="nowhere")
        assert events.until("flows")["set"] == {f"p{queue('')}": 1, f"u{queue('')}": 1}
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("orders")
        assert events.until("queues", queue("orders"))["ready"] == 0
        broker.publish(b"one", routing_key="orders")
        assert events.until("queues", queue("orders"))["ready"] == 1
        connection.close()
        broker.queue("orders").delete()
        assert events.until("queues")["gone"] == [queue("orders")]
        rule = broker.faults.on("basic.publish", optional=True).drop()
        assert events.until("faults")["set"]
        rule.remove()
        while not events.until("faults")["gone"]:
            pass  # A rule that got its action between two looks.
        broker.clock.advance(5)
        time = None
        while time is None or time["elapsed"] != 5:
            time = events.next()[1].get("time")


def test_timeline_lines_continue_and_start_again_after_a_reset(page: Page, broker: Broker):
    broker.publish(b"before", routing_key="q")
    with page.events() as events:
        first = events.next()[1]["timeline"]
        assert [line[7] for line in first["lines"]] == ["published", "dropped"]
        broker.publish(b"after", routing_key="q")
        second = events.until("timeline")
        assert second["lines"][0][0] == first["next"] and not second["cleared"]
        with broker._engine:  # The stream looks when both have happened.
            broker.reset()
            for _ in range(9):  # More than before: the number of events does not tell that they are others.
                broker.publish(b"anew", routing_key="q")
        third = events.until("timeline")
        assert third["cleared"] and len(third["lines"]) == 18


def test_flow_counts_start_again_after_a_reset(broker: Broker):
    inspector = inspector_of(broker)
    for count in (1, 3, 3, 2):
        for _ in range(count):
            broker.publish(b"", routing_key="q")
        broker.publish(b"", exchange="amq.topic", routing_key="x")
        flows = inspector.snapshot()["flows"]
        assert flows == {
            **{f"p{queue('')}": count, f"p{queue('amq.topic')}": 1},
            **{f"u{queue('')}": count, f"u{queue('amq.topic')}": 1},
        }
        assert inspector.snapshot()["flows"] == flows
        broker.reset()


def test_timeline_sends_the_latest_lines_and_counts_the_skipped_lines(broker: Broker):
    for number in range(50):
        broker.publish(str(number), routing_key="q")
    timeline = inspector_of(broker).timeline
    told = timeline.lines(10, 5)
    assert told is not None
    assert (told["next"], told["skipped"], len(told["lines"])) == (100, 85, 5)
    assert timeline.lines(100, 5) is None


def test_lines_of_the_timeline_are_folded_and_have_real_time_beside_virtual_time():
    with Broker(management=True, clock="virtual") as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.basic_publish("", "nowhere", b"two apples")
        broker.wait_until_idle()
        recorder = broker._recorder
        assert recorder is not None
        name = broker.connections[0].name
        for _ in range(34):
            recorder.frame(name, "sent", 8, 0, b"")
            broker.clock.advance(1)
        lines = inspector_of(broker).timeline.lines(0, 1000)["lines"]
        [publish] = [line for line in lines if line[7] == "basic.publish"]
        assert publish[8] == "exchange='' routing_key='nowhere' body_size=10 body=b'two apples'"
        *_, last = [line for line in lines if line[7] == "heartbeat"]
        assert last[8:12] == [f"{last[10]} heartbeats until {last[11]:.3f}", 0, last[10], last[11]]
        assert last[10] >= 34 and last[11] >= 33
        assert all(0 <= line[12] < 30 for line in lines)
        connection.close()


def test_page_works_without_trace_and_history():
    with Broker(management=True, trace=0, history=0) as broker:
        page = Page.of(broker)
        with page.events() as events:
            state = events.next()[1]
        assert state["timeline"] is None and state["flows"] == {} and state["broker"]["trace"] is False
        assert page.ask("event", serial=0, place=0) is None
        with pytest.raises(Refusal, match="the trace is off"):
            ControlClient(broker.admin.control_url).get("/trace/timeline")


def test_names_and_bodies_with_invalid_utf8_are_shown(page: Page, broker: Broker, channel: Any):
    name = "\udcff\u2028"
    channel.queue_declare("q")
    broker._state.virtual_hosts["/"].queues["q"].name = name
    broker.publish(b"\xff", routing_key="q", headers={"h": b"\xff"})
    with page.events() as events:
        rows = events.next()[1]["queues"]
    assert [row["name"] for row in rows.values()] == [name]
    [found] = page.ask("messages", virtual_host="/", queue="q")["messages"]
    assert (found["body"], found["headers"]) == (["base64", "/w=="], [[0, "h", "ff", "x"]])


def test_a_stop_ends_the_stream_and_leaves_no_thread(capfd: pytest.CaptureFixture[str]):
    threads = set(threading.enumerate())
    with Broker(management=True) as broker:
        events = Page.of(broker).events()
        assert events.next()[0] == "state"
    with events:
        assert b"Traceback" not in events.response.read()
    assert not capfd.readouterr().err
    assert set(threading.enumerate()) <= threads


def test_the_broker_is_not_read_while_no_page_is_open(broker: Broker, page: Page, monkeypatch: Any):
    looks: list[object] = []
    ended = threading.Event()
    stream = app._EventStream.__call__

    async def watched(self: Any, *arguments: Any) -> None:
        await stream(self, *arguments)
        ended.set()

    monkeypatch.setattr(app._EventStream, "__call__", watched)
    monkeypatch.setattr(snapshots, "_broker", lambda of: looks.append(of) or {})
    assert page.ask("fault-offers") and not looks
    with page.events() as events:
        events.next()
        assert looks
        assert not ended.is_set()
    assert ended.wait(20)


def test_snapshot_does_not_wake_an_idle_clock():
    with Broker(management=True, clock="virtual") as broker:
        broker.clock.autojump = 3600.0
        inspector = inspector_of(broker)
        woken: list[None] = []
        broker._engine.stepped.note_activity = lambda: woken.append(None)  # type: ignore[union-attr, method-assign]
        inspector.snapshot()
        inspector.timeline.lines(0, 10)
        assert not woken


def test_changes_between_snapshots_list_set_and_removed_objects():
    before = {"broker": {"a": 1}, "queues": {"x": {"ready": 1}, "y": {"ready": 0}, "z": {"ready": 5}}}
    now = {"broker": {"a": 1}, "queues": {"x": {"ready": 2}, "z": {"ready": 5}, "new": {"ready": 0}}}
    assert snapshots.changes(before, now) == {
        "queues": {"set": {"x": {"ready": 2}, "new": {"ready": 0}}, "gone": ["y"]}
    }
    assert snapshots.changes(now, now) == {}
    assert snapshots.changes(before, {"broker": {"a": 2}}) == {"broker": {"a": 2}}


# --- questions ------------------------------------------------------------------------------------------


def test_messages_of_a_queue_are_sent_in_parts(page: Page, broker: Broker, channel: Any):
    channel.queue_declare("orders")
    for number in range(500):
        broker.publish(str(number), routing_key="orders", headers={"n": number}, content_type="text/plain")
    got = channel.basic_get("orders")
    assert got[2] == b"0"
    part = page.ask("messages", virtual_host="/", queue="orders", start=100, count=3)
    assert (part["total"], part["start"]) == (500, 100)
    assert [each["body"] for each in part["messages"]] == [["text", "101"], ["text", "102"], ["text", "103"]]
    common = {
        **{"exchange": "", "routing_key": "orders", "properties": [[0, "content_type", "text/plain", "s"]]},
        **{"redelivered": False, "expires_in": None, "offset": None, "sections": []},
    }
    numbers = [each.message.number for each in broker._state.published or ()]
    first = part["messages"][0]
    assert first == {
        **{"key": first["key"], "state": "ready", "headers": [[0, "n", "101", "n"]], **common},
        **{"body": ["text", "101"], "shown": 3, "size": 3, "held_for": None, "consumer": None},
        **{"connection": None, "channel": None, "message": numbers[101]},
    }
    broker.clock.advance(7)
    [last] = page.ask("messages", virtual_host="/", queue="orders", start=499)["messages"]
    assert last == {
        **{"key": last["key"], "state": "unacked", "headers": [[0, "n", "0", "n"]], **common},
        **{"body": ["text", "0"], "shown": 1, "size": 1, "held_for": 7, "consumer": None},
        **{"connection": broker.connections[0].name, "channel": 1, "message": numbers[0]},
    }
    assert len(page.ask("messages", virtual_host="/", queue="orders", count=5000)["messages"]) == 200
    assert page.ask("messages", virtual_host="/", queue="orders", start=9999)["messages"] == []


def test_long_body_is_cut_in_the_list_and_whole_on_request(
    page: Page, broker: Broker, channel: Any, monkeypatch: pytest.MonkeyPatch
):
    channel.queue_declare("orders")
    broker.publish(b"first", routing_key="orders")
    broker.publish("ä" * 10_000, routing_key="orders")
    second = page.ask("messages", virtual_host="/", queue="orders")["messages"][1]
    assert (second["size"], second["shown"], len(second["body"][1])) == (20_000, 2048, 1024)
    # The message before it is taken meanwhile, so it is not at its place any more.
    channel.basic_get("orders", auto_ack=True)
    whole = page.ask("message", virtual_host="/", queue="orders", at=1, key=second["key"])
    assert len(whole["body"][1]) == 10_000
    monkeypatch.setattr(details, "_SEARCHED", 0)
    for place, found in ((0, True), (1, False)):
        seen = page.ask("message", virtual_host="/", queue="orders", at=place, key=second["key"])
        assert (seen is not None) is found, "only the place where it was is looked at"
    broker.queue("orders").purge()
    assert page.ask("message", virtual_host="/", queue="orders", at=0, key=second["key"]) is None


def test_messages_of_a_stream_have_offsets(page: Page, broker: Broker, channel: Any):
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    for number in range(3):
        broker.publish(str(number), routing_key="log")
    found = page.ask("messages", virtual_host="/", queue="log")["messages"]
    assert [(each["offset"], each["key"]) for each in found][1] == (1, "offset 1")


def test_connection_of_1_0_shows_its_sessions_and_links(page: Page, broker: Broker):
    proton = pytest.importorskip("proton")
    utils = pytest.importorskip("proton.utils")
    broker.load_definitions({"queues": [{"name": "orders", "vhost": "/", "durable": True}]})
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    sender = connection.create_sender("/queues/orders", name="out")
    sender.send(proton.Message(body=b"x", inferred=True, subject="two", properties={"n": 1}))
    connection.create_receiver("/queues/orders", name="in", credit=3)
    broker.wait_for(lambda: broker.queue("orders").unacked)
    [view] = broker.connections
    assert [(each.name, each.role, each.address, each.queue) for each in view.channels[0].links] == [
        ("out", "sender", "/queues/orders", None),
        ("in", "receiver", "/queues/orders", "orders"),
    ]
    assert "links=2" in repr(view.channels[0])
    snapshot = inspector_of(broker).snapshot()
    [row] = snapshot["connections"].values()
    assert row["protocol"] == "1-0" and row["channels"] == [
        {
            **{"number": 0, "consumers": 1, "unacked": 1, "prefetch": 0, "mode": None},
            "links": [
                ["out", "sender", "/queues/orders", 169, 1],
                ["in", "receiver", "/queues/orders", 2, 1],
            ],
        }
    ]
    [message] = page.ask("messages", virtual_host="/", queue="orders")["messages"]
    assert [0, "properties", "table of 1", "t"] in message["sections"]
    assert [1, "subject", "two", "s"] in message["sections"]
    connection.close()


def test_details_of_a_queue_exchange_or_connection_are_shown(page: Page, broker: Broker, channel: Any):
    channel.exchange_declare("events", "headers", arguments={"alternate-exchange": "rest"})
    channel.queue_declare("orders", arguments={"x-max-length": 7}, exclusive=True)
    channel.queue_bind("orders", "events", "", {"x-match": "any", "kind": "new"})
    broker.admin.set_policy("short", "orders", {"max-length": 5})
    broker.admin.set_policy("most", "orders", {"max-length": 3}, operator=True)
    [name] = [each.name for each in broker.connections]
    bound = [[0, "x-match", "any", "s"], [0, "kind", "new", "s"]]
    assert page.ask("queue", virtual_host="/", name="orders") == {
        "arguments": [[0, "x-max-length", "7", "n"], [0, "x-queue-type", "classic", "s"]],
        "facts": [
            [0, "exclusive to", name, "s"],
            *([0, "policy", "table of 1", "t"], [1, "short", "table of 1", "t"], [2, "max-length", "5", "n"]),
            *(
                [0, "operator policy", "table of 1", "t"],
                [1, "most", "table of 1", "t"],
                [2, "max-length", "3", "n"],
            ),
        ],
        "bindings": [["events", "", bound]],
        "more": 0,
    }
    assert page.ask("exchange", virtual_host="/", name="events") == {
        **{"arguments": [[0, "alternate-exchange", "rest", "s"]], "facts": []},
        **{"bindings": [["queue orders", "", bound]], "more": 0},
    }
    about = page.ask("connection", name=name)
    assert [0, "connection_name", "billing", "s"] in about["properties"]
    assert page.ask("connection", name="nobody") is None
    with pytest.raises(Refusal, match=r"400 NoSuchQueue: there is no queue 'order'.*did you mean 'orders'"):
        page.ask("queue", virtual_host="/", name="order")


def test_an_event_has_its_fields_its_content_and_no_password(page: Page, channel: Any):
    channel.queue_declare("orders")
    channel.basic_publish("", "orders", b'{"a": 1}', pika.BasicProperties(message_id="m1"))
    channel.queue_declare("orders", passive=True)
    with page.events() as events:
        lines = events.next()[1]["timeline"]["lines"]

    def detail(name: str) -> Any:
        [*_, line] = [line for line in lines if line[7] == name]
        return page.ask("event", serial=line[0], place=line[1])

    publish = detail("basic.publish")
    assert [0, "routing_key", "orders", "s"] in publish["fields"]
    assert [0, "message_id", "m1", "s"] in publish["properties"]
    assert (publish["body"], publish["size"]) == (["text", '{"a": 1}'], 8)
    login = detail("connection.start-ok")
    assert "guest" not in json.dumps(login["fields"])
    assert detail("queue.declare")["properties"] is None
    assert page.ask("event", serial=10_000, place=0) is None
    assert page.ask("event", serial=lines[0][0], place=99) is None


# --- actions --------------------------------------------------------------------------------------------


def test_every_action_of_the_form_makes_a_rule(page: Page, broker: Broker):
    control = ControlClient(broker.admin.control_url)
    offers = page.ask("fault-offers")
    assert {"basic.publish", "confirm", "heartbeat", "message.transfer"} <= set(offers["methods"])
    for action in offers["actions"]:
        method = {
            "refuse_login": "connection.start-ok",
            "detach": "attach",
            "exception": "queue.declare",
            "reorder": "basic.deliver",
        }.get(action["name"], "basic.publish")
        arguments = {each["name"]: each["value"] for each in action["arguments"] if "value" in each}
        for each in action["arguments"]:
            if "enum" in each["schema"]:
                arguments[each["name"]] = each["schema"]["enum"][-1]
        said = {"on": method, **({action["name"]: arguments} if action["name"] else {})}
        control.call("POST", "/faults", said)
    assert len(broker.faults.rules) == len(offers["actions"])


def test_page_ends_the_hold_of_a_held_test_only(page: Page, broker: Broker):
    with pytest.raises(Refusal, match="no test is held open"):
        page.ask("end-hold")
    inspector, held = inspector_of(broker), threading.Event()
    inspector.title, inspector.held = "test_orders", held
    assert inspector.snapshot()["broker"]["held"] == "test_orders"
    assert page.ask("end-hold") is None
    assert held.is_set() and inspector.snapshot()["broker"]["held"] is None


# --- a proxy --------------------------------------------------------------------------------------------


def test_snapshot_of_a_proxy_has_connections_faults_timeline_and_what_it_cannot_do(broker: Broker):
    with Proxy(broker.url, control=True) as proxy:
        proxy.faults.on("basic.publish", optional=True).drop()
        with pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection:
            connection.channel()
            with Page(proxy.admin.inspector_url).events() as events:
                state = events.next()[1]
        assert state["broker"]["behind"] == f"{broker.host}:{broker.port}"
        assert {"clock", "queues", "publish", "explain"} <= set(state["broker"]["impossible"])
        assert [each["channels"][0]["number"] for each in state["connections"].values()] == [1]
        assert len(state["faults"]) == 1
        assert "channel.open" in [line[7] for line in state["timeline"]["lines"]]
        assert proxy.admin.failures == ()
