"""AMQP 0-9-1: the dialect of RabbitMQ and its clients.

Reading order: `endpoint` holds the connection and `channel_end` one channel, whose contents it puts together;
what both share with 0-9 is in `amqp_0_9_x`. One module per AMQP class says what each method does:
`connection`, `channel`, `access`, `exchange`, `queue`, `basic` (with `publishing`), `confirm`, `tx`.
"""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
from fakeamqp.wire.amqp_0_9_1.constants import PROTOCOL_HEADER

__all__ = ["PROTOCOL_HEADER", "Endpoint"]
