"""Definitions with one wrong value: an error that names the field, and never Python's own."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import cases
from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.definitions import load_definitions

FULL: dict[str, Any] = {
    "rabbit_version": "4.3.6",
    "rabbitmq_version": "4.3.6",
    "product_name": "RabbitMQ",
    "product_version": "4.3.6",
    "rabbitmq_definition_format": "cluster",
    "original_cluster_name": "rabbit@host",
    "explanation": "Definitions of cluster 'rabbit@host'",
    "users": [
        {
            "name": "app",
            "password_hash": "c2FsdLV3GvhqWhMvkVcy0qIN8vUSZMjzBPVTvgZTzJbtwaIX",
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": ["monitoring"],
            "limits": {"max-channels": 7, "max-connections": 5},
        },
        {
            "name": "old",
            "password": "secret",
            "tags": "monitoring, management",
            "limits": [["max-channels", 7]],
        },
    ],
    "vhosts": [
        {
            "name": "shop",
            "description": "Orders",
            "tags": ["a", "b"],
            "default_queue_type": "classic",
            "protected_from_deletion": False,
            "tracing": False,
            "limits": {"max-queues": 9, "max-connections": 20},
            "metadata": {
                "description": "Orders",
                "tags": ["a", "b"],
                "default_queue_type": "classic",
                "protected_from_deletion": False,
            },
        }
    ],
    "permissions": [{"user": "app", "vhost": "shop", "configure": "", "write": ".*", "read": "^o"}],
    "topic_permissions": [
        {"user": "app", "vhost": "shop", "exchange": "events", "write": "^o", "read": ".*"}
    ],
    "parameters": [
        {"component": "vhost-limits", "name": "limits", "vhost": "shop", "value": {"max-queues": 9}},
        {
            "component": "operator_policy",
            "name": "cap",
            "vhost": "shop",
            "value": {
                "pattern": ".*",
                "apply-to": "queues",
                "priority": 0,
                "definition": {"max-length": 9, "expires": 500_000},
            },
        },
    ],
    "global_parameters": [
        {"name": "cluster_name", "value": "rabbit@host"},
        {"name": "mine", "value": {"a": [1, "b"]}},
    ],
    "policies": [
        {
            "vhost": "shop",
            "name": "retry",
            "pattern": "^orders",
            "apply-to": "queues",
            "priority": 1,
            "definition": {"max-length": 5, "message-ttl": 100, "dead-letter-exchange": "rest"},
        }
    ],
    "exchanges": [
        {
            "vhost": "shop",
            "name": "events",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "policy": "none",
            "arguments": {"alternate-exchange": "rest"},
        },
        {
            "vhost": "shop",
            "name": "rest",
            "type": "headers",
            "durable": True,
            "auto_delete": False,
            "arguments": {},
        },
    ],
    "queues": [
        {
            "vhost": "shop",
            "name": "orders",
            "type": "quorum",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "policy": "retry",
            "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": "rest", "x-delivery-limit": 3},
        },
        {
            "vhost": "shop",
            "name": "other",
            "durable": True,
            "auto_delete": False,
            "arguments": {"x-max-length": 3, "x-overflow": "reject-publish", "x-message-ttl": 60_000},
        },
    ],
    "bindings": [
        {
            "source": "events",
            "vhost": "shop",
            "destination": "orders",
            "destination_type": "queue",
            "routing_key": "order.#",
            "properties_key": "order.%23",
            "arguments": {"x": 1},
        },
        {
            "source": "rest",
            "vhost": "shop",
            "destination": "other",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {"x-match": "all", "a": 1},
        },
    ],
}
VALUES: tuple[Any, ...] = (None, True, 5, -1, 1.5, "text", "", [], [1], ["a"], [["a"]], {}, {"a": 1})
"""What takes the place of a value, where it is another one."""
SECTIONS = [name for name, value in FULL.items() if isinstance(value, list)]
FREE = ("arguments", "value", "definition")
"""Below these names are users' own keys, and values of any type."""


def mutations() -> Iterator[tuple[tuple[str | int, ...], Any, dict[str, Any]]]:
    """Each field with each other value: its path, the value, and the definitions with it."""
    for path, found in _paths(FULL):
        for value in VALUES:
            if json.dumps(value) != json.dumps(found):
                mutated = copy.deepcopy(FULL)
                place: Any = mutated
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = value
                yield path, value, mutated


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if path:
        yield path, value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        yield from _paths(each, (*path, step))


def kind(value: Any) -> type:
    """The JSON type of a value."""
    return float if type(value) is int else type(value)


LENIENT = re.compile(
    r"(.*\.)?(tags|policy|properties_key|value) .*|arguments (None|\[\])|limits (None|\[\]|{})|"
    r"(metadata|password|password_hash|hashing_algorithm|(metadata\.)?default_queue_type|"
    r"(metadata\.)?protected_from_deletion) None"
)
"""Fields and values that load, though of another type: exports have them too, or nothing reads them."""


def test_definitions_with_one_wrong_value_load_or_error_names_field() -> None:
    refused = 0
    with cases() as case:
        for path, value, mutated in mutations():
            server = Server("rabbitmq-4.3")
            with case(".".join(map(str, path)), json.dumps(value)):
                try:
                    load_definitions(server.state, mutated)
                except FakeAMQPError as problem:
                    refused += 1
                    if kind(value) is not kind(_at(FULL, path)):
                        _check_text(str(problem), path)
                else:
                    _check_accepted(path, value)
    assert refused > 1000


EXPECTED = re.compile(r"must be|should be|expected|not a|cannot|known:|unknown|invalid (arg|type)|not found")


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    """It names the field, what is expected there, and what was found."""
    names = [step for step in path if isinstance(step, str)]
    assert names[-1] in text
    assert EXPECTED.search(text)


def _check_accepted(path: tuple[str | int, ...], value: Any) -> None:
    """A value of another type is accepted where that is right only."""
    if kind(value) is kind(_at(FULL, path)) or any(step in FREE for step in path[:-1]):
        return
    names = ".".join(step for step in path[2:] if isinstance(step, str))
    assert path[0] not in SECTIONS or not names or LENIENT.fullmatch(f"{names} {value!r}")


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_full_definitions_load_without_error() -> None:
    load_definitions(Server("rabbitmq-4.3").state, FULL)
