"""Actions that change the answer to a method: no answer, a refusal, or the message itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fakeamqp.dialects import protocols_with
from fakeamqp.faults.actions.action import PUBLISHES, WORK_0_10, Action, Drawn
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.replies import error_code, reply_text
from fakeamqp.faults.subjects import CONFIRM

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.subjects import Subject

__all__ = ["CommandException", "Drop", "Nack", "ReturnMessage"]

_LONGEST = 255


class Drop(Action):
    """Drops a frame group."""

    label = "Drop it"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "lost-publish": Drawn(PUBLISHES, lambda draw: Drop(), "received", loses=True),
        "lost-confirm": Drawn((CONFIRM,), lambda draw: Drop(), loses=True),
    }
    words = "drop it"
    drops = True

    def apply(self, interception: Interception) -> None:
        """Drop each; numbered methods keep their numbers."""
        for group in interception.groups:
            group.drop(interception.state)
        interception.consume()


class Nack(Action):
    """Refuses a publish, or replaces the ack of a confirm by a nack."""

    label = "Refuse it with a nack"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "nack": Drawn(("basic.publish",), lambda draw: Nack(), needs="confirms"),
        "rejected-transfer": Drawn(("message.transfer",), lambda draw: Nack(), "received", needs="requests"),
        "false-nack": Drawn((CONFIRM,), lambda draw: Nack()),
    }
    words = "nack it"

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        if not subject.confirms:
            publishes = frozenset().union(*(each.publishes for each in subject.protocols))
            self._only(subject, publishes or ("basic.publish", "message.transfer"), "nack()")
            if subject.direction != "received":
                raise FaultError(
                    f"nack() is for received publishes and for confirms; {subject} is sent by the broker"
                )

    def apply(self, interception: Interception) -> None:
        """Nack each; only nacked confirms are passed on."""
        answers = [group.nack(interception.state) for group in interception.groups]
        interception.groups = [group for group in answers if group is not None]


def _failed_command(draw: Random) -> CommandException:
    code = draw.choice(("not-found", "resource-locked", "resource-limit-exceeded"))
    return CommandException(code, None, None)


class CommandException(Action):
    """Answers a command of 0-10 with execution.exception."""

    label = "Answer with an exception (AMQP 0-10)"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "failed-command": Drawn(WORK_0_10, _failed_command, "received", needs="sessions"),
    }
    protocols: frozenset[str] = frozenset(protocols_with("sessions"))

    def __init__(self, code: int | str, text: str | None, field_index: int | None) -> None:
        self._code, name = error_code(code)
        self._text = reply_text(self._code, text, name)
        self._field_index = field_index
        if field_index is not None and (isinstance(field_index, bool) or field_index not in range(256)):
            raise FaultError(f"field_index is a number from 0 to 255, not {field_index!r}")
        self.words: str = f"answer it with the exception {name or self._code}"

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        if self.protocols.isdisjoint(subject.among):
            raise FaultError(
                f"exception() is for commands of AMQP 0-10, not for {subject}: use close_channel()"
            )
        if subject.direction != "received":
            raise FaultError(f"exception() is for received commands; {subject} is sent by the broker")
        if all(name.startswith(("connection.", "session.", "heartbeat")) for name in subject.names):
            raise FaultError(f"{subject} is a control; exceptions are for commands: use close_connection()")

    def apply(self, interception: Interception) -> None:
        """Answer each with an exception; the session ends with the first."""
        for group in interception.groups:
            group.exception(self._code, self._text, self._field_index)
        interception.consume()


class ReturnMessage(Action):
    """Returns a publish to its publisher."""

    label = "Return it as unroutable"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "return": Drawn(("basic.publish",), lambda draw: ReturnMessage(312, "NO_ROUTE")),
    }

    def __init__(self, code: int, text: str) -> None:
        self._code = code
        self._text = reply_text(code, text)
        if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
            raise FaultError(f"a reply text has at most {_LONGEST} bytes, not {len(text)}")
        self.words: str = f"return it with {code} {text}"

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        self._only(subject, ("basic.publish",), "return_message()")

    def apply(self, interception: Interception) -> None:
        """Return each, and confirm it where publishes are confirmed."""
        for group in interception.groups:
            group.return_message(interception.state, self._code, self._text)
        interception.consume()
