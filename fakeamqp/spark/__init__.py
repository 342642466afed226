"""AMQP for PySpark: a source and sink for batch and streaming, a quick local session, and trace analytics.

>>> orders = spark.readStream.format("amqp").options(**{"amqp.url": broker.url, "queue": "orders"}).load()

Names are loaded when first used: workers import this package for every query, and need little of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if find_spec("fcntl") is None:
    raise ImportError(
        "fakeamqp.spark locks its spool with fcntl, which Windows does not have; "
        "run jobs and their tests on Linux or macOS, such as in WSL"
    )

if TYPE_CHECKING:
    from fakeamqp.spark.errors import (
        AccessRefused as AccessRefused,
        BrokerUnreachable as BrokerUnreachable,
        ChannelClosed as ChannelClosed,
        ColumnError as ColumnError,
        ConnectionLost as ConnectionLost,
        DataLoss as DataLoss,
        DeliveryLimit as DeliveryLimit,
        LoginRefused as LoginRefused,
        OptionError as OptionError,
        PublishError as PublishError,
        QueueNotFound as QueueNotFound,
        QueueRefused as QueueRefused,
        SparkError as SparkError,
        SpoolError as SpoolError,
        UnreadableAnswer as UnreadableAnswer,
    )
    from fakeamqp.spark.poison.dead_letters import dead_letters as dead_letters
    from fakeamqp.spark.poison.splitting import PoisonSplit as PoisonSplit, poison_split as poison_split
    from fakeamqp.spark.session import (
        FastModeWarning as FastModeWarning,
        JavaMissing as JavaMissing,
        SessionError as SessionError,
        SessionRunning as SessionRunning,
        SparkMissing as SparkMissing,
        local_session as local_session,
        register as register,
    )
    from fakeamqp.spark.source import AmqpDataSource as AmqpDataSource
else:
    __getattr__, __dir__ = on_first_use(__name__)
