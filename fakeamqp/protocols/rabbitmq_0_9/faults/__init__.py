"""What faults know of 0-9, with the methods and the confirms that RabbitMQ adds."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import CONFIRMS
from fakeamqp.protocols.rabbitmq_0_9.faults.adapter import RabbitMQ09Adapter
from fakeamqp.protocols.rabbitmq_0_9.faults.frame_groups import RabbitMQ09Group

__all__ = ["ADAPTER"]

RabbitMQ09Group.protocol = ADAPTER = RabbitMQ09Adapter("0-9", FRAMING, RabbitMQ09Group, CONFIRMS)
