"""The broker's end of one connection of 0-9 or 0-8. See `amqp_0_9_x.endpoint`; here is what 0-9-1 dropped.

Beside methods and contents there are frames whose payload travels elsewhere (`out_of_band`), requests and
responses (`requests`), and traces (`trace_frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9 import connection, opening, out_of_band, trace_frames
from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd
from fakeamqp.dialects.amqp_0_9.line import Line
from fakeamqp.dialects.amqp_0_9.personality import settled
from fakeamqp.dialects.amqp_0_9.replies import REPLIES
from fakeamqp.dialects.amqp_0_9.requests import Requests
from fakeamqp.dialects.amqp_0_9.states import CONNECTION_TRANSITIONS
from fakeamqp.dialects.amqp_0_9_x.endpoint import FramedEnd
from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError
from fakeamqp.dialects.connection_states import ConnectionState
from fakeamqp.wire.amqp_0_9 import methods as m
from fakeamqp.wire.amqp_0_9.constants import (
    FRAME_REQUEST,
    FRAME_TRACE,
    PROTOCOL_HEADER,
    VERSION_MAJOR,
    VERSION_MINOR,
)
from fakeamqp.wire.amqp_0_9.frames import FRAME_TYPES

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_x.vocabulary import Vocabulary
    from fakeamqp.dialects.interface import Connection, PeerAddress
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.window import Window
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["Endpoint"]


class Endpoint(FramedEnd[ChannelEnd]):
    """One connection, without its transport. See `dialects.interface.Connection`.

    Args:
        state: the broker.
        peer: where the client comes from.
        notify: called when there is something for the runtime to look at.
        vocabulary: the methods of 0-9, or those of 0-8.
        protocol_header: what the client has begun with.
        version: what connection.start answers to that (connection.start/version-fields).
    """

    dialect = "0-9"

    TRANSITIONS = CONNECTION_TRANSITIONS
    FRAME_TYPES = FRAME_TYPES
    OPENING = frozenset(("channel.open", "channel.resume"))
    REPLIES = REPLIES

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        *,
        vocabulary: Vocabulary = m,
        protocol_header: bytes = PROTOCOL_HEADER,
        version: tuple[int, int] = (VERSION_MAJOR, VERSION_MINOR),
    ) -> None:
        super().__init__(
            state,
            peer,
            notify,
            vocabulary=vocabulary,
            protocol_header=protocol_header,
            personality=settled(state.personality),
        )
        self.version = version
        self.windows: dict[str, Window] = {}
        """By class, how much all consumers of files or streams on the connection are sent in advance."""
        self.message_credit: Credit | None = None
        """The same for class message."""
        connection.start(self)

    @cached_property
    def line(self) -> Line:
        """What faults may do to this connection."""
        return Line(self)

    def receive_on_zero(self, method: Method) -> None:
        """See the base class."""
        connection.receive(self, method)

    def begin_channel(self, number: int, method: Method) -> None:
        """See the base class."""
        opening.begin(self, number, method)

    def receive_other(self, frame_type: int, number: int, payload: bytes) -> None:
        """See the base class: out-of-band frames, traces, requests and responses."""
        if frame_type in out_of_band.FRAME_TYPES:
            out_of_band.receive(self, frame_type, number, payload)
        elif frame_type == FRAME_TRACE:
            trace_frames.receive(self, number, payload)
        elif self.state is not ConnectionState.CLOSING:
            requests = self._opened(number).rooms(Requests)
            if frame_type == FRAME_REQUEST:
                requests.receive_request(payload)
            else:
                requests.receive_response(payload)

    def _opened(self, number: int) -> ChannelEnd:
        """The open channel of this number.

        Raises:
            ProtocolError: there is none (channel/not-open).
        """
        channel = self.channels.get(number)
        if channel is None:
            self.note_method(0)
            raise ProtocolError("channel-error", f"channel {number} is not open")
        return channel

    def end_turn(self) -> None:
        """See the base class: responses go out together (response/identical-only)."""
        for each in list(self.channels.values()):
            each.end_turn()

    def uses_tag(self, tag: str) -> bool:
        """Whether any consumer on the connection has this tag (domain.consumer-tag/scope)."""
        return any(tag in each.consumers for each in self.channels.values())
