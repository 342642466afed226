"""What faults know of 0-9, with the methods and the confirms that RabbitMQ adds."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9.faults.adapter import Adapter09
from fakeamqp.protocols.amqp_0_9.faults.frame_groups import MethodGroup09
from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import CONFIRMS

__all__ = ["ADAPTER"]

MethodGroup09.protocol = ADAPTER = Adapter09("0-9", FRAMING, MethodGroup09, CONFIRMS)
