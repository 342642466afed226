"""AMQP 0-9-1: the dialect of RabbitMQ and its clients.

Reading order: `endpoint` cuts frames and holds the connection's state, `channel_end` holds one channel and
puts contents together, and one module per AMQP class says what each method does: `connection`,
`channel`, `access`, `exchange`, `queue`, `basic` (with `publishing` and `delivering`), `confirm`, `tx`.
"""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_1.delivering import encode
from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
from fakeamqp.wire.amqp_0_9_1.constants import PROTOCOL_HEADER

__all__ = ["PROTOCOL_HEADER", "Endpoint", "encode"]
