"""The commands of the client in one session: expected, completed, and known to be completed.

Commands are numbered from the command point on (session/commands-numbered). They are carried out in order and
complete when their handler returns, so the sets of executed and of completed commands are the same. A command
that a client replays after the loss of its transport is not carried out twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.assembly import Assembler
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.frames import FIRST_FRAME, FIRST_SEGMENT, LAST_FRAME, LAST_SEGMENT
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, precedes, successor
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.assembly import Assembly
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["Incoming"]

_BEGINNING = FIRST_SEGMENT | FIRST_FRAME
_END = LAST_SEGMENT | LAST_FRAME


class Incoming:
    """The client's half of a session, as the broker keeps it."""

    __slots__ = (
        "_assembler",
        "_discarding",
        "_done",
        "_due",
        "_expected",
        "_news",
        "_offset",
        "_pointed",
        "_session",
        "_skipped",
        "current",
    )

    def __init__(self, session: ServerSession) -> None:
        self.current: int = 0
        """The id of the command that has come last."""
        self._session = session
        self._assembler = Assembler()
        self._expected: int | None = None
        """The first command that was never seen whole; None while the session knows of no command at all."""
        self._due = 0
        """The command that the next frame belongs to: the expected one, or one that comes again."""
        self._pointed = False
        self._offset: int | None = None
        """What the latest command point said, until data has followed it."""
        self._discarding = False
        """Whether the rest of a command comes whose beginning was seen, and which was carried out before."""
        self._done = SequenceSet()
        """What is completed and not known to be so by the client."""
        self._skipped = SequenceSet()
        """What the client will leave out, ahead of what is expected."""
        self._news = False

    # --- data -----------------------------------------------------------------------------------------

    def detached(self) -> None:
        """Note the loss of the transport; a partial command stays."""
        self._pointed = False
        self._offset = None

    def point(self, command_id: int, offset: int) -> None:
        """Set the command that the client sends next, and the offset in it."""
        self._pointed = True
        self._offset = offset
        self._discarding = False
        if self._expected is None and not offset:
            self._expected = command_id
        expected = self._expected
        if expected is None or precedes(expected, command_id):
            # It continues a command, or follows one, that the broker does not have.
            self._session.detach(DetachCode.UNKNOWN_IDS)
            return
        self._due = command_id
        if command_id == expected and offset <= self._assembler.received:
            self._assembler.rewind(offset)
        elif command_id == expected:
            self._session.detach(DetachCode.UNKNOWN_IDS)
        else:
            self._assembler.clear()
            self._discarding = offset > 0

    def receive_frame(self, flags: int, kind: int, payload: bytes) -> Assembly | None:
        """Take a frame. Returns the command that it completes, unless that was carried out before.

        Raises:
            FramingError: it does not fit those before it.
            ConnectionFault: it does not fit the command point (session.command-point/*-offset).
        """
        if self._offset is not None:
            begins = flags & _BEGINNING == _BEGINNING
            if begins != (self._offset == 0):
                where = "the beginning of a command" if self._offset == 0 else "the rest of a command"
                raise ConnectionFault("framing-error", f"{where} was announced, and something else has come")
            self._offset = None
        elif not self._pointed:
            self._session.detach(DetachCode.UNKNOWN_IDS)  # session.command-point/newly-attached-transports
            return None
        if self._discarding:
            if flags & _END == _END:
                self._discarding = False
                self._due = successor(self._due)
            return None
        assembly = self._assembler.add(flags, kind, payload)
        if assembly is None:
            return None
        self.current = due = self._due
        self._due = successor(due)
        if due != self._expected:
            return None
        self._expected = self._due
        if self._skipped:
            self._pass_over()
        return assembly

    @property
    def unfinished(self) -> int:
        """How many bytes of a command have come that is not complete."""
        return self._assembler.received

    def give_up(self) -> int:
        """Forget the command that is not complete. Returns its id."""
        self._assembler.clear()
        return self._due

    def receive_whole(self) -> bool:
        """Count a command of whole frames; False where it needs the checks of `receive`.

        It needs none where it is new and no part of it is received: then nothing is being discarded, and the
        command point has named no offset.
        """
        due = self._due
        if not self._pointed or due != self._expected or self._skipped or not self._assembler.idle:
            return False
        self._offset = None
        self.current = due
        self._due = self._expected = successor(due)
        return True

    @property
    def broken_off(self) -> Assembly | None:
        """The received part of the expected command; None where there is none."""
        return None if self._discarding or self._due != self._expected else self._assembler.partial

    def finish(self, command_id: int) -> None:
        """Note that the command was carried out."""
        self._done.add(command_id)
        self._news = True

    def skip(self, commands: SequenceSet) -> None:
        """Skip commands that the client does not send (session.gap/*); a partial one is forgotten."""
        self._done.update(commands)
        self._skipped.update(commands)
        self._news = True
        if self._expected is None:
            self._expected = self._due = commands.ranges[0][0] if commands else 0
        self._pass_over()

    def _pass_over(self) -> None:
        """Continue behind the commands that the client leaves out."""
        for lower, upper in self._skipped.ranges:
            if self._expected is not None and _within(self._expected, lower, upper):
                if self._due == self._expected:
                    given_up = self.broken_off
                    if given_up is not None:
                        self._session.given_up(given_up)
                    self._due = successor(upper)
                    self._assembler.clear()
                self._expected = successor(upper)
                self._skipped.remove(SequenceSet.between(lower, upper))

    # --- what the client is told ----------------------------------------------------------------------

    def expected(self) -> controls.SessionExpected:
        """The expected commands. A partial command is expected as a whole.

        The set is empty if and only if the session knows of nothing (session.expected/*).
        """
        commands = SequenceSet() if self._expected is None else SequenceSet.of(self._expected)
        return controls.SessionExpected(commands=commands)

    def confirmed(self) -> controls.SessionConfirmed:
        """The commands that need no replay, which are the completed ones (session.confirmed/simple)."""
        return controls.SessionConfirmed(commands=self._done)

    def completed(self) -> controls.SessionCompleted:
        """All commands that are completed, but not known to be so (session.completed/full-set)."""
        self._news = False
        return controls.SessionCompleted(commands=self._done)

    @property
    def news(self) -> bool:
        """True while there are completions that the client was not told."""
        return self._news

    def known(self, commands: SequenceSet) -> None:
        """The client knows that these are completed."""
        self._done.remove(commands)


def _within(number: int, lower: int, upper: int) -> bool:
    return not precedes(number, lower) and not precedes(upper, number)
