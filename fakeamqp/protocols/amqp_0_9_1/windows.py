"""Prefetch windows shared by the consumers of a channel, or of all channels of a connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.credit import Credit

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicQos

__all__ = ["set_documented_window", "set_window", "shares_windows"]


def set_documented_window(channel: BaseChannel, method: BasicQos) -> Credit:
    """Set the window of the channel, or with `global` of the connection; existing consumers are included."""
    count, size = method.prefetch_count, method.prefetch_size
    if method.global_:
        connection = channel.connection
        connection.credit = set_window(connection.credit, count, size, connection.channels.values())
        return connection.credit
    channel.credit = set_window(channel.credit, count, size, [channel])
    return channel.credit


def set_window(credit: Credit | None, count: int, size: int, channels: Iterable[BaseChannel]) -> Credit:
    """Set a shared window; a new window counts the unacknowledged deliveries of the channels."""
    if credit is None:
        credit = Credit(count, size)
        for channel in channels:
            for subscription in channel.consumers.values():
                if subscription.subscriber is not channel:
                    continue  # Other AMQP classes have their own windows.
                if not shares_windows(channel, subscription.queue):
                    continue
                if not subscription.no_ack:
                    credits = (*subscription.credits, credit)
                    subscription.depend_on((*subscription.limits, credit), credits)
                elif channel.personality.shared_limit_holds_no_ack:
                    subscription.depend_on((*subscription.limits, credit), subscription.credits)
            for delivery in channel.ledger.outstanding.values():
                if delivery.holder is not None and shares_windows(channel, delivery.queue):
                    delivery.credits = (*delivery.credits, credit)
                    credit.take(delivery.queued.message)
    else:
        credit.resize(count, size)
    return credit


def shares_windows(channel: BaseChannel, queue: Queue) -> bool:
    """True if the consumers of a queue use shared windows; all do unless prefetch is per consumer."""
    return queue.shares_windows or not channel.personality.prefetch_is_per_consumer
