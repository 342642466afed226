"""The dialogue of a 0-10 connection: see `fakeamqp.trace.dialogue`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, AcquireMode
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.frames import COMMAND, CONTROL, FIRST_FRAME, HEADER
from fakeamqp.protocols.amqp_0_10.codec.serial import successor
from fakeamqp.protocols.amqp_0_10.codec.structs import FragmentProperties
from fakeamqp.protocols.amqp_0_10.dialect.frames import TYPE_MASK, decode, kind_of, starts
from fakeamqp.trace.dialogue import Answered, Asked, Confirmed, Ended, Opened, Publishing, Releasing, Sent

if TYPE_CHECKING:
    from fakeamqp.trace.dialogue import Step
    from fakeamqp.trace.events import FrameEvent

_FRAGMENT = bytes((FragmentProperties.CLASS, FragmentProperties.CODE))
_ANSWERS = frozenset(name for control in CONTROLS.values() for name in control.RESPONSES)
_OTHER = {"received": "sent", "sent": "received"}


class _Session:
    """The commands of one attached session."""

    def __init__(self) -> None:
        self.next: dict[str, int | None] = {"received": None, "sent": None}
        """The ids of the next commands by direction; None before the command point."""
        self.waits: dict[int, str] = {}
        """Commands of the client whose completion answers them, with their names."""
        self.results: dict[int, str] = {}
        """Commands of the client that ask for a result."""
        self.publishes: dict[int, None] = {}
        self.latest = 0
        """The latest transfer of the client."""
        self.transactional = False


class Dialogue010:
    """See `Dialogue`.

    A command needs an answer if it asks for a result, or if its sync flag is set: then the answer is its
    completion.
    """

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._controls: dict[tuple[int, str], list[tuple[int, type[Any]]]] = {}
        self._serial = 0

    def read(self, event: FrameEvent) -> Iterable[Step]:
        kind = event.type
        segment = kind & TYPE_MASK
        if segment == CONTROL:
            read = decode(kind, event.payload)
            return () if read is None else self._control(event, read[0])
        if segment == COMMAND and starts(kind):
            return self._command(event, decode(kind, event.payload))
        if segment == HEADER and kind >> 8 & FIRST_FRAME and event.direction == "received":
            return self._header(event)
        return ()

    def _header(self, event: FrameEvent) -> Iterator[Step]:
        """A fragment of a message is completed before the message is whole: that confirms nothing."""
        session = self._sessions.get(event.channel)
        if session is not None and session.latest in session.publishes and _is_fragment(event.payload):
            del session.publishes[session.latest]
            yield Publishing(event.channel, None, f"transfer {session.latest}", many=False)

    # --- controls -------------------------------------------------------------------------------------

    def _control(self, event: FrameEvent, control: Any) -> Iterator[Step]:
        name, direction, number = control.NAME, event.direction, event.channel
        of_connection = name.startswith("connection.")
        if name == "session.attach" and direction == "received":
            self._sessions[number] = _Session()
            yield Opened(number)
        elif name == "session.command-point":
            session = self._sessions.get(number)
            if session is not None:
                session.next[direction] = control.command_id
        elif name == "session.completed" and direction == "sent":
            yield from self._completed(number, control.commands)
        elif name == "session.detach":
            self._end(number)
            yield Ended(number)
        elif name == "connection.close":
            self._sessions.clear()
            self._controls.clear()
            yield Ended(None)
        scope = None if of_connection else number
        if name in _ANSWERS:
            pending = self._controls.get((number, _OTHER[direction]), [])
            place = next((at for at, (_, kind) in enumerate(pending) if name in kind.RESPONSES), None)
            if place is not None:
                yield Answered(scope, ("control", pending.pop(place)[0]), name)
        if name == "session.detached":
            self._end(number)
            yield Ended(number)
        if control.RESPONSES:
            self._serial += 1
            self._controls.setdefault((number, direction), []).append((self._serial, type(control)))
            leaves = name in ("connection.close", "session.detach")
            yield Asked(scope, ("control", self._serial), name, leaves)

    def _end(self, number: int) -> None:
        self._sessions.pop(number, None)
        for direction in _OTHER:
            self._controls.pop((number, direction), None)

    # --- commands -------------------------------------------------------------------------------------

    def _command(self, event: FrameEvent, read: tuple[Any, bool] | None) -> Iterator[Step]:
        session = self._sessions.get(event.channel)
        if session is None:
            return
        number = session.next[event.direction]
        if number is None:
            return
        session.next[event.direction] = successor(number)
        if read is None:
            # The frame has only a part of the command; its fields do not matter.
            kind = kind_of(event.type, event.payload)
            if kind is not None and kind.NAME == "message.transfer" and event.direction == "sent":
                yield Sent(event.channel, number, None)
            return
        command, sync = read
        if event.direction == "received":
            yield from self._received(event.channel, session, number, command, sync)
        else:
            yield from self._sent(event.channel, session, number, command)

    def _received(
        self, channel: int, session: _Session, number: int, command: Any, sync: bool
    ) -> Iterator[Step]:
        name = command.NAME
        if name == "message.transfer":
            session.latest = number
            key = None if session.transactional else ("command", number)
            if key is not None:
                session.publishes[number] = None
            yield Publishing(channel, key, f"transfer {number}", many=False)
        elif name in ("tx.select", "dtx.select"):
            session.transactional = True
        elif name == "tx.commit":
            session.publishes[number] = None
            yield Publishing(channel, ("command", number), f"commit {number}", many=True)
        elif name == "message.release" and not command.set_redelivered:
            yield Releasing(channel)
        if command.RESULT is not None:
            session.results[number] = name
            yield Asked(channel, ("command", number), name)
        elif sync or name == "execution.sync":
            session.waits[number] = name
            yield Asked(channel, ("command", number), name)

    def _sent(self, channel: int, session: _Session, number: int, command: Any) -> Iterator[Step]:
        name = command.NAME
        if name == "message.transfer":
            acquired = command.acquire_mode != AcquireMode.NOT_ACQUIRED
            explicit = (command.accept_mode or AcceptMode.EXPLICIT) == AcceptMode.EXPLICIT
            yield Sent(channel, number, explicit and acquired)
        elif name in ("file.deliver", "stream.deliver"):
            yield Sent(channel, command.delivery_tag, None)
        elif name == "execution.result":
            # Gaps and a second attachment change the count of the commands.
            asked = session.results.get(command.command_id)
            if asked is not None:
                yield Answered(channel, ("command", command.command_id), asked)
        elif name == "message.reject" and command.transfers is not None:
            refused = tuple(("command", each) for each in session.publishes if each in command.transfers)
            yield Confirmed(channel, refused, accepted=False)
        elif name == "execution.exception":
            yield Ended(channel)

    def _completed(self, channel: int, commands: Any) -> Iterator[Step]:
        session = self._sessions.get(channel)
        if session is None or commands is None:
            return
        # Completions are repeated until the client knows of them.
        published = [number for number in session.publishes if number in commands]
        for number in published:
            del session.publishes[number]
        if published:
            yield Confirmed(channel, tuple(("command", number) for number in published), accepted=True)
        for number in [number for number in session.waits if number in commands]:
            yield Answered(channel, ("command", number), session.waits.pop(number))


def _is_fragment(header: bytes) -> bool:
    """Whether a header segment has fragment-properties; its structs are not decoded."""
    place = 0
    while place + 6 <= len(header):
        if header[place + 4 : place + 6] == _FRAGMENT:
            return True
        place += 4 + int.from_bytes(header[place : place + 4], "big")
    return False
