"""AMQP for PySpark: a source and sink for batch and streaming, a quick local session, and trace analytics.

>>> orders = spark.readStream.format("amqp").options(**{"amqp.url": broker.url, "queue": "orders"}).load()

Names are loaded when first used: workers import this package for every query, and need little of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use
from fakeamqp.spark.errors import (
    BrokerUnreachable,
    ColumnError,
    ConnectionLost,
    DataLoss,
    DeliveryLimit,
    LoginRefused,
    OptionError,
    PublishError,
    SparkError,
    SpoolError,
    UnreadableAnswer,
)

if find_spec("fcntl") is None:
    raise ImportError(
        "fakeamqp.spark locks its spool with fcntl, which Windows does not have; "
        "run jobs and their tests on Linux or macOS, such as in WSL"
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
        register,
    )
    from fakeamqp.spark.source import AmqpDataSource

__all__ = [
    "AmqpDataSource",
    "BrokerUnreachable",
    "ColumnError",
    "ConnectionLost",
    "DataLoss",
    "DeliveryLimit",
    "FastModeWarning",
    "JavaMissing",
    "LoginRefused",
    "OptionError",
    "PoisonSplit",
    "PublishError",
    "SessionError",
    "SessionRunning",
    "SparkError",
    "SparkMissing",
    "SpoolError",
    "UnreadableAnswer",
    "dead_letters",
    "local_session",
    "poison_split",
    "register",
]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.spark.poison": ("PoisonSplit", "dead_letters", "poison_split"),
            "fakeamqp.spark.session": (
                "FastModeWarning",
                "JavaMissing",
                "SessionError",
                "SessionRunning",
                "SparkMissing",
                "local_session",
                "register",
            ),
            "fakeamqp.spark.source": ("AmqpDataSource",),
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
