"""A server-side connection of 0-9 or 0-8: an `Amqp091Connection` with the features that 0-9-1 dropped.

Beside methods and contents, 0-9 has frames whose payload uses another transport (`out_of_band`), requests and
responses (`requests`), and trace frames (`trace_frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9 import (
    connection as connection_class,
    opening,
    out_of_band,
    requests,
    resume,
    trace_frames,
)
from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_TRACE,
    PROTOCOL_HEADER,
    VERSION_MAJOR,
    VERSION_MINOR,
)
from fakeamqp.protocols.amqp_0_9.codec.frames import FRAME_TYPES, FRAME_TYPES_0_8, OUT_OF_BAND
from fakeamqp.protocols.amqp_0_9.overrides import with_overrides
from fakeamqp.protocols.amqp_0_9.replies import REPLIES
from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
from fakeamqp.protocols.amqp_0_9.states import CONNECTION_TRANSITIONS
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED_0_9
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

if TYPE_CHECKING:
    from types import ModuleType

    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.deliveries.credit import Credit, Window
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
    from fakeamqp.protocols.amqp_0_9.codec.requests import Request
    from fakeamqp.protocols.amqp_0_9.port import Amqp09FaultPort
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
    from fakeamqp.protocols.amqp_0_9_1.connection import Handlers
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

__all__ = ["Amqp09Connection"]

_CLOSE_TIMEOUT = 30.0


class Amqp09Connection(Amqp091Connection[Amqp09Channel]):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`.

    Args:
        state: the broker.
        peer: the client's address.
        notify: called when the runtime must check the connection.
        vocabulary: the module with the methods of 0-9 or of 0-8.
        protocol_header: the protocol header that the client sent.
        version: the version in connection.start (connection.start/version-fields).
        protocol: the name of the protocol.
    """

    vocabulary: ModuleType

    CHANNEL: ClassVar[type[Amqp09Channel]] = Amqp09Channel
    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS
    HANDLERS: ClassVar[Handlers] = connection_class.HANDLERS
    OPENING = frozenset(("channel.open", "channel.resume"))
    REPLIES = REPLIES
    PUBLISHED_GRAMMAR: ClassVar[Grammar] = PUBLISHED_0_9  # types/table-types
    EXTENSIONS: ClassVar[bool] = False

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
        *,
        vocabulary: ModuleType = m,
        version: tuple[int, int] = (VERSION_MAJOR, VERSION_MINOR),
        protocol: str = "0-9",
    ) -> None:
        self.protocol = protocol
        self.choices: Amqp09Choices = state.personality.extension(Amqp09Choices)
        self.frame_types: frozenset[int] = (
            FRAME_TYPES if m.ChannelPing.INDEX in vocabulary.METHODS else FRAME_TYPES_0_8
        )
        self.version = version
        self.windows: dict[str, Window] = {}
        """Class name -> prefetch window of all consumers of class file or stream on the connection."""
        self.message_credit: Credit | None = None
        """The prefetch window of class message on the connection, if one is set."""
        self.opening_request: Request | None = None
        """The request whose channel.open is being processed."""
        super().__init__(
            state,
            peer,
            notify,
            vocabulary=vocabulary,
            protocol_header=protocol_header,
            personality=self.apply_overrides(state.personality),
        )

    def apply_overrides(self, personality: Personality) -> Personality:
        """Return the personality with the choices that apply to this connection."""
        return with_overrides(personality)

    def start(self) -> None:
        """Send connection.start."""
        connection_class.start(self)

    @cached_property
    def fault_port(self) -> Amqp09FaultPort:
        """The fault port of this connection."""
        from fakeamqp.protocols.amqp_0_9.port import Amqp09FaultPort

        return Amqp09FaultPort(self)

    def begin_channel(self, number: int, method: Method) -> None:
        opening.begin(self, number, method)

    def make_channel(self, number: int) -> Amqp09Channel:
        return self.CHANNEL(self, number)

    def receive_other(self, frame_type: int, number: int, payload: bytes) -> None:
        """Out-of-band frames, trace frames, requests and responses."""
        if frame_type in OUT_OF_BAND:
            out_of_band.receive(self, frame_type, number, payload)
        elif frame_type == FRAME_TRACE:
            trace_frames.receive(self, number, payload)
        elif frame_type in self.frame_types:
            requests.receive(self, frame_type, number, payload)
        else:
            super().receive_other(frame_type, number, payload)

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
        self.send(0, self.vocabulary.ConnectionRedirect(host=host, known_hosts=known_hosts))
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
