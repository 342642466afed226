"""A streaming job under test: started, run to its end, crashed and restarted.

The fixture `amqp_stream` is an `AmqpStream` with a temporary folder. Without pytest, create one yourself.
"""

from __future__ import annotations

from fakeamqp.spark.testing.crashes import Crash
from fakeamqp.spark.testing.errors import (
    CrashNotPossible,
    NotACrash,
    NotStarted,
    QueryTimeout,
    StreamTestError,
)
from fakeamqp.spark.testing.stream import AmqpStream

__all__ = [
    "AmqpStream",
    "Crash",
    "CrashNotPossible",
    "NotACrash",
    "NotStarted",
    "QueryTimeout",
    "StreamTestError",
]
