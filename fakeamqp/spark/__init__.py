"""AMQP for PySpark: a source and sink for batch and streaming, a quick local session, and trace analytics.

>>> orders = spark.readStream.format("amqp").options(**{"amqp.url": broker.url, "queue": "orders"}).load()

Names are loaded when first used: workers import this package for every query, and need little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.errors import (
    BrokerUnreachable,
    ColumnError,
    ConnectionLost,
    DataLoss,
    OptionError,
    PublishError,
    SparkError,
    SpoolError,
)

if TYPE_CHECKING:
    from fakeamqp.spark.poison import PoisonSplit, dead_letters, poison_split
    from fakeamqp.spark.session import (
        FastModeWarning,
        JavaMissing,
        SessionError,
        SessionRunning,
        SparkMissing,
        local_session,
    )
    from fakeamqp.spark.source import AmqpDataSource

__all__ = [
    "AmqpDataSource",
    "BrokerUnreachable",
    "ColumnError",
    "ConnectionLost",
    "DataLoss",
    "FastModeWarning",
    "JavaMissing",
    "OptionError",
    "PoisonSplit",
    "PublishError",
    "SessionError",
    "SessionRunning",
    "SparkError",
    "SparkMissing",
    "SpoolError",
    "dead_letters",
    "local_session",
    "poison_split",
]

_HOMES = {
    "AmqpDataSource": "fakeamqp.spark.source",
    "FastModeWarning": "fakeamqp.spark.session",
    "JavaMissing": "fakeamqp.spark.session",
    "PoisonSplit": "fakeamqp.spark.poison",
    "SessionError": "fakeamqp.spark.session",
    "SessionRunning": "fakeamqp.spark.session",
    "SparkMissing": "fakeamqp.spark.session",
    "dead_letters": "fakeamqp.spark.poison",
    "local_session": "fakeamqp.spark.session",
    "poison_split": "fakeamqp.spark.poison",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fakeamqp.spark' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
