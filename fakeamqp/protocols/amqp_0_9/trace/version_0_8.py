"""The trace's adapter for 0-8."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing_0_8 import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import METHODS
from fakeamqp.protocols.amqp_0_9.trace.frames import FrameText09, vocabulary
from fakeamqp.protocols.amqp_0_9.trace.reader import Reader09

__all__ = ["READER"]

READER = Reader09(FrameText09(vocabulary(METHODS), requests=False), FRAMING)
