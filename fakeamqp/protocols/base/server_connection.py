"""The base class of all server-side connections: state, login, outbox, heartbeats, timeouts, close.

Its subclasses `Amqp091Connection` (0-9-1 and 0-9) and `Amqp010Connection` split the input into frames, keep
the channels or sessions, and turn errors into closes.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.errors import troubleshooting
from fakeamqp.model.errors import ResourceError
from fakeamqp.model.memory import Charge
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.state import ClientConnection
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.handshakes import HandshakeLog, HandshakeTimeout, PendingHandshakes
from fakeamqp.protocols.base.heartbeats import Heartbeats
from fakeamqp.protocols.base.login import MECHANISMS, Login, Mechanism
from fakeamqp.protocols.base.outbox import Outbox

if TYPE_CHECKING:
    from fakeamqp.connection import PeerAddress
    from fakeamqp.model.access import User
    from fakeamqp.model.deliveries.subscription import Gate
    from fakeamqp.model.personality.choices import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

_log = logging.getLogger("fakeamqp")

_HANDSHAKE_TIMEOUT = 10.0
_IDLE_PERIOD = 10.0
"""Seconds after which heartbeats and empty frames in a row are counted anew: idle clients send some, too."""
_ENOUGH = 8
"""For each so many deliveries that it gets at once, a client that is occupied has another one to settle."""
_LEFT_OVER = 16
"""Bytes of an incomplete frame that may follow them."""


class ServerConnection(ClientConnection):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`.

    `notify` is called when the runtime must check the connection. `mechanisms` are the SASL mechanisms that
    clients of this protocol may use, the preferred first; `heartbeat` are the bytes of one heartbeat frame;
    the trace shows `version`.
    """

    blocked_reason: str | None = None
    on_reset = None
    paced: ClassVar[bool] = False
    TRANSITIONS: ClassVar[ConnectionTransitions]
    CLOSE_ANSWER: ClassVar[bytes]
    """How the answer to a close begins."""
    MECHANISMS: ClassVar[Mapping[str, type[Mechanism]]] = MECHANISMS
    """The SASL mechanisms that the protocol implements, by name."""

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Any], None],
        *,
        mechanisms: tuple[str, ...],
        heartbeat: bytes,
        version: str,
        heartbeat_ticks: bool = False,
    ) -> None:
        self.broker = state
        self.personality: Personality = state.personality
        self.peer = peer
        self.name: str = peer.name
        self.identity: Identity = Identity(self.name)
        self.state: ConnectionState = ConnectionState.STARTING
        self.login: Login = Login(state, peer, mechanisms, self.MECHANISMS)
        self.client_properties: Mapping[str, Any] = {}
        self.user: User | None = None
        self.virtual_host: VirtualHost | None = None
        self.heartbeat = 0
        self.outbox: Outbox = Outbox(self, lambda: notify(self))
        self.gate: Gate = self.outbox.gate
        self.heartbeats: Heartbeats = Heartbeats(self, heartbeat, ticks=heartbeat_ticks)
        self.heard_at: float = state.clock.now()
        self.finished: bool = False
        self.aborted: bool = False
        self.resets: bool = False
        self.busy = False
        """True while the connection waits for a long operation that it asked for, and handles no input."""

        self._charge = Charge(state.memory.connections, 0)
        self._idle_frames = 0
        """Heartbeats and empty frames that have come in a row since `_idle_since`."""
        self._idle_octets = 0
        """Their bytes in the present input."""
        self._idle_since = self.heard_at
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._needed = 0
        self._unframed = False
        """True after broken framing, when frame borders are unknown: see `_receive_unframed`."""
        self._lingers = False
        """True while a closed connection waits for the client to end the transport."""
        self._held_back = False
        self._paused = False
        self._handshake_timeout: HandshakeTimeout | None = HandshakeTimeout(
            state,
            _HANDSHAKE_TIMEOUT,
            self._label("aborts without a completed handshake"),
            lambda: self.abort("handshake timeout"),
        )
        self._end_timer: Timer | None = None
        state.connections[self] = None
        self._pending = state.extensions[PendingHandshakes]
        self._pending.begin(self, self.name, self.abort)
        self._report("connected", version)

    # --- for the model and inspection -----------------------------------------------------------------

    @property
    def user_name(self) -> str | None:
        return None if self.user is None else self.user.name

    @property
    def unsent(self) -> int:
        return self.outbox.unsent

    @property
    def waiting(self) -> int:
        return self._charge.octets

    @property
    def virtual_host_name(self) -> str | None:
        return None if self.virtual_host is None else self.virtual_host.name

    @property
    @abstractmethod
    def fault_port(self) -> object:
        """The fault port of this connection."""

    def break_off(self, *, reset: bool) -> None:
        """Write the pending bytes, then close or reset the transport without a close method."""
        self.resets = reset
        self._finish("reset by a fault" if reset else "closed by a fault")

    # --- bytes ---------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        heartbeats = self.heartbeats
        heartbeats.heard_before = heartbeats.heard_at
        heartbeats.heard_at = self.heard_at = self.broker.clock.now()
        if self._ignores_input():
            return
        if self._held_back or self.busy or self.outbox.backlogged:
            # Bytes that the transport had already read wait with the rest.
            self._partial.append(data)
            self._partial_size += len(data)
            self._needed = 0
            self._weigh()
            return
        self._handle(data)

    def operations_ended(self) -> None:
        self.outbox.notify()
        self.resume_input()

    def resume_input(self) -> None:
        """Handle input that has waited, unless something else still holds it back."""
        if self._partial_size and not (
            self.busy or self._held_back or self.outbox.backlogged or self._ignores_input()
        ):
            self._handle(b"")

    def _handle(self, data: bytes) -> None:
        if self._partial_size:
            # Parts of a frame are joined once it is complete, so that small reads cost no more than large.
            self._partial.append(data)
            self._partial_size += len(data)
            if self._partial_size < self._needed:
                return
            data = b"".join(self._partial)
            self._partial.clear()
            self._partial_size = 0
        if self._unframed:
            self._receive_unframed(data)
            return
        operations = self.broker.operations
        before, operations.requester = operations.requester, self
        try:
            self._cut_frames(data, self.broker.tap)
        finally:
            operations.requester = before
        self.end_turn()
        if self._idle_frames:
            if self._idle_octets + _LEFT_OVER < len(data):
                self._idle_frames = 0  # Something else has come as well.
            self._idle_octets = 0
        self._weigh()
        self.broker.memory.settle()

    def note_idle(self, octets: int) -> None:
        """A heartbeat or an empty frame of so many bytes has come; too many in a row raise ResourceError."""
        if self.heard_at - self._idle_since > _IDLE_PERIOD:
            self._idle_since = self.heard_at
            self._idle_frames = 0
        self._idle_frames += 1
        self._idle_octets += octets
        most = self.broker.bounds.idle_frames
        if self._idle_frames > most:
            raise ResourceError(
                f"more than {most} heartbeats and empty frames in a row", ends_connection=True
            )

    def _weigh(self) -> None:
        """Charge the broker's memory with the bytes that wait in either direction."""
        octets = self.outbox.unsent - self.outbox.shared
        if not self._held_back:  # The input of blocked publishers must not keep them blocked.
            octets += self._partial_size
        if octets != self._charge.octets:
            self._charge.change(octets)

    def take(self, frames: bytes) -> None:
        """Process whole frames that the tap had kept."""
        if not self._ignores_input():
            self._cut_frames(frames, None, kept=True)

    @abstractmethod
    def _cut_frames(self, data: bytes, tap: Tap | None, *, kept: bool = False) -> None:
        """Split the input into frames and dispatch each, unless the tap keeps it; the rest of it waits.

        Frames that the tap had `kept` are processed also while the client is held back or its outbox is full,
        since they were read before.
        """

    def _keep(self, data: bytes, position: int, needed: int) -> None:
        """Keep the rest of the input until so many bytes of a frame have come."""
        rest = len(data) - position
        if rest:
            self._partial.append(data[position:] if position else data)
            self._partial_size += rest
            self._needed = needed

    def _receive_unframed(self, data: bytes) -> None:
        """After broken framing, search the input for the answer to the broker's close only."""
        answer = self.CLOSE_ANSWER
        if answer in data:
            self._finish("close confirmed after broken framing")
        else:
            self._partial.clear()
            self._partial_size = 0
            self._keep(data, max(0, len(data) - len(answer) + 1), 0)

    def end_turn(self) -> None:
        """All received input is processed."""

    @property
    def reading(self) -> bool:
        return not (self._held_back or self._paused or self.busy or self.outbox.backlogged)

    @property
    def occupied(self) -> bool:
        sent = self.outbox.deliveries_taken
        if not sent:
            return False
        ledgers = [ledger for channel in self.open_channels for ledger in channel.ledgers]
        return sum(len(ledger.outstanding) for ledger in ledgers) - sent > sent // _ENOUGH

    def pause(self, paused: bool) -> None:
        """Stop or resume reading, for a fault that buffers received bytes."""
        if paused != self._paused:
            self._paused = paused
            self.outbox.notify()

    def pending(self) -> list[bytes | memoryview]:
        self._weigh()
        return self.outbox.take()

    def sent(self, count: int) -> None:
        """Below the limit of the outbox, the input that waited is handled."""
        outbox = self.outbox
        was_backlogged = outbox.backlogged
        outbox.sent(count)
        self._weigh()
        if was_backlogged:
            self.resume_input()

    def _ignores_input(self) -> bool:
        """True once input from the client has no effect any more."""
        if self.finished or self.aborted or self.state is ConnectionState.REFUSED:
            return True
        return self.state is ConnectionState.CLOSED and not self._lingers

    # --- state ----------------------------------------------------------------------------------------

    def _enter(self, event: str) -> None:
        self.state = self.TRANSITIONS[self.state].get(event, self.state)

    def challenge(self) -> None:
        self._enter("CHALLENGE")

    def authenticated(self, user: User) -> None:
        self.user = user
        self._enter("AUTHENTICATED")

    def opened(self, virtual_host: VirtualHost) -> None:
        self.virtual_host = virtual_host
        self._pending.end(self)
        self._cancel_timeouts()
        self._report("opened", f"virtual host {virtual_host.name!r}")
        if self.broker.on_opened is not None:
            self.broker.on_opened(self)
        if self.broker.blocked_reason is not None:
            self.set_blocked(self.broker.blocked_reason)

    def login_refused(self, why: str) -> None:
        """Tell the log and the trace why a client may not log in, or not open its virtual host."""
        self._warn("Login was refused: %s; %s", why, troubleshooting("the-login-is-refused"))
        self._report("login refused", why)

    def refuse(self, text: str, why: str = "") -> None:
        """The handshake failed: close the transport without a close method, after the configured pause.

        `why` is given for a refused login; the text is told to clients in some personalities. Sources:
        errors/pre-open-error, security/negotiation-pause.
        """
        if why:
            self.login_refused(why)
        else:
            self._warn("handshake failed: %s", text)
        self._enter("REFUSE")
        self._cancel_timeouts()
        delay = self.broker.authentication_failure_delay
        if delay > 0:
            self._end_timer = self.after(delay, lambda: self._finish(text), "closes after a failed handshake")
        else:
            self._finish(text)

    def close_confirmed(self) -> None:
        self._finish("close confirmed")

    # --- closing --------------------------------------------------------------------------------------

    def _finish(self, why: str) -> None:
        """Close the connection and, once the pending bytes are written, its transport."""
        if not (self.finished or self._lingers):
            self._mark_closed(why)
        self._end_transport()

    def _mark_closed(self, why: str) -> None:
        """Close the connection; its transport can still be open."""
        self.state = ConnectionState.CLOSED
        self._release()
        self._report("closed", why)

    def _end_transport(self) -> None:
        self.finished = True
        self.broker.leaving.pop(self, None)
        self.outbox.notify()

    def abort(self, why: str) -> None:
        """Close the transport immediately, without a close method."""
        if self.aborted:
            return
        self._warn("%s", why)
        self.state = ConnectionState.CLOSED
        self._release()
        self.aborted = True
        self.broker.leaving.pop(self, None)
        self._report("aborted", why)
        self.outbox.notify()

    def silent_too_long(self, text: str) -> None:
        """Nothing has come for longer than heartbeats allow; `text` says so."""
        self.abort(text)

    def receive_eof(self) -> None:
        if self.state is ConnectionState.CLOSED:
            # If the broker was waiting for the client to close the transport, close-ok is still written.
            self._cancel_timeouts()
            self.finished = not self.aborted
        else:
            # connection.close-ok/reporting; logged as info, since stopping the broker gets here too.
            _log.info("%s: the transport ended without connection.close-ok", self.name)
            self._report_channels()
            self._enter("LOST")
            self._release()
            self._report("lost", "the transport ended without a close")
            self.aborted = True
        self.broker.leaving.pop(self, None)
        self._charge.change(0)

    def _report_channels(self) -> None:
        """Log the channels whose close handshake is incomplete, where the protocol asks for it."""

    def _release(self) -> None:
        self._pending.end(self)
        # Messages that one channel returns must not go to a consumer of another channel that closes too.
        self.gate.shut()
        self._release_channels()
        if self.state is ConnectionState.CLOSED:
            self.heartbeats.stop()
            self.outbox.timeout.stop()
            self._cancel_timeouts()
            self._partial.clear()
            self._partial_size = 0
            self._forget()
        if self in self.broker.connections:
            del self.broker.connections[self]
            self.broker.leaving[self] = None
        if self.virtual_host is not None:
            races = self.broker.races
            if races is None:
                self.virtual_host.queues.release_owner(self, self)
            else:
                self.virtual_host.queues.release_owner(self, self, partial(races.release, self))

    @abstractmethod
    def _release_channels(self) -> None:
        """Release the channels or sessions."""

    def _forget(self) -> None:
        """Drop caches that only further traffic would use."""

    # --- time -----------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        dues = [timer.due for timer in self.heartbeats.timers if timer.active]
        if self._handshake_timeout is not None and self._handshake_timeout.due is not None:
            dues.append(self._handshake_timeout.due)
        return min(dues, default=None)

    def after(
        self, delay: float, callback: Callable[[], None], what: str, *, housekeeping: bool = False
    ) -> Timer:
        """Call `callback` in `delay` seconds, on the broker's clock."""
        due = self.broker.clock.now() + delay
        return self.broker.timers.call_at(due, callback, self._label(what), housekeeping=housekeeping)

    def after_by_peer_clock(self, delay: float, callback: Callable[[], None], what: str) -> Timer:
        """Call `callback` in `delay` seconds, on the client's clock."""
        timers = self.broker.peer_timers
        return timers.call_at(timers.clock.now() + delay, callback, self._label(what), housekeeping=True)

    def _end_transport_after(self, delay: float, callback: Callable[[], None], what: str) -> None:
        """Call `callback` after a time in which the client may answer a close."""
        self._end_timer = self.after_by_peer_clock(delay, callback, what)

    def _warn(self, text: str, *arguments: object) -> None:
        """Log a warning about this connection; before connection.open their number is limited."""
        if self.virtual_host is None:
            self.broker.extensions[HandshakeLog].warning(f"%s: {text}", self.name, *arguments)
        else:
            _log.warning(f"%s: {text}", self.name, *arguments)

    def _report(self, event: str, text: str) -> None:
        if self.broker.tap is not None:
            self.broker.tap.connection(self.name, event, text)

    def _label(self, what: str) -> str:
        return f"connection {self.name} {what}"

    def _cancel_timeouts(self) -> None:
        for each in (self._handshake_timeout, self._end_timer):
            if each is not None:
                each.cancel()
        self._handshake_timeout = self._end_timer = None
