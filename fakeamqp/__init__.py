"""A real AMQP broker that lives inside a test process."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["FakeAMQPError"]
