"""The control interface: routes do what methods of Python do, with the same words and errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pika
import pytest

from compat_tests.management.control_client import ControlClient, Refusal
from compat_tests.tools.matrix import cases
from fakeamqp import Broker, BrokerError, Proxy
from fakeamqp.faults.rule import ACTIONS
from fakeamqp.proxy import IMPOSSIBLE
from fakeamqp.trace import Trace


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(control=True, clock="virtual") as broker:
        yield broker
        assert broker.admin.failures == ()


@pytest.fixture
def control(broker: Broker) -> ControlClient:
    return ControlClient(broker.admin.control_url)


# --- faults ---------------------------------------------------------------------------------------------


def test_rule_added_in_json_acts_and_counts_like_the_rule_in_python(
    control: ControlClient, broker: Broker, channel: Any
):
    channel.queue_declare("orders")
    channel.confirm_delivery()
    said = {"on": "basic.publish", "routing_key": "orders", "nack": True, "times": 2}
    fault = control.call("POST", "/faults", said)
    [rule] = broker.faults.rules
    assert fault["sentence"] == str(rule)
    assert "nack it (2 times at most)" in fault["sentence"] and "'orders'" in fault["sentence"]
    for _ in range(2):
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("", "orders", b"")
    channel.basic_publish("", "orders", b"")
    channel.basic_publish("", "other", b"")
    assert control.post(f"/faults/{fault['id']}/wait", n=2)["hits"] == 2
    [listed] = control.get("/faults")
    assert listed == control.get(f"/faults/{fault['id']}")
    assert (listed["hits"], listed["removed"], listed["near_misses"]) == (
        2,
        False,
        ["3 matched, but the rule was not to fire each time (2 times at most)"],
    )
    assert control.delete(f"/faults/{fault['id']}")["removed"]
    assert not broker.faults.rules and control.get(f"/faults/{fault['id']}")["hits"] == 2


FAULTS = [
    ({"on": ["basic.publish", "basic.get"], "direction": "received", "optional": True}, "or basic.get comes"),
    ({"on": "basic.publish", "routing_key": {"regex": "^o"}, "drop": True}, "routing key /^o/"),
    ({"on": "basic.publish", "body": {"base64": "AP8="}, "drop": True}, r"body b'\x00\xff'"),
    ({"on": "basic.publish", "headers": {"n": {"regex": "1"}}, "drop": True}, "headers"),
    ({"on": "basic.publish", "delay": 2, "once": True}, "delay it by 2 s (once at most)"),
    ({"on": "basic.publish", "delay": {"seconds": 2, "jitter": 1}}, "2 s and up to 1 s more"),
    ({"on": "queue.declare", "close_channel": 404, "on_call": 2}, "with 404 (only number 2)"),
    ({"on": "basic.get", "drop": True, "nack": False, "crash": None}, "comes: drop it"),
    ({"on": "basic.deliver", "replace": {"body": "x"}, "duplicate": True}, "b'x', then duplicate"),
    ({"on": "basic.deliver", "duplicate": True, "replace": {"body": "x"}}, "duplicate it, then replace"),
    ({"network": {"latency": 0.2}}, "all clients take 0.2 s"),
    ({"network": {"on": "billing", "cut_after": {"bytes": 100}}}, "connection 'billing' is closed after 100"),
    ({"network": "hang"}, "the broker hangs"),
    ({"memory_alarm": True}, "low on memory"),
    ({"disk_alarm": "out of disk"}, "out of disk"),
    ({"silence": "c1"}, "connection 'c1'"),
    ({"chaos": {"seed": 7, "profile": {"nack": 0.1}}}, "seed 7"),
]


def test_each_word_for_faults_makes_the_fault_that_it_names(control: ControlClient, broker: Broker):
    with cases() as case:
        for said, sentence in FAULTS:
            with case(said):
                fault = control.call("POST", "/faults", said)
                assert sentence in fault["sentence"]
                assert fault["sentence"] == str(broker.faults.rules[-1])
                control.delete("/faults")
                assert broker.faults.rules == ()


def test_each_action_of_rules_is_a_word_except_that_with_a_function(control: ControlClient):
    methods = {
        "refuse_login": "connection.start-ok",
        "detach": "attach",
        "exception": "queue.declare",
        "reorder": "basic.deliver",
        "cut": "basic.deliver",
        "malform": "basic.deliver",
        "replace": "basic.deliver",
    }
    values = {"delay": 1, "malform": "bad-frame-end", "replace": {"body": ""}}
    made = {}
    for name in ACTIONS:
        said = {"on": methods.get(name, "basic.publish"), name: values.get(name, True)}
        try:
            made[name] = control.call("POST", "/faults", said)["sentence"]
        except Refusal as refusal:
            made[name] = refusal.reason
    assert made.pop("call") == "call() takes a function, which JSON does not have"
    assert [text for text in made.values() if not text.startswith("when a")] == []
    assert not any(text.endswith("count it") for text in made.values())


WRONG_FAULTS = [
    ({"on": "basic.publsh"}, "FaultError: there is no method 'basic.publsh'; did you mean 'basic.publish'"),
    ({"on": "basic.publish", "nak": True}, "has no field 'nak'; did you mean 'nack'"),
    ({"on": "basic.publish", "routing_kye": "x"}, "did you mean 'routing_key'"),
    ({"on": "basic.publish", "delay": "soon"}, 'seconds must be a number, not "soon"'),
    ({"on": "basic.publish", "delay": True}, "delay needs 'seconds'"),
    ({"on": "basic.publish", "delay": {"secs": 1}}, "delay has no field 'secs'; did you mean 'seconds'"),
    ({"on": "basic.publish", "nack": 3}, 'nack takes no value: write {"nack": true}'),
    ({"on": "basic.publish", "times": 0}, "times takes a whole number from 1 on, not 0"),
    ({"on": "basic.publish", "disconnect": "rst"}, 'how must be "fin" or "reset" or "silence", not "rst"'),
    ({"on": "basic.publish", "refuse_login": True}, "start-ok"),
    ({"on": "basic.publish", "routing_key": {"regex": "("}}, r'{"regex": "\("} cannot be read'),
    ({"on": "basic.publish", "body": {"base64": "A"}}, "cannot be read"),
    ({"on": 5}, "a method's name is a str such as 'basic.publish', not 5"),
    ({"on": []}, "name the methods of the rule"),
    ({"onn": "basic.publish"}, "did you mean 'on'"),
    ({}, "a fault has one of the fields 'on', 'network'"),
    ({"on": "basic.get", "memory_alarm": True}, "not 'on' and 'memory_alarm'"),
    ({"memory_alarm": True, "times": 1}, "memory_alarm is a whole fault"),
    ({"memory_alarm": {"reson": "x"}}, "did you mean 'reason'"),
    ({"network": {"latncy": 1}}, "network has no fault 'latncy'; did you mean 'latency'"),
    ({"network": {"latency": 1, "hang": True}}, "a fault of the network is an object with one of"),
    ({"network": {"cut_after": {}}}, r"say where to cut: cut_after\(bytes=100\)"),
]


def test_fault_with_a_wrong_word_or_value_is_refused_and_leaves_no_fault(
    control: ControlClient, broker: Broker
):
    with cases() as case:
        for said, reason in WRONG_FAULTS:
            with case(said), pytest.raises(Refusal, match=rf"^400 .*{reason}"):
                control.call("POST", "/faults", said)
    assert broker.faults.rules == ()
    broker.faults.verify()


def test_words_of_actions_are_no_conditions_of_any_method(control: ControlClient):
    from fakeamqp.dialects import dialect_named, protocol_names
    from fakeamqp.faults.frame_group import READERS
    from fakeamqp.management.control.words import LASTING_WORDS, RULE_WORDS

    dialects = [dialect_named(each) for each in protocol_names()]
    fields = {field for each in dialects for kind in each.kinds.values() for field in kind.fields}
    properties = {name for each in dialects for name in each.property_names}
    assert not (fields | properties | set(READERS)) & {"on", "network", *RULE_WORDS, *LASTING_WORDS}


def test_wait_for_a_fault_that_does_not_happen_is_refused_with_its_near_misses(
    control: ControlClient, broker: Broker, channel: Any
):
    fault = control.call("POST", "/faults", {"on": "basic.publish", "routing_key": "orders", "drop": True})
    channel.basic_publish("", "ordres", b"")
    broker.wait_until_idle()
    with pytest.raises(Refusal, match=r"(?s)^409 FaultNotSeen: .*near miss: .*'ordres', not 'orders'"):
        control.post(f"/faults/{fault['id']}/wait", timeout=0.01)
    with pytest.raises(Refusal, match=r"(?s)^409 UnusedFault: .*'ordres', not 'orders'"):
        control.post("/faults/verify")
    channel.basic_publish("", "orders", b"")
    control.post(f"/faults/{fault['id']}/wait")
    control.post("/faults/verify")


def test_numbers_of_faults_are_never_used_again(control: ControlClient, broker: Broker):
    first = control.call("POST", "/faults", {"on": "basic.get", "drop": True})["id"]
    control.post("/reset")
    broker.faults.on("basic.ack").drop()
    [second] = control.get("/faults")
    assert second["id"] > first
    with pytest.raises(
        Refusal, match=rf"^404 not_found: there is no fault {first}; there is only {second['id']}"
    ):
        control.delete(f"/faults/{first}")


def test_held_methods_are_released(control: ControlClient, broker: Broker, channel: Any):
    channel.queue_declare("orders")
    fault = control.call("POST", "/faults", {"on": "basic.publish", "hold": True})
    channel.basic_publish("", "orders", b"")
    control.post(f"/faults/{fault['id']}/wait")
    assert control.get(f"/faults/{fault['id']}")["held"] == 1
    assert control.post(f"/faults/{fault['id']}/release", count=5) == {"count": 1}
    broker.queue("orders").wait_for(ready=1)
    alarm = control.call("POST", "/faults", {"memory_alarm": True})
    with pytest.raises(Refusal, match=r"^400 BadRequest: there is no release\(\) of this: publishers"):
        control.post(f"/faults/{alarm['id']}/release")


def test_plan_of_chaos_is_shown(control: ControlClient, broker: Broker):
    fault = control.call("POST", "/faults", {"chaos": 7})
    assert fault["plan"] == broker.faults.plans[0]


# --- time -----------------------------------------------------------------------------------------------


def test_virtual_clock_moves_by_seconds_and_to_the_next_timer(
    control: ControlClient, broker: Broker, channel: Any
):
    channel.queue_declare("orders", arguments={"x-message-ttl": 90_000})
    broker.publish(b"", routing_key="orders")
    before = control.get("/clock")
    assert before["mode"] == "virtual" and before["elapsed"] == 0
    assert any("'orders' expires" in timer["words"] for timer in before["timers"])
    control.post("/clock/advance", seconds=30)
    assert control.post("/clock/advance_to_next") == {"seconds": 60}
    after = control.get("/clock")
    assert after["elapsed"] == 90 and after["time"] == before["time"] + 90
    assert broker.queue("orders").ready == 0
    with pytest.raises(Refusal, match=r"^409 NothingPending: no timer is pending"):
        control.post("/clock/advance_to_next")
    for seconds in ("60", None, True, [1]):
        with pytest.raises(Refusal, match=r"^400 BadRequest: seconds must be a number, not"):
            control.post("/clock/advance", seconds=seconds)
    with pytest.raises(Refusal, match=r"^400 ClockError: seconds=-1 must be a number, 0 or more"):
        control.post("/clock/advance", seconds=-1)


def test_real_clock_refuses_to_move_with_409_and_names_the_option():
    with Broker(control=True) as broker:
        control = ControlClient(broker.admin.control_url)
        assert control.get("/clock")["elapsed"] is None
        with pytest.raises(Refusal, match=r"^409 ClockError: .*uses real time; .*--clock virtual"):
            control.post("/clock/advance", seconds=1)


# --- messages -------------------------------------------------------------------------------------------


def test_published_messages_are_listed_and_expected_with_the_keywords_of_python(
    control: ControlClient, broker: Broker, channel: Any
):
    channel.queue_declare("orders")
    properties = pika.BasicProperties(headers={"n": 1, "raw": b"\xff"}, priority=3)
    for number in range(3):
        channel.basic_publish("", "orders", json.dumps({"id": number, "items": [1]}), properties)
    channel.basic_publish("", "orders", b"\x00\xff")
    control.post("/wait_until_idle")
    listed = control.get("/published?last=2")
    assert listed["total"] == 4
    assert [each["body"] for each in listed["messages"]] == ['{"id": 2, "items": [1]}', {"base64": "AP8="}]
    assert listed["messages"][0]["headers"] == {"n": 1, "raw": {"base64": "/w=="}}
    assert control.get("/published?last=0")["messages"] == []
    for expected, count in (
        ({"routing_key": "ord*"}, 0),
        ({"routing_key": "*", "count": [4, None]}, 4),
        ({"json": {"id": 1}, "count": 1}, 1),
        ({"body": {"id": 1, "items": [1]}}, 1),
        ({"body": {"base64": "AP8="}}, 1),
        ({"body": {"regex": '"id": [12]'}, "count": 2}, 2),
        ({"headers": {"raw": {"base64": "/w=="}}, "priority": 3}, 3),
        ({"headers": {"n": 2}}, 0),
    ):
        if count:
            assert len(control.post("/expect_published", **expected)) == count, expected
        else:
            with pytest.raises(Refusal, match=r"^409 NotPublished: expected at least 1 published"):
                control.post("/expect_published", timeout=0, **expected)


def test_expectation_that_fails_is_refused_with_the_text_of_the_python_error(
    control: ControlClient, broker: Broker, channel: Any
):
    channel.basic_publish("", "ordres", b'{"id": 1}')
    broker.wait_until_idle()
    with pytest.raises(AssertionError) as failed:
        broker.expect_published(routing_key="orders", timeout=0)
    with pytest.raises(Refusal) as refused:
        control.post("/expect_published", routing_key="orders", timeout=0)
    assert (refused.value.status, refused.value.error) == (409, "NotPublished")
    assert refused.value.reason == str(failed.value)
    assert "expected 'orders', was 'ordres'" in refused.value.reason
    control.post("/expect_nothing_published", routing_key="orders")
    with pytest.raises(Refusal, match=r"^409 NotPublished: "):
        control.post("/expect_nothing_published")
    with pytest.raises(Refusal, match=r"^400 BadExpectation: .*did you mean 'routing_key'"):
        control.post("/expect_published", routing_kye="orders")
    with pytest.raises(Refusal, match=r"^400 BadExpectation: count="):
        control.post("/expect_published", count=[2, 1])


def test_returned_dead_lettered_and_dropped_messages_are_listed_and_expected(
    control: ControlClient, broker: Broker, channel: Any
):
    channel.queue_declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 1000}
    channel.queue_declare("orders", arguments=arguments)
    channel.basic_publish("", "orders", b"late")
    channel.basic_publish("", "nowhere", b"lost", mandatory=True)
    broker.wait_until_idle()
    broker.clock.advance(1)
    control.call("POST", "/queues/%2F/dead/purge")
    for kind, expected in (
        ("returned", {"reply_code": 312, "body": "lost"}),
        ("dead_lettered", {"queue": "orders", "reason": "expired"}),
        ("dropped", {"queue": "dead", "reason": {"regex": "purge"}}),
    ):
        [found] = control.post(f"/expect_{kind}", **expected)
        assert found in control.get(f"/{kind}")["messages"]
        with pytest.raises(Refusal, match=r"^409 Not"):
            control.post(f"/expect_{kind}", timeout=0, body="other")


def test_message_is_published_and_explained(control: ControlClient, broker: Broker, channel: Any):
    channel.queue_declare("orders")
    message = {"routing_key": "orders", "body": "käse", "headers": {"n": 1}, "priority": 3}
    assert "orders" in control.post("/explain", exchange="", **message)["text"]
    assert broker.queue("orders").ready == 0
    published = control.post("/publish", **message)
    assert (published["outcome"], published["queues"]) == ("routed to orders", ["orders"])
    [found] = broker.queue("orders").messages
    assert (found.text, found.headers, found.priority) == ("käse", {"n": 1}, 3)
    for changed, error in (
        ({"priorty": 3}, "400 UnknownProperty: .*priority"),
        ({"headers": [1]}, r"400 BadRequest: headers must be an object or null, not \[1\]"),
        ({"body": 5}, "400 BadRequest: body must be text"),
        ({"exchange": "order"}, "404 NotFound: .*order"),
        ({"virtual_host": "nowhere"}, "40. .*nowhere"),
        ({"json": 1}, "400 BadBody: "),
    ):
        with pytest.raises(Refusal, match=error):
            control.post("/publish", **{**message, **changed})
    assert control.post("/publish", routing_key="orders", json={"a": 1})["content_type"] == "application/json"
    assert control.get("/published")["total"] == 0
    control.post("/expect_published", include_own=True, count=2)


# --- queues and connections -----------------------------------------------------------------------------


def test_counts_of_a_queue_are_waited_for(control: ControlClient, broker: Broker, channel: Any):
    broker.admin.add_virtual_host("a/b")
    broker.load_definitions({"queues": [{"name": "x/y", "vhost": "a/b", "durable": True}]})
    path = "/queues/a%2Fb/x%2Fy"
    shown = control.get(path)
    assert shown["ready"] == 0
    # They have no bound, and no JSON.
    assert not {"messages", "options"} & shown.keys()
    broker.publish(b"", routing_key="x/y", virtual_host="a/b")
    assert control.post(f"{path}/wait_for", ready=1, consumers=0, total=[1, None])["ready"] == 1
    with pytest.raises(
        Refusal, match=r"^409 WaitTimeout: waited 0.01 s for queue 'x/y' to have exactly 2 ready"
    ):
        control.post(f"{path}/wait_for", ready=2, timeout=0.01)
    with pytest.raises(Refusal, match=r"^400 BadExpectation: wait_for\(count=1\): use ready=1"):
        control.post(f"{path}/wait_for", count=1)
    with pytest.raises(Refusal, match=r"^404 NoSuchQueue: .*did you mean 'x/y'"):
        control.get("/queues/a%2Fb/x%2Fz")
    assert control.call("POST", f"{path}/purge") == {"count": 1}
    with pytest.raises(Refusal, match=r"^404 NoSuchQueue: "):
        control.post("/queues/%2F/orders/purge")


def test_consumers_are_cancelled(control: ControlClient, channel: Any):
    channel.queue_declare("orders")
    channel.basic_consume("orders", print)
    [consumer] = control.get("/queues/%2F/orders")["consumers"]
    assert consumer["queue"] == "orders"
    assert control.post("/queues/%2F/orders/cancel_consumers") == {"count": 1}


@pytest.mark.parametrize("named", ["billing", "c1", "its name"])
def test_connection_is_found_by_its_names_and_blocked_and_closed(
    control: ControlClient, broker: Broker, channel: Any, named: str
):
    from urllib.parse import quote

    [view] = control.get("/connections")
    name = view["name"] if named == "its name" else named
    path = f"/connections/{quote(name, safe='')}"
    control.post(f"{path}/block", reason="low on memory")
    assert control.get("/connections")[0]["blocked"] == "low on memory"
    control.post(f"{path}/unblock")
    control.post(f"{path}/close", code=320, text="CONNECTION_FORCED - by the test")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match=r"320.*by the test"):
        channel.queue_declare("orders")
    with pytest.raises(Refusal, match=r"^404 not_found: connection .* is closed or was never open"):
        control.post(f"{path}/close")


# --- the broker -----------------------------------------------------------------------------------------


def test_broker_is_restarted_crashed_and_reset(control: ControlClient, broker: Broker):
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("kept", durable=True)
        channel.queue_declare("lost")
    control.post("/restart")
    assert [each.name for each in broker.queues] == ["kept"]
    control.post("/restart", crash=True, durable=False)
    assert broker.queues == ()
    with pytest.raises(Refusal, match=r'^400 BadRequest: crash must be true or false, not "yes"'):
        control.post("/restart", crash="yes")
    broker.load_definitions({"queues": [{"name": "orders"}]})
    control.post("/reset")
    assert broker.queues == ()


def test_trace_is_a_timeline_a_recording_or_a_page(
    control: ControlClient, broker: Broker, channel: Any, tmp_path: Any
):
    channel.queue_declare("orders")
    assert control.get("/trace/timeline").decode() == broker.trace.timeline()
    assert len(control.get("/trace/timeline?limit=1").decode().splitlines()) <= 3
    assert "queue.declare" not in control.get("/trace/timeline?connection=c2").decode()
    (tmp_path / "trace.jsonl").write_bytes(control.get("/trace/jsonl"))
    assert Trace.load(tmp_path / "trace.jsonl").timeline() == broker.trace.timeline()
    assert b"queue.declare" in control.get("/trace/html?title=x")
    for query, reason in (
        ("limit=many", "limit must be"),
        (f"limit={'9' * 5000}", "limit must be"),
        ("limt=1", "did you mean 'limit'"),
    ):
        with pytest.raises(Refusal, match=rf"^400 BadRequest: .*{reason}"):
            control.get(f"/trace/timeline?{query}")


def test_findings_of_checks_are_listed_and_expected(control: ControlClient, broker: Broker, channel: Any):
    channel.queue_declare("orders")
    assert control.post("/trace/check") == []
    control.post("/expect_no_findings")
    channel.basic_publish("", "orders", b"")
    assert channel.basic_get("orders")[2] == b""
    with pytest.raises(Refusal, match=r"(?s)^409 CheckFailed: the trace has 1 finding.*basic\.get-ok"):
        control.post("/expect_no_findings", timeout=0.01)
    [finding] = control.post("/trace/check", names=["unacked"], at_end=True)
    assert (finding["check"], finding["queue"]) == ("unacked", "orders")
    control.post("/expect_no_findings", names=["lost"], allow={"expired": "cache.*"})
    with pytest.raises(Refusal, match=r"^400 UnknownCheck: .*did you mean 'unacked'"):
        control.post("/trace/check", names=["unaked"])


# --- waits and the server -------------------------------------------------------------------------------


def test_wait_does_not_keep_the_interface_from_answering_others(control: ControlClient):
    with closing(HTTPConnection(control.host, control.port, timeout=30)) as connection:
        connection.request(
            "POST", f"{control.path}/expect_published", b'{"include_own": true}', control.headers
        )
        control.post("/publish", body="x", routing_key="orders")
        assert json.load(connection.getresponse())[0]["body"] == "x"


def test_wait_longer_than_the_longest_is_refused(control: ControlClient):
    with pytest.raises(Refusal, match=r"^400 BadRequest: timeout must be at most 300 seconds"):
        control.post("/wait_until_idle", timeout=301)
    with pytest.raises(Refusal, match=r"^400 BrokerError: timeout=-1 must be"):
        control.post("/wait_until_idle", timeout=-1)


def test_stop_ends_a_wait_without_a_thread_or_a_traceback_left(capfd: pytest.CaptureFixture[str]):
    threads = set(threading.enumerate())
    with Broker(control=True) as broker:
        control = ControlClient(broker.admin.control_url)
        with closing(HTTPConnection(control.host, control.port, timeout=30)) as connection:
            connection.request(
                "POST", f"{control.path}/expect_published", b'{"timeout": 60}', control.headers
            )
            control.get("/clock")  # The wait has begun: requests are handled in order.
            broker.stop()
            answer = connection.getresponse()
            assert answer.status in (409, 503)
            assert b"stopped" in answer.read()
    assert "Traceback" not in capfd.readouterr().err
    assert set(threading.enumerate()) <= threads


def test_control_alone_serves_no_api_of_rabbitmq_and_counts_no_frames():
    with Broker(control=True) as broker:
        control = ControlClient(broker.admin.control_url)
        assert broker._state.tap is broker._recorder
        status, _, _ = control.send("GET", "/../../api/overview", None, control.headers)
        assert status == 404
        for missing in ("management_url", "management_port"):
            with pytest.raises(BrokerError, match="no HTTP API"):
                getattr(broker.admin, missing)
    with Broker() as broker, pytest.raises(BrokerError, match=r"create it with Broker\(control=True\)"):
        broker.admin.control_url  # noqa: B018


def test_control_shares_the_port_of_the_http_api():
    with Broker(control_port=0, management=True) as broker:
        assert f":{broker.admin.management_port}/control/v1#token=" in broker.admin.control_url
        assert ControlClient(broker.admin.control_url).get("/faults") == []
    with pytest.raises(BrokerError, match=r"control_port=1 and management_port=2: .* share one port"):
        Broker(control_port=1, management_port=2)


def test_control_needs_a_thread_of_its_own():
    with pytest.raises(BrokerError, match="needs a broker with runtime='thread'"):
        Broker(control=True, runtime="asyncio")


# --- a proxy --------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with Proxy(broker.url, control=True) as proxy:
        yield proxy
        assert proxy.admin.failures == ()


def test_faults_assertions_and_trace_of_a_proxy_are_controlled(proxy: Proxy, broker: Broker):
    control = ControlClient(proxy.admin.control_url)
    fault = control.call("POST", "/faults", {"on": "basic.publish", "nack": True, "once": True})
    with pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("", "orders", b"first")
        channel.basic_publish("", "orders", b"second")
        control.post(f"/faults/{fault['id']}/wait")
        [published] = control.post("/expect_published", routing_key="orders", count=1)
        assert published["body"] == "second"
        assert len(control.get("/connections")) == 1
        assert "basic.publish" in control.get("/trace/timeline").decode()
        control.post("/wait_until_idle")
    control.post("/reset")
    assert control.get("/published")["total"] == 0


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/clock", "clock"),
        ("POST", "/clock/advance", "clock"),
        ("GET", "/queues/%2F/orders", "queues"),
        ("POST", "/publish", "publish"),
        ("POST", "/explain", "explain"),
        ("POST", "/restart", "restart"),
        ("GET", "/dead_lettered", "dead_lettered"),
        ("POST", "/expect_dropped", "dropped"),
    ],
)
def test_proxy_refuses_with_its_sentence_what_it_cannot_do(proxy: Proxy, method: str, path: str, name: str):
    with pytest.raises(Refusal) as refused:
        ControlClient(proxy.admin.control_url).call(method, path)
    assert refused.value.status == 409
    assert refused.value.reason == f"{name} is not possible: {IMPOSSIBLE[name]}"


def test_proxy_refuses_faults_that_need_a_broker(proxy: Proxy):
    control = ControlClient(proxy.admin.control_url)
    for said in ({"on": "basic.publish", "crash": True}, {"redirect": "other:5672"}, {"starve": True}):
        with pytest.raises(Refusal, match=r"^400 FaultError: .* is not possible: "):
            control.call("POST", "/faults", said)


def test_stopped_proxy_leaves_no_port_and_no_thread_of_its_control(broker: Broker):
    threads = set(threading.enumerate())
    with Proxy(broker.url, control=True) as proxy:
        control = ControlClient(proxy.admin.control_url)
        assert control.get("/faults") == []
    with pytest.raises(ConnectionRefusedError):
        control.get("/faults")
    assert set(threading.enumerate()) <= threads


def test_proxy_takes_no_login_of_a_broker(proxy: Proxy):
    from base64 import b64encode

    headers = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}
    assert ControlClient(proxy.admin.control_url).send("GET", "/faults", None, headers)[0] == 401


@pytest.mark.parametrize(
    "said", [{"network": []}, {"network": {"latency": False}}, {"memory_alarm": None}], ids=repr
)
def test_words_that_make_no_fault_are_refused_and_are_no_failure_of_the_broker(
    broker: Broker, control: ControlClient, said: dict[str, Any]
):
    with pytest.raises(Refusal) as refused:
        control.post("/faults", **said)
    assert refused.value.status == 400
    assert broker.admin.failures == ()
    assert control.get("/faults") == []
