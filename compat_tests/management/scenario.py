"""What is asked of the HTTP API: requests in order, with a state made by AMQP and by HTTP.

Each request has a name. The same requests run on RabbitMQ and on the broker, and their answers are compared
by name (`comparison.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pika

from compat_tests.management.client import Api, Reply

__all__ = ["Request", "Target", "requests", "run"]

PASSWORD = "secret"
_PATIENCE = 30.0
_POLL = 0.1


@dataclass(frozen=True)
class Request:
    """One request.

    `path` is below `/api/` and may contain `{connection}`, `{channel}`, `{node}` and `{props}`. `user` is one
    of the scenario, or "" for none. `until` repeats the request until it is true of the answer: RabbitMQ
    collects its statistics every now and then.
    """

    name: str
    method: str
    path: str
    body: Any = None
    user: str = "guest"
    until: Callable[[Any], object] | None = field(default=None, repr=False)
    headers: dict[str, str] | None = None


@dataclass(frozen=True)
class Target:
    """A broker: its AMQP port and the URL of its HTTP API, with guest's credentials."""

    port: int
    url: str


def get(name: str, path: str, **more: Any) -> Request:
    return Request(name, "GET", path, **more)


def put(name: str, path: str, body: Any = None, **more: Any) -> Request:
    return Request(name, "PUT", path, {} if body is None else body, **more)


def post(name: str, path: str, body: Any = None, **more: Any) -> Request:
    return Request(name, "POST", path, {} if body is None else body, **more)


def delete(name: str, path: str, **more: Any) -> Request:
    return Request(name, "DELETE", path, **more)


def _has(**wanted: Any) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, dict) and all(found.get(k) == v for k, v in wanted.items())


def _published(headers: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    properties = {} if headers is None else {"headers": headers}
    return {
        "properties": properties,
        "routing_key": "work",
        "payload": "hello",
        "payload_encoding": "string",
        **more,
    }


BINARY = "AAH/gA=="

ACCESS = (
    get("login/none", "whoami", user=""),
    get("login/wrong-password", "whoami", user="wrong"),
    get("login/unknown-user", "whoami", user="nobody"),
    get("whoami", "whoami"),
    get("path/unknown", "nothing"),
    delete("method/not-allowed", "overview"),
    post("method/post-not-allowed", "queues"),
    put("vhosts/declare", "vhosts/v%2F1", {"description": "second", "tags": "one,two"}),
    put("vhosts/declare-again", "vhosts/v%2F1", {"description": "second", "tags": "one,two"}),
    put("vhosts/declare-changed", "vhosts/v%2F1", {"description": "changed"}),
    put("vhosts/declare-quorum", "vhosts/quorums", {"default_queue_type": "quorum", "tracing": False}),
    put("vhosts/declare-bad-type", "vhosts/bad", {"default_queue_type": "nosuch"}),
    get("vhosts/get", "vhosts/v%2F1"),
    get("vhosts/get-quorum", "vhosts/quorums"),
    get("vhosts/get-missing", "vhosts/missing"),
    get("vhosts/list", "vhosts"),
    delete("vhosts/delete-missing", "vhosts/missing"),
    put("users/admin", "users/admin2", {"password": PASSWORD, "tags": "administrator"}),
    put("users/monitor", "users/monitor", {"password": PASSWORD, "tags": "monitoring"}),
    put("users/policymaker", "users/policymaker", {"password": PASSWORD, "tags": "policymaker"}),
    put("users/manager", "users/manager", {"password": PASSWORD, "tags": "management"}),
    put("users/plain", "users/plain", {"password": PASSWORD, "tags": ""}),
    put("users/tags-list", "users/listed", {"password": PASSWORD, "tags": ["management", "mine"]}),
    put("users/again", "users/manager", {"password": PASSWORD, "tags": "management"}),
    put("users/without-tags", "users/untagged", {"password": PASSWORD}),
    put("users/without-password", "users/passwordless", {"tags": "management"}),
    put("users/blank-password", "users/blank", {"password": "", "tags": "management"}),
    put(
        "users/hash",
        "users/hashed",
        {"password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ""},
    ),
    put("users/bad-hash", "users/badhash", {"password_hash": "not base64!", "tags": ""}),
    put(
        "users/both",
        "users/both",
        {"password": "a", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ""},
    ),
    put("users/not-json", "users/notjson", b"{nonsense"),
    put("users/json-list", "users/notjson", b"[]"),
    put("users/no-body", "users/nobody", b""),
    get("users/get", "users/manager"),
    get("users/get-hash-algorithm", "users/hashed"),
    get("users/get-missing", "users/missing"),
    get("users/list", "users"),
    get("users/without-permissions", "users/without-permissions"),
    delete("users/delete", "users/both"),
    delete("users/delete-missing", "users/missing"),
    post("users/bulk-delete", "users/bulk-delete", {"users": ["blank", "listed"]}),
    post("users/bulk-delete-missing", "users/bulk-delete", {"users": ["missing"]}),
    post("users/bulk-delete-empty", "users/bulk-delete", {}),
    put("permissions/set", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*", "read": "^r"}),
    put(
        "permissions/set-again", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*", "read": ".*"}
    ),
    put(
        "permissions/policymaker",
        "permissions/%2F/policymaker",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    put(
        "permissions/policymaker-2",
        "permissions/v%2F1/policymaker",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    put("permissions/plain", "permissions/%2F/plain", {"configure": "", "write": "", "read": ""}),
    put("permissions/missing-key", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*"}),
    put(
        "permissions/bad-pattern",
        "permissions/v%2F1/manager",
        {"configure": "*", "write": ".*", "read": ".*"},
    ),
    put("permissions/no-user", "permissions/v%2F1/missing", {"configure": ".*", "write": ".*", "read": ".*"}),
    put(
        "permissions/no-vhost",
        "permissions/missing/manager",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    get("permissions/get", "permissions/v%2F1/manager"),
    get("permissions/get-missing", "permissions/%2F/manager"),
    get("permissions/get-no-user", "permissions/%2F/missing"),
    get("permissions/get-no-vhost", "permissions/missing/manager"),
    get("permissions/list", "permissions"),
    get("permissions/of-user", "users/manager/permissions"),
    get("permissions/of-missing-user", "users/missing/permissions"),
    get("permissions/of-vhost", "vhosts/v%2F1/permissions"),
    get("permissions/of-missing-vhost", "vhosts/missing/permissions"),
    put(
        "topic/set", "topic-permissions/v%2F1/manager", {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    ),
    put(
        "topic/set-other",
        "topic-permissions/v%2F1/manager",
        {"exchange": "other", "write": "^b", "read": "^c"},
    ),
    put("topic/missing-key", "topic-permissions/v%2F1/manager", {"exchange": "amq.topic"}),
    get("topic/get", "topic-permissions/v%2F1/manager"),
    get("topic/get-none", "topic-permissions/%2F/manager"),
    get("topic/list", "topic-permissions"),
    get("topic/of-user", "users/manager/topic-permissions"),
    get("topic/of-vhost", "vhosts/v%2F1/topic-permissions"),
    delete("topic/delete", "topic-permissions/v%2F1/manager"),
    delete("topic/delete-missing", "topic-permissions/%2F/guest"),
    delete("permissions/delete", "permissions/%2F/plain"),
    delete("permissions/delete-missing", "permissions/%2F/plain"),
    # What each tag permits.
    get("tags/none", "whoami", user="plain"),
    get("tags/untagged", "overview", user="untagged"),
    get("tags/manager-whoami", "whoami", user="manager"),
    get("tags/manager-overview", "overview", user="manager"),
    get("tags/manager-users", "users", user="manager"),
    get("tags/manager-vhosts", "vhosts", user="manager"),
    get("tags/manager-nodes", "nodes", user="manager"),
    get("tags/manager-permissions", "permissions", user="manager"),
    get("tags/manager-queues", "queues", user="manager"),
    get("tags/manager-other-vhost", "queues/%2F", user="manager"),
    get("tags/manager-missing-vhost", "queues/missing", user="manager"),
    put(
        "tags/manager-policy",
        "policies/v%2F1/p",
        {"pattern": ".*", "definition": {"max-length": 1}},
        user="manager",
    ),
    get("tags/manager-policies", "policies/v%2F1", user="manager"),
    get("tags/manager-definitions", "definitions", user="manager"),
    get("tags/manager-vhost-definitions", "definitions/v%2F1", user="manager"),
    get("tags/manager-cluster-name", "cluster-name", user="manager"),
    put("tags/manager-set-cluster-name", "cluster-name", {"name": "mine"}, user="manager"),
    get("tags/manager-connections", "connections", user="manager"),
    get("tags/manager-feature-flags", "feature-flags", user="manager"),
    put("tags/manager-vhost", "vhosts/mine", user="manager"),
    get("tags/monitor-users", "users", user="monitor"),
    get("tags/monitor-nodes-count", "nodes?columns=type,running", user="monitor"),
    get("tags/monitor-vhosts", "vhosts?columns=name", user="monitor"),
    get("tags/monitor-queues", "queues/%2F", user="monitor"),
    put("tags/monitor-declare", "queues/%2F/mine", user="monitor"),
    put(
        "tags/monitor-policy",
        "policies/%2F/p",
        {"pattern": ".*", "definition": {"max-length": 1}},
        user="monitor",
    ),
    get("tags/policymaker-policies", "policies/%2F", user="policymaker"),
    get("tags/policymaker-nodes", "nodes", user="policymaker"),
    get("tags/policymaker-connections", "connections", user="policymaker"),
    put(
        "tags/policymaker-operator",
        "operator-policies/%2F/p",
        {"pattern": "x", "definition": {"max-length": 1}},
        user="policymaker",
    ),
    get("tags/policymaker-operators", "operator-policies", user="policymaker"),
    put("tags/policymaker-limit", "vhost-limits/%2F/max-queues", {"value": 100}, user="policymaker"),
    put("tags/policymaker-global", "global-parameters/mine", {"value": 1}, user="policymaker"),
)

TOPOLOGY = (
    put("exchanges/declare", "exchanges/%2F/events", {"type": "topic", "durable": True}),
    put("exchanges/declare-again", "exchanges/%2F/events", {"type": "topic", "durable": True}),
    put("exchanges/declare-other", "exchanges/%2F/events", {"type": "fanout", "durable": True}),
    put(
        "exchanges/declare-all",
        "exchanges/v%2F1/a%2Fb%20c",
        {
            "type": "headers",
            "durable": False,
            "auto_delete": True,
            "internal": True,
            "arguments": {"alternate-exchange": "amq.fanout"},
        },
    ),
    put("exchanges/declare-default-type", "exchanges/%2F/plain", {}),
    put("exchanges/declare-bad-type", "exchanges/%2F/odd", {"type": "nosuch"}),
    put("exchanges/declare-amq", "exchanges/%2F/amq.mine", {"type": "direct"}),
    put("exchanges/declare-no-vhost", "exchanges/missing/x", {"type": "direct"}),
    put("exchanges/declare-bad-durable", "exchanges/%2F/odd", {"type": "direct", "durable": "maybe"}),
    put("exchanges/declare-bad-arguments", "exchanges/%2F/odd", {"type": "direct", "arguments": []}),
    put("exchanges/declare-string-durable", "exchanges/%2F/stringy", {"type": "direct", "durable": "true"}),
    get("exchanges/get", "exchanges/%2F/events"),
    get("exchanges/get-all", "exchanges/v%2F1/a%2Fb%20c"),
    get("exchanges/get-default", "exchanges/%2F/amq.default"),
    get("exchanges/get-missing", "exchanges/%2F/missing"),
    get("exchanges/get-no-vhost", "exchanges/missing/amq.direct"),
    get("exchanges/list-vhost", "exchanges/v%2F1"),
    get("exchanges/list-missing-vhost", "exchanges/missing"),
    get("exchanges/list-columns", "exchanges?columns=name,type,vhost"),
    put("queues/declare", "queues/%2F/work", {"durable": True}),
    put("queues/declare-again", "queues/%2F/work", {"durable": True}),
    put("queues/declare-other", "queues/%2F/work", {"durable": True, "auto_delete": True}),
    put(
        "queues/declare-arguments",
        "queues/%2F/limited",
        {
            "durable": True,
            "arguments": {
                "x-max-length": 10,
                "x-message-ttl": 60000,
                "x-dead-letter-exchange": "",
                "x-queue-type": "classic",
            },
        },
    ),
    put("queues/declare-bad-argument", "queues/%2F/odd", {"arguments": {"x-max-length": -1}}),
    put("queues/declare-bad-argument-type", "queues/%2F/odd", {"arguments": {"x-message-ttl": "soon"}}),
    put(
        "queues/declare-quorum", "queues/%2F/safe", {"durable": True, "arguments": {"x-queue-type": "quorum"}}
    ),
    put(
        "queues/declare-stream", "queues/%2F/log", {"durable": True, "arguments": {"x-queue-type": "stream"}}
    ),
    put("queues/declare-default-durable", "queues/v%2F1/undecided", {}),
    put("queues/declare-auto-delete", "queues/%2F/short", {"auto_delete": True}),
    put("queues/declare-amq", "queues/%2F/amq.mine", {}),
    put("queues/declare-slash", "queues/v%2F1/q%2F1%20%C3%A9", {"durable": True}),
    put("queues/declare-no-vhost", "queues/missing/x", {}),
    put("queues/declare-bad-json", "queues/%2F/odd", b"{"),
    put("queues/declare-no-body", "queues/%2F/nobody", b""),
    put("queues/declare-bad-node", "queues/%2F/noded", {"node": "rabbit@nowhere"}),
    put("queues/declare-default-quorum", "queues/quorums/q", {"durable": True}),
    get("queues/get", "queues/%2F/work", until=lambda q: "consumers" in q and "messages" in q),
    get("queues/get-quorum", "queues/%2F/safe", until=lambda q: "consumers" in q and "messages" in q),
    get("queues/get-stream", "queues/%2F/log", until=lambda q: "consumers" in q and "messages" in q),
    get("queues/get-arguments", "queues/%2F/limited", until=lambda q: "consumers" in q and "messages" in q),
    get(
        "queues/get-default-quorum", "queues/quorums/q", until=lambda q: "consumers" in q and "messages" in q
    ),
    get(
        "queues/get-slash",
        "queues/v%2F1/q%2F1%20%C3%A9",
        until=lambda q: "consumers" in q and "messages" in q,
    ),
    get("queues/get-missing", "queues/%2F/missing"),
    get("queues/get-no-vhost", "queues/missing/work"),
    get("queues/get-no-stats", "queues/%2F/work?disable_stats=true"),
    get("queues/list-vhost", "queues/v%2F1?sort=name"),
    get("queues/list-missing-vhost", "queues/missing"),
    get("queues/columns", "queues?columns=name,vhost,arguments.x-max-length&sort=name"),
    get("queues/sort-reverse", "queues/%2F?columns=name&sort=name&sort_reverse=true"),
    get("queues/page", "queues?page=1&page_size=3&columns=name&sort=name"),
    get("queues/page-2", "queues?page=2&page_size=3&columns=name&sort=name"),
    get("queues/page-name", "queues?page=1&page_size=5&name=o&columns=name&sort=name"),
    get(
        "queues/page-regex",
        "queues?page=1&page_size=5&name=%5E%5Bws%5D&use_regex=true&columns=name&sort=name",
    ),
    get("queues/page-out-of-range", "queues?page=9&page_size=3"),
    get("queues/page-zero", "queues?page=0&page_size=3"),
    get("queues/page-word", "queues?page=one"),
    get("queues/page-size-too-large", "queues?page=1&page_size=501"),
    get("queues/page-bad-regex", "queues?page=1&page_size=5&name=*&use_regex=true"),
    get("queues/page-full", "queues?page=1&page_size=2&name=work&pagination=true"),
    get("queues/sort-number", "queues/%2F?columns=name,durable&sort=durable"),
    get("queues/sort-unknown", "queues/quorums?columns=name&sort=nothing"),
    get("queues/detailed", "queues/detailed?columns=name,vhost&sort=name"),
    post("bindings/queue", "bindings/%2F/e/events/q/work", {"routing_key": "work.#", "arguments": {}}),
    post("bindings/queue-again", "bindings/%2F/e/events/q/work", {"routing_key": "work.#", "arguments": {}}),
    post(
        "bindings/queue-arguments",
        "bindings/%2F/e/amq.headers/q/work",
        {"routing_key": "", "arguments": {"x-match": "all", "colour": "red", "n": 1}},
    ),
    post("bindings/exchange", "bindings/%2F/e/events/e/amq.fanout", {"routing_key": "all"}),
    post("bindings/empty-body", "bindings/%2F/e/amq.direct/q/work", {}),
    post("bindings/odd-key", "bindings/%2F/e/amq.direct/q/work", {"routing_key": "a~b%20c/d é"}),
    post("bindings/no-exchange", "bindings/%2F/e/missing/q/work", {"routing_key": "x"}),
    post("bindings/no-queue", "bindings/%2F/e/events/q/missing", {"routing_key": "x"}),
    post("bindings/no-vhost", "bindings/missing/e/events/q/work", {"routing_key": "x"}),
    post(
        "bindings/bad-arguments",
        "bindings/%2F/e/amq.headers/q/work",
        {"routing_key": "", "arguments": {"x-match": "some"}},
    ),
    get("bindings/list", "bindings"),
    get("bindings/vhost", "bindings/%2F"),
    get("bindings/missing-vhost", "bindings/missing"),
    get("bindings/between", "bindings/%2F/e/events/q/work"),
    get("bindings/between-default", "bindings/%2F/e/amq.default/q/work"),
    get("bindings/between-exchanges", "bindings/%2F/e/events/e/amq.fanout"),
    get("bindings/between-none", "bindings/%2F/e/events/q/safe"),
    get("bindings/between-missing", "bindings/%2F/e/missing/q/work"),
    get("bindings/between-missing-queue", "bindings/%2F/e/events/q/missing"),
    get("bindings/of-queue", "queues/%2F/work/bindings"),
    get("bindings/of-missing-queue", "queues/%2F/missing/bindings"),
    get("bindings/source", "exchanges/%2F/events/bindings/source"),
    get("bindings/destination", "exchanges/%2F/amq.fanout/bindings/destination"),
    get("bindings/source-missing", "exchanges/%2F/missing/bindings/source"),
    get("bindings/get", "bindings/%2F/e/events/q/work/work.%23"),
    get("bindings/get-empty-key", "bindings/%2F/e/amq.direct/q/work/~"),
    get("bindings/get-odd-key", "bindings/%2F/e/amq.direct/q/work/a~b%2520c%252Fd%20%C3%A9"),
    get("bindings/get-arguments", "bindings/%2F/e/amq.headers/q/work/{props}"),
    get("bindings/get-missing", "bindings/%2F/e/events/q/work/nothing"),
    get("bindings/get-exchange", "bindings/%2F/e/events/e/amq.fanout/all"),
    put("bindings/put", "bindings/%2F/e/events/q/work/x", {}),
    delete("bindings/delete-missing", "bindings/%2F/e/events/q/work/nothing"),
    delete("bindings/delete-exchange", "bindings/%2F/e/events/e/amq.fanout/all"),
    delete("bindings/delete-arguments", "bindings/%2F/e/amq.headers/q/work/{props}"),
    delete("bindings/delete-empty-key", "bindings/%2F/e/amq.direct/q/work/~"),
)

MESSAGES = (
    post("publish/routed", "exchanges/%2F/amq.default/publish", _published()),
    post(
        "publish/properties",
        "exchanges/%2F/amq.default/publish",
        _published(
            {"n": 1, "s": "x", "t": {"a": [1, "b", True, 1.5]}},
            properties={
                "delivery_mode": 2,
                "content_type": "text/plain",
                "priority": 3,
                "correlation_id": "c",
                "reply_to": "r",
                "expiration": "60000",
                "message_id": "m",
                "timestamp": 1700000000,
                "type": "ty",
                "user_id": "guest",
                "app_id": "a",
                "content_encoding": "utf-8",
                "headers": {"n": 1, "s": "x", "t": {"a": [1, "b", True, 1.5]}},
            },
        ),
    ),
    post(
        "publish/base64",
        "exchanges/%2F/amq.default/publish",
        _published(payload=BINARY, payload_encoding="base64"),
    ),
    post(
        "publish/bad-base64",
        "exchanges/%2F/amq.default/publish",
        _published(payload="***", payload_encoding="base64"),
    ),
    post("publish/unroutable", "exchanges/%2F/amq.default/publish", _published(routing_key="nowhere")),
    post("publish/no-exchange", "exchanges/%2F/missing/publish", _published()),
    post("publish/no-vhost", "exchanges/missing/amq.default/publish", _published()),
    post(
        "publish/missing-key",
        "exchanges/%2F/amq.default/publish",
        {"payload": "x", "payload_encoding": "string", "properties": {}},
    ),
    post(
        "publish/missing-payload",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload_encoding": "string", "properties": {}},
    ),
    post(
        "publish/missing-encoding",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload": "x", "properties": {}},
    ),
    post(
        "publish/missing-properties",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload": "x", "payload_encoding": "string"},
    ),
    post("publish/bad-encoding", "exchanges/%2F/amq.default/publish", _published(payload_encoding="nosuch")),
    post(
        "publish/bad-property",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"priority": "high"}),
    ),
    post(
        "publish/unknown-property",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"colour": "red"}),
    ),
    post(
        "publish/bad-delivery-mode",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"delivery_mode": 3}),
    ),
    post(
        "publish/wrong-user-id",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"user_id": "other"}),
    ),
    post("publish/number-payload", "exchanges/%2F/amq.default/publish", _published(payload=5)),
    post("publish/not-permitted", "exchanges/%2F/amq.default/publish", _published(), user="manager"),
    get("publish/get", "exchanges/%2F/amq.default/publish"),
    post("get/peek", "queues/%2F/work/get", {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    post(
        "get/base64", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "base64"}
    ),
    post(
        "get/truncated",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 2},
    ),
    post(
        "get/reject-requeue",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "reject_requeue_true", "encoding": "auto"},
    ),
    post("get/ack", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    post(
        "get/reject",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"},
    ),
    post("get/old-requeue", "queues/%2F/work/get", {"count": 1, "requeue": True, "encoding": "auto"}),
    post("get/bad-ackmode", "queues/%2F/work/get", {"count": 1, "ackmode": "nosuch", "encoding": "auto"}),
    post(
        "get/bad-encoding",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "nosuch"},
    ),
    post("get/no-count", "queues/%2F/work/get", {"ackmode": "ack_requeue_true", "encoding": "auto"}),
    post(
        "get/negative-count",
        "queues/%2F/work/get",
        {"count": -1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    post("get/no-encoding", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_true"}),
    post("get/no-ackmode", "queues/%2F/work/get", {"count": 1, "encoding": "auto"}),
    post(
        "get/empty-queue",
        "queues/%2F/safe/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    post(
        "get/missing-queue",
        "queues/%2F/missing/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    post("get/stream", "queues/%2F/log/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    post("actions/sync", "queues/%2F/work/actions", {"action": "sync"}),
    post("actions/unknown", "queues/%2F/work/actions", {"action": "nosuch"}),
    delete("queues/purge", "queues/%2F/work/contents"),
    delete("queues/purge-missing", "queues/%2F/missing/contents"),
    delete("queues/purge-stream", "queues/%2F/log/contents"),
    get("queues/contents-get", "queues/%2F/work/contents"),
    post("publish/kept", "exchanges/%2F/amq.default/publish", _published()),
    delete("queues/delete-if-empty", "queues/%2F/work?if-empty=true"),
    delete("queues/delete", "queues/%2F/short"),
    delete("queues/delete-missing", "queues/%2F/short"),
    delete("exchanges/delete-if-unused", "exchanges/%2F/events?if-unused=true"),
    delete("exchanges/delete", "exchanges/%2F/plain"),
    delete("exchanges/delete-missing", "exchanges/%2F/plain"),
    delete("exchanges/delete-amq", "exchanges/%2F/amq.direct"),
    delete("exchanges/delete-default", "exchanges/%2F/amq.default"),
)

POLICIES = (
    put(
        "policies/set",
        "policies/%2F/limits",
        {
            "pattern": "^limited",
            "definition": {"max-length": 5, "message-ttl": 1000},
            "priority": 2,
            "apply-to": "queues",
        },
    ),
    put(
        "policies/set-again",
        "policies/%2F/limits",
        {"pattern": "^limited", "definition": {"max-length": 5}, "priority": 2, "apply-to": "queues"},
    ),
    put("policies/minimal", "policies/%2F/minimal", {"pattern": "^m", "definition": {"expires": 1000}}),
    put("policies/no-pattern", "policies/%2F/odd", {"definition": {"expires": 1000}}),
    put("policies/no-definition", "policies/%2F/odd", {"pattern": ".*"}),
    put("policies/empty-definition", "policies/%2F/odd", {"pattern": ".*", "definition": {}}),
    put("policies/bad-key", "policies/%2F/odd", {"pattern": ".*", "definition": {"max-lenght": 5}}),
    put("policies/bad-value", "policies/%2F/odd", {"pattern": ".*", "definition": {"max-length": "many"}}),
    put("policies/bad-pattern", "policies/%2F/odd", {"pattern": "(", "definition": {"max-length": 1}}),
    put(
        "policies/bad-apply-to",
        "policies/%2F/odd",
        {"pattern": ".*", "definition": {"max-length": 1}, "apply-to": "nosuch"},
    ),
    put(
        "policies/bad-priority",
        "policies/%2F/odd",
        {"pattern": ".*", "definition": {"max-length": 1}, "priority": "high"},
    ),
    put("policies/no-vhost", "policies/missing/odd", {"pattern": ".*", "definition": {"max-length": 1}}),
    get("policies/get", "policies/%2F/limits"),
    get("policies/get-missing", "policies/%2F/missing"),
    get("policies/list", "policies"),
    get("policies/vhost", "policies/%2F"),
    get("policies/missing-vhost", "policies/missing"),
    get("policies/on-queue", "queues/%2F/limited", until=_has(policy="limits")),
    delete("policies/delete", "policies/%2F/minimal"),
    delete("policies/delete-missing", "policies/%2F/minimal"),
    put(
        "operator/set",
        "operator-policies/%2F/cap",
        {"pattern": "^limited", "definition": {"max-length": 3}, "priority": 0, "apply-to": "queues"},
    ),
    put(
        "operator/bad-key",
        "operator-policies/%2F/odd",
        {"pattern": ".*", "definition": {"dead-letter-exchange": "x"}},
    ),
    get("operator/get", "operator-policies/%2F/cap"),
    get("operator/list", "operator-policies"),
    get("operator/vhost", "operator-policies/%2F"),
    get("operator/on-queue", "queues/%2F/limited", until=_has(operator_policy="cap")),
    delete("operator/delete", "operator-policies/%2F/cap"),
    delete("operator/delete-missing", "operator-policies/%2F/cap"),
    get("parameters/list", "parameters"),
    get("parameters/component", "parameters/vhost-limits"),
    get("parameters/unknown-component", "parameters/nosuch"),
    get("parameters/vhost", "parameters/vhost-limits/%2F"),
    get("parameters/get-missing", "parameters/vhost-limits/%2F/limits"),
    put("parameters/set-unknown", "parameters/nosuch/%2F/x", {"value": {}}),
    put("parameters/set-policy", "parameters/policy/%2F/x", {"value": {}}),
    delete("parameters/delete-missing", "parameters/nosuch/%2F/x"),
    get("global/list", "global-parameters"),
    put("global/set", "global-parameters/mine", {"value": {"a": 1}}),
    put("global/set-again", "global-parameters/mine", {"value": [1, "b"]}),
    put("global/no-value", "global-parameters/odd", {}),
    get("global/get", "global-parameters/mine"),
    get("global/get-missing", "global-parameters/missing"),
    delete("global/delete", "global-parameters/mine"),
    delete("global/delete-missing", "global-parameters/mine"),
    put("limits/vhost", "vhost-limits/v%2F1/max-queues", {"value": 100}),
    put("limits/vhost-connections", "vhost-limits/v%2F1/max-connections", {"value": 5}),
    put("limits/vhost-unknown", "vhost-limits/v%2F1/max-nosuch", {"value": 5}),
    put("limits/vhost-text", "vhost-limits/v%2F1/max-queues", {"value": "many"}),
    put("limits/vhost-no-value", "vhost-limits/v%2F1/max-queues", {}),
    put("limits/vhost-missing", "vhost-limits/missing/max-queues", {"value": 1}),
    get("limits/vhosts", "vhost-limits"),
    get("limits/of-vhost", "vhost-limits/v%2F1"),
    get("limits/of-vhost-without", "vhost-limits/%2F"),
    get("limits/of-missing-vhost", "vhost-limits/missing"),
    get("limits/parameters", "parameters/vhost-limits"),
    delete("limits/vhost-delete", "vhost-limits/v%2F1/max-queues"),
    delete("limits/vhost-delete-again", "vhost-limits/v%2F1/max-queues"),
    delete("limits/vhost-delete-last", "vhost-limits/v%2F1/max-connections"),
    put("limits/user", "user-limits/manager/max-connections", {"value": 7}),
    put("limits/user-channels", "user-limits/manager/max-channels", {"value": 70}),
    put("limits/user-unknown", "user-limits/manager/max-nosuch", {"value": 7}),
    put("limits/user-missing", "user-limits/missing/max-connections", {"value": 7}),
    get("limits/users", "user-limits"),
    get("limits/of-user", "user-limits/manager"),
    get("limits/of-missing-user", "user-limits/missing"),
    get("limits/user-listed", "users/manager"),
    delete("limits/user-delete", "user-limits/manager/max-channels"),
    delete("limits/user-delete-last", "user-limits/manager/max-connections"),
)

WHOLE = (
    get("overview", "overview"),
    get("overview/columns", "overview?columns=product_name,queue_totals.messages"),
    get("nodes/list", "nodes"),
    get("nodes/get", "nodes/{node}"),
    get("nodes/get-missing", "nodes/rabbit@nowhere"),
    get("nodes/memory", "nodes/{node}/memory"),
    get("cluster-name/get", "cluster-name"),
    put("cluster-name/set", "cluster-name", {"name": "mine"}),
    get("cluster-name/after", "cluster-name"),
    put("cluster-name/no-name", "cluster-name", {}),
    put("cluster-name/back", "cluster-name", {"name": "rabbit@somewhere"}),
    get("extensions", "extensions"),
    get("feature-flags", "feature-flags"),
    put(
        "feature-flags/enable",
        "feature-flags/classic_mirrored_queue_version/enable",
        {"name": "classic_mirrored_queue_version"},
    ),
    put("feature-flags/enable-known", "feature-flags/stream_queue/enable", {"name": "stream_queue"}),
    get("deprecated/list", "deprecated-features"),
    get("deprecated/used", "deprecated-features/used"),
    get("aliveness", "aliveness-test/%2F"),
    get("aliveness/missing", "aliveness-test/missing"),
    get("health/alarms", "health/checks/alarms"),
    get("health/local-alarms", "health/checks/local-alarms"),
    get("health/certificates", "health/checks/certificate-expiration/1/weeks"),
    get("health/certificates-bad-unit", "health/checks/certificate-expiration/1/eons"),
    get("health/port", "health/checks/port-listener/{port}"),
    get("health/port-closed", "health/checks/port-listener/1"),
    get("health/port-word", "health/checks/port-listener/amqp"),
    get("health/protocol", "health/checks/protocol-listener/amqp"),
    get("health/protocol-091", "health/checks/protocol-listener/amqp091"),
    get("health/protocol-missing", "health/checks/protocol-listener/mqtt"),
    get("health/virtual-hosts", "health/checks/virtual-hosts"),
    get("health/mirror-sync", "health/checks/node-is-mirror-sync-critical"),
    get("health/quorum", "health/checks/node-is-quorum-critical"),
    get("health/ready", "health/checks/ready-to-serve-clients"),
    get("health/below-limit", "health/checks/below-node-connection-limit"),
    get("health/is-in-service", "health/checks/is-in-service"),
    get("health/quorum-vhost", "health/checks/quorum-queues-without-elected-leaders/vhost/%2F/"),
    get("health/quorum-pattern", "health/checks/quorum-queues-without-elected-leaders/all-vhosts/"),
    get("health/metadata", "health/checks/metadata-store/initialized"),
    get("health/metadata-data", "health/checks/metadata-store/initialized/with-data"),
    get("health/unknown", "health/checks/nosuch"),
    get("auth", "auth"),
    get("auth/hash", "auth/hash_password/secret"),
    get("auth/attempts", "auth/attempts/{node}"),
    get("vhosts/start", "vhosts/v%2F1/start/{node}"),
    post("vhosts/start-post", "vhosts/v%2F1/start/{node}"),
    get("vhosts/connections", "vhosts/%2F/connections"),
    post("rebalance", "rebalance/queues"),
    delete("reset/all", "reset"),
    get("definitions/all", "definitions"),
    get("definitions/vhost", "definitions/v%2F1"),
    get("definitions/missing-vhost", "definitions/missing"),
    post(
        "definitions/load",
        "definitions",
        {
            "vhosts": [{"name": "loaded"}],
            "queues": [
                {"name": "l", "vhost": "loaded", "durable": True, "auto_delete": False, "arguments": {}}
            ],
        },
    ),
    post(
        "definitions/load-vhost",
        "definitions/v%2F1",
        {
            "queues": [{"name": "lv", "durable": True, "auto_delete": False, "arguments": {}}],
            "exchanges": [
                {
                    "name": "ev",
                    "type": "topic",
                    "durable": True,
                    "auto_delete": False,
                    "internal": False,
                    "arguments": {},
                }
            ],
            "bindings": [
                {
                    "source": "ev",
                    "destination": "lv",
                    "destination_type": "queue",
                    "routing_key": "k",
                    "arguments": {},
                }
            ],
            "policies": [
                {
                    "name": "pv",
                    "pattern": "^lv$",
                    "definition": {"max-length": 1},
                    "priority": 0,
                    "apply-to": "all",
                }
            ],
        },
    ),
    get("definitions/loaded", "queues/loaded/l?columns=name,vhost,durable"),
    get("definitions/loaded-vhost", "definitions/v%2F1"),
    post("definitions/bad-json", "definitions", b"{"),
    post(
        "definitions/bad-queue",
        "definitions",
        {
            "queues": [
                {"name": "l", "vhost": "missing", "durable": True, "auto_delete": False, "arguments": {}}
            ]
        },
    ),
    post("definitions/bad-type", "definitions", {"queues": {"name": "l"}}),
)

CLIENTS = (
    get(
        "clients/queue",
        "queues/%2F/busy",
        until=lambda q: (
            q.get("messages_unacknowledged") == 2
            and q.get("consumers") == 1
            and q.get("consumer_details")
            and q.get("message_stats", {}).get("publish") == 5
            and q.get("message_stats", {}).get("deliver") == 2
        ),
    ),
    get(
        "clients/queue-list",
        "queues/%2F?columns=name,messages,messages_ready,messages_unacknowledged,consumers,message_stats&name=busy&page=1",
    ),
    get("clients/queue-full", "queues/%2F?name=busy&page=1"),
    get(
        "clients/connections",
        "connections",
        until=lambda c: len(c) == 1 and c[0].get("channels") == 2 and "recv_oct_details" in c[0],
    ),
    get("clients/connections-page", "connections?page=1&columns=name,user,vhost,channels"),
    get("clients/connection", "connections/{connection}"),
    get("clients/connection-missing", "connections/missing"),
    get("clients/connection-channels", "connections/{connection}/channels"),
    get("clients/connection-sessions", "connections/{connection}/sessions"),
    get("clients/connections-of-user", "connections/username/guest"),
    get("clients/connections-of-nobody", "connections/username/missing"),
    get("clients/connections-of-vhost", "vhosts/%2F/connections"),
    get("clients/channels", "channels", until=lambda c: len(c) == 2 and all("message_stats" in x for x in c)),
    get("clients/channels-vhost", "vhosts/%2F/channels"),
    get("clients/channel", "channels/{channel}"),
    get("clients/channel-missing", "channels/missing"),
    get("clients/consumers", "consumers"),
    get("clients/consumers-vhost", "consumers/%2F"),
    get("clients/consumers-missing-vhost", "consumers/missing"),
    get(
        "clients/exchange",
        "exchanges/%2F/amq.direct",
        until=lambda e: e.get("message_stats", {}).get("publish_in") == 2,
    ),
    get("clients/overview", "overview"),
    get("clients/vhost", "vhosts/%2F"),
    get("clients/rates", "queues/%2F/busy?msg_rates_age=60&msg_rates_incr=10&lengths_age=60&lengths_incr=10"),
    get("clients/manager-connections", "connections", user="policymaker"),
    delete("clients/delete-if-unused", "queues/%2F/busy?if-unused=true"),
    delete("clients/delete-exclusive", "queues/%2F/mine"),
    get("clients/exclusive", "queues/%2F/mine", until=lambda q: "consumers" in q and "messages" in q),
    delete("clients/not-mine", "connections/{connection}", user="policymaker"),
    delete("clients/close-missing", "connections/missing"),
    delete("clients/close", "connections/{connection}", headers={"X-Reason": "enough"}),
    delete("clients/close-of-user", "connections/username/guest"),
)

END = (
    post("end/protect", "vhosts/quorums/deletion/protection"),
    delete("end/delete-protected", "vhosts/quorums"),
    delete("end/unprotect", "vhosts/quorums/deletion/protection"),
    delete("end/queue", "queues/%2F/work"),
    delete("end/exchange", "exchanges/%2F/events"),
    delete("end/permission", "permissions/v%2F1/manager"),
    delete("end/vhost", "vhosts/v%2F1"),
    get("end/vhost-gone", "vhosts/v%2F1"),
    delete("end/user", "users/manager"),
    get("end/user-gone", "users/manager"),
)

USERS = {
    "guest": "guest",
    "wrong": None,
    "nobody": PASSWORD,
    "plain": PASSWORD,
    "untagged": PASSWORD,
    "manager": PASSWORD,
    "monitor": PASSWORD,
    "policymaker": PASSWORD,
}


def requests() -> tuple[Request, ...]:
    """All requests, in order."""
    return (*ACCESS, *TOPOLOGY, *MESSAGES, *POLICIES, *WHOLE, *CLIENTS, *END)


def run(target: Target) -> Iterator[tuple[Request, Reply, str]]:
    """Send all requests, and yield each with its answer and the name of the client's connection, if any."""
    api = Api(target.url)
    names = {"port": str(target.port), "node": quote(api.get("overview")["node"], safe="")}
    for request in (*ACCESS, *TOPOLOGY, *MESSAGES, *POLICIES, *WHOLE):
        if "{props}" in request.path:
            names["props"] = _properties_key(api)
        yield request, send(api, request, names), ""
    with _clients(target):
        connection = _awaited(lambda: _connection(api))
        names["connection"] = quote(connection, safe="")
        names["channel"] = quote(f"{connection} (1)", safe="")
        for request in CLIENTS:
            yield request, send(api, request, names), connection
    for request in END:
        yield request, send(api, request, names), ""


def _connection(api: Api) -> str | None:
    for each in api.get("connections"):
        if each.get("client_properties", {}).get("connection_name") == "scenario":
            return str(each["name"])
    return None


def send(api: Api, request: Request, names: dict[str, str]) -> Reply:
    """Send one request, again and again where it waits for something."""
    if request.user == "":
        asking = api.log_out()
    elif request.user == "wrong":
        asking = api.log_in("guest", "wrong")
    elif request.user == "guest":
        asking = api
    else:
        asking = api.log_in(request.user, PASSWORD)
    path = request.path
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    deadline = time.monotonic() + _PATIENCE
    while True:
        reply = asking.request(request.method, path, request.body, request.headers)
        if request.until is None or time.monotonic() > deadline:
            return reply
        try:
            if reply.status != 200 or request.until(json.loads(reply.body)):
                return reply
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        time.sleep(_POLL)


def _properties_key(api: Api) -> str:
    found = api.get("bindings/%2F/e/amq.headers/q/work")
    return quote(found[0]["properties_key"], safe="") if found else "missing"


def _awaited(question: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    assert answer, "nothing came"
    return answer


@contextmanager
def _clients(target: Target) -> Iterator[None]:
    """One connection with two channels: one publishes, the other consumes and holds two of five messages."""
    parameters = pika.URLParameters(f"amqp://guest:guest@127.0.0.1:{target.port}/%2F")
    parameters.client_properties = {"connection_name": "scenario"}
    connection = pika.BlockingConnection(parameters)
    publishing = connection.channel()
    consuming = connection.channel()
    publishing.confirm_delivery()
    publishing.queue_declare("busy", durable=True)
    publishing.queue_declare("mine", exclusive=True)
    publishing.queue_bind("busy", "amq.direct", "busy")
    consuming.basic_qos(prefetch_count=2)
    got: list[Any] = []
    consuming.basic_consume("busy", lambda *arguments: got.append(arguments), consumer_tag="worker")
    for number in range(5):
        exchange = "amq.direct" if number < 2 else ""
        publishing.basic_publish(exchange, "busy", f"message {number}".encode())
    while len(got) < 2:
        connection.process_data_events(0.1)
    try:
        yield
    finally:
        # The API has closed it; the client reads that, and then closes its socket.
        with suppress(pika.exceptions.AMQPError):
            while connection.is_open:
                connection.process_data_events(0.1)
