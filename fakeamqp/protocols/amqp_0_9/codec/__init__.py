"""AMQP 0-9 on the wire: constants, methods, properties."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9.codec.properties import FileProperties, StreamProperties, TunnelProperties
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["METHODS", "BasicProperties", "FileProperties", "StreamProperties", "TunnelProperties"]
