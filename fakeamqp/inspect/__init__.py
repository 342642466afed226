"""What a test sees of a broker: immutable pictures of one moment, a live look at a queue, expectations.

Functions here read a :class:`~fakeamqp.model.state.BrokerState` and are called inside the engine. What they
return is free of it: typed, immutable, comparable, with representations that read well in failed assertions.
"""

from __future__ import annotations

from fakeamqp.inspect.connections import ChannelView, ConnectionView, connection_view, connection_views
from fakeamqp.inspect.counts import Count
from fakeamqp.inspect.ends import (
    DeadLettered,
    DeadLetteredView,
    Dropped,
    DroppedView,
    Returned,
    ReturnedView,
    dead_lettered_views,
    dropped_views,
    returned_views,
)
from fakeamqp.inspect.errors import (
    BadExpectation,
    NoHistory,
    NoSuchExchange,
    NoSuchQueue,
    NoSuchVirtualHost,
    NotAsExpected,
    NotDeadLettered,
    NotDropped,
    NotPublished,
    NotReturned,
    WaitTimeout,
)
from fakeamqp.inspect.expectations import (
    Expectation,
    Wanted,
    WantedDeadLettered,
    WantedDropped,
    WantedReturned,
    expect_published,
)
from fakeamqp.inspect.face import Inspection
from fakeamqp.inspect.live import ConnectionHandle, Look, QueueInspector
from fakeamqp.inspect.messages import ContentView, MessageView, Published, PublishedView, published_views
from fakeamqp.inspect.policies import PolicyView, policy_views
from fakeamqp.inspect.remarks import remark
from fakeamqp.inspect.sessions import SessionView, session_views
from fakeamqp.inspect.topology import (
    BindingView,
    ConsumerView,
    CreditView,
    ExchangeView,
    QueueView,
    exchange_names,
    exchange_view,
    queue_names,
    queue_view,
)

__all__ = [
    "BadExpectation",
    "BindingView",
    "ChannelView",
    "ConnectionHandle",
    "ConnectionView",
    "ConsumerView",
    "ContentView",
    "Count",
    "CreditView",
    "DeadLettered",
    "DeadLetteredView",
    "Dropped",
    "DroppedView",
    "ExchangeView",
    "Expectation",
    "Inspection",
    "Look",
    "MessageView",
    "NoHistory",
    "NoSuchExchange",
    "NoSuchQueue",
    "NoSuchVirtualHost",
    "NotAsExpected",
    "NotDeadLettered",
    "NotDropped",
    "NotPublished",
    "NotReturned",
    "PolicyView",
    "Published",
    "PublishedView",
    "QueueInspector",
    "QueueView",
    "Returned",
    "ReturnedView",
    "SessionView",
    "WaitTimeout",
    "Wanted",
    "WantedDeadLettered",
    "WantedDropped",
    "WantedReturned",
    "connection_view",
    "connection_views",
    "dead_lettered_views",
    "dropped_views",
    "exchange_names",
    "exchange_view",
    "expect_published",
    "policy_views",
    "published_views",
    "queue_names",
    "queue_view",
    "remark",
    "returned_views",
    "session_views",
]
