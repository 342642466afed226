"""What a trace knows of 0-9."""

from __future__ import annotations

from fakeamqp.trace.amqp_0_9.frames import Words09, vocabulary
from fakeamqp.trace.amqp_0_9.reader import Reader09
from fakeamqp.wire.amqp_0_9.framing import FRAMING
from fakeamqp.wire.amqp_0_9.methods import METHODS

__all__ = ["READER"]

READER = Reader09(Words09(vocabulary(METHODS)), FRAMING)
