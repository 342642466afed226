"""Requests that the recorded ones do not have: clients of AMQP see what they do, and nonsense is refused."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.management.scenario import requests
from compat_tests.tools.matrix import cases
from fakeamqp import Broker


@pytest.fixture
def broker():
    with Broker(management=True) as broker:
        yield broker
        assert broker.failures == ()


@pytest.fixture
def api(broker):
    return Api(broker.management_url)


def test_message_published_by_http_reaches_a_consumer(broker, api):
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


LONG = "x" * 256
PUBLISH = {"routing_key": "", "payload": "", "payload_encoding": "string", "properties": {}}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
REFUSED: list[tuple[str, str, Any, int, Any]] = [
    ("PUT", "users/u", {"password": "p", "tags": 5}, 400, ["not_list_of_strings", "tags"]),
    ("PUT", "users/u", {"password": "p", "tags": ["a", 1]}, 400, ["not_list_of_strings", "tags"]),
    ("PUT", "users/u", {"password": "p"}, 400, "tags_not_present"),
    (
        "PUT",
        "users/u",
        {"password": "p", "password_hash": "x", "tags": ""},
        400,
        "both_password_and_password_hash_are_provided",
    ),
    ("PUT", "users/u", {"password_hash": "%", "tags": ""}, 400, ["not_base64", "%"]),
    ("PUT", "users/u", {"password_hash": 5, "tags": ""}, 400, ["not_base64", "5"]),
    ("PUT", "users/u", [], 400, "not_json"),
    ("POST", "users/bulk-delete", {"users": 5}, 400, ["not_list", 5]),
    ("POST", "users/bulk-delete", {}, 400, "[{key_missing,users}]"),
    ("PUT", "queues/%2F/q", {"durable": 5}, 400, ["not_boolean", 5]),
    ("PUT", "queues/%2F/q", {"auto_delete": "yes"}, 400, ["not_boolean", "yes"]),
    ("PUT", "queues/%2F/q", {"arguments": {"a": None}}, 400, "null_not_allowed"),
    ("PUT", "queues/%2F/q", {"arguments": {"a": [{"b": None}]}}, 400, "null_not_allowed"),
    ("PUT", "queues/%2F/q", {"node": "elsewhere"}, 400, "Node elsewhere is not a cluster member"),
    ("PUT", "queues/%2F/q", "text", 400, "not_json"),
    ("PUT", f"queues/%2F/{LONG}", {}, 400, "queue should be less than 255 bytes, actually was 256\n"),
    ("PUT", "queues/missing/q", {}, 404, "vhost_not_found"),
    ("GET", "queues/missing/q", None, 404, "Not Found"),
    ("GET", "queues/%2F/missing", None, 404, "Not Found"),
    ("POST", "queues/%2F/there/actions", {"action": "x"}, 400, ["unknown", "x"]),
    ("POST", "queues/%2F/there/actions", {}, 400, "[{key_missing,action}]"),
    ("PUT", "exchanges/%2F/x", {"type": 5}, 400, ["not_string", 5]),
    (
        "PUT",
        f"exchanges/%2F/{LONG}",
        {"type": "direct"},
        400,
        "exchange should be less than 255 bytes, actually was 256\n",
    ),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        {},
        400,
        "[{key_missing,routing_key},{key_missing,payload},{key_missing,payload_encoding},{key_missing,properties}]",
    ),
    ("POST", "exchanges/%2F/amq.direct/publish", PUBLISH | {"routing_key": 5}, 400, ["not_string", 5]),
    ("POST", "exchanges/%2F/amq.direct/publish", PUBLISH | {"payload": 5}, 400, "payload_not_string"),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"payload": "%", "payload_encoding": "base64"},
        400,
        ["not_base64", "%"],
    ),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"payload_encoding": "x"},
        400,
        ["unsupported_encoding", "x"],
    ),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"properties": {"priority": "x"}},
        400,
        ["not_int", "priority"],
    ),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"properties": {"content_type": 5}},
        400,
        ["not_string", "content_type"],
    ),
    ("POST", "exchanges/%2F/missing/publish", PUBLISH, 404, "exchange_not_found"),
    (
        "POST",
        "queues/%2F/there/get",
        {},
        400,
        "[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]",
    ),
    ("POST", "queues/%2F/there/get", GET | {"count": "x"}, 400, ["not_int", "count"]),
    (
        "POST",
        "queues/%2F/there/get",
        GET | {"ackmode": "x"},
        400,
        "Invalid ackmode value: x. Valid values are: ack_requeue_true, ack_requeue_false,"
        " reject_requeue_true, reject_requeue_false",
    ),
    (
        "POST",
        "queues/%2F/there/get",
        GET | {"encoding": "x"},
        400,
        "Unsupported encoding. Please use auto or base64.",
    ),
    ("POST", "queues/%2F/there/get", GET | {"truncate": "x"}, 400, ["not_int", "truncate"]),
    ("POST", "queues/%2F/missing/get", GET, 404, "queue_not_found"),
    ("PUT", "parameters/policy/%2F/p", {"value": {}}, 400, "policies may not be set using this method"),
    (
        "PUT",
        "parameters/component/%2F/p",
        {"value": {}},
        400,
        "Validation failed\n\ncomponent component not found\n",
    ),
    (
        "PUT",
        "policies/%2F/p",
        {"pattern": "(", "definition": {"max-length": 1}},
        400,
        'Validation failed\n\npattern should be regular expression but is invalid: {"missing )",1}\n',
    ),
    (
        "PUT",
        "policies/%2F/p",
        {"pattern": "a", "definition": {"max-length": "x"}},
        400,
        'Validation failed\n\n<<"x">> is not a valid maximum length\n',
    ),
    (
        "PUT",
        "policies/%2F/p",
        {"pattern": "a", "definition": {}},
        400,
        "Validation failed\n\nno policy provided\n",
    ),
    ("PUT", "policies/%2F/p", {}, 400, "[{key_missing,pattern},{key_missing,definition}]"),
    (
        "PUT",
        "permissions/%2F/missing",
        {"configure": "", "write": "", "read": ""},
        400,
        "vhost_or_user_not_found",
    ),
    (
        "PUT",
        "permissions/missing/guest",
        {"configure": "", "write": "", "read": ""},
        400,
        "vhost_or_user_not_found",
    ),
    ("PUT", "permissions/%2F/guest", {"configure": 5, "write": "", "read": ""}, 400, ["not_string", 5]),
    (
        "PUT",
        "permissions/%2F/guest",
        {"configure": "(", "write": "", "read": ""},
        400,
        ["invalid_regexp", [40], [[109, 105, 115, 115, 105, 110, 103, 32, 41], 1]],
    ),
    ("PUT", "topic-permissions/%2F/guest", {"exchange": 5, "write": "", "read": ""}, 400, ["not_string", 5]),
    (
        "PUT",
        "topic-permissions/%2F/guest",
        {"exchange": "missing", "write": "", "read": ""},
        400,
        ["no_such_exchange", "missing"],
    ),
    ("PUT", "vhosts/v", {"default_queue_type": "x"}, 400, "x is not a valid queue type"),
    ("PUT", "vhosts/v", {"tags": 5}, 400, ["not_list_of_strings", "tags"]),
    ("PUT", "user-limits/missing/max-connections", {"value": 1}, 400, ["no_such_user", "missing"]),
    (
        "PUT",
        "user-limits/guest/max-connections",
        {"value": "x"},
        400,
        'max-connections should be a number, actually was <<"x">>',
    ),
    (
        "PUT",
        "user-limits/guest/max-x",
        {"value": 1},
        400,
        'Unrecognised terms [{<<"max-x">>,1}] in user-limits',
    ),
    (
        "PUT",
        "vhost-limits/%2F/max-connections",
        {"value": "x"},
        400,
        'Validation failed\n\nmax-connections should be a number, actually was <<"x">>\n',
    ),
    (
        "PUT",
        "vhost-limits/%2F/max-x",
        {"value": 1},
        400,
        'Validation failed\n\nUnrecognised terms [{<<"max-x">>,1}] in limits\n',
    ),
    ("GET", "queues?page=0", None, 400, "Invalid pagination parameters: page number 0, page size 100"),
    ("GET", "queues?page=x", None, 400, "Pagination parameters are invalid"),
    ("GET", "queues?page=2", None, 400, "Page out of range, page: 2 page size: 100, len: 1"),
    (
        "GET",
        "queues?page=1&page_size=501",
        None,
        400,
        "Invalid pagination parameters: page number 1, page size 501",
    ),
    (
        "GET",
        "queues?page=1&page_size=0",
        None,
        400,
        "Invalid pagination parameters: page number 1, page size 0",
    ),
    ("GET", "queues?page=1&page_size=x", None, 400, "Pagination parameters are invalid"),
    (
        "GET",
        "health/checks/certificate-expiration/1/centuries",
        None,
        400,
        "Time unit not recognised. Supported units: days, weeks, months, years.",
    ),
    ("GET", "health/checks/certificate-expiration/x/days", None, 400, "Invalid expiration value."),
    ("GET", "health/checks/port-listener/x", None, 400, "Invalid port"),
    ("GET", "health/checks/port-listener/1", None, 503, "No active listener"),
    ("GET", "health/checks/protocol-listener/x", None, 503, "No active listener"),
    ("POST", "definitions", [], 400, "failed_to_parse_json"),
    (
        "POST",
        "definitions/missing",
        {},
        400,
        "definitions: they are for virtual host 'missing', which does not exist; add it first,"
        " with broker.add_virtual_host('missing')",
    ),
    ("POST", "definitions", {"queues": 5}, 400, "definitions: queues must be a list of objects, got 5"),
    ("PUT", "feature-flags/x/enable", {}, 400, "unsupported"),
    ("DELETE", "vhosts/missing", None, 404, "Not Found"),
    ("DELETE", "queues/%2F/missing", None, 404, "Not Found"),
    ("DELETE", "exchanges/%2F/amq.direct", None, 401, "Access refused."),
    ("DELETE", "users/missing", None, 404, "Not Found"),
    ("DELETE", "connections/missing", None, 404, "Not Found"),
    ("PATCH", "queues/%2F/there", {}, 405, None),
    ("POST", "queues/%2F/there/get", GET | {"count": None}, 400, ["not_int", "count"]),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"properties": {"user_id": "other"}},
        400,
        "406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'guest'",
    ),
    (
        "POST",
        "exchanges/%2F/amq.direct/publish",
        PUBLISH | {"properties": {"priority": 300}},
        400,
        "basic properties, field priority: 300 is not between 0 and 255",
    ),
    ("GET", "parameters/vhost-limits/%2F/limits", None, 404, "Not Found"),
    ("GET", "healthchecks/node/elsewhere", None, 404, "Not Found"),
    ("GET", "auth/attempts/elsewhere", None, 404, "Not Found"),
    ("GET", "nodes/elsewhere", None, 404, "Not Found"),
    ("GET", "nodes/elsewhere/memory", None, 404, "Not Found"),
    ("POST", "vhosts/%2F/start/elsewhere", None, 404, "Not Found"),
    ("POST", "rebalance/elsewhere", None, 404, "Not Found"),
    ("GET", "channels/elsewhere", None, 404, "Not Found"),
    ("GET", "user-limits/missing", None, 404, "Not Found"),
    ("DELETE", "user-limits/missing/max-channels", None, 404, "Not Found"),
    ("DELETE", "exchanges/%2F/amq.default", None, 401, "Access refused."),
    ("POST", "bindings/%2F/e/amq.direct/q/missing", {}, 404, "no queue 'missing' in vhost '/'"),
    ("POST", "bindings/%2F/e/amq.direct/e/missing", {}, 404, "no exchange 'missing' in vhost '/'"),
]


def test_wrong_requests_are_refused_with_a_status_and_a_reason(api):
    api.put("queues/%2F/there", {})
    with cases() as case:
        for method, path, body, status, reason in REFUSED:
            with case(method, path, body):
                reply = api.request(method, path, body)
                assert (reply.status, reply.json.get("reason") if reply.body else None) == (status, reason)
    assert [each["name"] for each in api.get("queues?page=1&page_size=500")["items"]] == ["there"]


NODE = "fakeamqp@localhost"
OK = {"status": "ok"}
IMPLICIT = {
    **{"source": "", "vhost": "/", "destination": "there", "destination_type": "queue"},
    **{"routing_key": "there", "arguments": {}, "properties_key": "there"},
}
PAGE = {
    **{"filtered_count": 1, "item_count": 1, "page": 1, "page_count": 1, "page_size": 100},
    "total_count": 1,
}
LIMITS = {"value": {"max-queues": 5}, "vhost": "/", "component": "vhost-limits", "name": "limits"}
HASHED = {"password_hash": "AAAA" * 22 + "AAA=", "tags": " a, b,"}  # Of 68 bytes.
SCRIPT: list[tuple[str, str, Any, int, Any]] = [
    ("PUT", "parameters/vhost-limits/%2F/limits", {"value": {"max-queues": 4}}, 201, None),
    ("PUT", "parameters/vhost-limits/%2F/limits", {"value": {"max-queues": 5}}, 204, None),
    *(
        ("GET", f"parameters{path}", None, 200, [LIMITS])
        for path in ("", "/vhost-limits", "/vhost-limits/%2F")
    ),
    ("GET", "parameters/nothing", None, 200, []),
    ("GET", "parameters/vhost-limits/%2F/limits", None, 200, LIMITS),
    ("GET", "parameters/vhost-limits/%2F/other", None, 404, "Not Found"),
    ("GET", "vhost-limits", None, 200, [{"vhost": "/", "value": {"max-queues": 5}}]),
    ("PUT", "vhost-limits/%2F/max-connections", {"value": 9}, 204, None),
    (
        "GET",
        "vhost-limits/%2F",
        None,
        200,
        [{"vhost": "/", "value": {"max-queues": 5, "max-connections": 9}}],
    ),
    ("DELETE", "vhost-limits/%2F/max-queues", None, 204, None),
    ("GET", "vhost-limits", None, 200, [{"vhost": "/", "value": {"max-connections": 9}}]),
    ("DELETE", "parameters/vhost-limits/%2F/other", None, 404, "Not Found"),
    ("DELETE", "parameters/other/%2F/limits", None, 404, "Not Found"),
    ("DELETE", "parameters/vhost-limits/%2F/limits", None, 204, None),
    ("DELETE", "parameters/vhost-limits/%2F/limits", None, 404, "Not Found"),
    ("GET", "vhost-limits", None, 200, []),
    ("PUT", "user-limits/guest/max-channels", {"value": 7}, 204, None),
    ("PUT", "user-limits/guest/max-connections", {"value": 8}, 204, None),
    ("DELETE", "user-limits/guest/max-channels", None, 204, None),
    ("GET", "user-limits/guest", None, 200, [{"user": "guest", "value": {"max-connections": 8}}]),
    ("GET", "user-limits", None, 200, [{"user": "guest", "value": {"max-connections": 8}}]),
    ("DELETE", "user-limits/guest/max-connections", None, 204, None),
    ("GET", "user-limits", None, 200, []),
    ("PUT", "global-parameters/mine", {"value": [1]}, 201, None),
    ("PUT", "global-parameters/mine", {"value": [2]}, 204, None),
    ("GET", "global-parameters/mine", None, 200, {"name": "mine", "value": [2]}),
    ("DELETE", "global-parameters/mine", None, 204, None),
    ("GET", "global-parameters/mine", None, 404, "Not Found"),
    ("PUT", "cluster-name", {"name": "mine"}, 204, None),
    ("GET", "cluster-name", None, 200, {"name": "mine"}),
    ("GET", "healthchecks/node", None, 200, OK),
    ("GET", f"healthchecks/node/{NODE}", None, 200, OK),
    ("PUT", "queues/%2F/there", {}, 201, None),
    ("GET", "bindings/%2F/e/amq.default/q/there", None, 200, [IMPLICIT]),
    ("GET", "bindings/%2F/e/amq.default/q/there/there", None, 200, IMPLICIT),
    ("GET", "bindings/%2F/e/amq.default/q/there/other", None, 404, "Not Found"),
    ("GET", "exchanges/%2F/amq.default/bindings/source", None, 200, [IMPLICIT]),
    ("GET", "exchanges/%2F/amq.direct/bindings/source", None, 200, []),
    ("GET", "queues/%2F/there/bindings", None, 200, [IMPLICIT]),
    ("GET", "queues/%2F/there/bindings?columns=routing_key", None, 200, [{"routing_key": "there"}]),
    ("GET", "vhosts?page=1&columns=name", None, 200, PAGE | {"items": [{"name": "/"}]}),
    ("DELETE", "queues/%2F/there?if-unused=true&if-empty=true", None, 204, None),
    ("POST", f"vhosts/%2F/start/{NODE}", None, 204, None),
    ("POST", "rebalance/queues", None, 204, None),
    ("GET", "health/checks/alarms", None, 200, OK),
    ("GET", "health/checks/local-alarms", None, 200, OK),
    ("PUT", "vhosts/v", {"default_queue_type": "undefined", "tags": "a, b"}, 201, None),
    ("PUT", "vhosts/v", {"default_queue_type": "", "description": "d"}, 204, None),
    ("DELETE", "vhosts/v", None, 204, None),
    ("PUT", "users/h", {"password_hash": "AAAA", "tags": ""}, 400, None),
    ("PUT", "users/h", HASHED | {"hashing_algorithm": "rabbit_password_hashing_sha256"}, 400, None),
    ("PUT", "users/h", HASHED | {"hashing_algorithm": None}, 400, None),
    ("GET", "users/h", None, 404, "Not Found"),
    ("PUT", "users/h", HASHED | {"hashing_algorithm": "rabbit_password_hashing_sha512"}, 201, None),
    (
        "GET",
        "users/h",
        None,
        200,
        {
            **{"name": "h", "password_hash": HASHED["password_hash"], "tags": ["a", "b"], "limits": {}},
            "hashing_algorithm": "rabbit_password_hashing_sha512",
        },
    ),
    ("POST", "users/bulk-delete", {"users": ["h", "nobody", 5]}, 204, None),
    ("GET", "users/h", None, 404, "Not Found"),
]


def test_sequence_of_requests_gets_the_expected_answers(api):
    """Later requests see what earlier ones have changed."""
    for number, (method, path, body, status, answer) in enumerate(SCRIPT):
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
        api = Api(broker.management_url)
        api.put("users/u", {"password": "p", "tags": "management"})
        user = api.log_in("u", "p")
        for pattern, status in (("^other$", 401), ("^aliveness-test$", 200)):
            api.put("permissions/%2F/u", {"configure": pattern, "write": "", "read": ""})
            assert user.request("GET", "aliveness-test/%2F").status == status
            assert [each.name for each in broker.queues()] == ["aliveness-test"] * (status == 200)
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
        api = Api(broker.management_url)
        amqp, http = api.get("overview")["listeners"]
        assert [(each["protocol"], each["port"], each["tls"]) for each in (amqp, http)] == [
            *(("amqp/ssl", broker.port, True), ("http", broker.management_port, False)),
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
