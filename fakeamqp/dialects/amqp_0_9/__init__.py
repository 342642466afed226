"""AMQP 0-9 of December 2006, and 0-8, which is much the same in other numbers.

Reading order: `endpoint` holds the connection and `channel_end` one channel, whose contents it puts together;
what both share with 0-9-1 is in `amqp_0_9_x`. One module per AMQP class says what each method does.
"""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint
from fakeamqp.wire.amqp_0_9.constants import PROTOCOL_HEADER

__all__ = ["PROTOCOL_HEADER", "Endpoint"]
