"""A real AMQP broker that lives inside a test process.

>>> from fakeamqp import Broker
>>> with Broker() as broker:
...     connection = pika.BlockingConnection(pika.URLParameters(broker.url))

Each name is imported on first use, so that a test run without a broker does not pay for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use
from fakeamqp.protocols import registry as registry  # Faults and traces find the protocols by it.

if TYPE_CHECKING:
    from fakeamqp.broker import BadBody as BadBody, Broker as Broker
    from fakeamqp.endpoint import NotIdle as NotIdle
    from fakeamqp.errors import (
        BrokerError as BrokerError,
        FakeAMQPError as FakeAMQPError,
        ManagementUnavailable as ManagementUnavailable,
        UnreadResult as UnreadResult,
        WaitTimeout as WaitTimeout,
    )
    from fakeamqp.inspect import (
        ConnectionHandle as ConnectionHandle,
        NoSuchExchange as NoSuchExchange,
        NoSuchQueue as NoSuchQueue,
        NotAsExpected as NotAsExpected,
        NotDeadLettered as NotDeadLettered,
        NotDropped as NotDropped,
        NotPublished as NotPublished,
        NotReturned as NotReturned,
    )
    from fakeamqp.model.access import (
        Permission as Permission,
        TopicPermission as TopicPermission,
        User as User,
    )
    from fakeamqp.model.definitions import DefinitionsError as DefinitionsError
    from fakeamqp.model.limits import Bounds as Bounds, LimitsError as LimitsError
    from fakeamqp.model.personality import (
        PERSONALITIES as PERSONALITIES,
        FeatureError as FeatureError,
        Personality as Personality,
    )
    from fakeamqp.model.personality.variants import ChoiceDifference as ChoiceDifference
    from fakeamqp.model.policies import PolicyError as PolicyError
    from fakeamqp.proxy import Proxy as Proxy
    from fakeamqp.runtime import (
        CannotListen as CannotListen,
        ClockError as ClockError,
        InterceptError as InterceptError,
        NothingPending as NothingPending,
        PortInUse as PortInUse,
        TLSUnavailable as TLSUnavailable,
    )
    from fakeamqp.runtime.clock.handle import Clock as Clock, TimerView as TimerView
    from fakeamqp.runtime.tls import ServerTLS as ServerTLS
    from fakeamqp.trace.recording import Recording as Recording
else:
    __getattr__, __dir__, __all__ = on_first_use(
        __name__,
        {
            "fakeamqp.broker": ("BadBody", "Broker"),
            "fakeamqp.endpoint": ("NotIdle",),
            "fakeamqp.proxy": ("Proxy",),
            "fakeamqp.errors": (
                "BrokerError",
                "FakeAMQPError",
                "ManagementUnavailable",
                "UnreadResult",
                "WaitTimeout",
            ),
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
            "fakeamqp.trace.recording": ("Recording",),
        },
    )
