"""The fault port of a connection of 1.0 through a proxy; see `fakeamqp.faults.port.FaultPort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.port import PortOf10
from fakeamqp.protocols.base.proxied.port import ProxiedPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.proxied.connection import ProxiedAmqp10Connection
    from fakeamqp.protocols.amqp_1_0.proxied.session import ProxiedLink, ProxiedSession


class ProxiedAmqp10FaultPort(PortOf10, ProxiedPort):
    """The fault port of one connection through a proxy."""

    __slots__ = ()

    _connection: ProxiedAmqp10Connection

    def _session(self, number: int) -> ProxiedSession | None:
        session = self._connection.sessions.get(number)
        return session if session is not None and session.open else None

    def _link(self, number: int, handle: int) -> ProxiedLink | None:
        session = self._session(number)
        return None if session is None else session.by_handle.get(handle)

    # --- messages ---------------------------------------------------------------------------------------

    def message_begun(self, number: int, handle: int | None) -> bool:
        if handle is None:
            return self._connection.rest_passes
        link = self._link(number, handle)
        return link is not None and bool(link.parts)

    def count_gathered(self, number: int, transfers: int) -> bool:
        """The broker renews its window for transfers that it gets, so no more of them can wait."""
        session = self._session(number)
        return session is not None and transfers < session.window_left

    def _tell_outcome(self, session: ProxiedSession, delivery_id: int, outcome: c.Composite) -> None:
        settled = c.Disposition(role=True, first=delivery_id, settled=True, state=outcome)
        self._connection.send(session.number, settled)

    def _regrant(self, session: ProxiedSession, handle: int) -> None:
        self._connection.regrant(session, session.by_handle.get(handle))

    # --- closing ----------------------------------------------------------------------------------------

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
