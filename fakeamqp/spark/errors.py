"""Errors between Spark and a broker. A stack trace in Spark shows only their texts."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError


class SparkError(FakeAMQPError):
    """Base class of the errors of the Spark source, sink and fixtures."""


class OptionError(SparkError):
    """An option of the source or sink is unknown, missing, of the wrong form, or does not fit another one."""


class ColumnError(SparkError):
    """A column is unknown to the source or sink, missing, or of a type that it cannot have."""


class BrokerUnreachable(SparkError):
    """No broker of `amqp.url` could be reached, or all of them refused the connection."""


class LoginRefused(BrokerUnreachable):
    """All brokers refused the login, or their certificates are not trusted: it is not tried again."""


class ConnectionLost(SparkError):
    """A connection or channel ended, and could not be opened again in time."""


class ChannelClosed(ConnectionLost):
    """The broker closed a channel, and said why.

    Attributes:
        reply_code: of channel.close, such as 404.
        reply_text: of channel.close.
    """

    def __init__(self, text: str, reply_code: int = 0, reply_text: str = "") -> None:
        super().__init__(text)
        self.reply_code: int = reply_code
        self.reply_text: str = reply_text


class UnreadableAnswer(ConnectionLost):
    """The client cannot read what the broker sent, and closed the connection: it is not tried again."""


class QueueRefused(SparkError):
    """The broker refuses a consumer of a queue or stream; base class of QueueNotFound and AccessRefused."""


class QueueNotFound(QueueRefused):
    """The queue or stream does not exist (404)."""


class AccessRefused(QueueRefused):
    """The user may not read the queue or stream (403)."""


class DataLoss(SparkError):
    """Messages that Spark's checkpoint refers to are lost: a spool is missing, or a stream was truncated."""


class DeliveryLimit(SparkError):
    """Another batch read could make a quorum queue drop messages, because it counts how often they return."""


class PublishError(SparkError):
    """A row cannot become a message, or a message was returned, refused, or not confirmed in time."""


class SpoolError(SparkError):
    """The folder of a spool cannot be used: it is locked by another query, or its files cannot be read."""
