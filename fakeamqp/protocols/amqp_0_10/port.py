"""The fault port of a 0-10 connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.errors import ModelError
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_10.codec import commands, controls
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, DetachCode, ErrorCode, RejectCode
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembler, control_frame
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.dialect import DIALECT
from fakeamqp.protocols.amqp_0_10.dialect.frames import TYPE_MASK
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault
from fakeamqp.protocols.amqp_0_10.server_connection import SILENT_STATES
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.port import ConnectionFaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode
    from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
    from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_ENDED = frozenset((ConnectionState.CLOSING, ConnectionState.CLOSED, ConnectionState.REFUSED))
_NAMES = ("connection_name", "qpid.client_process")


class Amqp010FaultPort(ConnectionFaultPort):
    """The fault port of one 0-10 connection."""

    __slots__ = ()

    protocol = "0-10"

    _connection: Amqp010Connection

    # --- the connection ------------------------------------------------------------------------------------

    @property
    def client_name(self) -> str | None:
        """Client property `connection_name`, otherwise the name of the client's program."""
        properties = self._connection.client_properties
        names = (properties.get(name) for name in _NAMES)
        return next((name for name in names if isinstance(name, str) and name), None)

    def channel_open(self, number: int) -> bool:
        return self._session(number) is not None

    @property
    def channels(self) -> tuple[int, ...]:
        return tuple(session.channel for session in self._connection.open_channels)

    def session_name(self, number: int) -> str | None:
        """Bytes that are not UTF-8 become surrogates."""
        session = self._connection.sessions.get(number)
        return None if session is None else session.session_name.decode("utf-8", "surrogateescape")

    @property
    def largest_frame(self) -> int:
        return self._connection.max_frame_size

    def flush_confirms(self) -> None:
        self._connection.end_turn()

    # --- received commands -----------------------------------------------------------------------

    def drop(self, number: int, what: bytes) -> None:
        self._count(number, what)

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        """A transfer is lost at once: it is counted, and neither executed nor completed."""
        self._count(number, frames)

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        """Execute the duplicate under the id of the last received command."""
        session = self._session(number)
        assembly = _joined(Assembler().add, frames)
        if session is not None and assembly is not None:
            session.incoming.execute(assembly)

    def exception(self, number: int, frames: bytes, code: int, text: str, field_index: int | None) -> None:
        """Count it, then end the session with the exception."""
        counted = self._count(number, frames)
        if counted is not None:
            session, assembly = counted
            session.fail_with(code, text, assembly.first[:2], session.incoming.current, field_index)

    def nack(self, number: int, what: bytes) -> None:
        """Count it, then send message.reject or an exception."""
        counted = self._count(number, what)
        if counted is None:
            return
        session, assembly = counted
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
            session.fail_with(ErrorCode.RESOURCE_LIMIT_EXCEEDED, text, assembly.first[:2], command_id)

    def _count(self, number: int, frames: bytes) -> tuple[ServerSession, Assembly] | None:
        """Count a command as received; None if it was received before or is not valid here."""
        session = self._session(number)
        assembly = None if session is None else _joined(session.incoming.count, frames)
        return None if session is None or assembly is None else (session, assembly)

    # --- sent commands -----------------------------------------------------------------------

    def withhold_command(self, number: int) -> int | None:
        session = self._connection.sessions.get(number)
        return None if session is None else session.outgoing.unsay()

    def spare_number(self, number: int) -> int:
        session = self._connection.sessions.get(number)
        return 0 if session is None else session.outgoing.spare()

    def with_command_point(self, number: int, command_id: int, frames: bytes) -> bytes:
        session = self._connection.sessions.get(number)
        if session is None or not session.outgoing.announce(command_id):
            return frames
        point = controls.SessionCommandPoint(command_id=command_id, command_offset=0)
        return control_frame(number, point.encode(), self.largest_frame) + frames

    # --- closing -----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """End a session by an exception, or by session.detached if the code is a detach code."""
        session = self._session(number)
        if session is None:
            return
        if code in tuple(DetachCode):
            session.detach(DetachCode(code))
        else:
            session.fail_with(code, text, method.to_bytes(2, "big") if method else b"")

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Send connection.close; before the connection is open, fail the handshake."""
        connection = self._connection
        if connection.state in SILENT_STATES and not connection.choices.speaks_of_failed_handshakes:
            connection.refuse(text)
        elif connection.state not in _ENDED:
            connection.close(cast("CloseCode", code), text)  # Also a code that 0-10 does not know.

    def refuse_login(self, text: str, client_properties: Any) -> None:
        connection = self._connection
        if connection.state is ConnectionState.STARTING:
            connection.client_properties = client_properties or {}
        connection.refuse(text)

    # --- publishes and deliveries ---------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        session = self._session(number)
        if session is None or method is None:
            return ()
        delivery = None if properties is None else properties.delivery
        key = "" if delivery is None else delivery.routing_key or ""
        message = Message(method.destination or "", key, properties, b"")
        with suppress(ModelError):
            return session.virtual_host.routing.preview(message)
        return ()

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        session = self._session(number)
        found = None if session is None else session.consumers.get(consumer_tag)
        return None if found is None else found.queue.name

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        session = self._session(number)
        if session is None:
            return ()
        outstanding = session.ledger.outstanding
        found = [outstanding[each] for each in settlement.transfers.select(outstanding)]
        return tuple((delivery.queue.name, delivery.queued.message) for delivery in found)

    # --- flow -----------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Send message.stop, or message.flow with unlimited credit, for each destination of its publishes.

        Before the session's first publish it is sent for the default exchange.
        """
        session = self._session(number)
        if session is None:
            return
        for destination in list(session.publisher.targets) or [""]:
            session.publisher.regulate(destination, active=active)

    def starve(self, owner: object, queue: str | None, destination: str | None, starved: bool) -> int:
        count = 0
        # A starved subscription may have lost its connection since.
        sessions: Iterable[Any] = self._connection.open_channels
        if not starved:
            sessions = self._connection.broker.sessions.values()
        for each in [each for session in sessions for each in session.subscriptions.values()]:
            here = queue in (None, each.subscription.queue.name) and destination in (None, each.destination)
            if here:
                count += 1
                each.grant.starve(owner, starved)
                each.grant.resume()
        return count

    def _session(self, number: int) -> ServerSession | None:
        session = self._connection.sessions.get(number)
        return session if session is not None and session.alive else None


def _joined(add: Callable[[int, int, bytes], Assembly | None], octets: bytes) -> Assembly | None:
    assembly = None
    with suppress(WireError, ConnectionFault):
        for kind, _, payload, _ in DIALECT.cut(octets):
            assembly = add(kind >> 8 & 0xFF, kind & TYPE_MASK, payload)
    return assembly
