"""Frame groups of 0-9 with RabbitMQ's extensions: those of 0-9, and the confirms of 0-9-1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import Self

from fakeamqp.protocols.amqp_0_9.faults.frame_groups import MethodGroup09
from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import CONFIRMS, PUBLISH, MethodGroup091
from fakeamqp.protocols.rabbitmq_0_9.codec.methods import METHODS

if TYPE_CHECKING:
    from fakeamqp.faults.interception import Interception
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.rabbitmq_0_9.faults.fault_port import RabbitMQ09Port

__all__ = ["RabbitMQ09Group"]

_CONFIRMED = CONFIRMS | {PUBLISH}


class RabbitMQ09Group(MethodGroup09, MethodGroup091):
    """See `FrameGroup`. A publish in a request is answered as in 0-9, any other is confirmed as in 0-9-1."""

    __slots__ = ()

    port: RabbitMQ09Port

    METHODS: ClassVar[Mapping[int, type[Method]]] = METHODS

    @property
    def tag(self) -> int | None:
        """The tag of the next publish on its channel; None without confirms."""
        return None if self.held is not None else super().tag

    def nack(self, interception: Interception) -> Self | None:
        """See the base classes."""
        if self.held is None and self.name in _CONFIRMED:
            return MethodGroup091.nack(self, interception)
        return MethodGroup09.nack(self, interception)
