"""What a test sees of a broker: immutable views of one moment, handles of queues and connections, assertions.

The modules of this package read a `BrokerState` inside the engine. What they return is independent of it:
typed, immutable, comparable, with representations that read well in failed assertions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.inspect.errors import (
        BadExpectation,
        Count,
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
    )
    from fakeamqp.inspect.handles import ConnectionHandle, QueueInspector
    from fakeamqp.inspect.inspection import Inspection
    from fakeamqp.inspect.memory import ConnectionMemory, MemoryView, QueueMemory
    from fakeamqp.inspect.messages import (
        ContentView,
        DeadLettered,
        DeadLetteredView,
        Dropped,
        DroppedView,
        MessageView,
        Published,
        PublishedView,
        Returned,
        ReturnedView,
    )
    from fakeamqp.inspect.topology import (
        BindingView,
        ChannelView,
        ConnectionView,
        ConsumerView,
        CreditView,
        ExchangeView,
        PolicyView,
        QueueView,
        SessionView,
    )

__all__ = [
    "BadExpectation",
    "BindingView",
    "ChannelView",
    "ConnectionHandle",
    "ConnectionMemory",
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
    "MemoryView",
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
    "QueueMemory",
    "QueueView",
    "Returned",
    "ReturnedView",
    "SessionView",
    "WaitTimeout",
    "Wanted",
    "WantedDeadLettered",
    "WantedDropped",
    "WantedReturned",
]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.inspect.errors": (
                "BadExpectation",
                "Count",
                "NoHistory",
                "NoSuchExchange",
                "NoSuchQueue",
                "NoSuchVirtualHost",
                "NotAsExpected",
                "NotDeadLettered",
                "NotDropped",
                "NotPublished",
                "NotReturned",
                "WaitTimeout",
            ),
            "fakeamqp.inspect.expectations": (
                "Expectation",
                "Wanted",
                "WantedDeadLettered",
                "WantedDropped",
                "WantedReturned",
            ),
            "fakeamqp.inspect.handles": ("ConnectionHandle", "QueueInspector"),
            "fakeamqp.inspect.inspection": ("Inspection",),
            "fakeamqp.inspect.memory": ("ConnectionMemory", "MemoryView", "QueueMemory"),
            "fakeamqp.inspect.messages": (
                "ContentView",
                "DeadLettered",
                "DeadLetteredView",
                "Dropped",
                "DroppedView",
                "MessageView",
                "Published",
                "PublishedView",
                "Returned",
                "ReturnedView",
            ),
            "fakeamqp.inspect.topology": (
                "BindingView",
                "ChannelView",
                "ConnectionView",
                "ConsumerView",
                "CreditView",
                "ExchangeView",
                "PolicyView",
                "QueueView",
                "SessionView",
            ),
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
