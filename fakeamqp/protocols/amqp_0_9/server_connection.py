"""A server-side connection of 0-9 or 0-8: an `Amqp091Connection` with the features that 0-9-1 dropped.

Beside methods and contents, 0-9 has frames whose payload uses another transport (`out_of_band`), requests and
responses (`requests`), and trace frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9 import channel, connection as connection_class, out_of_band, requests, resume
from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_TRACE,
    FRAME_TYPES,
    FRAME_TYPES_0_8,
    HARD_ERRORS,
    OUT_OF_BAND,
    PROTOCOL_HEADER,
    REPLY_NAMES,
)
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, TraceFrame
from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED_0_9
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError, Replies
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection
from fakeamqp.protocols.base import connection_states
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.deliveries.subscription import Credit, Window
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9.codec.requests import Request
    from fakeamqp.protocols.amqp_0_9.port import Amqp09FaultPort
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
    from fakeamqp.protocols.amqp_0_9_1.connection import Handlers
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

_CLOSE_TIMEOUT = 30.0

CONNECTION_TRANSITIONS: ConnectionTransitions = {
    **connection_states.CONNECTION_TRANSITIONS,
    ConnectionState.OPEN: {
        **connection_states.CONNECTION_TRANSITIONS[ConnectionState.OPEN],
        "REDIRECT": ConnectionState.REDIRECTED,
    },
    ConnectionState.REDIRECTED: {
        "connection.close": ConnectionState.CLOSED,
        "CLOSE": ConnectionState.CLOSING,
        "LOST": ConnectionState.CLOSED,
    },
}
"""As in `base.connection_states`, with a redirect in place of open-ok.

After a redirect only close is legal (connection.redirect/usage).
"""


class Amqp09Connection(Amqp091Connection[Amqp09Channel]):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`."""

    METHODS: ClassVar[Mapping[int, type[Method]]] = m.METHODS
    REDIRECT: ClassVar[type[m.ConnectionRedirect]] = m.ConnectionRedirect
    CHANNEL: ClassVar[type[Amqp09Channel]] = Amqp09Channel
    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS
    HANDLERS: ClassVar[Handlers] = connection_class.HANDLERS
    OPENING = frozenset(("channel.open", "channel.resume"))
    # 0-9 has no code for an unexpected frame (reply-code/no-unexpected-frame, content/incomplete).
    REPLIES = Replies(REPLY_NAMES, HARD_ERRORS, {"unexpected-frame": "frame-error"})
    PUBLISHED_GRAMMAR: ClassVar[Grammar] = PUBLISHED_0_9  # types/table-types
    EXTENSIONS: ClassVar[bool] = False

    protocol: str = "0-9"
    frame_types: frozenset[int] = FRAME_TYPES

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
    ) -> None:
        self.choices: Amqp09Choices = state.personality.extension(Amqp09Choices)
        self.windows: dict[str, Window] = {}
        """Class name -> prefetch window of all consumers of class file or stream on the connection."""
        self.message_credit: Credit | None = None
        """The prefetch window of class message on the connection, if one is set."""
        self.opening_request: Request | None = None
        """The request whose channel.open is being processed."""
        super().__init__(
            state, peer, notify, protocol_header, personality=self.apply_overrides(state.personality)
        )

    def apply_overrides(self, personality: Personality) -> Personality:
        """Return the personality with the choices about which the specification of 0-9 is unambiguous."""
        return replace(
            personality,
            explains_malformed_input=True,
            smallest_frame_max=4096,
            content_on_channel_zero="channel-error",
            heartbeat_off_channel_zero="frame-error",
            prefetch_is_per_consumer=False,
            honours_client_flow=True,
            direct_reply_to=False,
            capabilities=(),
        )

    def start(self) -> None:
        """Send connection.start."""
        connection_class.start(self)

    @cached_property
    def fault_port(self) -> Amqp09FaultPort:
        """The fault port of this connection."""
        from fakeamqp.protocols.amqp_0_9.port import Amqp09FaultPort

        return Amqp09FaultPort(self)

    def begin_channel(self, number: int, method: Method) -> None:
        channel.begin(self, number, method)

    def open_ok(self, channel_id: bytes) -> Method:
        """The answer to channel.open."""
        return m.ChannelOpenOk(channel_id=channel_id)

    def make_channel(self, number: int) -> Amqp09Channel:
        return self.CHANNEL(self, number)

    def receive_other(self, frame_type: int, number: int, payload: bytes) -> None:
        """Out-of-band frames, trace frames, requests and responses."""
        if frame_type in OUT_OF_BAND:
            out_of_band.receive(self, frame_type, number, payload)
        elif frame_type == FRAME_TRACE:
            self._receive_trace_frame(number, payload)
        elif frame_type in self.frame_types:
            requests.receive(self, frame_type, number, payload)
        else:
            super().receive_other(frame_type, number, payload)

    def _receive_trace_frame(self, number: int, payload: bytes) -> None:
        """Pass a trace frame to the handlers that a test has registered, or discard it.

        Sources: trace/discard, trace/channel-zero.
        """
        if self.state is ConnectionState.CLOSING:
            return
        self.method_index = 0
        if number != 0:
            raise ProtocolError("frame-error", f"trace frame on channel {number}, not 0")
        for handle in tuple(self.broker.extensions[Registrations].trace_handlers):
            handle(TraceFrame(self.name, payload))

    def end_turn(self) -> None:
        """Sends the collected responses (response/identical-only)."""
        for each in list(self.channels.values()):
            each.end_turn()

    def uses_tag(self, tag: str) -> bool:
        """True if a consumer on the connection has this tag (domain.consumer-tag/scope)."""
        return any(tag in each.consumers for each in self.channels.values())

    # --- closing --------------------------------------------------------------------------------------

    def redirected(self, host: str, known_hosts: str) -> None:
        """Redirect the client to another broker, and wait for its connection.close."""
        self._enter("REDIRECT")
        self.send(0, self.REDIRECT(host=host, known_hosts=known_hosts))
        self._release()
        self._cancel_timeouts()
        self._end_transport_after(
            _CLOSE_TIMEOUT,
            lambda: self.abort("the redirected client did not close"),
            "aborts after a redirect",
        )

    def receive_eof(self) -> None:
        """The open channels are kept for channel.resume, here and in the next methods."""
        resume.keep(self)
        super().receive_eof()

    def abort(self, why: str) -> None:
        resume.keep(self)
        super().abort(why)

    def break_off(self, *, reset: bool) -> None:
        resume.keep(self)
        super().break_off(reset=reset)


class Amqp08Connection(Amqp09Connection):
    """A server-side connection of 0-8, which is 0-9 with other method and class numbers."""

    VERSION: ClassVar[tuple[int, int]] = version_0_8.VERSION
    METHODS: ClassVar[Mapping[int, type[Method]]] = version_0_8.METHODS
    START: ClassVar[type[m.ConnectionStart]] = version_0_8.ConnectionStart
    CLOSE: ClassVar[type[m.ConnectionClose]] = version_0_8.ConnectionClose
    CLOSE_OK: ClassVar[type[Method]] = version_0_8.ConnectionCloseOk
    REDIRECT: ClassVar[type[m.ConnectionRedirect]] = version_0_8.ConnectionRedirect

    protocol: str = "0-8"
    frame_types: frozenset[int] = FRAME_TYPES_0_8

    def open_ok(self, channel_id: bytes) -> Method:
        """The id is never sent."""
        return version_0_8.ChannelOpenOk()
