"""The interface of a 0-10 connection for fault rules.

A fault rule decides the fate of a command, a control or a frame; this module carries it out and keeps the
numbers of commands right in both directions. A client does not count a command that a rule withholds, so a
command point announces the next one; the commands of a client count whether they are carried out or not.
Only fault rules call this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.errors import ModelError
from fakeamqp.model.message import Message
from fakeamqp.protocols.amqp_0_10.codec import commands, controls
from fakeamqp.protocols.amqp_0_10.codec.assembly import Assembler
from fakeamqp.protocols.amqp_0_10.codec.constants import (
    AcceptMode,
    CreditUnit,
    DetachCode,
    ErrorCode,
    RejectCode,
)
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame
from fakeamqp.protocols.amqp_0_10.codec.framing import FRAMING, TYPE_MASK
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault, short_text
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.common import fault_port
from fakeamqp.protocols.common.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.assembly import Assembly
    from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode
    from fakeamqp.protocols.amqp_0_10.message.server_subscription import ServerSubscription
    from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["Amqp010FaultPort"]

_LONGEST = 1000
_UNLIMITED = 0xFFFFFFFF
_BEFORE_OPEN = frozenset(
    (ConnectionState.STARTING, ConnectionState.SECURING, ConnectionState.TUNING, ConnectionState.TUNED)
)
_ENDED = frozenset((ConnectionState.CLOSING, ConnectionState.CLOSED, ConnectionState.REFUSED))
_NAMES = ("connection_name", "qpid.client_process")


class Amqp010FaultPort(fault_port.ConnectionFaultPort):
    """One 0-10 connection as fault rules see it. A channel is open while a session is attached to it."""

    __slots__ = ()

    protocol = "0-10"

    _connection: Amqp010Connection

    # --- who it is ------------------------------------------------------------------------------------

    @property
    def client_name(self) -> str | None:
        """The client's name for the connection: `connection_name`, else the name of its program; or None."""
        properties = self._connection.client_properties
        names = (properties.get(name) for name in _NAMES)
        return next((name for name in names if isinstance(name, str) and name), None)

    def channel_open(self, number: int) -> bool:
        """True while a session is attached to the channel and no exception has ended it."""
        return self._session(number) is not None

    @property
    def channels(self) -> tuple[int, ...]:
        """The channels that have such sessions, ascending."""
        return tuple(session.channel for session in self._connection.open_channels)

    def session_name(self, number: int) -> str | None:
        """The name of the session on a channel, as text."""
        session = self._connection.sessions.get(number)
        return None if session is None else session.session_name.decode("utf-8", "surrogateescape")

    @property
    def largest_frame(self) -> int:
        """The largest frame to the client in bytes, with its header."""
        return self._connection.max_frame_size

    # --- frames ---------------------------------------------------------------------------------------

    def take(self, frames: bytes) -> None:
        """Handle complete frames that the tap has kept."""
        self._connection.take(frames)

    def confirm_now(self) -> None:
        """Send completions, for callers that handle frames outside of the input."""
        self._connection.end_turn()

    # --- commands of the client -----------------------------------------------------------------------

    def pass_over(self, number: int, frames: bytes, *, done: bool = False) -> int | None:
        """Count a command that is not carried out; it is complete only where `done` is true.

        Returns:
            Its id; None for a command that was carried out before or belongs to no session.
        """
        session = self._session(number)
        counted = None if session is None else self._count(session, frames)
        if session is not None and counted is not None and done:
            session.incoming.finish(session.incoming.current)
        return None if session is None or counted is None else session.incoming.current

    def take_copy(self, number: int, frames: bytes) -> None:
        """Carry out a copy of the last received command; the copy has no number of its own."""
        session = self._session(number)
        assembly = self._assembled(frames)
        if session is not None and assembly is not None:
            session.execute(session.incoming.current, assembly)

    def fail(self, number: int, frames: bytes, code: int, text: str, field_index: int | None) -> None:
        """Answer a command with an exception instead of carrying it out; that ends the session."""
        session = self._session(number)
        assembly = None if session is None else self._count(session, frames)
        if session is None or assembly is None:
            return
        self._except(session, code, text, assembly.first[:2], session.incoming.current, field_index)

    def refuse(self, number: int, frames: bytes) -> None:
        """Refuse a message, and tell its publisher.

        By message.reject where the personality answers publishers and the accept-mode asks for it; otherwise
        by an exception, which ends the session.
        """
        session = self._session(number)
        assembly = None if session is None else self._count(session, frames)
        if session is None or assembly is None:
            return
        text = "refused by a fault that the test asked for"
        command_id = session.incoming.current
        mode = None
        with suppress(WireError):
            mode = getattr(commands.decode(assembly.first)[0], "accept_mode", None)
        if session.choices.answers_publishers and mode != AcceptMode.NONE:
            session.incoming.finish(command_id)
            which = SequenceSet.of(command_id)
            session.send(commands.MessageReject(transfers=which, code=RejectCode.UNSPECIFIED, text=text))
        else:
            self._except(session, ErrorCode.RESOURCE_LIMIT_EXCEEDED, text, assembly.first[:2], command_id)

    def _count(self, session: ServerSession, frames: bytes) -> Assembly | None:
        """Count a command as received, if it is new."""
        assembly = None
        with suppress(WireError, ConnectionFault):
            for flags, segment_type, payload in _frames(frames):
                assembly = session.incoming.receive_frame(flags, segment_type, payload)
        return assembly

    def _assembled(self, frames: bytes) -> Assembly | None:
        assembler, assembly = Assembler(), None
        with suppress(WireError):
            for flags, segment_type, payload in _frames(frames):
                assembly = assembler.add(flags, segment_type, payload)
        return assembly

    # --- commands of the broker -----------------------------------------------------------------------

    def unsaid(self, number: int) -> int | None:
        """Withhold the command that is being sent. Returns its id."""
        session = self._connection.sessions.get(number)
        return None if session is None else session.outgoing.unsay()

    def spare_number(self, number: int) -> int:
        """An id for an additional command; the session ignores what the client says of it."""
        session = self._connection.sessions.get(number)
        return 0 if session is None else session.outgoing.spare()

    def announced(self, number: int, command_id: int, frames: bytes) -> bytes:
        """The frames of a command, after a command point where the client would count wrongly."""
        session = self._connection.sessions.get(number)
        if session is None or not session.outgoing.announce(command_id):
            return frames
        point = controls.SessionCommandPoint(command_id=command_id, command_offset=0)
        return control_frame(number, point.encode(), self.largest_frame) + frames

    # --- ends -----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """End a session by an exception of that code, or by session.detached for one of its codes."""
        session = self._session(number)
        if session is None:
            return
        if code in tuple(DetachCode):
            session.detach(DetachCode(code))
        else:
            self._except(session, code, text, method.to_bytes(2, "big") if method else b"")

    def _except(
        self,
        session: ServerSession,
        code: int,
        text: str,
        ids: bytes,
        command_id: int | None = None,
        field_index: int | None = None,
    ) -> None:
        session.end_turn()
        exception = commands.ExecutionException(
            error_code=code,
            command_id=command_id,
            class_code=ids[0] if ids else None,
            command_code=ids[1] if ids else None,
            field_index=field_index,
            description=short_text(text, _LONGEST),
        )
        session.fail_with(exception, text)

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Close the connection like an error does; before it is open, like a failed handshake."""
        connection = self._connection
        if connection.state in _BEFORE_OPEN and not connection.choices.speaks_of_failed_handshakes:
            connection.refuse(text)
        elif connection.state not in _ENDED:
            connection.close(cast("CloseCode", code), text)  # Also a code that 0-10 does not know.

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the client like one with a wrong password."""
        connection = self._connection
        if connection.state is ConnectionState.STARTING:
            connection.client_properties = client_properties or {}
        connection.refuse(text)

    # --- publishes ------------------------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The names of the queues that a transfer goes to. Has no side effects."""
        session = self._session(number)
        if session is None or method is None:
            return ()
        delivery = None if properties is None else properties.delivery
        key = "" if delivery is None else delivery.routing_key or ""
        message = Message(method.destination or "", key, properties, b"")
        with suppress(ModelError):
            return session.virtual_host.routing.preview(message)
        return ()

    # --- deliveries -----------------------------------------------------------------------------------

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        """The name of a subscription's queue; None for an unknown destination."""
        session = self._session(number)
        found = None if session is None else session.consumers.get(consumer_tag)
        return None if found is None else found.queue.name

    def held(self, number: int, transfers: SequenceSet) -> tuple[tuple[str, Any], ...]:
        """The queue and the message of each of these transfers that the client holds."""
        session = self._session(number)
        if session is None:
            return ()
        outstanding = session.ledger.outstanding
        found = [outstanding[each] for each in transfers.select(outstanding)]
        return tuple((delivery.queue.name, delivery.queued.message) for delivery in found)

    # --- flow -----------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Ask the client to stop publishing in a session, or to continue (message.stop, message.flow).

        For each destination that it has published to; for the default exchange where there is none yet.
        """
        session = self._session(number)
        if session is None:
            return
        for destination in list(session.publisher.targets) or [""]:
            if not active:
                session.send(commands.MessageStop(destination=destination))
                continue
            for unit in CreditUnit:
                flow = commands.MessageFlow(destination=destination, unit=unit, value=_UNLIMITED)
                session.send(flow)

    def starve(self, who: object, queue: str | None, destination: str | None, starved: bool) -> int:
        """Suspend the credit of subscriptions, or restore it.

        Args:
            who: the rule on whose behalf credit is suspended.
            queue: only subscriptions to this queue.
            destination: only the subscription with this destination.
            starved: True suspends, False restores.

        Returns:
            The number of subscriptions.
        """
        count = 0
        # The connection of a starved subscription may be gone.
        for each in list(self._subscriptions(detached=not starved)):
            here = queue in (None, each.subscription.queue.name) and destination in (None, each.destination)
            if here:
                count += 1
                each.grant.starve(who, starved)
                each.grant.resume()
        return count

    def _subscriptions(self, *, detached: bool) -> Iterator[ServerSubscription]:
        sessions = self._connection.broker.sessions.values() if detached else self._connection.open_channels
        for session in sessions:
            yield from cast("ServerSession", session).subscriptions.values()

    def _session(self, number: int) -> ServerSession | None:
        session = self._connection.sessions.get(number)
        return session if session is not None and session.alive else None


def _frames(octets: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Flags, segment type and payload of each frame."""
    for kind, _, payload, _ in FRAMING.cut(octets):
        yield kind >> 8 & 0xFF, kind & TYPE_MASK, payload
