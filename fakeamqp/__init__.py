"""A real AMQP broker that lives inside a test process.

>>> from fakeamqp import Broker
>>> with Broker() as broker:
...     connection = pika.BlockingConnection(pika.URLParameters(broker.url))

Each name is imported on first use, so that a test run without a broker does not pay for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.errors import (
    BrokerError,
    FakeAMQPError,
    ManagementUnavailable,
    UnreadResult,
    WaitTimeout,
)
from fakeamqp.lazy import on_first_use
from fakeamqp.protocols import registry as registry  # Faults and traces find the protocols by it.

if TYPE_CHECKING:
    from fakeamqp.broker import BadBody, Broker, NotIdle
    from fakeamqp.inspect import (
        ConnectionHandle,
        NoSuchExchange,
        NoSuchQueue,
        NotAsExpected,
        NotDeadLettered,
        NotDropped,
        NotPublished,
        NotReturned,
    )
    from fakeamqp.model.access import Permission, TopicPermission, User
    from fakeamqp.model.definitions import DefinitionsError
    from fakeamqp.model.limits import Bounds, LimitsError
    from fakeamqp.model.personality import PERSONALITIES, FeatureError, Personality
    from fakeamqp.model.personality.variants import ChoiceDifference
    from fakeamqp.model.policies import PolicyError
    from fakeamqp.runtime import (
        CannotListen,
        ClockError,
        InterceptError,
        NothingPending,
        PortInUse,
        TLSUnavailable,
    )
    from fakeamqp.runtime.clock.handle import Clock, TimerView
    from fakeamqp.runtime.tls import ServerTLS

__all__ = [
    "PERSONALITIES",
    "BadBody",
    "Bounds",
    "Broker",
    "BrokerError",
    "CannotListen",
    "ChoiceDifference",
    "Clock",
    "ClockError",
    "ConnectionHandle",
    "DefinitionsError",
    "FakeAMQPError",
    "FeatureError",
    "InterceptError",
    "LimitsError",
    "ManagementUnavailable",
    "NoSuchExchange",
    "NoSuchQueue",
    "NotAsExpected",
    "NotDeadLettered",
    "NotDropped",
    "NotIdle",
    "NotPublished",
    "NotReturned",
    "NothingPending",
    "Permission",
    "Personality",
    "PolicyError",
    "PortInUse",
    "ServerTLS",
    "TLSUnavailable",
    "TimerView",
    "TopicPermission",
    "UnreadResult",
    "User",
    "WaitTimeout",
]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.broker": ("BadBody", "Broker", "NotIdle"),
            "fakeamqp.inspect": (
                "ConnectionHandle",
                "NoSuchExchange",
                "NoSuchQueue",
                "NotAsExpected",
                "NotDeadLettered",
                "NotDropped",
                "NotPublished",
                "NotReturned",
            ),
            "fakeamqp.model.access": ("Permission", "TopicPermission", "User"),
            "fakeamqp.model.definitions": ("DefinitionsError",),
            "fakeamqp.model.limits": ("Bounds", "LimitsError"),
            "fakeamqp.model.personality": ("PERSONALITIES", "FeatureError", "Personality"),
            "fakeamqp.model.personality.variants": ("ChoiceDifference",),
            "fakeamqp.model.policies": ("PolicyError",),
            "fakeamqp.runtime": (
                "CannotListen",
                "ClockError",
                "InterceptError",
                "NothingPending",
                "PortInUse",
                "TLSUnavailable",
            ),
            "fakeamqp.runtime.clock.handle": ("Clock", "TimerView"),
            "fakeamqp.runtime.tls": ("ServerTLS",),
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
