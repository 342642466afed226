"""Queues for tests that run on a broker of the test and on a real one: what AMQP itself can say and do.

`routes` are the ways to a broker; `queue` asks over one of them, and is what tests hold.
"""

from __future__ import annotations

from fakeamqp.portable.queue import PortableQueue, PortableRequests, ReceivedMessage, declared
from fakeamqp.portable.routes import BadQueue, BrokerRoute, NoAnswer, RequestRefused, ToBroker, ToURL

__all__ = [
    "BadQueue",
    "BrokerRoute",
    "NoAnswer",
    "PortableQueue",
    "PortableRequests",
    "ReceivedMessage",
    "RequestRefused",
    "ToBroker",
    "ToURL",
    "declared",
]
