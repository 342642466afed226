"""Units of 0-9-1: RabbitMQ's confirms of publishes are what it has alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import Self

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.framed.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.framed.faults.units import PUBLISH, FamilyUnit

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.wires import Wire
    from fakeamqp.protocols.framed.codec.properties import Properties

__all__ = ["CONFIRMS", "PUBLISH", "MethodUnit"]

CONFIRMS = frozenset(("basic.ack", "basic.nack"))


class MethodUnit(FamilyUnit):
    """See `Unit`, which says what each of these is."""

    __slots__ = ()

    METHODS = METHODS
    PROPERTIES: ClassVar[dict[int, type[Properties]]] = {BasicProperties.CLASS_ID: BasicProperties}
    GRAMMARS = (RABBITMQ, PUBLISHED.unchecked)

    def lose(self, wire: Wire) -> None:
        """A publish keeps its place in the count of confirms; neither it nor a confirm is ever confirmed."""
        line = self.line
        if self.direction == "received" and self.name == PUBLISH:
            tag = line.next_publish(self.channel)
            if tag is not None and not self.copy:
                line.skip_publish(self.channel, None)
                self._never_confirmed(wire, tag)
        elif self.direction == "sent" and self.name in CONFIRMS and line.channel_open(self.channel):
            self._never_confirmed(wire, self.method.delivery_tag)
        else:
            super().lose(wire)

    def muted(self, wire: Wire) -> None:
        """The end may be silence, and silence may end: no later confirm may cover this one."""
        if self.name in CONFIRMS:
            self._never_confirmed(wire, self.method.delivery_tag)

    def _never_confirmed(self, wire: Wire, tag: int) -> None:
        """No confirm of a later publish may cover that of this tag."""
        wire.never_confirmed(self.channel, tag)
        self.line.confirm_singly(self.channel)

    @property
    def tag(self) -> int | None:
        """What confirms it, where it is the next publish and publishes are confirmed."""
        return self.line.next_publish(self.channel)

    def nack(self, flight: Flight) -> Self | None:
        """A publish is refused; in the place of an ack a nack goes."""
        if self.name == PUBLISH:
            if self.line.next_publish(self.channel) is None:
                return super().nack(flight)
            if not self.copy:
                self.line.skip_publish(self.channel, False)
            return None
        return self.with_method(
            m.BasicNack(delivery_tag=self.method.delivery_tag, multiple=self.method.multiple)
        )

    def give_back(self, flight: Flight, code: int, text: str) -> None:
        """basic.return with the content, and a confirm."""
        super().give_back(flight, code, text)
        if not self.copy:
            self.line.skip_publish(self.channel, True)

    def _returned(self, code: int, text: str) -> m.BasicReturn:
        return m.BasicReturn(code, text, self.method.exchange, self.method.routing_key)
