"""The broker's end of one connection of 0-9 or 0-8. See `framed.server_connection`; here is what 0-9-1 dropped.

Beside methods and contents there are frames whose payload travels elsewhere (`out_of_band`), requests and
responses (`requests`), and traces (`trace_frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9 import connection as connection_class
from fakeamqp.protocols.amqp_0_9 import opening, out_of_band, requests, resume, trace_frames
from fakeamqp.protocols.amqp_0_9.choices import choices_for
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_TRACE,
    PROTOCOL_HEADER,
    VERSION_MAJOR,
    VERSION_MINOR,
)
from fakeamqp.protocols.amqp_0_9.codec.frames import FRAME_TYPES, FRAME_TYPES_0_8, OUT_OF_BAND
from fakeamqp.protocols.amqp_0_9.fault_port import Amqp09FaultPort
from fakeamqp.protocols.amqp_0_9.overrides import with_overrides
from fakeamqp.protocols.amqp_0_9.replies import REPLIES
from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
from fakeamqp.protocols.amqp_0_9.states import CONNECTION_TRANSITIONS
from fakeamqp.protocols.framed.codec.tables import PUBLISHED_0_9
from fakeamqp.protocols.framed.server_connection import FramedConnection

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.window import Window
    from fakeamqp.protocols.amqp_0_9.codec.requests import Request
    from fakeamqp.protocols.amqp_0_9.vocabulary import Vocabulary
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Amqp09Connection"]

_CLOSE_TIMEOUT = 30.0


class Amqp09Connection(FramedConnection[Amqp09Channel]):
    """One connection, without its transport. See `fakeamqp.connection.Connection`.

    Args:
        state: the broker.
        peer: where the client comes from.
        notify: called when there is something for the runtime to look at.
        vocabulary: the methods of 0-9, or those of 0-8.
        protocol_header: what the client has begun with.
        version: what connection.start answers to that (connection.start/version-fields).
        protocol: what that is called.
    """

    vocabulary: Vocabulary

    TRANSITIONS = CONNECTION_TRANSITIONS
    OPENING = frozenset(("channel.open", "channel.resume"))
    REPLIES = REPLIES

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
        *,
        vocabulary: Vocabulary = m,
        version: tuple[int, int] = (VERSION_MAJOR, VERSION_MINOR),
        protocol: str = "0-9",
    ) -> None:
        self.protocol = protocol
        self.choices = choices_for(state.personality)
        self.frame_types = FRAME_TYPES if m.ChannelPing.INDEX in vocabulary.METHODS else FRAME_TYPES_0_8
        super().__init__(
            state,
            peer,
            notify,
            vocabulary=vocabulary,
            protocol_header=protocol_header,
            personality=with_overrides(state.personality),
        )
        if self.personality.published_field_grammar:
            self.grammar = PUBLISHED_0_9  # types/table-types
        self.version = version
        self.windows: dict[str, Window] = {}
        """By class, how much all consumers of files or streams on the connection are sent in advance."""
        self.message_credit: Credit | None = None
        """The same for class message."""
        self.opening_request: Request | None = None
        """The request that opens a channel, while it does."""
        connection_class.start(self)

    @cached_property
    def line(self) -> Amqp09FaultPort:
        """What faults may do to this connection."""
        return Amqp09FaultPort(self)

    def receive_on_zero(self, method: Method) -> None:
        """See the base class."""
        connection_class.receive(self, method)

    def begin_channel(self, number: int, method: Method) -> None:
        """See the base class."""
        opening.begin(self, number, method)

    def receive_other(self, frame_type: int, number: int, payload: bytes) -> None:
        """See the base class: out-of-band frames, traces, requests and responses."""
        if frame_type in OUT_OF_BAND:
            out_of_band.receive(self, frame_type, number, payload)
        elif frame_type == FRAME_TRACE:
            trace_frames.receive(self, number, payload)
        else:
            requests.receive(self, frame_type, number, payload)

    def end_turn(self) -> None:
        """See the base class: responses go out together (response/identical-only)."""
        for each in list(self.channels.values()):
            each.end_turn()

    def uses_tag(self, tag: str) -> bool:
        """Whether any consumer on the connection has this tag (domain.consumer-tag/scope)."""
        return any(tag in each.consumers for each in self.channels.values())

    # --- end ------------------------------------------------------------------------------------------

    def redirected(self, host: str, known_hosts: str) -> None:
        """The client is sent elsewhere: nothing but its close is expected here any more."""
        self._enter("REDIRECT")
        self.send(0, self.vocabulary.ConnectionRedirect(host=host, known_hosts=known_hosts))
        self._release()
        self._cancel_timeouts()
        self._end_transport_after(
            _CLOSE_TIMEOUT, lambda: self.abort("the client stays, redirected"), "ends, redirected"
        )

    def receive_eof(self) -> None:
        """See `Connection`; here and below, channels can be resumed whose connection was not closed."""
        resume.keep(self)
        super().receive_eof()

    def abort(self, why: str) -> None:
        """See the base class."""
        resume.keep(self)
        super().abort(why)

    def break_off(self, *, reset: bool) -> None:
        """See the base class."""
        resume.keep(self)
        super().break_off(reset=reset)
