"""The brokers that are measured side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat_tests.benchmarks import load
from compat_tests.differential import rabbitmq_node
from compat_tests.differential.installations import SUITES

__all__ = ["IN_LOOP", "IN_THREAD", "RABBITMQ", "SERVE", "TARGETS", "WITHOUT_1_0", "obstacle", "running"]

IN_THREAD = "in process"
"""A `Broker` in a thread of the client's process."""
IN_LOOP = "event loop"
"""A `Broker` in the event loop of the client."""
SERVE = "serve"
"""`fakeamqp serve` in a process of its own."""
RABBITMQ = {f"RabbitMQ {series}": series for series in SUITES}
WITHOUT_1_0 = ("RabbitMQ 3.10",)
"""They refuse the header of AMQP 1.0."""
TARGETS = (IN_THREAD, IN_LOOP, SERVE, *RABBITMQ)


def obstacle(target: str) -> str | None:
    """Why a target cannot be measured on this machine, or None where it can."""
    return rabbitmq_node.available(RABBITMQ[target]) if target in RABBITMQ else None


@contextmanager
def running(target: str) -> Iterator[load.Address | None]:
    """Start a target; the brokers in the client's process are started there, for each measurement anew."""
    if target in (IN_THREAD, IN_LOOP):
        yield None
        return
    serving = load.fakeamqp_serving() if target == SERVE else load.rabbitmq_serving(RABBITMQ[target])
    with serving as address:
        yield address
