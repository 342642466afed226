"""AMQP 0-9 on the wire: constants, methods, properties.

Made from spec/amqp-0-9.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from fakeamqp.wire.amqp_0_9.methods import METHODS
from fakeamqp.wire.amqp_0_9.properties import (
    BasicProperties,
    FileProperties,
    StreamProperties,
    TunnelProperties,
)

__all__ = ["METHODS", "BasicProperties", "FileProperties", "StreamProperties", "TunnelProperties"]
