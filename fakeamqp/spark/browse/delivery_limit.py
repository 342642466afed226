"""The delivery limit of quorum queues, for which batch reads count before RabbitMQ 4.3.

A batch read returns all messages. Before 4.3 a quorum queue counts every return of a message, however it is
returned, and drops or dead-letters the message above its limit (measured on 4.0.5: `basic.nack`,
`basic.reject`, `basic.recover`, and the end of the channel or connection all count). From 4.3 on `basic.nack`
is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.spark.errors import DeliveryLimit
from fakeamqp.spark.wire import management
from fakeamqp.spark.wire.queue_types import QUORUM, STREAM, a_stream, queue_type

if TYPE_CHECKING:
    from fakeamqp.spark.options import ReadOptions
    from fakeamqp.spark.wire.connection import WireConnection

_FIRST_COUNTED, _FIRST_WITH_DEFAULT = (3, 10), (4, 0)
# The first version of RabbitMQ that does not count a return as a delivery.
FIRST_UNCOUNTED = 4, 3


def check_may_be_read(connection: WireConnection, options: ReadOptions, queue: str) -> None:
    """Check that a queue is no stream, and that a batch read cannot make it drop messages.

    Raises:
        OptionError: it is a stream.
        DeliveryLimit: reads count, and the queue has a delivery limit or may have one.
        QueueRefused: the queue does not exist, or the user may not read it.
        BrokerUnreachable: the HTTP API does not answer, or refuses the user.
        ConnectionLost: the connection has ended.
    """
    version = major, minor = connection.broker_version
    if options.management_url is None:
        kind, limited = queue_type(connection, queue), True
        limit, advice = (
            "its delivery limit, if it has one",
            ", set 'managementUrl', which tells of a limit",
        )
    else:
        details = management.queue_details(options.management_url, options.connection, queue)
        kind, limited = details.type, _has_limit(details, version)
        limit, advice = "its delivery limit", ""
    if kind == STREAM:
        raise a_stream(queue)
    counts = kind == QUORUM and _FIRST_COUNTED <= version < FIRST_UNCOUNTED
    if counts and limited and not options.allow_delivery_limit:
        raise DeliveryLimit(
            f"a batch read of quorum queue {queue!r} is refused: RabbitMQ {major}.{minor} counts it as a "
            f"return of all messages, and drops or dead-letters messages above {limit}. Consume the queue "
            f"with readStream, use RabbitMQ 4.3 or later, where batch reads do not count{advice}, or accept "
            "the loss with allowDeliveryLimit=true"
        )


def _has_limit(details: management.QueueDetails, version: tuple[int, int]) -> bool:
    """Whether the queue has a delivery limit, or whether that is not known yet."""
    if details.policy is None:
        return True
    given = details.arguments.get("x-delivery-limit"), details.policy.get("delivery-limit")
    limits = [each for each in given if isinstance(each, int)]
    if version < _FIRST_WITH_DEFAULT:
        return bool(limits)  # A negative one means 0.
    return not limits or max(limits) >= 0
