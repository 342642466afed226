"""The commands of the broker in one session: numbered, kept until confirmed, replayed on request.

A command is kept as segments, because the next transport may have another channel and frame size, with the
callback for its completion. Where a session ends with its transport, only the callback is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.limits.memory import MESSAGE, Charge
from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.frames import encode_pieces
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, precedes, successor

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Limit
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.amqp_0_10.codec import structs
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["Outgoing", "Segments"]

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

    __slots__ = ("_patience", "_place", "_sent", "_session", "_waiting", "next_id")

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
        """Send a command, with a message if it has one; `done` is called when the client has completed it.

        `done` returns a limit that it has widened, if any. The `last` command of a session does not wait for
        a replay.

        Returns:
            Its id.
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
        """Send a command as frames for the present transport, where `keeps_nothing`.

        `done` is as in `send`.
        """
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
        """Withhold the command that is being written from the client, which does not count it.

        Returns:
            Its id, or None where none is being written.
        """
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
        """The transport has gone."""
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
            self._patience = timers.call_at(due, self._go_on, label, housekeeping=True)

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
        last = _latest(wanted)
        for command_id, sent in list(self._sent.items()):
            asked = last is None or command_id in wanted or precedes(last, command_id)
            if asked and sent.segments is not None:
                size = sum(len(octets) for _, octets in sent.segments)
                self._write(command_id, sent.segments, offset=min(offsets.get(command_id, 0), size - 1))

    def _go_on(self) -> None:
        """Replay all unconfirmed commands to a client that does not say what it has."""
        self.replay(None)

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
        """The session has ended."""
        self._wait_no_more()
        self._sent.clear()


def _latest(commands: SequenceSet) -> int | None:
    """The id behind which there is no other of the set."""
    latest: int | None = None
    for _, upper in commands.ranges:
        if latest is None or precedes(latest, upper):
            latest = upper
    return latest
