"""AMQP 0-9 of December 2006, and 0-8, which is much the same in other numbers.

Reading order: `server_connection` holds the connection and `server_channel` one channel, whose contents it puts together;
what both share with 0-9-1 is in `framed`. One module per AMQP class says what each method does.
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

__all__ = ["PROTOCOL_HEADER", "Amqp09Connection"]
