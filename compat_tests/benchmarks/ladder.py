"""A retry ladder of three hops with a real pika consumer: 5 seconds, a minute, ten minutes, by `advance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pika

from fakeamqp import Broker

__all__ = ["HOPS", "Attempt", "climb", "declare_ladder"]

HOPS = {"5s": 5, "1m": 60, "10m": 600}
"""How long each hop waits, in seconds."""


@dataclass(frozen=True)
class Attempt:
    """One delivery of the message to the consumer."""

    queue: str
    time: int
    headers: Mapping[str, Any]


def declare_ladder(channel: Any) -> list[str]:
    """Queues `try.0` to `try.3`; what is rejected from one waits in `wait.5s` and so on for the next."""
    tries = [f"try.{number}" for number in range(len(HOPS) + 1)]
    for queue, following, (hop, seconds) in zip(tries, tries[1:], HOPS.items(), strict=False):
        waits = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"wait.{hop}"}
        channel.queue_declare(queue, arguments=waits)
        returns = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": following}
        channel.queue_declare(f"wait.{hop}", arguments={**returns, "x-message-ttl": seconds * 1000})
    channel.queue_declare(tries[-1])
    return tries


def climb(broker: Broker) -> list[Attempt]:
    """Publish one message, reject it at every try but the last, and tell what the consumer saw.

    `broker` has a virtual clock.
    """
    attempts: list[Attempt] = []
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        tries = declare_ladder(channel)

        def work(_channel: Any, method: Any, properties: Any, _body: bytes) -> None:
            headers = properties.headers or {}
            attempts.append(Attempt(method.routing_key, int(broker.clock.time()), headers))
            if method.routing_key == tries[-1]:
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_reject(method.delivery_tag, requeue=False)

        for queue in tries:
            channel.basic_consume(queue, work)
        channel.basic_publish("", tries[0], b"order 1")
        for seconds in (0, *HOPS.values()):
            broker.clock.advance(seconds)
            before = len(attempts)
            while len(attempts) == before:
                connection.process_data_events(5)
    return attempts
