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


def G(name: str, path: str, **more: Any) -> Request:
    return Request(name, "GET", path, **more)


def P(name: str, path: str, body: Any = None, **more: Any) -> Request:
    return Request(name, "PUT", path, {} if body is None else body, **more)


def O(name: str, path: str, body: Any = None, **more: Any) -> Request:  # noqa: E743
    return Request(name, "POST", path, {} if body is None else body, **more)


def D(name: str, path: str, **more: Any) -> Request:
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
    G("login/none", "whoami", user=""),
    G("login/wrong-password", "whoami", user="wrong"),
    G("login/unknown-user", "whoami", user="nobody"),
    G("whoami", "whoami"),
    G("path/unknown", "nothing"),
    D("method/not-allowed", "overview"),
    O("method/post-not-allowed", "queues"),
    P("vhosts/declare", "vhosts/v%2F1", {"description": "second", "tags": "one,two"}),
    P("vhosts/declare-again", "vhosts/v%2F1", {"description": "second", "tags": "one,two"}),
    P("vhosts/declare-changed", "vhosts/v%2F1", {"description": "changed"}),
    P("vhosts/declare-quorum", "vhosts/quorums", {"default_queue_type": "quorum", "tracing": False}),
    P("vhosts/declare-bad-type", "vhosts/bad", {"default_queue_type": "nosuch"}),
    G("vhosts/get", "vhosts/v%2F1"),
    G("vhosts/get-quorum", "vhosts/quorums"),
    G("vhosts/get-missing", "vhosts/missing"),
    G("vhosts/list", "vhosts"),
    D("vhosts/delete-missing", "vhosts/missing"),
    P("users/admin", "users/admin2", {"password": PASSWORD, "tags": "administrator"}),
    P("users/monitor", "users/monitor", {"password": PASSWORD, "tags": "monitoring"}),
    P("users/policymaker", "users/policymaker", {"password": PASSWORD, "tags": "policymaker"}),
    P("users/manager", "users/manager", {"password": PASSWORD, "tags": "management"}),
    P("users/plain", "users/plain", {"password": PASSWORD, "tags": ""}),
    P("users/tags-list", "users/listed", {"password": PASSWORD, "tags": ["management", "mine"]}),
    P("users/again", "users/manager", {"password": PASSWORD, "tags": "management"}),
    P("users/without-tags", "users/untagged", {"password": PASSWORD}),
    P("users/without-password", "users/passwordless", {"tags": "management"}),
    P("users/blank-password", "users/blank", {"password": "", "tags": "management"}),
    P(
        "users/hash",
        "users/hashed",
        {"password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ""},
    ),
    P("users/bad-hash", "users/badhash", {"password_hash": "not base64!", "tags": ""}),
    P(
        "users/both",
        "users/both",
        {"password": "a", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ""},
    ),
    P("users/not-json", "users/notjson", b"{nonsense"),
    P("users/json-list", "users/notjson", b"[]"),
    P("users/no-body", "users/nobody", b""),
    G("users/get", "users/manager"),
    G("users/get-hash-algorithm", "users/hashed"),
    G("users/get-missing", "users/missing"),
    G("users/list", "users"),
    G("users/without-permissions", "users/without-permissions"),
    D("users/delete", "users/both"),
    D("users/delete-missing", "users/missing"),
    O("users/bulk-delete", "users/bulk-delete", {"users": ["blank", "listed"]}),
    O("users/bulk-delete-missing", "users/bulk-delete", {"users": ["missing"]}),
    O("users/bulk-delete-empty", "users/bulk-delete", {}),
    P("permissions/set", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*", "read": "^r"}),
    P("permissions/set-again", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*", "read": ".*"}),
    P(
        "permissions/policymaker",
        "permissions/%2F/policymaker",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    P(
        "permissions/policymaker-2",
        "permissions/v%2F1/policymaker",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    P("permissions/plain", "permissions/%2F/plain", {"configure": "", "write": "", "read": ""}),
    P("permissions/missing-key", "permissions/v%2F1/manager", {"configure": ".*", "write": ".*"}),
    P(
        "permissions/bad-pattern",
        "permissions/v%2F1/manager",
        {"configure": "*", "write": ".*", "read": ".*"},
    ),
    P("permissions/no-user", "permissions/v%2F1/missing", {"configure": ".*", "write": ".*", "read": ".*"}),
    P(
        "permissions/no-vhost",
        "permissions/missing/manager",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    G("permissions/get", "permissions/v%2F1/manager"),
    G("permissions/get-missing", "permissions/%2F/manager"),
    G("permissions/get-no-user", "permissions/%2F/missing"),
    G("permissions/get-no-vhost", "permissions/missing/manager"),
    G("permissions/list", "permissions"),
    G("permissions/of-user", "users/manager/permissions"),
    G("permissions/of-missing-user", "users/missing/permissions"),
    G("permissions/of-vhost", "vhosts/v%2F1/permissions"),
    G("permissions/of-missing-vhost", "vhosts/missing/permissions"),
    P("topic/set", "topic-permissions/v%2F1/manager", {"exchange": "amq.topic", "write": "^a", "read": ".*"}),
    P(
        "topic/set-other",
        "topic-permissions/v%2F1/manager",
        {"exchange": "other", "write": "^b", "read": "^c"},
    ),
    P("topic/missing-key", "topic-permissions/v%2F1/manager", {"exchange": "amq.topic"}),
    G("topic/get", "topic-permissions/v%2F1/manager"),
    G("topic/get-none", "topic-permissions/%2F/manager"),
    G("topic/list", "topic-permissions"),
    G("topic/of-user", "users/manager/topic-permissions"),
    G("topic/of-vhost", "vhosts/v%2F1/topic-permissions"),
    D("topic/delete", "topic-permissions/v%2F1/manager"),
    D("topic/delete-missing", "topic-permissions/%2F/guest"),
    D("permissions/delete", "permissions/%2F/plain"),
    D("permissions/delete-missing", "permissions/%2F/plain"),
    # What each tag permits.
    G("tags/none", "whoami", user="plain"),
    G("tags/untagged", "overview", user="untagged"),
    G("tags/manager-whoami", "whoami", user="manager"),
    G("tags/manager-overview", "overview", user="manager"),
    G("tags/manager-users", "users", user="manager"),
    G("tags/manager-vhosts", "vhosts", user="manager"),
    G("tags/manager-nodes", "nodes", user="manager"),
    G("tags/manager-permissions", "permissions", user="manager"),
    G("tags/manager-queues", "queues", user="manager"),
    G("tags/manager-other-vhost", "queues/%2F", user="manager"),
    G("tags/manager-missing-vhost", "queues/missing", user="manager"),
    P(
        "tags/manager-policy",
        "policies/v%2F1/p",
        {"pattern": ".*", "definition": {"max-length": 1}},
        user="manager",
    ),
    G("tags/manager-policies", "policies/v%2F1", user="manager"),
    G("tags/manager-definitions", "definitions", user="manager"),
    G("tags/manager-vhost-definitions", "definitions/v%2F1", user="manager"),
    G("tags/manager-cluster-name", "cluster-name", user="manager"),
    P("tags/manager-set-cluster-name", "cluster-name", {"name": "mine"}, user="manager"),
    G("tags/manager-connections", "connections", user="manager"),
    G("tags/manager-feature-flags", "feature-flags", user="manager"),
    P("tags/manager-vhost", "vhosts/mine", user="manager"),
    G("tags/monitor-users", "users", user="monitor"),
    G("tags/monitor-nodes-count", "nodes?columns=type,running", user="monitor"),
    G("tags/monitor-vhosts", "vhosts?columns=name", user="monitor"),
    G("tags/monitor-queues", "queues/%2F", user="monitor"),
    P("tags/monitor-declare", "queues/%2F/mine", user="monitor"),
    P(
        "tags/monitor-policy",
        "policies/%2F/p",
        {"pattern": ".*", "definition": {"max-length": 1}},
        user="monitor",
    ),
    G("tags/policymaker-policies", "policies/%2F", user="policymaker"),
    G("tags/policymaker-nodes", "nodes", user="policymaker"),
    G("tags/policymaker-connections", "connections", user="policymaker"),
    P(
        "tags/policymaker-operator",
        "operator-policies/%2F/p",
        {"pattern": "x", "definition": {"max-length": 1}},
        user="policymaker",
    ),
    G("tags/policymaker-operators", "operator-policies", user="policymaker"),
    P("tags/policymaker-limit", "vhost-limits/%2F/max-queues", {"value": 100}, user="policymaker"),
    P("tags/policymaker-global", "global-parameters/mine", {"value": 1}, user="policymaker"),
)

TOPOLOGY = (
    P("exchanges/declare", "exchanges/%2F/events", {"type": "topic", "durable": True}),
    P("exchanges/declare-again", "exchanges/%2F/events", {"type": "topic", "durable": True}),
    P("exchanges/declare-other", "exchanges/%2F/events", {"type": "fanout", "durable": True}),
    P(
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
    P("exchanges/declare-default-type", "exchanges/%2F/plain", {}),
    P("exchanges/declare-bad-type", "exchanges/%2F/odd", {"type": "nosuch"}),
    P("exchanges/declare-amq", "exchanges/%2F/amq.mine", {"type": "direct"}),
    P("exchanges/declare-no-vhost", "exchanges/missing/x", {"type": "direct"}),
    P("exchanges/declare-bad-durable", "exchanges/%2F/odd", {"type": "direct", "durable": "maybe"}),
    P("exchanges/declare-bad-arguments", "exchanges/%2F/odd", {"type": "direct", "arguments": []}),
    P("exchanges/declare-string-durable", "exchanges/%2F/stringy", {"type": "direct", "durable": "true"}),
    G("exchanges/get", "exchanges/%2F/events"),
    G("exchanges/get-all", "exchanges/v%2F1/a%2Fb%20c"),
    G("exchanges/get-default", "exchanges/%2F/amq.default"),
    G("exchanges/get-missing", "exchanges/%2F/missing"),
    G("exchanges/get-no-vhost", "exchanges/missing/amq.direct"),
    G("exchanges/list-vhost", "exchanges/v%2F1"),
    G("exchanges/list-missing-vhost", "exchanges/missing"),
    G("exchanges/list-columns", "exchanges?columns=name,type,vhost"),
    P("queues/declare", "queues/%2F/work", {"durable": True}),
    P("queues/declare-again", "queues/%2F/work", {"durable": True}),
    P("queues/declare-other", "queues/%2F/work", {"durable": True, "auto_delete": True}),
    P(
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
    P("queues/declare-bad-argument", "queues/%2F/odd", {"arguments": {"x-max-length": -1}}),
    P("queues/declare-bad-argument-type", "queues/%2F/odd", {"arguments": {"x-message-ttl": "soon"}}),
    P("queues/declare-quorum", "queues/%2F/safe", {"durable": True, "arguments": {"x-queue-type": "quorum"}}),
    P("queues/declare-stream", "queues/%2F/log", {"durable": True, "arguments": {"x-queue-type": "stream"}}),
    P("queues/declare-default-durable", "queues/v%2F1/undecided", {}),
    P("queues/declare-auto-delete", "queues/%2F/short", {"auto_delete": True}),
    P("queues/declare-amq", "queues/%2F/amq.mine", {}),
    P("queues/declare-slash", "queues/v%2F1/q%2F1%20%C3%A9", {"durable": True}),
    P("queues/declare-no-vhost", "queues/missing/x", {}),
    P("queues/declare-bad-json", "queues/%2F/odd", b"{"),
    P("queues/declare-no-body", "queues/%2F/nobody", b""),
    P("queues/declare-bad-node", "queues/%2F/noded", {"node": "rabbit@nowhere"}),
    P("queues/declare-default-quorum", "queues/quorums/q", {"durable": True}),
    G("queues/get", "queues/%2F/work", until=lambda q: "consumers" in q and "messages" in q),
    G("queues/get-quorum", "queues/%2F/safe", until=lambda q: "consumers" in q and "messages" in q),
    G("queues/get-stream", "queues/%2F/log", until=lambda q: "consumers" in q and "messages" in q),
    G("queues/get-arguments", "queues/%2F/limited", until=lambda q: "consumers" in q and "messages" in q),
    G("queues/get-default-quorum", "queues/quorums/q", until=lambda q: "consumers" in q and "messages" in q),
    G(
        "queues/get-slash",
        "queues/v%2F1/q%2F1%20%C3%A9",
        until=lambda q: "consumers" in q and "messages" in q,
    ),
    G("queues/get-missing", "queues/%2F/missing"),
    G("queues/get-no-vhost", "queues/missing/work"),
    G("queues/get-no-stats", "queues/%2F/work?disable_stats=true"),
    G("queues/list-vhost", "queues/v%2F1?sort=name"),
    G("queues/list-missing-vhost", "queues/missing"),
    G("queues/columns", "queues?columns=name,vhost,arguments.x-max-length&sort=name"),
    G("queues/sort-reverse", "queues/%2F?columns=name&sort=name&sort_reverse=true"),
    G("queues/page", "queues?page=1&page_size=3&columns=name&sort=name"),
    G("queues/page-2", "queues?page=2&page_size=3&columns=name&sort=name"),
    G("queues/page-name", "queues?page=1&page_size=5&name=o&columns=name&sort=name"),
    G(
        "queues/page-regex",
        "queues?page=1&page_size=5&name=%5E%5Bws%5D&use_regex=true&columns=name&sort=name",
    ),
    G("queues/page-out-of-range", "queues?page=9&page_size=3"),
    G("queues/page-zero", "queues?page=0&page_size=3"),
    G("queues/page-word", "queues?page=one"),
    G("queues/page-size-too-large", "queues?page=1&page_size=501"),
    G("queues/page-bad-regex", "queues?page=1&page_size=5&name=*&use_regex=true"),
    G("queues/page-full", "queues?page=1&page_size=2&name=work&pagination=true"),
    G("queues/sort-number", "queues/%2F?columns=name,durable&sort=durable"),
    G("queues/sort-unknown", "queues/quorums?columns=name&sort=nothing"),
    G("queues/detailed", "queues/detailed?columns=name,vhost&sort=name"),
    O("bindings/queue", "bindings/%2F/e/events/q/work", {"routing_key": "work.#", "arguments": {}}),
    O("bindings/queue-again", "bindings/%2F/e/events/q/work", {"routing_key": "work.#", "arguments": {}}),
    O(
        "bindings/queue-arguments",
        "bindings/%2F/e/amq.headers/q/work",
        {"routing_key": "", "arguments": {"x-match": "all", "colour": "red", "n": 1}},
    ),
    O("bindings/exchange", "bindings/%2F/e/events/e/amq.fanout", {"routing_key": "all"}),
    O("bindings/empty-body", "bindings/%2F/e/amq.direct/q/work", {}),
    O("bindings/odd-key", "bindings/%2F/e/amq.direct/q/work", {"routing_key": "a~b%20c/d é"}),
    O("bindings/no-exchange", "bindings/%2F/e/missing/q/work", {"routing_key": "x"}),
    O("bindings/no-queue", "bindings/%2F/e/events/q/missing", {"routing_key": "x"}),
    O("bindings/no-vhost", "bindings/missing/e/events/q/work", {"routing_key": "x"}),
    O(
        "bindings/bad-arguments",
        "bindings/%2F/e/amq.headers/q/work",
        {"routing_key": "", "arguments": {"x-match": "some"}},
    ),
    G("bindings/list", "bindings"),
    G("bindings/vhost", "bindings/%2F"),
    G("bindings/missing-vhost", "bindings/missing"),
    G("bindings/between", "bindings/%2F/e/events/q/work"),
    G("bindings/between-default", "bindings/%2F/e/amq.default/q/work"),
    G("bindings/between-exchanges", "bindings/%2F/e/events/e/amq.fanout"),
    G("bindings/between-none", "bindings/%2F/e/events/q/safe"),
    G("bindings/between-missing", "bindings/%2F/e/missing/q/work"),
    G("bindings/between-missing-queue", "bindings/%2F/e/events/q/missing"),
    G("bindings/of-queue", "queues/%2F/work/bindings"),
    G("bindings/of-missing-queue", "queues/%2F/missing/bindings"),
    G("bindings/source", "exchanges/%2F/events/bindings/source"),
    G("bindings/destination", "exchanges/%2F/amq.fanout/bindings/destination"),
    G("bindings/source-missing", "exchanges/%2F/missing/bindings/source"),
    G("bindings/get", "bindings/%2F/e/events/q/work/work.%23"),
    G("bindings/get-empty-key", "bindings/%2F/e/amq.direct/q/work/~"),
    G("bindings/get-odd-key", "bindings/%2F/e/amq.direct/q/work/a~b%2520c%252Fd%20%C3%A9"),
    G("bindings/get-arguments", "bindings/%2F/e/amq.headers/q/work/{props}"),
    G("bindings/get-missing", "bindings/%2F/e/events/q/work/nothing"),
    G("bindings/get-exchange", "bindings/%2F/e/events/e/amq.fanout/all"),
    P("bindings/put", "bindings/%2F/e/events/q/work/x", {}),
    D("bindings/delete-missing", "bindings/%2F/e/events/q/work/nothing"),
    D("bindings/delete-exchange", "bindings/%2F/e/events/e/amq.fanout/all"),
    D("bindings/delete-arguments", "bindings/%2F/e/amq.headers/q/work/{props}"),
    D("bindings/delete-empty-key", "bindings/%2F/e/amq.direct/q/work/~"),
)

MESSAGES = (
    O("publish/routed", "exchanges/%2F/amq.default/publish", _published()),
    O(
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
    O(
        "publish/base64",
        "exchanges/%2F/amq.default/publish",
        _published(payload=BINARY, payload_encoding="base64"),
    ),
    O(
        "publish/bad-base64",
        "exchanges/%2F/amq.default/publish",
        _published(payload="***", payload_encoding="base64"),
    ),
    O("publish/unroutable", "exchanges/%2F/amq.default/publish", _published(routing_key="nowhere")),
    O("publish/no-exchange", "exchanges/%2F/missing/publish", _published()),
    O("publish/no-vhost", "exchanges/missing/amq.default/publish", _published()),
    O(
        "publish/missing-key",
        "exchanges/%2F/amq.default/publish",
        {"payload": "x", "payload_encoding": "string", "properties": {}},
    ),
    O(
        "publish/missing-payload",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload_encoding": "string", "properties": {}},
    ),
    O(
        "publish/missing-encoding",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload": "x", "properties": {}},
    ),
    O(
        "publish/missing-properties",
        "exchanges/%2F/amq.default/publish",
        {"routing_key": "work", "payload": "x", "payload_encoding": "string"},
    ),
    O("publish/bad-encoding", "exchanges/%2F/amq.default/publish", _published(payload_encoding="nosuch")),
    O(
        "publish/bad-property",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"priority": "high"}),
    ),
    O(
        "publish/unknown-property",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"colour": "red"}),
    ),
    O(
        "publish/bad-delivery-mode",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"delivery_mode": 3}),
    ),
    O(
        "publish/wrong-user-id",
        "exchanges/%2F/amq.default/publish",
        _published(properties={"user_id": "other"}),
    ),
    O("publish/number-payload", "exchanges/%2F/amq.default/publish", _published(payload=5)),
    O("publish/not-permitted", "exchanges/%2F/amq.default/publish", _published(), user="manager"),
    G("publish/get", "exchanges/%2F/amq.default/publish"),
    O("get/peek", "queues/%2F/work/get", {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    O("get/base64", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "base64"}),
    O(
        "get/truncated",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 2},
    ),
    O(
        "get/reject-requeue",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "reject_requeue_true", "encoding": "auto"},
    ),
    O("get/ack", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    O(
        "get/reject",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"},
    ),
    O("get/old-requeue", "queues/%2F/work/get", {"count": 1, "requeue": True, "encoding": "auto"}),
    O("get/bad-ackmode", "queues/%2F/work/get", {"count": 1, "ackmode": "nosuch", "encoding": "auto"}),
    O(
        "get/bad-encoding",
        "queues/%2F/work/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "nosuch"},
    ),
    O("get/no-count", "queues/%2F/work/get", {"ackmode": "ack_requeue_true", "encoding": "auto"}),
    O(
        "get/negative-count",
        "queues/%2F/work/get",
        {"count": -1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    O("get/no-encoding", "queues/%2F/work/get", {"count": 1, "ackmode": "ack_requeue_true"}),
    O("get/no-ackmode", "queues/%2F/work/get", {"count": 1, "encoding": "auto"}),
    O(
        "get/empty-queue",
        "queues/%2F/safe/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    O(
        "get/missing-queue",
        "queues/%2F/missing/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ),
    O("get/stream", "queues/%2F/log/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    O("actions/sync", "queues/%2F/work/actions", {"action": "sync"}),
    O("actions/unknown", "queues/%2F/work/actions", {"action": "nosuch"}),
    D("queues/purge", "queues/%2F/work/contents"),
    D("queues/purge-missing", "queues/%2F/missing/contents"),
    D("queues/purge-stream", "queues/%2F/log/contents"),
    G("queues/contents-get", "queues/%2F/work/contents"),
    O("publish/kept", "exchanges/%2F/amq.default/publish", _published()),
    D("queues/delete-if-empty", "queues/%2F/work?if-empty=true"),
    D("queues/delete", "queues/%2F/short"),
    D("queues/delete-missing", "queues/%2F/short"),
    D("exchanges/delete-if-unused", "exchanges/%2F/events?if-unused=true"),
    D("exchanges/delete", "exchanges/%2F/plain"),
    D("exchanges/delete-missing", "exchanges/%2F/plain"),
    D("exchanges/delete-amq", "exchanges/%2F/amq.direct"),
    D("exchanges/delete-default", "exchanges/%2F/amq.default"),
)

POLICIES = (
    P(
        "policies/set",
        "policies/%2F/limits",
        {
            "pattern": "^limited",
            "definition": {"max-length": 5, "message-ttl": 1000},
            "priority": 2,
            "apply-to": "queues",
        },
    ),
    P(
        "policies/set-again",
        "policies/%2F/limits",
        {"pattern": "^limited", "definition": {"max-length": 5}, "priority": 2, "apply-to": "queues"},
    ),
    P("policies/minimal", "policies/%2F/minimal", {"pattern": "^m", "definition": {"expires": 1000}}),
    P("policies/no-pattern", "policies/%2F/odd", {"definition": {"expires": 1000}}),
    P("policies/no-definition", "policies/%2F/odd", {"pattern": ".*"}),
    P("policies/empty-definition", "policies/%2F/odd", {"pattern": ".*", "definition": {}}),
    P("policies/bad-key", "policies/%2F/odd", {"pattern": ".*", "definition": {"max-lenght": 5}}),
    P("policies/bad-value", "policies/%2F/odd", {"pattern": ".*", "definition": {"max-length": "many"}}),
    P("policies/bad-pattern", "policies/%2F/odd", {"pattern": "(", "definition": {"max-length": 1}}),
    P(
        "policies/bad-apply-to",
        "policies/%2F/odd",
        {"pattern": ".*", "definition": {"max-length": 1}, "apply-to": "nosuch"},
    ),
    P(
        "policies/bad-priority",
        "policies/%2F/odd",
        {"pattern": ".*", "definition": {"max-length": 1}, "priority": "high"},
    ),
    P("policies/no-vhost", "policies/missing/odd", {"pattern": ".*", "definition": {"max-length": 1}}),
    G("policies/get", "policies/%2F/limits"),
    G("policies/get-missing", "policies/%2F/missing"),
    G("policies/list", "policies"),
    G("policies/vhost", "policies/%2F"),
    G("policies/missing-vhost", "policies/missing"),
    G("policies/on-queue", "queues/%2F/limited", until=_has(policy="limits")),
    D("policies/delete", "policies/%2F/minimal"),
    D("policies/delete-missing", "policies/%2F/minimal"),
    P(
        "operator/set",
        "operator-policies/%2F/cap",
        {"pattern": "^limited", "definition": {"max-length": 3}, "priority": 0, "apply-to": "queues"},
    ),
    P(
        "operator/bad-key",
        "operator-policies/%2F/odd",
        {"pattern": ".*", "definition": {"dead-letter-exchange": "x"}},
    ),
    G("operator/get", "operator-policies/%2F/cap"),
    G("operator/list", "operator-policies"),
    G("operator/vhost", "operator-policies/%2F"),
    G("operator/on-queue", "queues/%2F/limited", until=_has(operator_policy="cap")),
    D("operator/delete", "operator-policies/%2F/cap"),
    D("operator/delete-missing", "operator-policies/%2F/cap"),
    G("parameters/list", "parameters"),
    G("parameters/component", "parameters/vhost-limits"),
    G("parameters/unknown-component", "parameters/nosuch"),
    G("parameters/vhost", "parameters/vhost-limits/%2F"),
    G("parameters/get-missing", "parameters/vhost-limits/%2F/limits"),
    P("parameters/set-unknown", "parameters/nosuch/%2F/x", {"value": {}}),
    P("parameters/set-policy", "parameters/policy/%2F/x", {"value": {}}),
    D("parameters/delete-missing", "parameters/nosuch/%2F/x"),
    G("global/list", "global-parameters"),
    P("global/set", "global-parameters/mine", {"value": {"a": 1}}),
    P("global/set-again", "global-parameters/mine", {"value": [1, "b"]}),
    P("global/no-value", "global-parameters/odd", {}),
    G("global/get", "global-parameters/mine"),
    G("global/get-missing", "global-parameters/missing"),
    D("global/delete", "global-parameters/mine"),
    D("global/delete-missing", "global-parameters/mine"),
    P("limits/vhost", "vhost-limits/v%2F1/max-queues", {"value": 100}),
    P("limits/vhost-connections", "vhost-limits/v%2F1/max-connections", {"value": 5}),
    P("limits/vhost-unknown", "vhost-limits/v%2F1/max-nosuch", {"value": 5}),
    P("limits/vhost-text", "vhost-limits/v%2F1/max-queues", {"value": "many"}),
    P("limits/vhost-no-value", "vhost-limits/v%2F1/max-queues", {}),
    P("limits/vhost-missing", "vhost-limits/missing/max-queues", {"value": 1}),
    G("limits/vhosts", "vhost-limits"),
    G("limits/of-vhost", "vhost-limits/v%2F1"),
    G("limits/of-vhost-without", "vhost-limits/%2F"),
    G("limits/of-missing-vhost", "vhost-limits/missing"),
    G("limits/parameters", "parameters/vhost-limits"),
    D("limits/vhost-delete", "vhost-limits/v%2F1/max-queues"),
    D("limits/vhost-delete-again", "vhost-limits/v%2F1/max-queues"),
    D("limits/vhost-delete-last", "vhost-limits/v%2F1/max-connections"),
    P("limits/user", "user-limits/manager/max-connections", {"value": 7}),
    P("limits/user-channels", "user-limits/manager/max-channels", {"value": 70}),
    P("limits/user-unknown", "user-limits/manager/max-nosuch", {"value": 7}),
    P("limits/user-missing", "user-limits/missing/max-connections", {"value": 7}),
    G("limits/users", "user-limits"),
    G("limits/of-user", "user-limits/manager"),
    G("limits/of-missing-user", "user-limits/missing"),
    G("limits/user-listed", "users/manager"),
    D("limits/user-delete", "user-limits/manager/max-channels"),
    D("limits/user-delete-last", "user-limits/manager/max-connections"),
)

WHOLE = (
    G("overview", "overview"),
    G("overview/columns", "overview?columns=product_name,queue_totals.messages"),
    G("nodes/list", "nodes"),
    G("nodes/get", "nodes/{node}"),
    G("nodes/get-missing", "nodes/rabbit@nowhere"),
    G("nodes/memory", "nodes/{node}/memory"),
    G("cluster-name/get", "cluster-name"),
    P("cluster-name/set", "cluster-name", {"name": "mine"}),
    G("cluster-name/after", "cluster-name"),
    P("cluster-name/no-name", "cluster-name", {}),
    P("cluster-name/back", "cluster-name", {"name": "rabbit@somewhere"}),
    G("extensions", "extensions"),
    G("feature-flags", "feature-flags"),
    P(
        "feature-flags/enable",
        "feature-flags/classic_mirrored_queue_version/enable",
        {"name": "classic_mirrored_queue_version"},
    ),
    P("feature-flags/enable-known", "feature-flags/stream_queue/enable", {"name": "stream_queue"}),
    G("deprecated/list", "deprecated-features"),
    G("deprecated/used", "deprecated-features/used"),
    G("aliveness", "aliveness-test/%2F"),
    G("aliveness/missing", "aliveness-test/missing"),
    G("health/alarms", "health/checks/alarms"),
    G("health/local-alarms", "health/checks/local-alarms"),
    G("health/certificates", "health/checks/certificate-expiration/1/weeks"),
    G("health/certificates-bad-unit", "health/checks/certificate-expiration/1/eons"),
    G("health/port", "health/checks/port-listener/{port}"),
    G("health/port-closed", "health/checks/port-listener/1"),
    G("health/port-word", "health/checks/port-listener/amqp"),
    G("health/protocol", "health/checks/protocol-listener/amqp"),
    G("health/protocol-091", "health/checks/protocol-listener/amqp091"),
    G("health/protocol-missing", "health/checks/protocol-listener/mqtt"),
    G("health/virtual-hosts", "health/checks/virtual-hosts"),
    G("health/mirror-sync", "health/checks/node-is-mirror-sync-critical"),
    G("health/quorum", "health/checks/node-is-quorum-critical"),
    G("health/ready", "health/checks/ready-to-serve-clients"),
    G("health/below-limit", "health/checks/below-node-connection-limit"),
    G("health/is-in-service", "health/checks/is-in-service"),
    G("health/quorum-vhost", "health/checks/quorum-queues-without-elected-leaders/vhost/%2F/"),
    G("health/quorum-pattern", "health/checks/quorum-queues-without-elected-leaders/all-vhosts/"),
    G("health/metadata", "health/checks/metadata-store/initialized"),
    G("health/metadata-data", "health/checks/metadata-store/initialized/with-data"),
    G("health/unknown", "health/checks/nosuch"),
    G("auth", "auth"),
    G("auth/hash", "auth/hash_password/secret"),
    G("auth/attempts", "auth/attempts/{node}"),
    G("vhosts/start", "vhosts/v%2F1/start/{node}"),
    O("vhosts/start-post", "vhosts/v%2F1/start/{node}"),
    G("vhosts/connections", "vhosts/%2F/connections"),
    O("rebalance", "rebalance/queues"),
    D("reset/all", "reset"),
    G("definitions/all", "definitions"),
    G("definitions/vhost", "definitions/v%2F1"),
    G("definitions/missing-vhost", "definitions/missing"),
    O(
        "definitions/load",
        "definitions",
        {
            "vhosts": [{"name": "loaded"}],
            "queues": [
                {"name": "l", "vhost": "loaded", "durable": True, "auto_delete": False, "arguments": {}}
            ],
        },
    ),
    O(
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
    G("definitions/loaded", "queues/loaded/l?columns=name,vhost,durable"),
    G("definitions/loaded-vhost", "definitions/v%2F1"),
    O("definitions/bad-json", "definitions", b"{"),
    O(
        "definitions/bad-queue",
        "definitions",
        {
            "queues": [
                {"name": "l", "vhost": "missing", "durable": True, "auto_delete": False, "arguments": {}}
            ]
        },
    ),
    O("definitions/bad-type", "definitions", {"queues": {"name": "l"}}),
)

CLIENTS = (
    G(
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
    G(
        "clients/queue-list",
        "queues/%2F?columns=name,messages,messages_ready,messages_unacknowledged,consumers,message_stats&name=busy&page=1",
    ),
    G("clients/queue-full", "queues/%2F?name=busy&page=1"),
    G(
        "clients/connections",
        "connections",
        until=lambda c: len(c) == 1 and c[0].get("channels") == 2 and "recv_oct_details" in c[0],
    ),
    G("clients/connections-page", "connections?page=1&columns=name,user,vhost,channels"),
    G("clients/connection", "connections/{connection}"),
    G("clients/connection-missing", "connections/missing"),
    G("clients/connection-channels", "connections/{connection}/channels"),
    G("clients/connection-sessions", "connections/{connection}/sessions"),
    G("clients/connections-of-user", "connections/username/guest"),
    G("clients/connections-of-nobody", "connections/username/missing"),
    G("clients/connections-of-vhost", "vhosts/%2F/connections"),
    G("clients/channels", "channels", until=lambda c: len(c) == 2 and all("message_stats" in x for x in c)),
    G("clients/channels-vhost", "vhosts/%2F/channels"),
    G("clients/channel", "channels/{channel}"),
    G("clients/channel-missing", "channels/missing"),
    G("clients/consumers", "consumers"),
    G("clients/consumers-vhost", "consumers/%2F"),
    G("clients/consumers-missing-vhost", "consumers/missing"),
    G(
        "clients/exchange",
        "exchanges/%2F/amq.direct",
        until=lambda e: e.get("message_stats", {}).get("publish_in") == 2,
    ),
    G("clients/overview", "overview"),
    G("clients/vhost", "vhosts/%2F"),
    G("clients/rates", "queues/%2F/busy?msg_rates_age=60&msg_rates_incr=10&lengths_age=60&lengths_incr=10"),
    G("clients/manager-connections", "connections", user="policymaker"),
    D("clients/delete-if-unused", "queues/%2F/busy?if-unused=true"),
    D("clients/delete-exclusive", "queues/%2F/mine"),
    G("clients/exclusive", "queues/%2F/mine", until=lambda q: "consumers" in q and "messages" in q),
    D("clients/not-mine", "connections/{connection}", user="policymaker"),
    D("clients/close-missing", "connections/missing"),
    D("clients/close", "connections/{connection}", headers={"X-Reason": "enough"}),
    D("clients/close-of-user", "connections/username/guest"),
)

END = (
    O("end/protect", "vhosts/quorums/deletion/protection"),
    D("end/delete-protected", "vhosts/quorums"),
    D("end/unprotect", "vhosts/quorums/deletion/protection"),
    D("end/queue", "queues/%2F/work"),
    D("end/exchange", "exchanges/%2F/events"),
    D("end/permission", "permissions/v%2F1/manager"),
    D("end/vhost", "vhosts/v%2F1"),
    G("end/vhost-gone", "vhosts/v%2F1"),
    D("end/user", "users/manager"),
    G("end/user-gone", "users/manager"),
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
