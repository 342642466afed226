"""What becomes of a method whose answer is another than it would be: none, a refusal, the message itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.actions.action import PUBLISH, Action, count_lost
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.subjects import CONFIRMS
from fakeamqp.faults.units import HEARTBEAT
from fakeamqp.wire.amqp_0_9_1 import methods as m

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.subjects import Subject

__all__ = ["Drop", "Nack", "Return"]

_LONGEST = 255


class Drop(Action):
    """It is lost."""

    words = "drop it"

    def act(self, flight: Flight) -> None:
        """Consume it; a publish keeps its place in the count of confirms."""
        for unit in flight.units:
            if unit.direction == "received":
                if unit.name == PUBLISH:
                    count_lost(flight, unit)
                elif unit.name == HEARTBEAT:
                    unit.line.unhear()
            elif unit.name in CONFIRMS and unit.line.channel_open(unit.channel):
                flight.wire.never_confirmed(unit.channel, unit.method.delivery_tag)
        flight.consume()


class Nack(Action):
    """A publish is refused; or a confirm says so."""

    words = "nack it"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if not subject.confirms:
            self._only(subject, (PUBLISH,), "nack()")

    def act(self, flight: Flight) -> None:
        """Refuse it, or put nack in the place of ack."""
        if flight.unit.name == PUBLISH:
            for unit in flight.units:
                if unit.line.next_publish(unit.channel) is None:
                    flight.tap.note(unit.line, "no confirms on this channel: the message is lost, untold")
                if not unit.copy:
                    unit.line.skip_publish(unit.channel, False)
            flight.consume()
            return
        nacks = []
        for unit in flight.units:
            nack = m.BasicNack(delivery_tag=unit.method.delivery_tag, multiple=unit.method.multiple)
            nacks.append(unit.with_method(nack))
        flight.units = nacks


class Return(Action):
    """A publish comes back."""

    def __init__(self, code: int, text: str) -> None:
        self._code = code
        self._text = reply_text(code, text)
        if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
            raise FaultError(f"a reply text has at most {_LONGEST} octets, not {len(text)}")
        self.words = f"return it with {code} {text}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        self._only(subject, (PUBLISH,), "return_message()")

    def act(self, flight: Flight) -> None:
        """Send basic.return with the content, and confirm."""
        for unit in flight.units:
            method = m.BasicReturn(self._code, self._text, unit.method.exchange, unit.method.routing_key)
            answer = unit.answered(method)
            answer.life = flight.wire.lives.get(unit.channel, 0)
            flight.tap.go_on(flight.wire, answer)
            if not unit.copy:
                unit.line.skip_publish(unit.channel, True)
        flight.consume()
