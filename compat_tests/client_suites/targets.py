"""What a suite is run on: a RabbitMQ of a series, and the broker with the personality of this series."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compat_tests.differential.comparison import SERIES
from compat_tests.differential.rabbitmq_node import RabbitMQNode

__all__ = ["VERSIONS", "Target", "targets"]

VERSIONS = ("4.0", "4.3")
"""The series that have a personality of their own."""

_FEATURE = "transient_nonexcl_queues"
_MESSAGE_SIZE = 134_217_728
"""What the suites of aiormq and aio-pika have their RabbitMQ configured with, as its own image of it does."""
_SETTINGS = {f"deprecated_features.permit.{_FEATURE}": "true", "max_message_size": str(_MESSAGE_SIZE)}

# A process of its own, as the node is one: the broker does not wait for those who run the suites.
_SERVE = """
import logging, sys
from fakeamqp import Broker
logging.disable()
with Broker(personality=sys.argv[1], permit=[sys.argv[2]], largest_message=int(sys.argv[3])) as broker:
    print(broker.port, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Target:
    """A RabbitMQ or a broker that listens."""

    name: str
    port: int
    host: str = "127.0.0.1"

    def __str__(self) -> str:
        return self.name


@contextlib.contextmanager
def targets(version: str) -> Iterator[tuple[Target, Target]]:
    """Start the node of a series and the broker beside it.

    Raises:
        RabbitMQError: the node does not start.
    """
    with RabbitMQNode(version, settings=_SETTINGS) as node, _broker(SERIES[version].personality) as broker:
        yield Target(f"RabbitMQ {node.version}", node.port), broker


@contextlib.contextmanager
def _broker(personality: str) -> Iterator[Target]:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, personality, _FEATURE, str(_MESSAGE_SIZE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Target(personality, int(process.stdout.readline()))
        finally:
            process.stdin.close()
