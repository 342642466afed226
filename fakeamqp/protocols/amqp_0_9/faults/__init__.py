"""What faults know of 0-9."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9.faults.adapter import Adapter09
from fakeamqp.protocols.amqp_0_9.faults.frame_groups import MethodGroup09

__all__ = ["ADAPTER"]

MethodGroup09.protocol = ADAPTER = Adapter09("0-9", FRAMING, MethodGroup09)
