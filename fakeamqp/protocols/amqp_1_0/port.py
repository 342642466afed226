"""The fault port of a 1.0 connection."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.port import FaultPort
from fakeamqp.model.errors import ModelError
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT
from fakeamqp.protocols.amqp_1_0.receiving import ReceivingLink
from fakeamqp.protocols.amqp_1_0.replies import EndFault, Fault, Reply, error
from fakeamqp.protocols.amqp_1_0.sending import SendingLink
from fakeamqp.protocols.amqp_1_0.states import BEFORE_OPEN, ENDED
from fakeamqp.protocols.base.port import ConnectionFaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.server_connection import Amqp10Connection
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_REFUSAL = error(Reply.LIMIT_EXCEEDED, "refused by a fault that the test asked for")


class PortOf10(FaultPort):
    """What the fault ports of connections to the broker and through a proxy have in common."""

    __slots__ = ()

    protocol = "1-0"

    _connection: Any

    def _session(self, number: int) -> Any:
        """The session that is open on a channel; None if there is none."""
        return self._connection.sessions.get(number)

    @property
    def client_name(self) -> str | None:
        """Property `connection_name` of open, otherwise the container id."""
        name = self._connection.client_properties.get("connection_name") or self._connection.container_id
        return name if isinstance(name, str) and name else None

    def channel_open(self, number: int) -> bool:
        return self._session(number) is not None

    @property
    def channels(self) -> tuple[int, ...]:
        return tuple(session.number for session in self._connection.open_channels)

    # --- messages that the broker does not get, and deliveries -----------------------------------------

    def drop(self, number: int, what: bytes) -> None:
        self._skip(number, what, None)

    def nack(self, number: int, what: bytes) -> None:
        self._skip(number, what, c.Rejected(error=_REFUSAL))

    def returned(self, number: int, what: bytes) -> None:
        self._skip(number, what, c.Released())

    def _skip(self, number: int, what: bytes, outcome: c.Composite | None) -> None:
        """Count a message for window and credit, and tell its publisher the outcome."""
        session = self._session(number)
        bodies = transfers_of(what)
        if session is None or not bodies:
            return
        first = bodies[0]
        session.skip(first.handle, len(bodies))
        if outcome is not None and not first.settled and first.delivery_id is not None:
            self._tell_outcome(session, first.delivery_id, outcome)
        self._regrant(session, first.handle)

    @abstractmethod
    def _tell_outcome(self, session: Any, delivery_id: int, outcome: c.Composite) -> None: ...

    @abstractmethod
    def _regrant(self, session: Any, handle: int) -> None:
        """Grant window and credit again, where half of them are used."""

    def spare_delivery(self, number: int, transfers: int) -> int:
        session = self._session(number)
        return 0 if session is None else int(session.spare_delivery(transfers))

    def withhold_delivery(self, number: int, delivery_id: int, transfers: int) -> int | None:
        session = self._session(number)
        return None if session is None else int(session.withhold_delivery(delivery_id, transfers))

    def resume_delivery(self, number: int, key: int, transfers: int) -> int:
        session = self._session(number)
        return 0 if session is None else int(session.resume_delivery(key, transfers))

    # --- closing -----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        self.close_with(DIALECT.reply_names.get(code, Reply.INTERNAL_ERROR), text, number)

    def close_connection(self, code: int, text: str, method: int) -> None:
        self.close_with(DIALECT.reply_names.get(code, Reply.INTERNAL_ERROR), text, None)


class Amqp10FaultPort(PortOf10, ConnectionFaultPort):
    """The fault port of one connection to the broker."""

    __slots__ = ()

    _connection: Amqp10Connection

    @property
    def largest_frame(self) -> int:
        return self._connection.largest_sent

    def flush_confirms(self) -> None:
        self._connection.end_turn()

    # --- received frames ------------------------------------------------------------------------------

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        self._connection.take(frames)

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        """Carry out a frame once more; the client does not count it."""
        session = self._connection.sessions.get(number)
        bodies = transfers_of(frames)
        if session is not None and bodies:
            session.uncount(bodies[0].handle, len(bodies))
        self._connection.take(frames)

    def _tell_outcome(self, session: Amqp10Session, delivery_id: int, outcome: c.Composite) -> None:
        session.outcome(delivery_id, outcome)
        session.end_turn()

    def _regrant(self, session: Amqp10Session, handle: int) -> None:
        session.replenish(handle)

    def message_begun(self, number: int, handle: int | None) -> bool:
        session = self._connection.sessions.get(number)
        if session is None:
            return False
        if handle is None:
            return session.sending_rest
        link = session.receiving.get(handle)
        return isinstance(link, ReceivingLink) and link.begun

    def count_gathered(self, number: int, transfers: int) -> bool:
        session = self._connection.sessions.get(number)
        if session is not None:
            session.count_ahead()
        return True

    # --- closing -----------------------------------------------------------------------------------------

    def close_with(self, condition: str, text: str, number: int | None) -> None:
        """Send end or close; before the connection is open, fail the handshake."""
        connection = self._connection
        if number is not None:
            session = connection.sessions.get(number)
            if session is not None:
                session.fail(EndFault(condition, text))
        elif connection.state in BEFORE_OPEN:
            connection.refuse(text)
        elif connection.state not in ENDED:
            connection.close(condition, text)

    def detach(self, number: int, body: Any, condition: str, text: str) -> None:
        session = self._connection.sessions.get(number)
        handle = getattr(body, "handle", None)
        if session is None or handle is None:
            return
        attached = handle in session.receiving or handle in session.sending
        if attached:
            session.detach_for(handle, error(condition, text))
        elif isinstance(body, c.Attach):
            source, target = c.read_composite(body.source), c.read_composite(body.target)
            session.refuse(body, source, target, error(condition, text))

    def refuse_login(self, text: str, client_properties: Any) -> None:
        self._connection.send_sasl(c.SaslOutcome(code=1))
        self._connection.refuse(text)

    # --- publishes and deliveries ---------------------------------------------------------------------

    def link_target(self, number: int, handle: int) -> tuple[str, str] | None:
        session = self._connection.sessions.get(number)
        link = None if session is None else session.receiving.get(handle)
        place = link.destination if isinstance(link, ReceivingLink) else None
        return None if place is None else (place.exchange, place.key_for(None))

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        session = self._connection.sessions.get(number)
        place = None if method is None else self.link_target(number, method.handle)
        if session is None or place is None or properties is None:
            return ()
        with suppress(ModelError, Fault):
            return session.virtual_host.routing.preview(Message(*place, properties, b""))
        return ()

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        session = self._connection.sessions.get(number)
        found = None if session is None else session.consumers.get(consumer_tag)
        return None if found is None else found.queue.name

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        session = self._connection.sessions.get(number)
        if session is None or not settlement.role:
            return ()
        return tuple((each.queue.name, each.queued.message) for each in session.held(settlement))

    # --- flow -----------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Close the client's window, or open it again."""
        session = self._connection.sessions.get(number)
        if session is not None:
            session.alarm(not active)

    def starve(self, owner: object, queue: str | None, destination: str | None, starved: bool) -> int:
        count = 0
        for session in self._connection.open_channels:
            for link in [each for each in session.sending.values() if isinstance(each, SendingLink)]:
                here = queue in (None, link.subscription.queue.name)
                if here and destination in (None, link.link_name, link.subscription.tag):
                    count += 1
                    link.grant.starve(owner, starved)
                    link.grant.resume()
        return count


def transfers_of(frames: bytes) -> list[c.Transfer]:
    """The transfers in whole frames."""
    bodies = [DIALECT.method(kind, payload) for kind, _, payload, _ in DIALECT.cut(frames)]
    return [each for each in bodies if isinstance(each, c.Transfer)]
