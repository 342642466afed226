"""What a trace knows of 0-8."""

from __future__ import annotations

from fakeamqp.trace.amqp_0_9.frames import Words09, vocabulary
from fakeamqp.trace.amqp_0_9.reader import Reader09
from fakeamqp.wire.amqp_0_9.framing_0_8 import FRAMING
from fakeamqp.wire.amqp_0_9.version_0_8 import METHODS

__all__ = ["READER"]

READER = Reader09(Words09(vocabulary(METHODS), requests=False), FRAMING)
