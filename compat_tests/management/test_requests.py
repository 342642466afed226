"""Requests that the recorded ones do not have: clients of AMQP see what they do, and nonsense is refused."""

from __future__ import annotations

import json
import random

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.management.scenario import requests
from fakeamqp import Broker


@pytest.fixture
def broker():
    with Broker(management=True) as broker:
        yield broker
        assert broker.failures == ()


@pytest.fixture
def api(broker):
    return Api(broker.management_url)


def test_a_message_published_here_reaches_a_consumer(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.queue_declare("q")
    got = []
    channel.basic_consume("q", lambda *arguments: got.append(arguments))
    body = {"routing_key": "q", "payload": "héllo", "payload_encoding": "string"}
    properties = {"headers": {"a": [1, {"b": True}]}, "delivery_mode": 2, "content_type": "text/plain"}
    reply = api.post("exchanges/%2F/amq.default/publish", {**body, "properties": properties})
    assert reply.json == {"routed": True}
    while not got:
        connection.process_data_events(0.1)
    _, _, seen, payload = got[0]
    assert (payload.decode(), seen.headers, seen.delivery_mode) == ("héllo", {"a": [1, {"b": True}]}, 2)
    connection.close()


def test_tracing_of_a_virtual_host_switches_the_firehose(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
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
    connection.close()


def test_messages_of_requests_are_copied_by_the_firehose(broker, api):
    broker.set_firehose()
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
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
    connection.close()


def test_the_client_is_told_why_its_connection_was_closed(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    name = api.get("connections")[0]["name"].replace(" ", "%20").replace(">", "%3E")
    assert api.request("DELETE", f"connections/{name}", headers={"X-Reason": "enough"}).status == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="CONNECTION_FORCED - enough"):
        while True:
            connection.process_data_events(0.1)


def test_rejected_messages_are_dead_lettered(broker, api):
    api.put("queues/%2F/dead", {})
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    api.put("queues/%2F/q", {"arguments": arguments})
    broker.publish(b"x", routing_key="q")
    took = api.post("queues/%2F/q/get", {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"})
    assert [each["payload"] for each in took.json] == ["x"]
    assert broker.queue("dead").ready == 1


def test_a_user_sees_and_does_what_its_tags_and_permissions_permit(broker, api):
    api.put("users/reader", {"password": "p", "tags": "management"})
    api.put("permissions/%2F/reader", {"configure": "^mine", "write": "^mine", "read": ".*"})
    reader = api.log_in("reader", "p")
    assert reader.put("queues/%2F/other", {}).status == 401
    assert reader.put("queues/%2F/mine", {}).status == 201
    assert [each["name"] for each in reader.get("queues")] == ["mine"]
    assert reader.delete("queues/%2F/mine").status == 204
    assert api.delete("users/reader").status == 204
    assert reader.request("GET", "whoami").status == 401


def test_a_body_that_is_too_large_is_refused(api):
    """Measured on RabbitMQ 4.3.6: 10 000 000 bytes, and the answer."""
    body = b'{"arguments": {"x": "%s"}}' % (b"x" * 10_000_000)
    chunks = (body[start : start + 65536] for start in range(0, len(body), 65536))
    for sent, headers in ((body, {}), (chunks, {})):
        reply = api.request("PUT", "queues/%2F/q", sent, headers)
        assert (reply.status, reply.json["reason"]) == (400, "Exceeded HTTP request body size limit")


def test_the_alarm_of_memory_fails_the_check(api):
    with Broker(management=True, memory_limit=1000) as broker:
        broker.publish(b"x" * 2000, routing_key="nowhere")
        api = Api(broker.management_url)
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


JUNK = (None, 5, -1, 1.5, True, "", "x" * 300, "é", [], [1], ["a", None], {}, {"a": 1}, {"a": None}, "*", "(")


def test_nonsense_is_refused_and_never_a_bug(api):
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
def test_definitions_are_taken_as_json_only(api: Api, kind: str):
    """Measured on RabbitMQ 4.3.6, which takes any type elsewhere."""
    assert api.request("POST", "definitions", {}, {"content-type": kind}).status == 415
    assert (
        api.request("POST", "definitions", {}, {"content-type": "application/json; charset=utf-8"}).status
        == 204
    )
