"""What can go wrong between Spark and a broker. A stack trace in Spark shows the text only."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = [
    "BrokerUnreachable",
    "ColumnError",
    "ConnectionLost",
    "DataLoss",
    "OptionError",
    "PublishError",
    "SparkError",
    "SpoolError",
]


class SparkError(FakeAMQPError):
    """Base class of what the Spark source, sink and fixtures raise."""


class OptionError(SparkError):
    """An option of the source or sink is unknown, missing, of the wrong form, or does not fit another one."""


class ColumnError(SparkError):
    """A column is unknown to the source or sink, missing, or of a type that it cannot have."""


class BrokerUnreachable(SparkError):
    """No broker of `amqp.url` could be reached, or none of them let the client in."""


class ConnectionLost(SparkError):
    """A connection or channel ended, and could not be had again in time."""


class DataLoss(SparkError):
    """Messages that Spark's checkpoint counts on are gone: a spool is missing, a stream was truncated."""


class PublishError(SparkError):
    """A row cannot be a message, or a message was not taken: returned, refused, or not confirmed in time."""


class SpoolError(SparkError):
    """The folder of a spool cannot be used: it is locked by another query, or its files cannot be read."""
