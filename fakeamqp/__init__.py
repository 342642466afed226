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
    from fakeamqp.broker import Broker as Broker
    from fakeamqp.errors import (
        BrokerError as BrokerError,
        FakeAMQPError as FakeAMQPError,
        NotAsExpected as NotAsExpected,
        WaitTimeout as WaitTimeout,
    )
    from fakeamqp.model.access import (
        Permission as Permission,
        TopicPermission as TopicPermission,
        User as User,
    )
    from fakeamqp.model.limits import Bounds as Bounds
    from fakeamqp.model.personality import Personality as Personality
    from fakeamqp.proxy import Proxy as Proxy
    from fakeamqp.runtime.clock.handle import Clock as Clock
    from fakeamqp.runtime.tls import ServerTLS as ServerTLS
    from fakeamqp.trace.recording import Recording as Recording
else:
    __getattr__, __dir__ = on_first_use(__name__)
