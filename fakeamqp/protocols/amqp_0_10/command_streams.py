"""The two streams of commands of a session.

The client's commands are numbered from the command point on (session/commands-numbered). They are carried out
in order and complete when their handler returns, so the sets of executed and of completed commands are the
same. A command that a client replays after the loss of its transport is not carried out twice.

The broker's commands are numbered, kept until they are confirmed, and replayed on request. A command is kept
as segments, because the next transport may have another channel and frame size, with the callback for its
completion. Where a session ends with its transport, only the callback is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.errors import ContentTooLarge, ModelError
from fakeamqp.model.memory import MESSAGE, Charge
from fakeamqp.protocols.amqp_0_10 import dtx, exchange, execution, file, message, queue, stream, tx
from fakeamqp.protocols.amqp_0_10.codec import commands, controls
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.frames import BEGINNING, END, HEADER_SIZE, Assembler, encode_pieces
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, precedes, successor
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Struct
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault, SessionFault
from fakeamqp.protocols.amqp_0_10.states import SessionState
from fakeamqp.protocols.base.absent import is_absent
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Limit
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.amqp_0_10.codec import structs
    from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

# --- the client's commands ----------------------------------------------------------------------------------

_MODULES = (dtx, exchange, execution, file, message, queue, stream, tx)
_LARGE = 65_536
LARGEST_HEAD = 1024 * 1024
"""The bytes that a command may have beside the body of a message of the largest size."""


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[type[Command], Callable[..., Struct | None]]:
    """The handlers of a broker that is made without some classes and commands.

    A function named like a command, in the module named like its class, carries it out, from the session and
    the command, and of a command with content from the bytes of both segments, None for an absent one. It
    returns the command's result, if it has one.
    """
    found: dict[type[Command], Callable[..., Struct | None]] = {}
    modules = {module.__name__.rpartition(".")[2]: module for module in _MODULES}
    for command in commands.COMMANDS.values():
        owner, _, name = command.NAME.replace("-", "_").partition(".")
        functions = vars(modules[owner])
        handler = functions.get(name) or functions.get(f"{name}_")
        if handler is not None and not is_absent(command.NAME, absent):
            found[command] = handler
    return found


class Incoming:
    """The client's half of a session, as the broker keeps it."""

    def __init__(self, session: ServerSession) -> None:
        self.current: int = 0
        """The id of the command that has come last."""
        self.charge: Charge = Charge(session.broker.memory.unfinished, 0)
        """What the command that is not complete counts of the broker's memory."""
        self._session = session
        self._handlers = handlers(session.personality.not_implemented)
        self._executing = False
        self._doom: ModelError | None = None
        """What ends the session as soon as the command under way is done."""
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

    def receive_frame(self, flags: int, kind: int, payload: bytes) -> None:
        """Take a frame, and carry out the command that it completes; the errors are those of `count`."""
        if self._session.state is not SessionState.ATTACHED:
            return
        assembly = self.count(flags, kind, payload)
        if assembly is not None:
            self.charge.change(0)
            self.execute(assembly)
        else:
            self._check_unfinished(empty=not payload)

    def _check_unfinished(self, *, empty: bool) -> None:
        """Refuse a command before its last frame, once its message is too large whatever follows."""
        session = self._session
        connection = session.connection
        largest = session.personality.largest_message
        size = self._assembler.received
        self.charge.change(size)
        if empty and connection is not None:
            connection.note_idle(HEADER_SIZE)
        if size > _LARGE and connection is not None and connection.blocked_reason is not None:
            connection.publish_received()  # Only a transfer is that large.
        if largest and size > largest + LARGEST_HEAD:
            text = f"message size {size} is larger than configured max size {largest}"
            self.charge.change(0)
            self._assembler.clear()
            session.fail(ContentTooLarge(text), self._due)

    @property
    def takes_whole(self) -> bool:
        """True where a whole command needs none of the checks of `count`.

        It needs none where it is new and no part of it is received: then nothing is being discarded, and the
        command point has named no offset.
        """
        if not self._pointed or self._due != self._expected or self._skipped or self._assembler.segments:
            return False
        return self._session.state is SessionState.ATTACHED

    def receive_whole(self, assembly: Assembly) -> None:
        """Carry out a command of which each segment is one frame, where the session `takes_whole`.

        Gives 1.6 times the transfers per second of handling frames one by one.
        """
        self._offset = None
        self.current = due = self._due
        self._due = self._expected = successor(due)
        self.execute(assembly)

    def count(self, flags: int, kind: int, payload: bytes) -> Assembly | None:
        """Take a frame. Returns the command that it completes, unless that was carried out before.

        FramingError: it does not fit those before it. ConnectionFault: it does not fit the command point
        (session.command-point/*-offset).
        """
        if self._offset is not None:
            begins = flags & BEGINNING == BEGINNING
            if begins != (self._offset == 0):
                where = "the beginning of a command" if self._offset == 0 else "the rest of a command"
                raise ConnectionFault("framing-error", f"{where} was announced, and something else has come")
            self._offset = None
        elif not self._pointed:
            self._session.detach(DetachCode.UNKNOWN_IDS)  # session.command-point/newly-attached-transports
            return None
        if self._discarding:
            if flags & END == END:
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
    def broken_off(self) -> Assembly | None:
        """The received part of the expected command; None where there is none."""
        return None if self._discarding or self._due != self._expected else self._assembler.partial

    # --- carrying out ---------------------------------------------------------------------------------

    def execute(self, assembly: Assembly) -> None:
        """Carry out the current command; its result comes first (execution.result/with-completion)."""
        session = self._session
        publisher = session.publisher
        command_id = self.current
        result: Struct | None = None
        command: Command | None = None
        self._executing = True
        try:
            transfer = publisher.transfers.get(assembly.first)
            if transfer is not None:
                command = transfer
                publisher.transfer(transfer, assembly.header, assembly.body)
            else:
                command, _ = commands.decode(assembly.first)
                result = self._call_handler(command, assembly)
        except (SessionFault, ModelError, WireError) as problem:
            session.fail(problem, command_id, command, assembly)
            return
        finally:
            self._executing = False
        connection = session.connection
        if connection is not None and connection.busy:
            session.broker.operations.then(partial(self._complete_sliced, command_id, result), connection)
        else:
            self._complete(command_id, result)

    def _call_handler(self, command: Command, assembly: Assembly) -> Struct | None:
        kind = type(command)
        handler = self._handlers.get(kind)
        if handler is None:
            raise SessionFault("not-implemented", f"a broker does not take {command.NAME}")
        if kind.HEADER is not None:
            if isinstance(command, commands.MessageTransfer):
                self._session.publisher.remember(assembly.first, command)
            return handler(self._session, command, assembly.header, assembly.body)
        if assembly.header is not None or assembly.body is not None:
            raise SessionFault("command-invalid", f"{command.NAME} has neither header nor body")
        return handler(self._session, command)

    def after_operations(self, act: Callable[[Outcome], object], outcome: Outcome) -> None:
        """Call `act` once the operations of this command have ended; its errors are those of the command."""
        session = self._session
        connection = session.connection
        if connection is None or not connection.busy:
            act(outcome)
            return
        command_id = self.current

        def act_later() -> None:
            try:
                act(outcome)
            except ModelError as problem:
                session.fail(problem, command_id)

        session.broker.operations.then(act_later, connection)

    def _complete_sliced(self, command_id: int, result: Struct | None) -> None:
        """Complete a command whose operations took several slices, unless the session has failed."""
        if self._session.state in (SessionState.ATTACHED, SessionState.DETACHED):
            self._complete(command_id, result)
            self.end_turn()

    def _complete(self, command_id: int, result: Struct | None) -> None:
        if result is not None:
            self._session.send(commands.ExecutionResult(command_id, result))
        self.finish(command_id)
        if self._doom is not None:
            self._session.fail(self._doom)

    def fail_by_itself(self, problem: ModelError) -> None:
        """End the session for an error of none of its commands; a command in progress finishes first."""
        if self._executing:
            self._doom = self._doom or problem
        else:
            self._session.fail(problem)

    def finish(self, command_id: int) -> None:
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
            expected = self._expected
            if expected is not None and not precedes(expected, lower) and not precedes(upper, expected):
                if self._due == expected:
                    given_up = self.broken_off
                    if given_up is not None:
                        for consumers in self._session.consuming.values():
                            consumers.given_up(given_up)
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

    def end_turn(self) -> None:
        """Send completions, once for all received commands (session.completed/merged-reply)."""
        session = self._session
        if self._news and session.connection is not None and session.state is SessionState.ATTACHED:
            session.connection.send(session.channel, self.completed())

    def known(self, commands: SequenceSet) -> None:
        self._done.remove(commands)


# --- the broker's commands ----------------------------------------------------------------------------------

_PATIENCE = 1.0
"""Seconds that a client may take to say what it has; one that never does is sent everything again."""

Segments: TypeAlias = Sequence[tuple[int, bytes]]
"""Segment type and bytes of each segment of a command."""


class _Sent:
    """A command that is not known to be completed. `segments` is None where it cannot be replayed."""

    __slots__ = ("charge", "done", "segments")

    def __init__(
        self,
        segments: Segments | None,
        done: Callable[[], Limit | None] | None,
        charge: tuple[Charge, ...] = (),
    ) -> None:
        self.segments = segments
        self.done = done
        self.charge = charge
        """What the segments count of the broker's memory."""


class Outgoing:
    """The broker's half of a session."""

    def __init__(self, session: ServerSession) -> None:
        self.next_id: int = 0
        """The id that the next command will have."""
        self._session = session
        self._sent: dict[int, _Sent] = {}
        self._place: int | None = None
        """The id that the client gives to what comes next on this transport; None before a command point."""
        self._waiting = False
        """Whether the client has to say what it has, before anything is sent on a new transport."""
        self._patience: Timer | None = None

    @property
    def held(self) -> int:
        """The number of commands that the client has not completed."""
        return len(self._sent)

    def send(
        self,
        segments: Segments,
        done: Callable[[], Limit | None] | None = None,
        message: Message | None = None,
        *,
        last: bool = False,
    ) -> int:
        """Send a command, with a message if it has one, and return its id.

        `done` is called when the client has completed it, and returns a limit that it has widened, if any.
        The `last` command of a session does not wait for a replay.
        """
        command_id = self.next_id
        self.next_id = successor(command_id)
        lasting = self._session.timeout != 0
        if lasting or done is not None:
            self._sent[command_id] = (
                _Sent(segments, done, self._charges(segments, message)) if lasting else _Sent(None, done)
            )
        if last or not self._waiting:
            self._write(command_id, segments, message=message)
        return command_id

    def _charges(self, segments: Segments, message: Message | None) -> tuple[Charge, ...]:
        """Charge the broker's memory with the segments of a command that is kept."""
        memory = self._session.broker.memory
        if message is not None:
            return (Charge(memory.connections, MESSAGE), memory.hold(message))
        return (Charge(memory.connections, MESSAGE + sum(len(octets) for _, octets in segments)),)

    def _write(
        self, command_id: int, segments: Segments, offset: int = 0, message: Message | None = None
    ) -> None:
        session = self._session
        connection = session.connection
        if connection is None:
            return
        if self._place != command_id or offset:
            # session.command-point/server-sends
            point = controls.SessionCommandPoint(command_id=command_id, command_offset=offset)
            session.send_control(point)
        self._place = successor(command_id)
        connection.outbox.write_pieces(
            encode_pieces(session.channel, segments, connection.max_frame_size, offset), message
        )

    @property
    def keeps_nothing(self) -> bool:
        """True where commands go to a transport at once and are never replayed."""
        session = self._session
        return session.timeout == 0 and not self._waiting and session.connection is not None

    def send_frames(self, frames: bytes, done: Callable[[], Limit | None] | None) -> None:
        """Send a command as frames for the present transport, where `keeps_nothing`; `done` as in `send`."""
        session = self._session
        connection = session.connection
        assert connection is not None
        command_id = self.next_id
        self.next_id = following = successor(command_id)
        if done is not None:
            self._sent[command_id] = _Sent(None, done)
        if self._place != command_id:
            session.send_control(controls.SessionCommandPoint(command_id=command_id, command_offset=0))
        self._place = following
        connection.outbox.write(frames)

    # --- what a fault keeps from the client -----------------------------------------------------------

    def spare(self) -> int:
        """An id for a command that is never replayed."""
        command_id = self.next_id
        self.next_id = successor(command_id)
        return command_id

    def unsay(self) -> int | None:
        """Withhold the command being written, which the client does not count. Returns its id, if any."""
        if self._place is None:
            return None
        self._place = successor(self._place, -1)
        return self._place

    def announce(self, command_id: int) -> bool:
        """Note that a command is about to be written. Returns True where a command point must precede it."""
        in_place = self._place == command_id
        self._place = successor(command_id)
        return not in_place

    # --- transports -----------------------------------------------------------------------------------

    def detached(self) -> None:
        self._place = None
        self._wait_no_more()

    def attached(self) -> None:
        """Take another transport, and ask the client what it has, if any command is unconfirmed."""
        if any(sent.segments is not None for sent in self._sent.values()):
            self._waiting = True
            session = self._session
            session.send_control(controls.SessionFlush(expected=True))
            timers = session.broker.peer_timers
            due = timers.clock.now() + _PATIENCE
            label = f"session {session.display_name!r} sends unconfirmed commands again"
            self._patience = timers.call_at(due, partial(self.replay, None), label, housekeeping=True)

    def replay(
        self, commands: SequenceSet | None, fragments: Sequence[structs.CommandFragment] | None = None
    ) -> None:
        """Replay the commands that the client expects, and all behind them, in order (session/replay).

        Without `commands` it gets all that it has not confirmed. Of a partly received command it gets the
        rest.
        """
        if not self._waiting:
            return
        self._wait_no_more()
        wanted = SequenceSet()
        if commands:
            wanted.update(commands)
        offsets: dict[int, int] = {}
        for fragment in fragments or ():
            wanted.add(fragment.command_id or 0)
            if fragment.byte_ranges:
                offsets[fragment.command_id or 0] = fragment.byte_ranges.ranges[0][0]
        last: int | None = None
        for _, upper in wanted.ranges:
            if last is None or precedes(last, upper):
                last = upper
        for command_id, sent in list(self._sent.items()):
            asked = last is None or command_id in wanted or precedes(last, command_id)
            if asked and sent.segments is not None:
                size = sum(len(octets) for _, octets in sent.segments)
                self._write(command_id, sent.segments, offset=min(offsets.get(command_id, 0), size - 1))

    def _wait_no_more(self) -> None:
        self._waiting = False
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    # --- what the client tells ------------------------------------------------------------------------

    def confirmed(self, commands: SequenceSet) -> None:
        """Note confirmed commands: they are not replayed."""
        for command_id in commands.select(self._sent):
            sent = self._sent[command_id]
            sent.segments = None
            sent.charge = ()
            if sent.done is None:
                del self._sent[command_id]

    def completed(self, commands: SequenceSet) -> None:
        """Note completed commands, and run their callbacks."""
        wider: dict[Limit, None] = {}
        for command_id in commands.among(self._sent):
            sent = self._sent.pop(command_id)
            limit = None if sent.done is None else sent.done()
            if limit is not None:
                wider[limit] = None
        for limit in wider:
            if limit.open:
                limit.resume()

    def clear(self) -> None:
        self._wait_no_more()
        self._sent.clear()
