"""Frame groups of 0-9-1. Only this protocol has RabbitMQ's publisher confirms."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import Self

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.framed.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.framed.faults.frame_groups import PUBLISH, MethodGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.interception import Interception
    from fakeamqp.protocols.amqp_0_9_1.faults.fault_port import ConfirmingFaultPort
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.codec.properties import Properties
    from fakeamqp.protocols.framed.codec.tables import Grammar

__all__ = ["CONFIRMS", "PUBLISH", "MethodGroup091"]

CONFIRMS = frozenset(("basic.ack", "basic.nack"))


class MethodGroup091(MethodGroup):
    """See `FrameGroup`."""

    __slots__ = ()

    port: ConfirmingFaultPort

    METHODS: ClassVar[Mapping[int, type[Method]]] = METHODS
    PROPERTIES: ClassVar[Mapping[int, type[Properties]]] = {BasicProperties.CLASS_ID: BasicProperties}
    GRAMMARS: ClassVar[tuple[Grammar, ...]] = (RABBITMQ, PUBLISHED.unchecked)

    def drop(self, state: ConnectionFaultState) -> None:
        """A dropped publish is counted and never confirmed; the publishes of a dropped confirm neither."""
        port = self.port
        if self.direction == "received" and self.name == PUBLISH:
            tag = self.tag
            if tag is not None and not self.is_duplicate:
                port.drop_publish(self.channel)
                self._never_confirmed(state, tag)
        elif self.direction == "sent" and self.name in CONFIRMS and port.channel_open(self.channel):
            self._never_confirmed(state, self.method.delivery_tag)
        else:
            super().drop(state)

    def suppressed(self, state: ConnectionFaultState) -> None:
        """No later confirm may cover this one: the connection may only be silent, and continue."""
        if self.name in CONFIRMS:
            self._never_confirmed(state, self.method.delivery_tag)

    def _never_confirmed(self, state: ConnectionFaultState, tag: int) -> None:
        """No confirm of a later publish may cover this tag."""
        state.never_confirmed(self.channel, tag)
        self.port.confirm_singly(self.channel)

    @property
    def tag(self) -> int | None:
        """The tag of the next publish on its channel; None without confirms."""
        return self.port.next_publish(self.channel)

    def nack(self, interception: Interception) -> Self | None:
        """Refuse a publish; replace the ack of a confirm by a nack."""
        if self.direction == "received":
            if self.name != PUBLISH or self.tag is None:  # Other publishes are of 0-9.
                return super().nack(interception)
            if not self.is_duplicate:
                self.port.nack_publish(self.channel)
            return None
        return self.with_method(
            m.BasicNack(delivery_tag=self.method.delivery_tag, multiple=self.method.multiple)
        )

    def return_message(self, interception: Interception, code: int, text: str) -> None:
        """Send basic.return with the content, and a confirm."""
        super().return_message(interception, code, text)
        if not self.is_duplicate and self.tag is not None:
            self.port.return_publish(self.channel)

    def _returned(self, code: int, text: str) -> Method:
        return m.BasicReturn(code, text, self.method.exchange, self.method.routing_key)
