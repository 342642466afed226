"""The client's leg of a proxied connection, whatever protocol it speaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import printable
from fakeamqp.model.history import Publication
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.routing import PASSED_ON
from fakeamqp.protocols.base.proxied.cutter import FrameCutter
from fakeamqp.protocols.base.proxied.legs import BrokerLeg, Leg

if TYPE_CHECKING:
    from fakeamqp.connection import Connection
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer

log: logging.Logger = logging.getLogger("fakeamqp")

_ANSWER_TIMEOUT = 30.0
"""Seconds that a broker has for its first byte."""


class ClientLeg(Leg):
    """The leg to a client: the connection that the tap, faults and views know.

    Args:
        state: the time, the tap and the histories of the proxy.
        name: of the connection.
        notify: called when the runtime must look at this leg, or use it in the place of another one.
    """

    protocol: str
    blocked_reason: str | None = None
    broker: BrokerLeg
    """The other leg."""

    def __init__(self, state: BrokerState, name: str, notify: Callable[[Connection], None]) -> None:
        super().__init__(name)
        self.state = state
        self.identity: Identity = Identity(name)
        self.client_properties: Mapping[str, Any] = {}
        self.heartbeat: int = 0
        self.frame_max: int = 0
        self.user_name: str | None = None
        self.virtual_host_name: str | None = None
        self.heard_at: float = state.clock.now()
        self.opened: bool = False
        """True once the broker has let the client in."""
        self.closing: bool = False
        """True once the proxy has closed the connection: the client's answer is awaited."""
        self.unknown: bool = False
        """True for a client of an unknown protocol: its bytes pass without being looked at."""
        self.gone: bool = False
        """True once the connection is closed or lost: its transport may still be there."""
        self.use: Callable[[Connection], None] = notify
        self._notify = lambda: notify(self)
        self._cutter: FrameCutter = self.new_cutter()
        self._timer: Timer | None = None
        state.connections[self] = None

    # --- what each protocol has -------------------------------------------------------------------------

    def new_cutter(self) -> FrameCutter:
        """For one direction."""
        raise NotImplementedError

    @property
    def fault_port(self) -> Any:
        """The fault port of this connection."""
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        raise NotImplementedError

    @property
    def open_channels(self) -> tuple[Any, ...]:
        """What views show of the open channels, by ascending number."""
        raise NotImplementedError

    def close_by_operator(self, code: int, text: str) -> None:
        """Close the connection on both sides."""
        raise NotImplementedError

    def set_blocked(self, reason: str | None) -> None:
        """An alarm of the proxy begins, or for None ends."""
        raise NotImplementedError

    def take(self, frames: bytes, *, counted: bool = True) -> None:
        """Forward whole frames of the client that a fault had kept. A duplicate is not `counted`."""
        raise NotImplementedError

    def add(self, octets: bytes) -> None:
        """Send whole frames to the client that the broker has not sent just now."""
        self.write(octets)

    def receive_from_broker(self, kind: int, number: int, payload: bytes, octets: bytes) -> None:
        """Pass a frame of the broker to the client, unless it concerns the proxy alone."""
        raise NotImplementedError

    def pass_waiting(self) -> None:
        """Send what need not wait any longer."""

    def pass_parts(self) -> None:
        """Send messages that will not be whole."""

    def settle_everything(self) -> None:
        """Report that what the client holds returns to the broker."""

    def broker_refused(self, why: str) -> None:
        """There is no broker: tell the client."""
        raise NotImplementedError

    # --- for the model, faults and views ----------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return self.unsent + self.broker.unsent

    @property
    def over(self) -> bool:
        """True once nothing can be sent to the client any more."""
        return self.finished or self.aborted

    @property
    def stage(self) -> str:
        """What it does now, in a word."""
        return "over" if self.gone else "closing" if self.closing else "open" if self.opened else "opening"

    # --- what the client sends --------------------------------------------------------------------------

    def take_frames(self, data: bytes) -> None:
        """Forward the frames of the client that the tap does not keep."""
        tap = self.state.tap
        for kind, number, payload, octets in self._cutter.cut(data):
            if self.over:
                return
            if kind < 0:
                self.sent_no_frame("the client", self._cutter.malformed, octets)
                self.broker.write(octets)
            elif tap is None or not tap.received(self, kind, number, payload):
                self.forward(kind, number, payload, octets)

    def forward(self, kind: int, number: int, payload: bytes, octets: bytes) -> None:
        """Pass a frame of the client to the broker, unless it concerns the proxy alone."""
        raise NotImplementedError

    def passed_on(self, message: Message) -> None:
        """Report that the client has published a message."""
        state = self.state
        virtual_host = self.virtual_host_name or "/"
        message.published_at = state.clock.time()
        if state.tap is not None:
            message.number = next(state.message_numbers)
            state.tap.event("published", None, message, PASSED_ON, virtual_host)
        if state.published is not None:
            state.published.append(Publication(virtual_host, message, PASSED_ON))

    # --- bytes that are no frames -----------------------------------------------------------------------

    def sent_no_frame(self, side: str, what: str, octets: bytes) -> None:
        """Note that one side sends bytes that are no frames."""
        if what:
            text = f"{side} sent {what}: from here on its bytes pass without being looked at"
            self.report("malformed", text)
            log.warning("%s: %s (%s)", self.name, text, octets[:16].hex())

    def broker_sent_no_frame(self, octets: bytes, what: str) -> None:
        """Bytes of the broker that belong to no frame pass as they are."""
        self.sent_no_frame("the broker", what, octets)
        self.write(octets)

    # --- the end ----------------------------------------------------------------------------------------

    def await_broker(self) -> None:
        """Give up on a broker that sends nothing."""
        if not self.broker.heard:
            why = f"it has not answered in {_ANSWER_TIMEOUT:g} s"
            self.call_in(_ANSWER_TIMEOUT, lambda: self.broker_refused(why), "ends without an answer")

    def broker_gone(self, rest: bytes) -> None:
        """The broker has ended its transport: so does the proxy, once the client has got all."""
        self.pass_parts()
        self.write(rest)
        if not self.over:
            if not self.gone:
                self.report_end("lost", "the broker has ended the transport")
            self.end()

    def disconnect(self, *, reset: bool) -> None:
        """End the transports without a close."""
        self.finish("reset by a fault" if reset else "closed by a fault", reset=reset)

    def receive_eof(self) -> None:
        if self.has_ended():
            return
        rest = self._cutter.rest()
        self.broker.write(rest)
        if not self.gone:
            self.report_end("lost", "the client has ended the transport")
        self.broker.end()
        if self.closing or self.broker.ended:
            self.end(at_once=True)
        else:
            self.pass_parts()  # The client may still read, until the broker has ended its side.

    def finish(self, why: str, *, reset: bool = False) -> None:
        """End both transports."""
        if not self.gone:
            self.report_end("closed", why)
        self.end(reset=reset)
        self.broker.end(at_once=reset, reset=reset)

    def call_in(self, seconds: float, callback: Callable[[], object], words: str) -> None:
        """Call `callback` if the other side stays silent."""
        self.stop_timer()
        due = self.state.clock.now() + seconds
        self._timer = self.state.timers.call_at(due, callback, f"connection {self.name} {words}")

    def stop_timer(self) -> None:
        """Cancel what is to happen if the other side stays silent."""
        if self._timer is not None:
            self._timer.cancel()

    def close_confirmed(self) -> None:
        """One side has confirmed a close of the other: the end that follows is no loss."""
        if not self.gone:
            self.report_end("closed", "close confirmed")

    # --- events -----------------------------------------------------------------------------------------

    def report(self, event: str, detail: str) -> None:
        """Tell the tap of an event of the connection."""
        if self.state.tap is not None:
            self.state.tap.connection(self.name, event, printable(detail))

    def report_end(self, event: str, why: str) -> None:
        """The connection is over, whatever its transports still do."""
        self.gone = True
        self.stop_timer()
        self.settle_everything()
        self.state.connections.pop(self, None)
        self.report(event, why)
