"""AMQP 0-10: connections, sessions and their commands."""

from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection

__all__ = ["PROTOCOL_HEADER", "Amqp010Connection"]
