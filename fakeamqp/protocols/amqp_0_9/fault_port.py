"""What faults may learn of a connection of 0-9 and do to it: see `framed.fault_port`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response
from fakeamqp.protocols.amqp_0_9.file.channel_state import Files
from fakeamqp.protocols.amqp_0_9.message.channel_state import Messages
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.framed import fault_port
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.model.delivery import Delivery
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Amqp09FaultPort"]


class Amqp09FaultPort(fault_port.FramedFaultPort):
    """One connection as fault rules see it. Of publishes only those that are requests are counted."""

    __slots__ = ()

    _connection: Amqp09Connection

    @property
    def protocol(self) -> str:
        """What the client speaks: "0-9", or "0-8", which is a variation of it."""
        return self._connection.protocol

    # --- publishes ------------------------------------------------------------------------------------

    def take_unsecured(self, number: int, frames: bytes) -> None:
        """Go on with a publish that a crash will take away: nobody was told that it is safe."""
        self.take(frames)

    def take_copy(self, number: int, frames: bytes) -> None:
        """Go on with one more copy of a publish."""
        self.take(frames)

    def confirm_now(self) -> None:
        """Send the responses that wait for more of their kind."""
        for channel in list(self._connection.channels.values()):
            channel.end_turn()

    def next_publish(self, number: int) -> int | None:
        """Publishes have no numbers."""
        return None

    def skip_publish(self, number: int, accepted: bool | None) -> None:
        """A publish that never comes leaves no gap."""

    def confirm_singly(self, number: int) -> None:
        """Confirm nothing."""

    # --- requests and responses -----------------------------------------------------------------------

    def skip_request(self, number: int, request: Request, answer: Method | None) -> None:
        """Count a request that never comes, and answer it, or (None) leave it open for ever."""
        channel = self._open_channel(number)
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

    def skip_response(self, number: int, response: Response) -> None:
        """Count a response that never comes: what it answers stays open."""
        channel = self._open_channel(number)
        if channel is not None:
            outgoing = channel.class_state(Requests).state.outgoing
            if response.response_id == outgoing.mark + 1:
                outgoing.mark += 1

    def next_request(self, number: int) -> Request:
        """The numbers for one more request to the client: what answers it changes nothing."""
        channel = self._open_channel(number)
        if channel is None:
            return Request(0, 0, b"")
        state = channel.class_state(Requests).state
        return Request(state.outgoing.send((), None), state.outgoing.mark, b"", state.reserved)

    def requested_messages(self, number: int, first: int, offset: int) -> tuple[tuple[str, Any], ...]:
        """The queue and the message of each transfer that a response to these requests is about."""
        channel = self._open_channel(number)
        if channel is None:
            return ()
        outstanding = channel.class_state(Messages).ledger.outstanding
        return _told(each for request, each in outstanding.items() if first <= request <= first + offset)

    def held_files(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """The queue and the message of each file that a delivery tag stands for."""
        channel = self._open_channel(number)
        if channel is None:
            return ()
        outstanding = channel.class_state(Files).ledger.outstanding
        if not multiple:
            return _told(each for held, each in outstanding.items() if held == tag)
        return _told(each for held, each in outstanding.items() if tag == 0 or held <= tag)

    def _open_channel(self, number: int) -> Amqp09Channel | None:
        channel: Any = self._channel(number)
        found: Amqp09Channel | None = channel
        return found


def _told(deliveries: Iterable[Delivery]) -> tuple[tuple[str, Any], ...]:
    return tuple((each.queue.name, each.queued.message) for each in deliveries)
