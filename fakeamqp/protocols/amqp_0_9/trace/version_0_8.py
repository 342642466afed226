"""What a trace knows of 0-8."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing_0_8 import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import METHODS
from fakeamqp.protocols.amqp_0_9.trace.frames import Words09, vocabulary
from fakeamqp.protocols.amqp_0_9.trace.reader import Reader09

__all__ = ["READER"]

READER = Reader09(Words09(vocabulary(METHODS), requests=False), FRAMING)
