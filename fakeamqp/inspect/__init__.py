"""What a test sees of a broker: immutable views of one moment, handles of queues and connections, assertions.

The modules of this package read a `BrokerState` inside the engine. What they return is independent of it:
typed, immutable, comparable, with representations that read well in failed assertions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.errors import WaitTimeout as WaitTimeout
    from fakeamqp.inspect.collection import Collection as Collection
    from fakeamqp.inspect.errors import (
        BadExpectation as BadExpectation,
        Count as Count,
        NoHistory as NoHistory,
        NoSuchConsumer as NoSuchConsumer,
        NoSuchExchange as NoSuchExchange,
        NoSuchQueue as NoSuchQueue,
        NoSuchVirtualHost as NoSuchVirtualHost,
        NotAsExpected as NotAsExpected,
        NotDeadLettered as NotDeadLettered,
        NotDropped as NotDropped,
        NotPublished as NotPublished,
        NotReturned as NotReturned,
    )
    from fakeamqp.inspect.expectations import (
        Expectation as Expectation,
        Wanted as Wanted,
        WantedDeadLettered as WantedDeadLettered,
        WantedDropped as WantedDropped,
        WantedReturned as WantedReturned,
    )
    from fakeamqp.inspect.handles import (
        ConnectionHandle as ConnectionHandle,
        ConsumerHandle as ConsumerHandle,
        ExchangeHandle as ExchangeHandle,
        QueueHandle as QueueHandle,
    )
    from fakeamqp.inspect.inspection import Inspection as Inspection
    from fakeamqp.inspect.memory import (
        ConnectionMemory as ConnectionMemory,
        MemoryView as MemoryView,
        QueueMemory as QueueMemory,
    )
    from fakeamqp.inspect.messages import (
        ContentView as ContentView,
        DeadLettered as DeadLettered,
        DeadLetteredView as DeadLetteredView,
        Dropped as Dropped,
        DroppedView as DroppedView,
        MessageView as MessageView,
        Published as Published,
        PublishedView as PublishedView,
        Returned as Returned,
        ReturnedView as ReturnedView,
    )
    from fakeamqp.inspect.topology import (
        BindingView as BindingView,
        ChannelView as ChannelView,
        ConnectionView as ConnectionView,
        ConsumerView as ConsumerView,
        CreditView as CreditView,
        ExchangeView as ExchangeView,
        LinkView as LinkView,
        PolicyView as PolicyView,
        QueueView as QueueView,
        SessionView as SessionView,
    )
    from fakeamqp.runtime.clock.handle import TimerView as TimerView
else:
    __getattr__, __dir__ = on_first_use(__name__)
