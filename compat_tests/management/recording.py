"""Runs the scenario and brings the answers into their normal form; on a new node of RabbitMQ as well."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.management.client import Api, Reply
from compat_tests.management.comparison import MEASURED, normal
from compat_tests.management.scenario import Target, run

__all__ = ["node_with_api", "raw", "record", "record_node", "write"]

_PATIENCE = 60.0
_POLL = 0.2

Answers = Mapping[str, dict[str, Any]]


def record(target: Target) -> dict[str, dict[str, Any]]:
    """The answers of a broker to all requests of the scenario, by name."""
    return {name: normal(reply, words) for name, reply, words in raw(target)}


def raw(target: Target) -> Iterator[tuple[str, Reply, dict[str, str]]]:
    """The answers as they are, and the names in them that differ from broker to broker."""
    api = Api(target.url)
    overview = api.get("overview")
    names = {overview["node"]: "{node}", overview["cluster_name"]: "{node}"}
    http = target.url.rpartition(":")[2]
    for request, reply, connection in run(target):
        words = {connection: "{connection}", **names} if connection else names
        words = {**words, f":{target.port}": ":{port}", f":{http}": ":{http}"}
        yield request.name, reply, words


def record_node(version: str) -> dict[str, dict[str, Any]]:
    """What a new node of this version answers."""
    with node_with_api(version) as (node, url):
        return record(Target(node.port, url))


@contextmanager
def node_with_api(version: str) -> Iterator[tuple[RabbitMQNode, str]]:
    """A new node of this version, and the URL of its HTTP API with credentials."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "management.tcp.port": str(port),
        "management.tcp.ip": "127.0.0.1",
        "collect_statistics_interval": "1000",
    }
    with RabbitMQNode(version, plugins=("rabbitmq_management",), settings=settings) as node:
        url = f"http://guest:guest@127.0.0.1:{port}"
        _await_statistics(Api(url))
        yield node, url


def _await_statistics(api: Api) -> None:
    """The API answers with 500 at first, and then without numbers until it has collected some."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            reply = api.request("GET", "overview")
            if reply.status == 200 and reply.json["churn_rates"]:
                return
        except OSError:
            pass
        time.sleep(_POLL)
    raise AssertionError("the management plugin of the node collects no statistics")


def write(version: str, answers: Answers) -> None:
    """Write the file of recorded answers, one line for each request."""
    lines = (
        f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True, ensure_ascii=False)}"
        for name, answer in answers.items()
    )
    (MEASURED / f"{version}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
