"""The fault port of a connection of 1.0 through a proxy; see `fakeamqp.faults.port.FaultPort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT
from fakeamqp.protocols.amqp_1_0.replies import Reply, error
from fakeamqp.protocols.base.proxied.port import ProxiedPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.proxied.connection import ProxiedAmqp10Connection
    from fakeamqp.protocols.amqp_1_0.proxied.session import ProxiedLink, ProxiedSession

_REFUSED = "refused by a fault that the test asked for"


class ProxiedAmqp10FaultPort(ProxiedPort):
    """The fault port of one connection through a proxy."""

    __slots__ = ()

    protocol: str = "1-0"

    _connection: ProxiedAmqp10Connection

    # --- the connection ---------------------------------------------------------------------------------

    @property
    def client_name(self) -> str | None:
        """Property `connection_name` of open, otherwise the container id."""
        name = self._connection.client_properties.get("connection_name") or self._connection.container_id
        return name if isinstance(name, str) and name else None

    @property
    def channels(self) -> tuple[int, ...]:
        return tuple(session.number for session in self._connection.open_channels)

    def channel_open(self, number: int) -> bool:
        return self._session(number) is not None

    def _session(self, number: int) -> ProxiedSession | None:
        session = self._connection.sessions.get(number)
        return session if session is not None and session.open else None

    def _link(self, number: int, handle: int) -> ProxiedLink | None:
        session = self._session(number)
        return None if session is None else session.by_handle.get(handle)

    # --- numbers ----------------------------------------------------------------------------------------

    def withhold_delivery(self, number: int, delivery_id: int, transfers: int) -> int | None:
        session = self._session(number)
        return None if session is None else session.withhold(delivery_id, transfers)

    def resume_delivery(self, number: int, key: int, transfers: int) -> int:
        session = self._session(number)
        return 0 if session is None else session.resume(key, transfers)

    def spare_delivery(self, number: int, transfers: int) -> int:
        session = self._session(number)
        return 0 if session is None else session.spare(transfers)

    def message_begun(self, number: int, handle: int | None) -> bool:
        if handle is None:
            return self._connection.rest_passes
        link = self._link(number, handle)
        return link is not None and bool(link.parts)

    def count_gathered(self, number: int, transfers: int) -> bool:
        """The broker renews its window for transfers that it gets, so no more of them can wait."""
        session = self._session(number)
        return session is not None and transfers < session.window_left

    def drop(self, number: int, what: bytes) -> None:
        self._skip(number, what, None)

    def nack(self, number: int, what: bytes) -> None:
        self._skip(number, what, c.Rejected(error=error(Reply.LIMIT_EXCEEDED, _REFUSED)))

    def returned(self, number: int, what: bytes) -> None:
        self._skip(number, what, c.Released())

    def _skip(self, number: int, what: bytes, outcome: c.Composite | None) -> None:
        """Count a message that the broker does not get, and tell its publisher the outcome."""
        session = self._session(number)
        bodies = [DIALECT.method(kind, payload) for kind, _, payload, _ in DIALECT.cut(what)]
        if session is None or not isinstance(bodies[0], c.Transfer):
            return
        first = bodies[0]
        link = session.by_handle.get(first.handle)
        session.skip(link, len(bodies))
        if outcome is not None and not first.settled and first.delivery_id is not None:
            settled = c.Disposition(role=True, first=first.delivery_id, settled=True, state=outcome)
            self._connection.send(number, settled)
        self._connection.regrant(session, link)

    # --- closing ----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        self.close_with(DIALECT.reply_names.get(code, Reply.INTERNAL_ERROR), text, number)

    def close_connection(self, code: int, text: str, method: int) -> None:
        self.close_with(DIALECT.reply_names.get(code, Reply.INTERNAL_ERROR), text, None)

    def close_with(self, condition: str, text: str, number: int | None) -> None:
        if number is None:
            self._connection.close(condition, text)
        elif (session := self._connection.sessions.get(number)) is not None:
            self._connection.end_session(session, condition, text)

    def detach(self, number: int, body: Any, condition: str, text: str) -> None:
        session = self._connection.sessions.get(number)
        if session is not None:
            self._connection.detach(session, body, condition, text)

    def refuse_login(self, text: str, client_properties: Any) -> None:
        self._connection.refuse_login(text)

    # --- what conditions ask ----------------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The proxy knows the queue of a message to the address of a queue only."""
        place = None if method is None else self.link_target(number, method.handle)
        return (place[1],) if place is not None and not place[0] else ()

    def link_target(self, number: int, handle: int) -> tuple[str, str] | None:
        link = self._link(number, handle)
        if link is None or link.role != "sender" or link.destination is None:
            return None
        return link.destination.exchange, link.destination.key_for(None)

    def exchange_type(self, name: str) -> str | None:
        """The proxy does not see the exchanges, but the default one."""
        return "direct" if not name else None

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        link = self._link(number, int(consumer_tag))
        return None if link is None else link.source_queue

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        session = self._session(number)
        if session is None or not settlement.role:
            return ()
        return tuple((each.link.source_queue or "", each.message) for _, each in session.holds(settlement))

    # --- flow -------------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        session = self._session(number)
        if session is not None:
            self._connection.stop(session, not active)
