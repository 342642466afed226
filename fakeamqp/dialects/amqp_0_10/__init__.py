"""AMQP 0-10: connections, sessions and their commands."""

from fakeamqp.dialects.amqp_0_10.endpoint import Endpoint
from fakeamqp.wire.amqp_0_10.constants import PROTOCOL_HEADER

__all__ = ["PROTOCOL_HEADER", "Endpoint"]
