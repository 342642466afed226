"""A proxy in front of a node of RabbitMQ, with what a bench asks of a broker."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import pika

from compat_tests.differential.broker_of_node import BrokerOfNode
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from fakeamqp import Proxy, WaitTimeout
from fakeamqp.proxy import IMPOSSIBLE

__all__ = ["CANNOT", "ProxiedNode", "in_front_of"]

CANNOT: dict[str, str] = {
    "crash-after-confirm": IMPOSSIBLE["crash"],
    "crash-before-confirm": IMPOSSIBLE["crash"],
    "consumer-cancelled": IMPOSSIBLE["cancel_consumers"],
    "restart": IMPOSSIBLE["restart"],
    "crash": IMPOSSIBLE["crash"],
    "crash-empty": IMPOSSIBLE["crash"],
}
"""Faults of the catalogue that no proxy can cause, and why."""
_OFTEN = 0.02
_SECONDS = 20
_QUEUE = """
case rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)) of
    {ok, Q} -> list_to_tuple([C || {_, C} <- rabbit_amqqueue:info(Q, [
        messages_ready, messages_unacknowledged, consumers])]);
    _ -> {} end
"""


class _Counts(NamedTuple):
    ready: int
    unacked: int
    consumers: int


class _Queue:
    """A queue of the node."""

    def __init__(self, node: RabbitMQNode, behind: BrokerOfNode, name: str) -> None:
        self._node = node
        self._behind = behind
        self._name = name

    def _counts(self) -> _Counts | None:
        counts = [int(each) for each in re.findall(r"\d+", self._node.evaluate(_QUEUE % self._name))]
        return _Counts(*counts) if counts else None

    @property
    def exists(self) -> bool:
        return self._counts() is not None

    @property
    def ready(self) -> int:
        counts = self._counts()
        return 0 if counts is None else counts.ready

    @property
    def unacked(self) -> int:
        counts = self._counts()
        return 0 if counts is None else counts.unacked

    @property
    def consumers(self) -> range:
        """As many things as there are consumers."""
        counts = self._counts()
        return range(0 if counts is None else counts.consumers)

    @property
    def messages(self) -> tuple[SimpleNamespace, ...]:
        """All messages, once the node has put back what connections that are gone have held."""
        _wait_for(lambda: not self.unacked, _SECONDS)
        return self._behind.queue(self._name).messages

    def delete(self) -> None:
        self._behind.channel.queue_delete(self._name)


def _wait_for(condition: Callable[[], object], timeout: float) -> None:
    ends = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > ends:
            raise WaitTimeout(f"it does not hold after {timeout:g} s")
        threading.Event().wait(_OFTEN)


class _Admin:
    """`Proxy.admin`, and the limits of the node."""

    def __init__(self, node: RabbitMQNode, proxy: Proxy) -> None:
        self._node = node
        self._proxy = proxy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy.admin, name)

    def set_limits(self, **limits: int) -> None:
        values = ", ".join(f'{{<<"{_kebab(name)}">>, {value}}}' for name, value in limits.items())
        self._node.evaluate(f'rabbit_vhost_limit:set(<<"/">>, [{values}], <<"test">>)')

    def set_user_limits(self, user: str, **limits: int) -> None:
        values = ", ".join(f'<<"{_kebab(name)}">> => {value}' for name, value in limits.items())
        self._node.evaluate(
            f'rabbit_auth_backend_internal:set_user_limits(<<"{user}">>, #{{{values}}}, <<"test">>)'
        )


class ProxiedNode:
    """See the module. Each has a proxy of its own."""

    def __init__(self, node: RabbitMQNode, channel: Any, proxy: Proxy) -> None:
        self._node = node
        self._behind = BrokerOfNode(node, channel)
        self._proxy = proxy
        self.admin = _Admin(node, proxy)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy, name)

    def queue(self, name: str) -> _Queue:
        return _Queue(self._node, self._behind, name)

    def publish(self, body: bytes | str, routing_key: str, **properties: Any) -> None:
        self._behind.publish(body, routing_key, **properties)

    def wait_for(self, condition: Callable[[], object], timeout: float) -> None:
        """Wait until a condition holds, which may be about the node."""
        _wait_for(condition, timeout)


def _kebab(name: str) -> str:
    return name.replace("_", "-")


@contextmanager
def in_front_of(node: RabbitMQNode) -> Iterator[ProxiedNode]:
    """A proxy in front of a node that runs."""
    parameters = pika.URLParameters(node.url)
    parameters.heartbeat = 0
    with pika.BlockingConnection(parameters) as connection, Proxy(node.url, seed=1) as proxy:
        yield ProxiedNode(node, connection.channel(), proxy)
