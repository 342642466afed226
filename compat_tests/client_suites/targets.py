"""What a suite is run on: a RabbitMQ of a series, and the broker with the personality of this series.

The broker is in a process of its own, or in the event loops of the suite. In its place there may be a proxy
in front of a RabbitMQ.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.attempts.targets import NodeWithCertificate, await_port
from compat_tests.differential.comparison import SERIES
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.tools.legs import Legs
from compat_tests.tools.loopback import free_port

__all__ = ["ROOT", "VERSIONS", "Nodes", "Target", "nodes", "runtimes", "targets", "through_proxy"]

ROOT = Path(__file__).parents[2]
"""The folder that `fakeamqp` is in."""

VERSIONS = ("4.0", "4.3")
"""The series that have a personality of their own."""

_HTTP, _TLS = "15672", "5671"
"""The ports of the services elsewhere."""
_FEATURE = "transient_nonexcl_queues"
_MESSAGE_SIZE = 134_217_728
"""What the suites of aiormq and aio-pika have their RabbitMQ configured with, as its own image of it does."""
_SETTINGS = {f"deprecated_features.permit.{_FEATURE}": "true", "max_message_size": str(_MESSAGE_SIZE)}

# A process of its own, as the node is one: the broker does not wait for those who run the suites.
_SERVE = """
import json, logging, sys
import fakeamqp
logging.disable()
arguments = json.loads(sys.argv[2])
if "choices" in arguments:
    choices = arguments.pop("choices")
    arguments["personality"] = fakeamqp.Personality(arguments["personality"]).with_(**choices)
if "tls" in arguments:
    from fakeamqp.runtime.tls import ServerTLS
    arguments["tls"] = ServerTLS.from_files(**arguments["tls"])
with getattr(fakeamqp, sys.argv[1])(**arguments) as endpoint:
    print(endpoint.port, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Target:
    """A RabbitMQ, a broker or a proxy that listens, or a broker for the event loops of a suite."""

    name: str
    port: int
    """0: each run of a suite takes a free one."""
    host: str = "127.0.0.1"
    in_loops: Mapping[str, Any] | None = None
    """The arguments of a broker that runs in the event loop of each test."""
    services: Mapping[str, int] = field(default_factory=dict)
    """The ports of its HTTP API and of TLS, by those that have them elsewhere."""

    def __str__(self) -> str:
        return self.name


@contextlib.contextmanager
def targets(version: str, certificates: Path | None = None) -> Iterator[tuple[Target, Target]]:
    """Start the node of a series and the broker beside it.

    Args:
        version: the series.
        certificates: the folder with those of a suite that needs the HTTP API and TLS, too.

    Raises:
        RabbitMQError: the node does not start.
    """
    personality = SERIES[version].personality
    if certificates is None:
        with RabbitMQNode(version, settings=_SETTINGS) as node, _broker(personality) as broker:
            yield _target(node), broker
        return
    services = [{_HTTP: free_port(), _TLS: free_port()} for _ in range(2)]
    arguments = {**_arguments(personality), "management_port": services[1][_HTTP]}
    files = {"ca": "cacertfile.pem", "certificate": "certfile.pem", "key": "keyfile.pem"}
    certified = {files[name]: Path(file).read_bytes() for name, file in _server_files(certificates).items()}
    settings = {
        **_SETTINGS,
        "management.tcp.ip": "127.0.0.1",
        "management.tcp.port": str(services[0][_HTTP]),
        "listeners.ssl.1": f"127.0.0.1:{services[0][_TLS]}",
    }
    # A broker has one listener, so another one has TLS.
    tls = {"port": services[1][_TLS], "tls": _server_files(certificates)}
    with (
        NodeWithCertificate(certified, version, settings=settings, plugins=["rabbitmq_management"]) as node,
        _served("Broker", arguments) as port,
        _served("Broker", {**_arguments(personality), **tls}),
    ):
        await_port(services[0][_TLS])
        there = replace(_target(node), services=services[0])
        yield there, Target(personality, port, services=services[1])


def _server_files(certificates: Path) -> dict[str, str]:
    names = {
        "certificate": "server_localhost_certificate",
        "key": "server_localhost_key",
        "ca": "ca_certificate",
    }
    return {name: str(certificates / f"{file}.pem") for name, file in names.items()}


@contextlib.contextmanager
def runtimes() -> Iterator[tuple[Target, Target]]:
    """The default broker in a thread, and the one for event loops."""
    personality = SERIES[VERSIONS[-1]].personality
    with _broker(personality) as broker:
        yield broker, Target(f"{personality} in event loops", 0, in_loops=_arguments(personality))


class Nodes(NamedTuple):
    """Two nodes of the latest series: the names of queues in a suite are fixed, so each run needs a node."""

    alone: RabbitMQNode
    behind_proxy: RabbitMQNode


@contextlib.contextmanager
def nodes() -> Iterator[Nodes]:
    """Start both nodes.

    Raises:
        RabbitMQError: a node does not start.
    """
    version = VERSIONS[-1]
    with (
        RabbitMQNode(version, settings=_SETTINGS) as alone,
        RabbitMQNode(version, settings=_SETTINGS) as behind_proxy,
    ):
        yield Nodes(alone, behind_proxy)


@contextlib.contextmanager
def through_proxy(nodes: Nodes) -> Iterator[tuple[tuple[Target, Target], Legs]]:
    """A node, a proxy in front of the other one, and what compares the bytes on both legs of it."""
    with Legs(nodes.behind_proxy.port) as legs:
        to = f"amqp://guest:guest@127.0.0.1:{legs.to}/%2F"
        with _served("Proxy", {"to": to}) as port:
            alone = _target(nodes.alone)
            yield (alone, Target(f"{alone} through a proxy", legs.listen(port))), legs


def _target(node: RabbitMQNode) -> Target:
    return Target(f"RabbitMQ {node.version}", node.port)


def _arguments(personality: str) -> dict[str, Any]:
    choices = {"largest_message": _MESSAGE_SIZE}
    return {"personality": personality, "choices": choices, "permit": [_FEATURE]}


@contextlib.contextmanager
def _broker(personality: str) -> Iterator[Target]:
    with _served("Broker", _arguments(personality)) as port:
        yield Target(personality, port)


@contextlib.contextmanager
def _served(name: str, arguments: Mapping[str, Any]) -> Iterator[int]:
    """The port of a broker or a proxy in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, name, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
