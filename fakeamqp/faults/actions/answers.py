"""What becomes of a method whose answer is another than it would be: none, a refusal, the message itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.replies import error_code, reply_text

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.subjects import Subject

__all__ = ["Drop", "Fail", "Nack", "Return"]

_LONGEST = 255


class Drop(Action):
    """It is lost."""

    words = "drop it"

    def act(self, flight: Flight) -> None:
        """Consume it; what is counted keeps its place in the count."""
        for unit in flight.units:
            unit.lose(flight.wire)
        flight.consume()


class Nack(Action):
    """A publish is refused; or a confirm says so."""

    words = "nack it"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if not subject.confirms:
            publishes = frozenset().union(*(each.publishes for each in subject.protocols))
            self._only(subject, publishes or ("basic.publish", "message.transfer"), "nack()")
            if subject.direction != "received":
                raise FaultError(f"nack() is for what publishers send, and {subject} is to be sent")

    def act(self, flight: Flight) -> None:
        """Refuse it, or put nack in the place of ack."""
        answers = [unit.nack(flight) for unit in flight.units]
        flight.units = [unit for unit in answers if unit is not None]


class Fail(Action):
    """A command of 0-10 has failed."""

    protocols = frozenset(("0-10",))

    def __init__(self, code: int | str, text: str | None, field_index: int | None) -> None:
        self._code, name = error_code(code)
        self._text = reply_text(self._code, text, name)
        self._field_index = field_index
        if field_index is not None and (isinstance(field_index, bool) or field_index not in range(256)):
            raise FaultError(f"the index of a field is a number from 0 to 255, not {field_index!r}")
        self.words = f"answer it with the exception {name or self._code}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if "0-10" not in subject.among:
            raise FaultError(
                f"exception() is for commands of AMQP 0-10, not for {subject}: use close_channel()"
            )
        if subject.direction != "received":
            raise FaultError(f"exception() is for what clients send, and {subject} is to be sent")
        if all(name.startswith(("connection.", "session.", "heartbeat")) for name in subject.names):
            raise FaultError(f"{subject} is a control; exceptions are for commands: use close_connection()")

    def act(self, flight: Flight) -> None:
        """Answer each with an exception; the session ends with the first."""
        for unit in flight.units:
            unit.fail(flight, self._code, self._text, self._field_index)
        flight.consume()


class Return(Action):
    """A publish comes back."""

    def __init__(self, code: int, text: str) -> None:
        self._code = code
        self._text = reply_text(code, text)
        if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
            raise FaultError(f"a reply text has at most {_LONGEST} bytes, not {len(text)}")
        self.words = f"return it with {code} {text}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        self._only(subject, ("basic.publish",), "return_message()")

    def act(self, flight: Flight) -> None:
        """Send basic.return with the content, and confirm."""
        for unit in flight.units:
            unit.give_back(flight, self._code, self._text)
        flight.consume()
