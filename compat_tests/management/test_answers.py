"""Values of which the comparison with RabbitMQ's recorded answers sees the types only; the order of lists."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.management.comparison import _BY_CHANCE, _VOLATILE
from compat_tests.tools.matrix import cases
from fakeamqp import Broker

NODE = "fakeamqp@localhost"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(management=True, clock="virtual", memory_limit=10**8) as broker:
        yield broker
        assert broker.admin.failures == ()


def unseen(value: Any, path: str = "", inside: bool = False) -> Iterator[tuple[str, Any]]:
    """What the comparison sees the types of only: the places with their values, without zeros and blanks."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from unseen(
                item, f"{path}.{name}", inside or bool(_VOLATILE.match(name) or _BY_CHANCE.match(name))
            )
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from unseen(item, f"{path}.{number}", inside)
    elif inside and value not in (0, "", -1):
        yield path.removeprefix("."), value


def counted(prefix: str, **counts: int) -> dict[str, float]:
    """Counts below a key, and their rates where all of it happened in the latest five seconds."""
    rates = {f"{prefix}.{name}_details.rate": count / 5 for name, count in counts.items()}
    return {**{f"{prefix}.{name}": count for name, count in counts.items()}, **rates}


def test_views_have_the_expected_counts_and_sizes(broker: Broker, api: Api, monkeypatch: pytest.MonkeyPatch):
    broker.clock.advance(1000)
    broker.reset()
    broker.clock.advance(100)
    began = broker._state.clock.time()
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    publishing, consuming = connection.channel(), connection.channel()
    publishing.confirm_delivery()
    publishing.exchange_declare("events", "fanout", durable=True)
    for queue in ("work", "other"):
        publishing.queue_declare(queue, durable=True)
        publishing.queue_bind(queue, "events")
    broker.clock.advance(50)
    for number in range(4):
        properties = pika.BasicProperties(delivery_mode=1 + number % 2)
        publishing.basic_publish("events", "", b"x" * (number + 1), properties)
    consuming.basic_qos(prefetch_count=2)
    consuming.basic_consume("work", lambda *_: None, consumer_tag="worker")
    broker.wait_until_idle()
    consuming.basic_ack(1)
    broker.wait_until_idle()
    for auto_ack in (False, True):
        consuming.basic_get("other", auto_ack=auto_ack)
    broker.wait_until_idle()
    broker.clock.advance(1)
    (client,) = broker._state.connections
    host, port, peer_port = broker.host, broker.port, client.peer.port
    http, name = broker.admin.management_port, client.name
    octets = {path: api.get("vhosts/%2F")[path] for path in ("recv_oct", "send_oct")}
    (found,) = api.get("connections")
    assert octets == {path: found[path] for path in octets}
    took = {"get": 1, "get_no_ack": 1, "deliver": 3, "ack": 1, "deliver_get": 5}
    gave = {"publish": 4, "confirm": 4}
    channel = {"connection_name": name, "name": f"{name} (2)", "node": NODE, "number": 2, "user": "guest"}
    channel |= {"peer_host": host, "peer_port": peer_port}
    consumer: dict[str, Any] = {
        **{"ack_required": True, "active": True, "activity_status": "blocked", "consumer_tag": "worker"},
        **{"consumer_timeout": 1_800_000, "prefetch_count": 2, "queue.name": "work", "queue.vhost": "/"},
        **{f"channel_details.{key}": value for key, value in channel.items()},
    }
    node_counts = {"connection_created": 1, "channel_created": 2, "queue_created": 2, "queue_declared": 2}
    monkeypatch.setattr(os, "listdir", lambda _: ["0", "1", "2"])
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert api.get("nodes?columns=processors") == [{"processors": 1}]
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1234, 5678))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    python = ".".join(map(str, sys.version_info[:3]))
    expected: dict[str, dict[str, Any]] = {
        f"connections/{quote(name, safe='')}": {
            "connected_at": int(began * 1000),
            "peer_port": peer_port,
            "port": port,
            "user_who_performed_action": "guest",
        },
        "channels": {
            **counted("0.message_stats", **gave),
            **counted("1.message_stats", **took),
            **{f"{number}.connection_details.name": name for number in (0, 1)},
            **{f"{number}.connection_details.peer_host": host for number in (0, 1)},
            **{f"{number}.connection_details.peer_port": peer_port for number in (0, 1)},
            **{f"{number}.user_who_performed_action": "guest" for number in (0, 1)},
        },
        "queues/%2F/work": {
            **counted("message_stats", publish=4, deliver=3, ack=1, deliver_get=3),
            **{f"consumer_details.0.{key}": value for key, value in consumer.items()},
            "messages_ready_ram": 1,
            "messages_unacknowledged_ram": 2,
            "messages_ram": 3,
            "message_bytes_ram": 9,
            "memory": 9,
            "storage_version": 2,
        },
        "queues/%2F/other": {
            **counted("message_stats", publish=4, get=1, get_no_ack=1, deliver_get=2),
            "messages_ready_ram": 2,
            "messages_unacknowledged_ram": 1,
            "messages_ram": 3,
            "message_bytes_ram": 8,
            "memory": 8,
            "storage_version": 2,
        },
        "consumers": {f"0.channel_details.{key}": value for key, value in channel.items()},
        "exchanges/%2F/events": {
            **counted("message_stats", publish_in=4, publish_out=8),
            "user_who_performed_action": "guest",
        },
        "vhosts/%2F": {**counted("message_stats", **gave, **took), **octets},
        "overview": {
            **counted("message_stats", **gave, **took),
            **{f"churn_rates.{name}": count for name, count in node_counts.items()},
            **{f"{each}_version": "4.3.6" for each in ("management", "product", "rabbitmq")},
            **{f"listeners.{number}.ip_address": host for number in (0, 1)},
            "listeners.0.port": port,
            "listeners.0.socket_opts.backlog": 128,
            "listeners.0.socket_opts.nodelay": True,
            "listeners.1.port": http,
            "listeners.1.socket_opts.ip": host,
            "listeners.1.socket_opts.port": http,
            "contexts.0.cowboy_opts": "[]",
            "contexts.0.ip": host,
            "contexts.0.port": str(http),
        },
        f"nodes/{NODE}": {
            **node_counts,
            "applications.0.name": "fakeamqp",
            "applications.0.version": "4.3.6",
            "applications.1.name": "python",
            "applications.1.version": python,
            "contexts.0.cowboy_opts": "[]",
            "contexts.0.ip": host,
            "contexts.0.port": str(http),
            "disk_free": 1,
            "fd_total": 1234,
            "fd_used": 3,
            "mem_calculation_strategy": "allocated",
            "mem_limit": 10**8,
            "os_pid": str(os.getpid()),
            "processors": 7,
            "rabbitmq_version": "4.3.6",
            "uptime": 151_000,
        },
    }
    with cases() as case:
        for path, values in expected.items():
            with case(path):
                whole = api.get(path)
                seen = dict(unseen(whole))
                if path.startswith("connections"):
                    client_properties = [each for each in seen if each.startswith("client_properties.")]
                    moving = [each for each in seen if each.endswith(("_oct", "_cnt", "_oct_details.rate"))]
                    for each in (*client_properties, *moving):
                        del seen[each]
                if path.startswith("nodes"):
                    memory = api.get(f"nodes/{NODE}/memory")["memory"]
                    used = seen.pop("mem_used")
                    assert memory["total"] == dict.fromkeys(("erlang", "rss", "allocated"), used)
                    parts = {each: memory[each] for each in ("connection_other", "binary", "other_proc")}
                    assert sum(parts.values()) == used
                    assert parts["binary"] == broker._state.memory.messages.octets > 0
                    assert whole["auth_mechanisms"] == [
                        {"name": name, "description": "", "enabled": True}
                        for name in broker._state.personality.mechanisms
                    ]
                    assert whole["exchange_types"] == [
                        {"name": name, "description": "", "enabled": True}
                        for name in sorted(broker._state.personality.exchange_types)
                    ]
                assert seen == values
    connection.close()


def test_byte_and_frame_counts_of_a_connection_match_the_wire(broker: Broker, api: Api, channel: Any):
    def moved() -> dict[str, int]:
        broker.wait_until_idle()
        (found,) = api.get("connections")
        return {name: found[name] for name in ("recv_oct", "recv_cnt", "send_oct", "send_cnt")}

    channel.queue_declare("q")
    before = moved()
    channel.basic_publish("", "nowhere", b"12345")
    publish, header, body = 4 + 2 + 1 + 8 + 1, 2 + 2 + 8 + 2, 5
    published = moved()
    assert {name: published[name] - before[name] for name in before} == {
        **{"recv_oct": publish + header + body + 3 * 8, "recv_cnt": 3, "send_oct": 0, "send_cnt": 0}
    }
    channel.basic_get("q")
    assert {name: count - published[name] for name, count in moved().items()} == {
        **{"recv_oct": 4 + 2 + 2 + 1 + 8, "recv_cnt": 1, "send_oct": 4 + 1 + 8, "send_cnt": 1}
    }


KEYS = (  # Measured on 4.3.6, of arguments in JSON.
    ({"a": 1.5}, "yo4NAg"),
    ({"a": {"b": "c", "a": 1}}, "Vj_xUQ"),
    ({"a": [1, "b", True]}, "Y9hO-w"),
    ({"a": [], "b": {}}, "VrIZIg"),
    ({"a": 2**40}, "B_0fhA"),
    ({"a": -1}, "ElVmZA"),
    ({"a": {"x": [1.25, {"y": "z"}]}}, "_6xlog"),
    ({"a": [{"b": False}, 2]}, "HxNL7A"),
)


def test_binding_has_the_properties_key_of_rabbitmq(api: Api):
    api.put("queues/%2F/q")
    with cases() as case:
        for arguments, key in KEYS:
            with case(arguments):
                made = api.post(
                    "bindings/%2F/e/amq.headers/q/q", {"routing_key": "k", "arguments": arguments}
                )
                assert made.headers["location"] == f"q/k~{key}"


ORDERS = {
    "bindings": ("vhost", "source", "destination", "routing_key"),
    "channels": ("name",),
    "connections": ("name",),
    "consumers": ("queue.vhost", "queue.name", "consumer_tag"),
    "exchanges": ("vhost", "name"),
    "permissions": ("vhost", "user"),
    "queues": ("vhost", "name"),
    "topic-permissions": ("vhost", "user"),
    "users": ("name",),
    "vhosts": ("name",),
}


def test_lists_are_in_the_order_of_their_names(broker: Broker, api: Api):
    """In whatever order they were created: by virtual host first, and then by name."""
    hosts, names = ("z", "/"), ("c", "b", "a")
    places = [{"vhost": host, "name": name} for host in hosts for name in names]
    permission = {"configure": ".*", "write": ".*", "read": ".*"}
    broker.load_definitions(
        {
            "vhosts": [{"name": host} for host in hosts],
            "users": [{"name": name, "password": "p", "tags": ""} for name in names],
            "permissions": [
                {"user": user, "vhost": host, **permission} for user in (*names, "guest") for host in hosts
            ],
            "topic_permissions": [
                {"user": user, "vhost": host, "exchange": "amq.topic", "write": "", "read": ""}
                for user in names
                for host in hosts
            ],
            "queues": [{**place, "durable": True} for place in places],
            "exchanges": [{**place, "type": "direct", "durable": True} for place in places],
            "bindings": [
                {"vhost": host, "source": x, "destination": q, "destination_type": "queue", "routing_key": k}
                for host in hosts
                for x in names
                for q in names
                for k in names
            ],
        }
    )
    connections = []
    for host in (*hosts, *hosts):
        parameters = pika.ConnectionParameters(broker.host, broker.port, virtual_host=host)
        connections.append(pika.BlockingConnection(parameters))
        for number in (3, 1, 2):
            channel = connections[-1].channel(number)
            for queue in names:
                channel.basic_consume(queue, print, consumer_tag=f"{number} {len(connections)} {queue}")
    with cases() as case:
        for path, order in ORDERS.items():
            with case(path):
                rows = [dict(leaves(row)) for row in api.get(path)]
                keys = [tuple(row[name] for name in order) for row in rows]
                assert keys == sorted(keys)
                assert len(set(keys)) == len(keys) or path == "consumers"
        with case("channels of a connection"):
            of_one = api.get(f"connections/{quote(api.get('connections')[0]['name'], safe='')}/channels")
            assert [row["number"] for row in of_one] == [1, 2, 3]
    for connection in connections:
        connection.close()


def leaves(row: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value
