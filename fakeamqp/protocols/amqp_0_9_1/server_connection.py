"""A server-side connection of 0-9-1: splits bytes into frames, keeps state, turns errors into closes.

Bytes arrive at `receive`. `_cut_frames` passes a frame for an open channel to its `Amqp091Channel`, and a
method on channel 0 to the handlers of class connection. `_fail` turns their errors into channel.close or
connection.close, and nothing else does. Bytes to send wait in `outbox` until the runtime takes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from fakeamqp.errors import printable
from fakeamqp.model.deliveries.subscription import Credit
from fakeamqp.model.erlang import Atom
from fakeamqp.model.errors import ChannelCrash, ModelError, NotFound
from fakeamqp.model.limits import check_channel_limit
from fakeamqp.protocols.amqp_0_9_1 import connection as connection_class
from fakeamqp.protocols.amqp_0_9_1.base_channel import (
    NO_QUEUE,
    ContentAssembly,
    lacks_queue,
    not_a_method,
)
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER, VERSION_MAJOR, VERSION_MINOR
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT_FRAME,
    method_frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ, RABBITMQ_INPUT
from fakeamqp.protocols.amqp_0_9_1.malformed import (
    UNKNOWN_FRAME,
    Malformed,
    MalformedFrame,
    MalformedMethod,
    UnknownMethod,
    answer_to,
)
from fakeamqp.protocols.amqp_0_9_1.replies import REPLIES, CloseReply, ProtocolError, Replies, short_text
from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel, BoundedChannel
from fakeamqp.protocols.amqp_0_9_1.states import CONNECTION_TRANSITIONS, ChannelState
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.login import MECHANISMS, Mechanism
from fakeamqp.protocols.base.server_connection import ServerConnection

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
    from fakeamqp.protocols.amqp_0_9_1.port import Amqp091FaultPort
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    C = TypeVarWithDefault("C", bound=Amqp091Channel, default=Amqp091Channel)
else:  # A broker starts without `typing_extensions`.
    C = TypeVar("C")

_log = logging.getLogger("fakeamqp")

_CLOSE_TIMEOUT = 30.0
_NO_LIMIT = 0x7FFFFFFF
_LOST_FRAMES_TIMEOUT = 3.0
_BEFORE_TUNED = frozenset((ConnectionState.STARTING, ConnectionState.SECURING, ConnectionState.TUNING))
_SILENT_STATES = {"tuned": _BEFORE_TUNED, "open": _BEFORE_TUNED | {ConnectionState.TUNED}}
_START_OK = 10 << 16 | 11
_CHANNEL_TYPES = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY))
_SMALLEST_PAYLOAD = {
    FRAME_METHOD: (4, "a method needs 4 bytes for its ids"),
    FRAME_CONTENT_HEADER: (CONTENT_HEADER.size, "a content header has at least 14 bytes"),
}


class Amqp091Connection(ServerConnection, Generic[C]):
    """A server-side connection of 0-9-1, without its transport. See the base class.

    `personality` is the broker's, with the overrides of the protocol.
    """

    MECHANISMS: ClassVar[Mapping[str, type[Mechanism]]] = {
        **MECHANISMS,
        "AMQPLAIN": connection_class.AmqPlain,
    }

    VERSION: ClassVar[tuple[int, int]] = (VERSION_MAJOR, VERSION_MINOR)
    """The version in connection.start (connection.start/version-fields)."""
    METHODS: ClassVar[Mapping[int, type[Method]]] = m.METHODS
    """Class id << 16 | method id -> class."""
    START: ClassVar[type[m.ConnectionStart]] = m.ConnectionStart
    CLOSE: ClassVar[type[m.ConnectionClose]] = m.ConnectionClose
    CLOSE_OK: ClassVar[type[Method]] = m.ConnectionCloseOk
    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS
    HANDLERS: ClassVar[connection_class.Handlers] = connection_class.HANDLERS
    """The handlers of class connection."""
    OPENING: ClassVar[frozenset[str]] = frozenset(("channel.open",))
    """The methods that open a channel."""
    REPLIES: ClassVar[Replies] = REPLIES
    PUBLISHED_GRAMMAR: ClassVar[Grammar] = PUBLISHED
    """The field grammar of the document."""
    EXTENSIONS: ClassVar[bool] = True
    """False where the document knows nothing of RabbitMQ's extensions."""

    protocol: str = "0-9-1"
    frame_types: frozenset[int] = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
    """The frame types of the protocol."""

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
        *,
        personality: Personality | None = None,
    ) -> None:
        personality = personality or state.personality
        super().__init__(
            state,
            peer,
            notify,
            mechanisms=state.personality.mechanisms,
            heartbeat=HEARTBEAT_FRAME,
            version="AMQP {}-{}-{}-{}".format(*protocol_header[4:]),
            heartbeat_ticks=personality.heartbeat_ticks,
        )
        self.personality = personality
        self.tracks_contents: bool = not personality.explains_malformed_input
        """On channels that are not open, or are closing, frames must be methods with their contents all the
        same; malformed properties are an error once the content is complete and may be published."""
        self.grammar: Grammar = RABBITMQ if personality.explains_malformed_input else RABBITMQ_INPUT
        if personality.published_field_grammar:
            self.grammar = self.PUBLISHED_GRAMMAR
        self.channel_max: int = personality.channel_max
        self.frame_max: int = 0
        self.body_limit: int = _NO_LIMIT
        """The largest payload, in bytes, of a body frame to this client."""
        self.channels: dict[int, C] = {}
        self.credit: Credit | None = None
        """The prefetch window of the whole connection (basic.qos/global-connection), if one is set."""
        self.known_properties: dict[bytes, tuple[BasicProperties, bytes]] = {}
        """Property bytes as received -> the properties, and the bytes that consumers get."""

        self._close_ok_frame = method_frame(0, self.CLOSE_OK().encode())
        self._largest_payload = self._payload_limit(personality.smallest_frame_max)
        self.method_index: int = 0
        """The current method, whose ids a close carries."""
        self._assemblies: dict[int, ContentAssembly] = {}
        """The channels that are not open and have received a method without its content."""
        self.start()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.state.name.lower()} channels={len(self.channels)}>"

    # --- what 0-9 does otherwise -----------------------------------------------------------------------

    def start(self) -> None:
        """Send connection.start."""
        connection_class.start(self)

    @cached_property
    def fault_port(self) -> Amqp091FaultPort:
        """The fault port of this connection."""
        from fakeamqp.protocols.amqp_0_9_1.port import Amqp091FaultPort

        return Amqp091FaultPort(self)

    def begin_channel(self, number: int, method: Method) -> None:
        """Open a channel and answer; `method` is one of those in `OPENING`."""
        self.channels[number] = self.make_channel(number)
        self.send(number, m.ChannelOpenOk())

    def make_channel(self, number: int) -> C:
        """Make a channel of this number."""
        kind = Amqp091Channel if self.personality.sends_oversized_headers else BoundedChannel
        return cast("C", kind(self, number))

    def end_turn(self) -> None:
        """Sends the queued confirms."""
        for channel in self.channels.values():
            if channel.unconfirmed:
                channel.confirm_now()

    def receive_other(self, frame_type: int, number: int, payload: bytes) -> None:
        """Process a frame of a type that not all protocols have.

        Raises:
            MalformedFrame: no protocol has it.
        """
        self.method_index = 0
        raise self._unknown_frame(frame_type, payload)

    # --- for the model and inspection -----------------------------------------------------------------

    @property
    def open_channels(self) -> tuple[C, ...]:
        """The open channels, by ascending number."""
        numbers = sorted(number for number, each in self.channels.items() if each.state is ChannelState.OPEN)
        return tuple(self.channels[number] for number in numbers)

    def has_capability(self, name: str) -> bool:
        """True if the client announced this capability of RabbitMQ's extensions."""
        if not self.EXTENSIONS:
            return False
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, Mapping) and capabilities.get(name) is True

    def close_by_operator(self, code: int, text: str) -> None:
        """Close with a close handshake, on behalf of an operator (reply-code/connection-forced).

        A connection that is closing already does not wait for its client any more (RabbitMQ: measured).
        """
        if self._is_closing:
            self._finish(text)
            return
        self.method_index = 0
        self._close(CloseReply(code, short_text(text), ends_connection=True))

    def close_with(self, code: int, text: str, method: int) -> None:
        """Close as an error in the method with index `method` does; before tuning, refuse the handshake."""
        if self.state in self._silent_states:
            self.refuse(text)
        elif self.state not in (ConnectionState.CLOSING, ConnectionState.CLOSED, ConnectionState.REFUSED):
            self.method_index = method
            self._close(CloseReply(code, text, ends_connection=True))

    def set_blocked(self, reason: str | None) -> None:
        """Stop reading from the client as soon as it publishes; None unblocks it.

        Nothing happens until a content header arrives. Then the broker notifies the client, if the client
        supports it, and stops reading. Bytes that it had sent by then wait (RabbitMQ: measured).
        """
        if reason == self.blocked_reason or self.state is not ConnectionState.OPEN:
            return
        self.blocked_reason: str | None
        was_blocked, self.blocked_reason = self.blocked_reason is not None, reason
        if self.personality.throttles_with_flow and was_blocked != (reason is not None):
            for channel in self.open_channels:
                channel.send(m.ChannelFlow(active=reason is None))
        self._report("unblocked" if reason is None else "blocked", reason or "")
        if reason is None and self._held_back:
            self._held_back = False
            self.outbox.notify()
            connection_class.notify_blocked(self, None)
            self.receive(b"")

    def publish_received(self) -> None:
        """Called after a content header: notify a blocked client, and stop reading from it."""
        if self.blocked_reason is None or self._held_back:
            return
        self._held_back = True
        connection_class.notify_blocked(self, short_text(self.blocked_reason))
        self.outbox.notify()

    # --- bytes out ----------------------------------------------------------------------------------

    def send(self, channel: int, method: Method) -> None:
        """Send a method frame."""
        self.outbox.write(method_frame(channel, method.encode()))

    # --- bytes in -----------------------------------------------------------------------------------

    def _cut_frames(self, data: bytes, tap: Tap | None, *, kept: bool = False) -> None:
        position = 0
        end = len(data)
        channels = self.channels
        outbox = self.outbox
        frame_types = self.frame_types
        unpack_header = FRAME_HEADER.unpack_from
        while True:
            number = 0
            try:
                while end - position >= 7:
                    frame_type, number, size = unpack_header(data, position)
                    stop = position + 7 + size
                    if size > self._largest_payload or frame_type not in frame_types:
                        self._check_frame_header(frame_type, size)
                    if stop >= end:
                        break
                    payload = data[position + 7 : stop]
                    if data[stop] != FRAME_END:
                        self._refuse_frame_end(frame_type, payload, data[stop])
                    position = stop + 1
                    if tap is not None and tap.received(self, frame_type, number, payload):
                        if self._ignores_input():
                            return
                        if frame_type == FRAME_CONTENT_HEADER:
                            self.publish_received()
                    elif (channel := channels.get(number)) is None:
                        self._receive_without_channel(frame_type, number, payload)
                    elif frame_type == FRAME_METHOD:
                        if channel.receive_method(payload) and (tap is None or not tap.intercepts):
                            # Measured with the raw load: 0.9 times the instructions per message.
                            whole = channel.take_content(data, position, self._largest_payload)
                            if whole is not None:
                                body, behind = whole
                                if tap is not None:
                                    header = data[position + 7 : behind - len(body) - 9]
                                    tap.received(self, FRAME_CONTENT_HEADER, number, header)
                                    tap.received(self, FRAME_BODY, number, body)
                                position = behind
                                channel.complete(body)
                    elif frame_type == FRAME_BODY:
                        channel.receive_body(payload)
                    elif frame_type == FRAME_CONTENT_HEADER:
                        channel.receive_header(payload)
                    elif frame_type == FRAME_HEARTBEAT:
                        self._receive_heartbeat(number, payload)
                    else:
                        self.receive_other(frame_type, number, payload)
                    if (self.busy or self._held_back or outbox.backlogged) and not kept:
                        break
                break
            except (ProtocolError, ModelError, WireError) as problem:
                self._fail(number, problem)
            if self._ignores_input():
                return
            if self._unframed:
                self._receive_unframed(data[position + 7 :])
                return
        rest = end - position
        if rest:
            self._partial.append(data[position:] if position else data)
            self._partial_size += rest
            self._needed = 7 if rest < 7 else stop + 1 - position

    def _receive_unframed(self, data: bytes) -> None:
        """Search the input for connection.close-ok, in personalities that explain; others ignore it."""
        if not self.personality.explains_malformed_input:
            return
        if self._close_ok_frame in data:
            self._finish("close confirmed after broken framing")
        else:
            rest = data[-len(self._close_ok_frame) + 1 :]
            self._partial = [rest]
            self._partial_size = len(rest)
            self._needed = 0

    def _receive_without_channel(self, frame_type: int, number: int, payload: bytes) -> None:
        """Process a frame for channel 0, or for a channel that is not open."""
        state = self.state
        if state is ConnectionState.REFUSED:
            return
        if frame_type not in _CHANNEL_TYPES:
            self._receive_other_without_channel(frame_type, number, payload)
        elif number == 0:
            if frame_type != FRAME_METHOD and self._is_closing:
                return
            self.check_payload(frame_type, payload)
            if frame_type == FRAME_METHOD:
                connection_class.receive(self, self.decode(payload))
            else:
                self.method_index = 0
                raise MalformedFrame(
                    self.personality.content_on_channel_zero,
                    f"expected a method frame on channel 0, got a frame of type {frame_type}",
                    frame_type,
                    payload,
                )
        elif state is ConnectionState.OPEN:
            self.check_payload(frame_type, payload)
            self._receive_on_new_channel(frame_type, number, payload)
        elif not self._is_closing:
            self._refuse_before_open(frame_type, number, payload)

    def _receive_other_without_channel(self, frame_type: int, number: int, payload: bytes) -> None:
        if number and self._is_closing:
            return
        is_known = frame_type in self.frame_types
        if (
            number
            and self.state is not ConnectionState.OPEN
            and (frame_type == FRAME_HEARTBEAT or not is_known)
        ):
            self._refuse_before_open(frame_type, number, payload)
        if frame_type == FRAME_HEARTBEAT:
            self._receive_heartbeat(number, payload)
        else:
            self.receive_other(frame_type, number, payload)

    def _receive_on_new_channel(self, frame_type: int, number: int, payload: bytes) -> None:
        """Process a method, header or body frame for a channel that is not open."""
        if not self.tracks_contents:
            if frame_type != FRAME_METHOD:
                self.method_index = 0
                raise ProtocolError(self.personality.content_on_closed_channel, str(not_a_method()))
            self.open_channel(number, self.decode(payload))
            return
        assembly = self._assemblies.get(number)
        if assembly is None:
            if frame_type == FRAME_METHOD:
                self.method_class(payload)
            self._check_channel_count()
            assembly = ContentAssembly(self)
        method = assembly.receive(frame_type, payload)
        if method is None:
            self._assemblies[number] = assembly
            if frame_type != FRAME_METHOD:
                self.publish_received()
            return
        self._assemblies.pop(number, None)
        self.method_index = method.INDEX
        self.open_channel(number, method)

    def check_payload(self, frame_type: int, payload: bytes) -> None:
        """Refuse a method without ids, and a content header without a body size."""
        least, text = _SMALLEST_PAYLOAD.get(frame_type, (0, ""))
        if len(payload) < least:
            self.method_index = 0
            raise MalformedFrame(
                "frame-error", f"{text}, got {len(payload)}", frame_type, payload, UNKNOWN_FRAME
            )

    def _refuse_before_open(self, frame_type: int, number: int, payload: bytes) -> None:
        self.method_index = 0
        raise MalformedFrame(
            "unexpected-frame",
            f"a frame of type {frame_type} on channel {number} before connection.open",
            frame_type,
            payload,
        )

    def decode(self, payload: bytes) -> Method:
        """Decode a method.

        Raises:
            Malformed: the method is unknown (frame/unknown-method), or its arguments are malformed.
        """
        method_class = self.method_class(payload)
        # All clients announce capabilities such as "basic.nack", which are illegal names in the published
        # grammar: see docs/decisions-0-9-1.md.
        grammar = self.grammar
        if method_class.INDEX == _START_OK and grammar.checks:
            grammar = grammar.unchecked
        try:
            return method_class.decode(payload, grammar)
        except WireError as problem:
            raise MalformedMethod(method_class, payload, problem) from None

    def method_class(self, payload: bytes) -> type[Method]:
        """Return the class of a method.

        Raises:
            Malformed: the method is unknown, or has no ids.
        """
        self.check_payload(FRAME_METHOD, payload)
        self.method_index = index = int.from_bytes(payload[:4], "big")
        method_class = self.METHODS.get(index)
        if method_class is None:
            raise UnknownMethod(
                "not-implemented", f"there is no method {index & 0xFFFF} in class {index >> 16}", payload
            )
        return method_class

    def open_channel(self, number: int, method: Method) -> None:
        """Open a channel; refuse any other method on a channel that is not open (channel/not-open)."""
        by_number = self.personality.channel_max_limits == "number"
        if by_number and number > self.channel_max:
            raise ProtocolError(
                self.personality.channel_above_maximum,
                f"channel number {number} is above the negotiated channel_max ({self.channel_max})",
            )
        if method.NAME.startswith("connection.") and not self.tracks_contents:
            raise ProtocolError("command-invalid", "unimplemented method")  # frame/channel-zero-connection
        if method.NAME not in self.OPENING:
            if self.tracks_contents and lacks_queue(method):
                self.channels[number] = self.make_channel(number)
                raise NotFound(NO_QUEUE)
            raise ProtocolError("channel-error", "expected 'channel.open'")
        self._check_channel_count()
        self.method_index = method.INDEX
        self.begin_channel(number, method)
        if self.blocked_reason is not None and self.personality.throttles_with_flow:
            self.send(number, m.ChannelFlow(active=False))

    def _check_channel_count(self) -> None:
        """Check that one more channel may be opened."""
        if self.tracks_contents:
            self.method_index = 0  # RabbitMQ opens the channel before it looks at the method (measured).
        count = len(self.channels) + len(self._assemblies)
        if self.personality.channel_max_limits == "count" and count >= self.channel_max:
            self.method_index = 0
            raise ProtocolError(
                self.personality.channel_above_maximum,
                f"number of channels opened ({count}) has reached the negotiated channel_max "
                f"({self.channel_max})",
            )
        assert self.user is not None
        check_channel_limit(self.broker, self.user)

    def _receive_heartbeat(self, number: int, payload: bytes) -> None:
        if self._is_closing:
            return
        self.method_index = 0
        self.note_idle(FRAME_OVERHEAD)
        if payload:
            raise MalformedFrame(
                "frame-error",
                f"a heartbeat has no payload, got {len(payload)} bytes",
                FRAME_HEARTBEAT,
                payload,
                UNKNOWN_FRAME,
            )
        if number != 0:
            raise MalformedFrame(
                self.personality.heartbeat_off_channel_zero,
                f"heartbeat on channel {number}, not 0",
                FRAME_HEARTBEAT,
                payload,
            )

    def _check_frame_header(self, frame_type: int, size: int) -> None:
        """Refuse a frame by its header: for a size above the limit, or early for an unknown type."""
        self.method_index = 0
        if frame_type not in self.frame_types and self.personality.explains_malformed_input:
            self._unframed = True
            raise self._unknown_frame(frame_type, b"")
        if size > self._largest_payload:
            self._unframed = True
            frame_max = self.frame_max or self.personality.smallest_frame_max
            raise MalformedFrame(
                "frame-error",
                f"type {frame_type}, {size} bytes of payload are more than frame_max {frame_max} allows",
                frame_type,
                b"",
                (Atom("frame_too_large"), size, frame_max - FRAME_OVERHEAD),
                loses_frames=True,
            )

    def _unknown_frame(self, frame_type: int, payload: bytes) -> MalformedFrame:
        return MalformedFrame(
            "frame-error",
            f"type {frame_type}, unknown",
            frame_type,
            payload,
            UNKNOWN_FRAME,
            silent=self.personality.closes_silently_on_bad_frames,
        )

    def _refuse_frame_end(self, frame_type: int, payload: bytes, octet: int) -> None:
        self.method_index = 0
        self._unframed = True
        raise MalformedFrame(
            "frame-error",
            f"invalid frame end marker {octet}, expected {FRAME_END}",
            frame_type,
            payload,
            (Atom("invalid_frame_end_marker"), octet),
            silent=self.personality.closes_silently_on_bad_frames,
            loses_frames=True,
        )

    # --- errors --------------------------------------------------------------------------------------

    def out_of_order(self, condition: str) -> ProtocolError:
        """Return the error for a method on channel 0 in the wrong state (connection/out-of-order)."""
        words = {ConnectionState.TUNED: "opening", ConnectionState.OPEN: "running"}
        word = words.get(self.state, self.state.name.lower())
        return ProtocolError(condition, f"unexpected method in connection state {word}")

    def fail(self, number: int, problem: ModelError | ProtocolError, method: int = 0) -> None:
        """Close for an error that the current method of the client did not cause.

        `method` is the index of the earlier one that did, if any.
        """
        self.method_index = method
        self._fail(number, problem)

    def _fail(self, number: int, problem: ProtocolError | ModelError | WireError) -> None:
        """Turn an error into a close; nothing else does."""
        if self.state is ConnectionState.REFUSED:
            return
        if not isinstance(problem, Malformed):
            self._answer(number, problem)
            return
        description = problem.describe(number)
        answer = answer_to(problem, number, self.personality)
        if answer is not None and self.state in self._silent_states:
            self.refuse(description)
            return
        self._explain("malformed input", description)
        if answer is None:
            self._finish(problem.text)
            return
        self._answer(number, answer)
        if problem.loses_frames and answer is not problem and not self._ignores_input():
            self._cancel_timeouts()
            text = problem.text  # Not the error, whose traceback keeps the channels.
            self._end_transport_after(
                _LOST_FRAMES_TIMEOUT, lambda: self._finish(text), "closes its transport"
            )

    def _explain(self, event: str, text: str) -> None:
        """Log and trace an explanation that the client does not get."""
        self._warn("%s: %s", event, text)
        self._report(event, text)

    def _answer(self, number: int, problem: ProtocolError | ModelError | WireError) -> None:
        """Close the connection or a channel because of an error."""
        if self._is_closing:
            return  # Only close and close-ok have an effect now.
        crashes = isinstance(problem, ChannelCrash)
        if self.state in self._silent_states or (crashes and self.state is ConnectionState.TUNED):
            self.refuse(problem.text if isinstance(problem, ProtocolError) else str(problem))
            return
        reply = self.REPLIES.reply_for(problem)
        if reply.names_no_method:
            self.method_index = 0
        channel = self.channels.get(number)
        if reply.silent:
            self._warn("closing the transport without connection.close: %s", reply.text)
            self._finish(reply.text)
        elif reply.ends_connection or channel is None:
            self._close(reply)
        else:
            channel.close(reply, self.method_index)

    @property
    def _is_closing(self) -> bool:
        """True once either peer has sent connection.close."""
        return self.state is ConnectionState.CLOSING or self.state is ConnectionState.CLOSED

    @property
    def _silent_states(self) -> frozenset[ConnectionState]:
        """The states in which errors are not answered with connection.close (errors/pre-open-error)."""
        return _SILENT_STATES[self.personality.reports_errors_from]

    def _close(self, reply: CloseReply) -> None:
        """Send connection.close; from now on only its answer has an effect (connection.close/stability)."""
        self._enter("CLOSE")
        self._held_back = False
        index = self.method_index
        self.send(
            0,
            self.CLOSE(
                reply_code=reply.code,
                reply_text=reply.text,
                class_id=index >> 16,
                method_id=index & 0xFFFF,
            ),
        )
        failed = self.METHODS.get(index)
        where = f" ({failed.NAME})" if failed else ""
        _log.info("%s: closing: %s%s", self.name, printable(reply.text), where)
        self._release()
        self._cancel_timeouts()
        self._end_transport_after(
            self._close_timeout, lambda: self.abort("no close-ok arrived"), "aborts without close-ok"
        )

    def refuse_login(self, text: str, why: str = "") -> None:
        """Refuse wrong credentials: with connection.close if the client supports that, else with `refuse`.

        The client gets the text, the log and the trace say why. Source:
        connection.start-ok/authentication-failure.
        """
        known = "authentication_failure_close" in self.personality.capabilities
        if known and self.has_capability("authentication_failure_close"):
            if why:
                self.login_refused(why)
            else:
                self._warn("%s", text)
            self.method_index = 0
            code = self.REPLIES.code("access-refused")
            self._close(CloseReply(code, short_text(f"ACCESS_REFUSED - {text}"), ends_connection=True))
        else:
            self.refuse(text, why)

    # --- state ---------------------------------------------------------------------------------------

    def enter(self, method_name: str) -> None:
        """Follow the transition table for a method from the client.

        Raises:
            ProtocolError: the table has no such transition.
        """
        following = self.TRANSITIONS[self.state].get(method_name)
        if following is None:
            raise self.out_of_order(self.personality.connection_method_out_of_order)
        self.state = following

    def agree(self, channel_max: int, frame_max: int, heartbeat: int) -> None:
        """Apply the limits of tune-ok, where 0 is no limit; start heartbeats (heartbeat/start-after-tune)."""
        self.channel_max = channel_max or 65535
        self.frame_max = frame_max
        self.body_limit = frame_max - FRAME_OVERHEAD if frame_max else _NO_LIMIT
        self.heartbeat = heartbeat
        self._enter("AGREED")
        self._largest_payload = self._payload_limit(frame_max)
        self.heartbeats.start(heartbeat)

    def _payload_limit(self, frame_max: int) -> int:
        """Return the largest payload of a frame from this client (frame/frame-max-includes-overhead)."""
        if frame_max == 0:
            return 0xFFFFFFFF
        return frame_max - FRAME_OVERHEAD + self.personality.frame_size_tolerance

    def closed_by_client(self) -> None:
        """Answer connection.close, and close the transport (connection.close-ok/socket-closed-after).

        RabbitMQ lets the client close the transport (measured), and some clients report a transport that
        closes directly after close-ok as an error. Until then it answers connection.close again.
        """
        self.end_turn()  # As before a channel's close-ok, confirms come first (RabbitMQ: measured).
        unsent = self.outbox.unsent
        self.send(0, self.CLOSE_OK())
        if self._lingers or self.state is not ConnectionState.CLOSED:
            return
        answered = self.outbox.unsent > unsent  # Otherwise a fault holds close-ok back.
        if answered and not self.personality.client_ends_closed_transport:
            self._finish("closed by the client")
            return
        self._mark_closed("closed by the client")
        self._lingers = True
        self._end_transport_after(self._close_timeout, self._end_transport, "closes its transport")

    @property
    def _close_timeout(self) -> float:
        """The seconds that the client has to answer a close, or to end the transport (RabbitMQ: measured)."""
        if self.personality.client_ends_closed_transport and self.heartbeat:
            return min(self.heartbeat, _CLOSE_TIMEOUT)
        return _CLOSE_TIMEOUT

    # --- closing --------------------------------------------------------------------------------------

    def _report_channels(self) -> None:
        for number, channel in self.channels.items():
            if channel.state is ChannelState.CLOSING:  # channel.close-ok/reporting
                _log.info("%s: channel %d closed without channel.close-ok", self.name, number)

    def _release_channels(self) -> None:
        """Source: connection.close/implies-channels."""
        for channel in list(self.channels.values()):
            channel.lost()
        self.channels.clear()
        self._assemblies.clear()

    def _forget(self) -> None:
        """Messages refer to their publisher's connection, but do not need this cache."""
        self.known_properties.clear()
