"""What faults know of 0-9-1."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9_1.faults.units import CONFIRMS, PUBLISH, MethodUnit
from fakeamqp.protocols.framed.faults.adapter import FramedAdapter

__all__ = ["ADAPTER"]

MethodUnit.protocol = ADAPTER = FramedAdapter("0-9-1", FRAMING, MethodUnit, frozenset((PUBLISH,)), CONFIRMS)
