"""What a trace knows of 0-9."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9.trace.frames import Words09, vocabulary
from fakeamqp.protocols.amqp_0_9.trace.reader import Reader09

__all__ = ["READER"]

READER = Reader09(Words09(vocabulary(METHODS)), FRAMING)
