"""What faults know of 0-9 with RabbitMQ's extensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec.methods import BasicRecover
from fakeamqp.protocols.amqp_0_9.faults.adapter import Adapter09
from fakeamqp.protocols.framed.faults.adapter import method_info

if TYPE_CHECKING:
    from fakeamqp.adapters import Framing
    from fakeamqp.protocols.rabbitmq_0_9.faults.frame_groups import RabbitMQ09Group

__all__ = ["RabbitMQ09Adapter"]


class RabbitMQ09Adapter(Adapter09):
    """See `FaultAdapter`."""

    def __init__(
        self, name: str, framing: Framing, group: type[RabbitMQ09Group], confirms: frozenset[str]
    ) -> None:
        super().__init__(name, framing, group, confirms)
        # 0-9 and 0-9-1 call different methods basic.recover: 60.100 without and 60.110 with an answer.
        both = self.kinds[BasicRecover.NAME].prefixes | method_info(BasicRecover).prefixes
        self.kinds[BasicRecover.NAME] = method_info(BasicRecover)._replace(prefixes=both)
