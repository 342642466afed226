"""The fault port of a 0-9 connection."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.methods import MessageOk, MessageReject
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response
from fakeamqp.protocols.amqp_0_9.file import Files
from fakeamqp.protocols.amqp_0_9.message_state import Messages
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.port import Amqp091FaultPort
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Ledger
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

_OF_FILES = ("file.ack", "file.reject")
_GENERIC = 0
_REFUSED = "refused by a fault"


class Amqp09FaultPort(Amqp091FaultPort):
    """The fault port of one connection of 0-9 or 0-8. Publishes that are requests are counted as requests."""

    __slots__ = ()

    _connection: Amqp09Connection

    @property
    def protocol(self) -> str:  # type: ignore[override]
        """0-8 is a variation of 0-9."""
        return self._connection.protocol

    def flush_confirms(self) -> None:
        """Send the confirms that are due, and the responses that wait to be combined."""
        for channel in list(self._connection.channels.values()):
            channel.end_turn()

    # --- requests and responses -------------------------------------------------------------------------

    def drop(self, number: int, what: Any) -> None:
        if isinstance(what, Request):
            self._count_request(number, what, None)
        elif isinstance(what, Response):
            self._count_response(number, what)
        else:
            super().drop(number, what)

    def nack(self, number: int, what: Any) -> None:
        if isinstance(what, Request):
            self._count_request(number, what, MessageReject(_GENERIC, _REFUSED))
        else:
            super().nack(number, what)

    def returned(self, number: int, what: Any) -> None:
        if isinstance(what, Request):
            self._count_request(number, what, MessageOk())
        else:
            super().returned(number, what)

    def _count_request(self, number: int, request: Request, answer: Method | None) -> None:
        channel = self._channel(number)
        if channel is None:
            return
        requests = channel.class_state(Requests)
        requests.state.reserved = request.reserved
        incoming = requests.state.incoming
        with suppress(ProtocolError):  # A number that makes no sense is not counted.
            if not incoming.receive(request.request_id, request.response_mark):
                return
            if answer is None:
                incoming.leave_unanswered(request.request_id)
            else:
                requests.answer(request.request_id, answer)

    def _count_response(self, number: int, response: Response) -> None:
        """Count the response if it is the next one."""
        channel = self._channel(number)
        if channel is not None:
            outgoing = channel.class_state(Requests).state.outgoing
            if response.response_id == outgoing.mark + 1:
                outgoing.mark += 1

    def spare_number(self, number: int) -> Request:
        """Count one more request that answers nothing."""
        channel = self._channel(number)
        if channel is None:
            return Request(0, 0, b"")
        state = channel.class_state(Requests).state
        return Request(state.outgoing.send(()), state.outgoing.mark, b"", state.reserved)

    # --- deliveries -------------------------------------------------------------------------------------

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        """A response settles transfers."""
        if not isinstance(settlement, Response):
            return super().held_messages(number, settlement)
        channel = self._channel(number)
        if channel is None:
            return ()
        first, last = settlement.request_id, settlement.request_id + settlement.batch_offset
        outstanding = channel.class_state(Messages).ledger.outstanding
        return tuple(
            (each.queue.name, each.queued.message)
            for request, each in outstanding.items()
            if first <= request <= last
        )

    def _ledger(self, channel: Any, settlement: Any) -> Ledger:
        ledger: Ledger = channel.ledger
        return channel.class_state(Files).ledger if settlement.NAME in _OF_FILES else ledger

    if TYPE_CHECKING:

        def _channel(self, number: int) -> Amqp09Channel | None: ...
