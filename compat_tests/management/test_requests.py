"""Requests that the recorded ones do not have: clients of AMQP see what they do, and nonsense is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.management.scenario import requests
from compat_tests.tools.matrix import cases
from fakeamqp import Broker


def test_message_published_by_http_reaches_a_consumer(broker, api, channel):
    channel.queue_declare("q")
    got = []
    channel.basic_consume("q", lambda *arguments: got.append(arguments))
    body = {"routing_key": "q", "payload": "héllo", "payload_encoding": "string"}
    properties = {"headers": {"a": [1, {"b": True}]}, "delivery_mode": 2, "content_type": "text/plain"}
    reply = api.post("exchanges/%2F/amq.default/publish", {**body, "properties": properties})
    assert reply.json == {"routed": True}
    while not got:
        channel.connection.process_data_events(0.1)
    _, _, seen, payload = got[0]
    assert (payload.decode(), seen.headers, seen.delivery_mode) == ("héllo", {"a": [1, {"b": True}]}, 2)


def test_tracing_of_a_virtual_host_switches_the_firehose(broker, api, channel):
    channel.confirm_delivery()  # Each message has arrived before the next request.
    channel.queue_declare("trace")
    channel.queue_bind("trace", "amq.rabbitmq.trace", "publish.#")
    for tracing in (True, False):
        assert api.put("vhosts/%2F", {"tracing": tracing}).status == 204
        assert api.get("vhosts/%2F")["tracing"] is tracing
        channel.basic_publish("amq.topic", "a.b", b"m")
    _, seen, body = channel.basic_get("trace", auto_ack=True)
    assert (seen.headers["exchange_name"], seen.headers["routing_keys"], body) == ("amq.topic", ["a.b"], b"m")
    assert channel.basic_get("trace")[0] is None
    api.put("vhosts/%2F", {"tracing": True})
    assert api.put("vhosts/%2F", {"description": "d"}).status == 204
    assert api.get("vhosts/%2F")["tracing"] is True  # What a request does not name stays.


def test_messages_of_requests_are_copied_by_the_firehose(broker, api, channel):
    broker.admin.set_firehose()
    for name in ("trace", "q"):
        channel.queue_declare(name, durable=True)
    channel.queue_bind("trace", "amq.rabbitmq.trace", "#")
    message = {"properties": {}, "routing_key": "q", "payload": "m", "payload_encoding": "string"}
    api.post("exchanges/%2F/amq.default/publish", message)
    taking = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    assert len(api.post("queues/%2F/q/get", taking).json) == 1
    for key, more in (("publish.", {"routed_queues": ["q"]}), ("deliver.q", {"redelivered": 0})):
        method, seen, body = channel.basic_get("trace", auto_ack=True)
        assert (method.routing_key, body) == (key, b"m")
        # As those of 4.0.5 and 4.3.6, apart from the numbers of the process in the name.
        assert seen.headers == {
            "exchange_name": "",
            "routing_keys": ["q"],
            "properties": {},
            "node": "fakeamqp@localhost",
            "vhost": "/",
            "connection": "<fakeamqp@localhost.1.1.0>",
            "channel": 1,
            "user": "guest",
            **more,
        }
    assert channel.basic_get("trace")[0] is None


def test_closed_client_gets_the_reason_of_the_request(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    name = api.get("connections")[0]["name"].replace(" ", "%20").replace(">", "%3E")
    assert api.request("DELETE", f"connections/{name}", headers={"X-Reason": "enough"}).status == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="CONNECTION_FORCED - enough"):
        while True:
            connection.process_data_events(0.1)


def test_connections_of_a_user_are_closed_and_no_other_connection(broker, api):
    api.put("users/other", {"password": "p", "tags": ""})
    api.put("permissions/%2F/other", {"configure": ".*", "write": ".*", "read": ".*"})
    mine, others = (
        pika.BlockingConnection(pika.URLParameters(broker.url.replace("guest:guest", login)))
        for login in ("guest:guest", "other:p")
    )
    headers = {"X-Reason": "enough"}
    assert api.request("DELETE", "connections/username/guest", headers=headers).status == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="320, 'CONNECTION_FORCED - enough'"):
        while True:
            mine.process_data_events(0.1)
    assert [each["user"] for each in api.get("connections")] == ["other"]
    others.close()


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/*", 200),
        ("application/json", 200),
        ("text/html, application/json;q=0.5", 200),
        ("text/html", 406),
        ("application/xml", 406),
    ],
)
def test_request_that_does_not_accept_json_is_refused_with_406(api, accept: str, status: int):
    assert api.request("GET", "whoami", headers={"accept": accept}).status == status


def test_rejected_messages_are_dead_lettered(broker, api):
    api.put("queues/%2F/dead", {})
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    api.put("queues/%2F/q", {"arguments": arguments})
    broker.publish(b"x", routing_key="q")
    took = api.post("queues/%2F/q/get", {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"})
    assert [each["payload"] for each in took.json] == ["x"]
    assert broker.queue("dead").ready == 1


def test_user_is_limited_by_its_tags_and_permissions(broker, api):
    api.put("users/reader", {"password": "p", "tags": "management"})
    api.put("permissions/%2F/reader", {"configure": "^mine", "write": "^mine", "read": ".*"})
    reader = api.log_in("reader", "p")
    assert reader.put("queues/%2F/other", {}).status == 401
    assert reader.put("queues/%2F/mine", {}).status == 201
    assert [each["name"] for each in reader.get("queues")] == ["mine"]
    assert reader.delete("queues/%2F/mine").status == 204
    assert api.delete("users/reader").status == 204
    assert reader.request("GET", "whoami").status == 401


def test_body_above_10_million_bytes_is_refused(api):
    """Measured on RabbitMQ 4.3.6: 10 000 000 bytes, and the answer."""
    body = b'{"arguments": {"x": "%s"}}' % (b"x" * 10_000_000)
    chunks = (body[start : start + 65536] for start in range(0, len(body), 65536))
    for sent, headers in ((body, {}), (chunks, {})):
        reply = api.request("PUT", "queues/%2F/q", sent, headers)
        assert (reply.status, reply.json["reason"]) == (400, "Exceeded HTTP request body size limit")
    reply = api.request("PUT", "queues/%2F/q", iter(()), {"content-length": "10000001"})
    assert reply.status == 400, "it is refused before it has come"


def test_memory_alarm_fails_the_local_alarms_check(api):
    with Broker(management=True, memory_limit=1000) as broker:
        broker.publish(b"x" * 2000, routing_key="nowhere")
        api = Api(broker.admin.management_url)
        api.put("queues/%2F/q", {})
        broker.publish(b"x" * 2000, routing_key="q")
        reply = api.request("GET", "health/checks/local-alarms")
        assert (reply.status, reply.json["reason"]) == (503, "There are alarms in effect on the node")
        assert reply.json["alarms"][0]["resource"] == "memory"


def test_names_with_any_character_are_found_by_their_encoded_paths(api):
    for name in ("a%2Fb", "%20", "%C3%A9", "%25", "a%2Bb", "%3F%23"):
        assert api.put(f"queues/%2F/{name}", {}).status == 201
        assert api.request("GET", f"queues/%2F/{name}").status == 200
        reply = api.post(f"bindings/%2F/e/amq.direct/q/{name}", {"routing_key": "a/b~c+d é%#"})
        key = reply.headers["location"].partition("/")[2]
        assert api.request("GET", f"bindings/%2F/e/amq.direct/q/{name}/{key}").status == 200
        assert api.delete(f"bindings/%2F/e/amq.direct/q/{name}/{key}").status == 204
        assert api.delete(f"queues/%2F/{name}").status == 204


PUBLISH = {"routing_key": "", "payload": "", "payload_encoding": "string", "properties": {}}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
NODE = "fakeamqp@localhost"


def rows(name: str) -> list[tuple[str, str, Any, int, Any]]:
    """The rows of a file beside this one: method, path, body and status, and what the answer says."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_wrong_requests_are_refused_with_a_status_and_a_reason(api):
    api.put("queues/%2F/there", {})
    with cases() as case:
        for method, path, body, status, reason in rows("refused.jsonl"):
            with case(method, path, body):
                reply = api.request(method, path, body)
                assert (reply.status, reply.json.get("reason") if reply.body else None) == (status, reason)
    assert [each["name"] for each in api.get("queues?page=1&page_size=500")["items"]] == ["there"]


def test_sequence_of_requests_gets_the_expected_answers(api):
    """Later requests see what earlier ones have changed."""
    for number, (method, path, body, status, answer) in enumerate(rows("sequence.jsonl")):
        reply = api.request(method, path, body)
        told = reply.json if reply.body else None
        if status >= 400 and told is not None:
            told = told["reason"] if answer is not None else None
        assert (reply.status, told) == (status, answer), (number, method, path)


def test_user_created_with_a_hash_of_the_api_can_log_in(api):
    first, second = (api.get("auth/hash_password/s%20%C3%A9")["ok"] for _ in range(2))
    assert first != second  # Each has a salt of its own.
    api.put("users/hashed", {"password_hash": second, "tags": "management"})
    assert api.log_in("hashed", "s \xe9").get("whoami")["name"] == "hashed"


def test_password_with_a_colon_is_accepted_and_malformed_credentials_are_refused(api):
    api.put("users/odd", {"password": "a:b", "tags": "management"})
    assert api.log_in("odd", "a:b").get("whoami")["tags"] == ["management"]
    for login in ("Basic b2Rk", "Basic", "Basic !", "basic b2RkOmE6Yg=", "Bearer b2RkOmE6Yg=="):
        reply = api.log_out().request("GET", "whoami", headers={"authorization": login})
        assert (reply.status, reply.body) == (401, b""), login
        assert reply.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'
    assert (
        api.log_out().request("GET", "whoami", headers={"authorization": "bASIC b2RkOmE6Yg=="}).status == 200
    )


def test_logins_are_counted_by_their_success(api):
    for known in (api, api, api.log_in("guest", "wrong")):
        known.request("GET", "whoami")
    (counts,) = api.get(f"auth/attempts/{NODE}")
    assert counts == {
        **{"protocol": "http", "auth_attempts": 4},
        **{"auth_attempts_succeeded": 3, "auth_attempts_failed": 1},
    }


def test_the_aliveness_test_of_rabbitmq_4_0_needs_the_right_to_declare_its_queue():
    with Broker(management=True, personality="rabbitmq-4.0") as broker:
        api = Api(broker.admin.management_url)
        api.put("users/u", {"password": "p", "tags": "management"})
        user = api.log_in("u", "p")
        for pattern, status in (("^other$", 401), ("^aliveness-test$", 200)):
            api.put("permissions/%2F/u", {"configure": pattern, "write": "", "read": ""})
            assert user.request("GET", "aliveness-test/%2F").status == status
            assert [each.name for each in broker.queues] == ["aliveness-test"] * (status == 200)
        stats = api.get("queues/%2F/aliveness-test")["message_stats"]
        assert (stats["publish"], stats["get_no_ack"], stats["deliver_get"]) == (1, 1, 1)


def test_permissions_apply_to_requests_as_to_clients(broker, api):
    """A queue needs `configure`, and `read` and `write` with a dead letter exchange; a binding both."""
    allowed = {"configure": "^q", "write": "^(q|x|amq.topic)$", "read": "^(x|r)$"}
    api.put("users/u", {"password": "p", "tags": "management"})
    api.put("permissions/%2F/u", allowed)
    api.put("topic-permissions/%2F/u", {"exchange": "amq.topic", "write": "^a", "read": "^a"})
    for queue in "qr":
        api.put(f"queues/%2F/{queue}", {})
    for exchange in "xy":
        api.put(f"exchanges/%2F/{exchange}", {"type": "direct"})
    user = api.log_in("u", "p")

    def dead_letters(exchange):
        return {"arguments": {"x-dead-letter-exchange": exchange}}

    published = {**PUBLISH, "routing_key": "a.b"}
    with cases() as case:
        for method, path, body, status in (
            ("PUT", "queues/%2F/q1", {}, 201),
            ("PUT", "queues/%2F/r1", {}, 401),
            ("PUT", "queues/%2F/q2", dead_letters("x"), 401),  # not read
            ("PUT", "exchanges/%2F/q", {}, 201),
            ("PUT", "exchanges/%2F/z", {}, 401),
            ("DELETE", "exchanges/%2F/x", None, 401),
            ("DELETE", "queues/%2F/r", None, 401),
            ("DELETE", "queues/%2F/q/contents", None, 401),
            ("DELETE", "queues/%2F/r/contents", None, 204),
            ("POST", "bindings/%2F/e/x/q/q", {}, 201),
            ("POST", "bindings/%2F/e/y/q/q", {}, 401),
            ("POST", "bindings/%2F/e/x/q/r", {}, 401),
            ("DELETE", "bindings/%2F/e/x/q/q/~", None, 204),
            ("POST", "queues/%2F/r/get", GET, 200),
            ("POST", "queues/%2F/q/get", GET, 401),
            ("POST", "exchanges/%2F/x/publish", PUBLISH, 200),
            ("POST", "exchanges/%2F/y/publish", PUBLISH, 401),
            ("POST", "exchanges/%2F/amq.topic/publish", published, 200),
            ("POST", "exchanges/%2F/amq.topic/publish", {**published, "routing_key": "b"}, 401),
            ("POST", "exchanges/%2F/x/publish", {**PUBLISH, "properties": {"user_id": "u"}}, 200),
            ("POST", "exchanges/%2F/x/publish", {**PUBLISH, "properties": {"user_id": "v"}}, 400),
        ):
            with case(method, path):
                reply = user.request(method, path, body)
                assert reply.status == status
                if status == 401:
                    assert reply.json == {"error": "not_authorised", "reason": "Access refused."}


def test_every_answer_has_the_same_headers_and_names_the_methods_of_its_path(api):
    methods = "GET, PUT, DELETE, OPTIONS"
    usual = {
        "allow": f"HEAD, {methods}",
        "cache-control": "no-cache",
        "content-security-policy": "script-src 'self'; object-src 'self'",
        "vary": "accept, accept-encoding, origin",
    }
    length = {"content-length": "0"}
    kind = {"content-type": "application/json"}
    unasked = {"www-authenticate": 'Basic realm="RabbitMQ Management"', **length}
    with cases() as case:
        for method, status, more, asked in (
            ("OPTIONS", 200, length, api.log_out()),
            ("PUT", 201, length, api),
            ("PUT", 204, {}, api),
            ("GET", 200, kind, api),
            ("HEAD", 200, kind, api),
            ("POST", 405, length, api),
            ("GET", 401, unasked, api.log_out()),
            ("GET", 401, kind, api.log_in("guest", "wrong")),
            ("DELETE", 204, {}, api),
            ("DELETE", 404, kind, api),
        ):
            with case(method, status):
                reply = asked.request(method, "queues/%2F/q", {} if method == "PUT" else None)
                headers = {name: value for name, value in reply.headers.items() if name != "date"}
                if "content-type" in more:
                    del headers["content-length"]
                assert (reply.status, headers) == (status, {**usual, **more})
                assert bool(reply.body) == ("content-type" in more and method != "HEAD")


ACKMODES = {
    "ack_requeue_true": (1, True, {"x-acquired-count": 1}, "get"),
    "reject_requeue_true": (1, True, {"x-acquired-count": 1, "x-delivery-count": 1}, "get"),
    "ack_requeue_false": (0, None, None, "get_no_ack"),
    "reject_requeue_false": (0, None, None, "get"),
}


def test_ackmode_decides_whether_taken_messages_are_requeued(broker, api):
    with cases() as case:
        for mode, (left, redelivered, headers, counted) in ACKMODES.items():
            with case(mode):
                api.put("queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
                broker.publish(b"one", routing_key="q")
                (first,) = api.post("queues/%2F/q/get", GET | {"ackmode": mode, "count": 5}).json
                assert (first["redelivered"], first["message_count"]) == (False, 0)
                stats = api.get("queues/%2F/q")["message_stats"]
                names = ("get", "get_no_ack", "deliver_get", "redeliver", "get_empty")
                assert [stats[name] for name in names] == [
                    *(int(name == counted) for name in names[:2]),
                    *(1, 0, 1),
                ]
                again = api.post("queues/%2F/q/get", GET | {"ackmode": mode}).json
                assert len(again) == left
                for each in again:
                    assert (each["redelivered"], each["properties"]["headers"]) == (redelivered, headers)
                    assert api.get("queues/%2F/q")["message_stats"]["redeliver"] == 1
            api.delete("queues/%2F/q")


def test_get_with_negative_count_takes_all_messages_and_truncates_payloads(broker, api):
    api.put("queues/%2F/q", {})
    for body in (b"12345", "h\xe9".encode(), b"\xff\x00"):
        broker.publish(body, routing_key="q")
    took = api.post("queues/%2F/q/get", GET | {"count": -1, "truncate": 2}).json
    assert [(each["payload"], each["payload_encoding"], each["payload_bytes"]) for each in took] == [
        *(("12", "string", 5), ("aMM=", "base64", 3), ("/wA=", "base64", 2)),
    ]
    assert [each["message_count"] for each in took] == [2, 1, 0]
    (first,) = api.post("queues/%2F/q/get", GET | {"count": "1", "encoding": "base64"}).json
    assert (first["payload"], first["payload_encoding"]) == ("MTIzNDU=", "base64")
    stats = api.get("queues/%2F/q")["message_stats"]
    assert (stats["get"], stats["redeliver"], stats["get_empty"]) == (4, 1, 1)


def test_get_from_a_stream_is_refused(api):
    api.put("queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    reply = api.post("queues/%2F/q/get", GET)
    assert (reply.status, reply.json["reason"][:4]) == (400, "540 ")


def test_broker_with_tls_shows_an_amqp_ssl_listener():
    with Broker(management=True, tls=True) as broker:
        api = Api(broker.admin.management_url)
        amqp, http = api.get("overview")["listeners"]
        assert [(each["protocol"], each["port"], each["tls"]) for each in (amqp, http)] == [
            *(("amqp/ssl", broker.port, True), ("http", broker.admin.management_port, False)),
        ]
        for protocol, status in (("amqps", 200), ("AMQP/SSL", 200), ("http", 200), ("amqp", 503)):
            reply = api.request("GET", f"health/checks/protocol-listener/{quote(protocol, safe='')}")
            assert reply.status == status, protocol
            more = {} if status == 200 else {"reason": "No active listener", "missing": ["amqp"]}
            state = "ok" if status == 200 else "failed"
            assert reply.json == {"status": state, "protocols": ["amqp/ssl", "http"], **more}
        reply = api.request("GET", "health/checks/certificate-expiration/1/weeks")
        assert (reply.status, reply.json["reason"]) == (
            *(400, "fakeamqp does not look at the dates of its certificates"),
        )


JUNK = (None, 5, -1, 1.5, True, "", "x" * 300, "é", [], [1], ["a", None], {}, {"a": 1}, {"a": None}, "*", "(")


def test_random_changes_of_valid_requests_are_not_answered_with_500(api):
    chance = random.Random(18)
    sent = [each for each in requests() if each.method in ("PUT", "POST") and isinstance(each.body, dict)]
    for _ in range(300):
        request = chance.choice(sent)
        if "guest" in request.path or "{" in request.path or "cluster-name" in request.path:
            continue
        body = json.loads(json.dumps(request.body)) or {"value": 1, "name": "x", "arguments": {}}
        body[chance.choice(list(body))] = chance.choice(JUNK)
        reply = api.request(request.method, request.path, body)
        assert reply.status < 500, (request.name, body, reply)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_definitions_are_accepted_as_json_only(api: Api, kind: str):
    """Measured on RabbitMQ 4.3.6, which takes any type elsewhere."""
    assert api.request("POST", "definitions", {}, {"content-type": kind}).status == 415
    assert (
        api.request("POST", "definitions", {}, {"content-type": "application/json; charset=utf-8"}).status
        == 204
    )
