"""AMQP 0-9-1: the protocol of RabbitMQ and its clients.

Reading order: `server_connection` holds the connection and `server_channel` one channel, whose contents it puts together;
what both share with 0-9 is in `framed`. One module per AMQP class says what each method does:
`connection`, `channel`, `access`, `exchange`, `queue`, `basic` (with `publishing`), `confirm`, `tx`.
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

__all__ = ["PROTOCOL_HEADER", "Amqp091Connection"]
