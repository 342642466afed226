"""The trace's adapter for 0-9, with the methods that RabbitMQ adds."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.rabbitmq_methods import METHODS
from fakeamqp.protocols.amqp_0_9.trace.frames import FrameText09, vocabulary
from fakeamqp.protocols.amqp_0_9.trace.reader import Reader09

__all__ = ["READER"]

READER = Reader09(FrameText09(vocabulary(METHODS)), FRAMING)
