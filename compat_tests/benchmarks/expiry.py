"""Advancing past messages that expire: time and memory per message, with and without dead-lettering.

The messages are published over the wire without a socket and expire one millisecond after another, each at
an instant of its own, so that every one of them has its timer. If the time per message is the same for ten
times as many, advancing is linear.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from dataclasses import dataclass

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["BODY", "TIME_TO_LIVE", "Expiry", "bytes_per_message", "fill", "measure"]

BODY = b"x" * 100
TIME_TO_LIVE = 60_000
"""Milliseconds; longer than publishing them all takes on the broker's clock."""
_CHUNK = 1000


@dataclass(frozen=True)
class Expiry:
    """What one run took."""

    messages: int
    seconds: float

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


def fill(messages: int, *, dead_lettered: bool) -> tuple[Server, Client]:
    """A broker whose queue `waiting` holds that many messages, each to expire a millisecond after another."""
    server = Server()
    client = server.client()
    arguments = {"x-message-ttl": TIME_TO_LIVE * max(1, messages // 1000)}
    if dead_lettered:
        client.declare("dead")
        arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("waiting", arguments=arguments)
    frames = b"".join(
        (
            method_frame(1, m.BasicPublish(routing_key="waiting").encode()),
            *content_frames(1, 60, BasicProperties(delivery_mode=1).encode(), BODY, 131_064),
        )
    )
    for _ in range(messages):
        client.send_bytes(frames)
        server.clock.advance(0.001)
    return server, client


def measure(messages: int, *, dead_lettered: bool) -> Expiry:
    """Fill a queue and time the one `advance` that all its messages expire in."""
    server, client = fill(messages, dead_lettered=dead_lettered)
    gc.collect()
    start = time.perf_counter()
    server.advance(TIME_TO_LIVE * messages)
    seconds = time.perf_counter() - start
    left = server.vhost.queues["waiting"].ready
    assert not left, f"{len(left)} messages did not expire"
    if dead_lettered:
        assert len(server.vhost.queues["dead"].ready) == messages
    client.drop()
    return Expiry(messages, seconds)


def bytes_per_message(messages: int, *, dead_lettered: bool) -> tuple[float, float]:
    """Memory that a message takes while it waits, and (dead-lettered ones) after it has expired."""
    tracemalloc.start()
    try:
        fill(1, dead_lettered=dead_lettered)  # What is made once is not the messages'.
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        server, _client = fill(messages, dead_lettered=dead_lettered)
        gc.collect()
        waiting, _ = tracemalloc.get_traced_memory()
        server.advance(TIME_TO_LIVE * messages)
        gc.collect()
        expired, _ = tracemalloc.get_traced_memory()
        return (waiting - before) / messages, (expired - before) / messages
    finally:
        tracemalloc.stop()
