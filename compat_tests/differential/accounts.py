"""The accounts, limits and policies that cases need, as RabbitMQ's definitions: both sides load them."""

from __future__ import annotations

from typing import Any

__all__ = ["ACCOUNTS"]


def _policy(name: str, pattern: str, applies_to: str, priority: int, **definition: Any) -> dict[str, Any]:
    return {
        "vhost": "/",
        "name": name,
        "pattern": pattern,
        "apply-to": applies_to,
        "priority": priority,
        "definition": {key.replace("_", "-"): value for key, value in definition.items()},
    }


def _operator_policy(name: str, pattern: str, **definition: Any) -> dict[str, Any]:
    policy = _policy(name, pattern, "queues", 0, **definition)
    value = {key: policy.pop(key) for key in ("pattern", "apply-to", "priority", "definition")}
    return {**policy, "component": "operator_policy", "value": value}


def _limited(vhost: str, **limits: int) -> dict[str, Any]:
    value = {key.replace("_", "-"): limit for key, limit in limits.items()}
    return {"component": "vhost-limits", "name": "limits", "vhost": vhost, "value": value}


_VHOSTS = ("probe-one-queue", "probe-no-queue", "probe-one-connection", "probe-no-connection")
_QUEUE_TYPES = ("classic", "quorum", "stream")
"""A virtual host `probe-quorum` has this type as its default, and so on."""
_USERS = {
    "probe-one-channel": {"max-channels": 1},
    "probe-no-channel": {"max-channels": 0},
    "probe-one-connection": {"max-connections": 1},
    "probe-no-connection": {"max-connections": 0},
    "probe-changing": {},
}
_RIGHTS = ("configure", "write", "read")

ACCOUNTS: dict[str, Any] = {
    "vhosts": [
        *({"name": name} for name in ("/", "probe-empty", *_VHOSTS)),
        *(
            {"name": f"probe-{kind}", "default_queue_type": kind, "metadata": {"default_queue_type": kind}}
            for kind in _QUEUE_TYPES
        ),
    ],
    "users": [
        {"name": "probe-limited", "password": "limited", "tags": ""},
        {"name": "probe-topic", "password": "topic", "tags": ""},
        {"name": "probe-novhost", "password": "novhost", "tags": ""},
        *({"name": name, "password": "p", "tags": "", "limits": limits} for name, limits in _USERS.items()),
        *(
            {"name": f"probe-{has}-{right}", "password": "p", "tags": ""}
            for right in _RIGHTS
            for has in ("no", "only")
        ),
    ],
    "permissions": [
        {
            "user": "probe-limited",
            "vhost": "/",
            "configure": r"^(.*ok.*|amq\.gen.*)$",
            "write": "^.*(ok|ww).*$",
            "read": "^.*(ok|rr).*$",
        },
        *(
            {"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
            for user, vhost in (
                ("probe-topic", "/"),
                *((user, "/") for user in _USERS),
                *(("guest", vhost) for vhost in _VHOSTS),
                *(("guest", f"probe-{kind}") for kind in _QUEUE_TYPES),
            )
        ),
        *(
            {
                "user": f"probe-{has}-{right}",
                "vhost": "/",
                **{each: ".*" if (each == right) is (has == "only") else "^$" for each in _RIGHTS},
            }
            for right in _RIGHTS
            for has in ("no", "only")
        ),
    ],
    "topic_permissions": [
        {"user": "probe-topic", "vhost": "/", "exchange": "amq.topic", "write": "^ok", "read": "^ok"}
    ],
    "parameters": [
        _limited("probe-one-queue", max_queues=1),
        _limited("probe-no-queue", max_queues=0),
        _limited("probe-one-connection", max_connections=1),
        _limited("probe-no-connection", max_connections=0),
        _operator_policy("probe-cap", "-capped$", max_length=1),
    ],
    # Queues and exchanges of cases have names that end so.
    "policies": [
        _policy("probe-two", "-two(-capped)?$", "queues", 1, max_length=2),
        _policy("probe-refusing", "-refusing$", "queues", 1, max_length=1, overflow="reject-publish"),
        _policy("probe-dead", "-dead$", "queues", 1, max_length=1, dead_letter_exchange="amq.direct"),
        _policy("probe-brief", "-brief$", "all", 1, message_ttl=1),
        _policy("probe-expiring", "-expiring$", "queues", 1, expires=1),
        _policy("probe-low", "-ranked$", "queues", 1, max_length=1),
        _policy("probe-high", "-ranked$", "queues", 2, max_length=2),
        _policy("probe-elsewhere", "-elsewhere$", "exchanges", 1, alternate_exchange="amq.direct"),
        _policy("probe-not-here", "-exchange-only$", "exchanges", 1, alternate_exchange="amq.direct"),
        _policy("probe-limit", "-limited$", "queues", 1, delivery_limit=1),
        _policy("probe-short-stream", "-short-stream$", "queues", 1, max_length_bytes=4000),
        _policy(
            "probe-held",
            "-held$",
            "queues",
            1,
            dead_letter_strategy="at-least-once",
            overflow="reject-publish",
            dead_letter_exchange="amq.direct",
        ),
    ],
}
