"""A connection through a proxy: one leg to the client, one to the broker.

Frames of either side are shown to the tap, looked at, and passed to the other side. Their bytes stay what
they are, unless a fault has changed something: then numbers are translated (`channel`). Bytes that are no
frames pass as they are, and so does all that follows them.

`ProxiedConnection` is the client's leg, and the connection that the tap, faults and views know. `BrokerLeg`
is the other one. The runtime moves the bytes of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import VERSION_MAJOR, VERSION_MINOR
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_CONTENT_HEADER,
    FRAME_METHOD,
    method_frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.dialect.groups import first_decoded
from fakeamqp.protocols.amqp_0_9_1.proxied.channel import Consumer, Held, ProxiedChannel, Side
from fakeamqp.protocols.amqp_0_9_1.proxied.content import Content
from fakeamqp.protocols.amqp_0_9_1.proxied.frames import Amqp091FrameCutter
from fakeamqp.protocols.amqp_0_9_1.proxied.methods import FROM_BROKER, FROM_CLIENT, Handler
from fakeamqp.protocols.amqp_0_9_1.replies import short_text
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.handshakes import no_header
from fakeamqp.protocols.base.proxied.client_leg import ClientLeg, log
from fakeamqp.protocols.base.proxied.legs import BrokerLeg
from fakeamqp.trace.truncation import LONG_BODY

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.proxied.port import ProxiedFaultPort

T = TypeVar("T")

_CLOSE_TIMEOUT = 30.0
_CONNECTION_FORCED = 320
_DONE = 200
_HEADER_SIZE = 8
_NO_PROPERTIES = BasicProperties()
_UNKNOWN_CONSUMER = Consumer("", False)
_MOST_REMEMBERED = 1000
_LONGEST_REMEMBERED = 128


class _HeldDeliveries(NamedTuple):
    outstanding: Mapping[int, Held]


class OpenChannel:
    """An open channel, as views read it: see `fakeamqp.model.state.ClientChannel`."""

    credit = None
    consumers: Mapping[str, Any] = MappingProxyType({})
    unfinished = 0

    def __init__(self, number: int, channel: ProxiedChannel) -> None:
        self.number: int = number
        self.mode: Literal["confirm", "tx"] | None = channel.mode
        self.prefetch: tuple[int, int] = channel.prefetch
        self.ledgers: tuple[Any, ...] = (_HeldDeliveries(channel.held),)


class ProxiedConnection(ClientLeg):
    """The leg to the client.

    Args:
        state: the time, the tap and the histories of the proxy.
        peer: the client's address.
        notify: called when the runtime must look at this leg, or use another one in its place.
        dial: connects the other leg, now or later, and calls its `connected` or `refused`.
        others: makes the leg of a client that sends this protocol header; None for those that are not known.
    """

    protocol: str = "0-9-1"

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        dial: Callable[[BrokerLeg], object],
        others: Callable[[bytes], Callable[[ClientLeg], ClientLeg] | None] = lambda header: None,
    ) -> None:
        super().__init__(state, peer.name, notify)
        self.channels: dict[int, ProxiedChannel] = {}
        self.exchange_types: dict[str, str] = {}
        """The types of the exchanges that the client has declared."""
        self._header = b""
        self._others = others
        self._successor: ClientLeg | None = None
        """The leg in the place of this one, for a client of another protocol."""
        self._known_publishes: dict[bytes, m.BasicPublish] = {}
        self._known_properties: dict[bytes, BasicProperties] = {}
        self._from_client: dict[int, Content] = {}
        self._from_broker: dict[int, Content] = {}
        self._waiting: list[bytes] = []
        """The latest frames for the client, of a content that may be whole before all input is read."""
        self._blocking = False
        """True while an alarm of the proxy keeps a publisher waiting."""
        self._refusal = ""
        self.broker: BrokerLeg = BrokerLeg(self)
        dial(self.broker)

    def new_cutter(self) -> Amqp091FrameCutter:
        return Amqp091FrameCutter()

    # --- for the model, faults and views ----------------------------------------------------------------

    @cached_property
    def fault_port(self) -> ProxiedFaultPort:
        """The fault port of this connection."""
        from fakeamqp.protocols.amqp_0_9_1.proxied.port import ProxiedFaultPort

        return ProxiedFaultPort(self)

    @property
    def open_channels(self) -> tuple[OpenChannel, ...]:
        """What views show of the open channels, by ascending number. Consumers are those of the broker."""
        numbers = sorted(number for number, each in self.channels.items() if each.open)
        return tuple(OpenChannel(number, self.channels[number]) for number in numbers)

    def channel(self, number: int) -> ProxiedChannel:
        """The channel of this number, made if there is none."""
        found = self.channels.get(number)
        if found is None:
            found = self.channels[number] = ProxiedChannel(number)
        return found

    def report_opened(self) -> None:
        """The broker has let the client in."""
        self.report("opened", f"virtual host {self.virtual_host_name!r}")
        self.set_blocked(self.state.blocked_reason)

    def close_by_operator(self, code: int, text: str) -> None:
        self.close(code, text)

    def set_blocked(self, reason: str | None) -> None:
        """Tell the client, and read no further publishes; None ends that."""
        if reason == self.blocked_reason or not self.opened:
            return
        self.blocked_reason = reason
        self.report("unblocked" if reason is None else "blocked", reason or "")
        if reason is None and self._blocking:
            self._blocking = False
            self._tell_blocked(m.ConnectionUnblocked())
            self.pause(False)

    def _tell_blocked(self, method: Method) -> None:
        capabilities = self.client_properties.get("capabilities")
        if isinstance(capabilities, Mapping) and capabilities.get("connection.blocked") is True:
            self.send(0, method)

    # --- the client's bytes -----------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        self.heard_at: float = self.state.clock.now()
        if self.over:
            return
        if len(self._header) < _HEADER_SIZE:
            data = self._take_header(data)
        if self._successor is not None:
            self._successor.receive(data)
            return
        if self.unknown:
            self.broker.write(data)
            return
        self.take_frames(data)

    def _take_header(self, data: bytes) -> bytes:
        """Pass the protocol header; returns what follows it."""
        missing = _HEADER_SIZE - len(self._header)
        self._header += data[:missing]
        self.broker.write(data[:missing])
        if len(self._header) == _HEADER_SIZE:
            header = self._header
            known = header.startswith(b"AMQP\0\0") or header == b"AMQP\x01\x01\0\x09"
            make = None if known or self._refusal else self._others(header)
            if make is not None:
                self._successor = make(self)
                return data[missing:]
            self.unknown: bool = not known
            if header.startswith(b"AMQP"):
                self.report("connected", "AMQP {}-{}-{}-{}".format(*header[4:]))
            else:
                log.warning("%s %s", self.name, no_header(header))
                self.report("connected", f"it {no_header(header)}")
            if self._refusal:
                self._tell_refusal()
            else:
                self.await_broker()
        return data[missing:]

    def take(self, frames: bytes, *, counted: bool = True) -> None:
        """Forward whole frames of the client that a fault had kept. A duplicate is not `counted`."""
        for frame in Amqp091FrameCutter().cut(frames):
            self.forward(*frame, counted=counted)

    def forward(
        self, frame_type: int, number: int, payload: bytes, octets: bytes, *, counted: bool = True
    ) -> None:
        """Pass a frame of the client to the broker, unless it concerns the proxy alone."""
        if self.closing:
            self._while_closing(frame_type, payload)
            return
        channel = self.channels.get(number)
        if channel is not None and channel.closing:
            self._while_channel_closes(channel, frame_type, payload, octets)
            return
        if frame_type == FRAME_METHOD:
            self._from_client.pop(number, None)
            # Publishers repeat the same bytes, so basic.publish is looked up before it is decoded.
            publish = self._known_publishes.get(payload)
            if publish is None:
                handler, method = _looked_up(FROM_CLIENT, payload)
                if handler is not None:
                    passes = handler(self, number, method)
                    if isinstance(passes, bytes):
                        octets = passes
                    elif not passes:
                        return
                    if isinstance(method, m.BasicPublish):
                        publish = _remember(self._known_publishes, payload, method)
            if publish is not None:
                self.channel(number).forward_publish(counted=counted)
                self._from_client[number] = Content(publish, [])
        elif number in self._from_client:
            content = self._from_client[number]
            whole = content.add(frame_type, payload)
            if frame_type == FRAME_CONTENT_HEADER and self.blocked_reason is not None:
                self._hold_back()
            if whole:
                del self._from_client[number]
                self._published(content)
        self.broker.write(octets, more=number in self._from_client)

    def _hold_back(self) -> None:
        """An alarm of the proxy: a publish has come, so the client is told, and not read any further."""
        if not self._blocking:
            self._blocking = True
            self._tell_blocked(m.ConnectionBlocked(reason=short_text(self.blocked_reason or "")))
            self.pause(True)

    def _published(self, content: Content) -> None:
        method = content.method
        message = Message(
            method.exchange,
            method.routing_key,
            self._properties(content.properties),
            content.body,
            "0-9-1",
            content.properties,
            publisher=self.identity,
        )
        self.passed_on(message)

    def _properties(self, octets: bytes) -> BasicProperties:
        known = self._known_properties.get(octets)
        if known is not None:
            return known
        decoded: BasicProperties | None = first_decoded(
            (RABBITMQ,), lambda grammar: BasicProperties.decode(octets, 0, grammar)
        )
        return _remember(self._known_properties, octets, decoded or BasicProperties())

    def _while_closing(self, frame_type: int, payload: bytes) -> None:
        """The proxy has closed the connection: nothing but the client's answer counts."""
        method = payload[:4] if frame_type == FRAME_METHOD else b""
        if method == _index(m.ConnectionCloseOk) or method == _index(m.ConnectionClose):
            if method == _index(m.ConnectionClose):
                self.send(0, m.ConnectionCloseOk())
            self.finish("close confirmed")

    def _while_channel_closes(
        self, channel: ProxiedChannel, frame_type: int, payload: bytes, octets: bytes
    ) -> None:
        """The proxy has closed a channel: until the client has confirmed that, its frames are dropped.

        Only the rest of a content passes, because no method can follow a part of one.
        """
        if "client" not in channel.closing:
            channel.waiting.append(octets)
            return
        content = self._from_client.get(channel.number)
        method = payload[:4] if frame_type == FRAME_METHOD else b""
        if content is not None and method:
            why = f"a fault has closed channel {channel.number} with a message half sent"
            self.close(_CONNECTION_FORCED, f"CONNECTION_FORCED - {why}")
        elif content is not None:
            self.broker.write(octets)
            if content.add(frame_type, payload):
                del self._from_client[channel.number]
                self._published(content)
                self._close_at_broker(channel.number)
        elif method == _index(m.ChannelClose):
            self.send(channel.number, m.ChannelCloseOk())
        elif method == _index(m.ChannelCloseOk):
            self._closed_at(channel, "client")

    def _closed_at(self, channel: ProxiedChannel, side: Side) -> None:
        channel.closing.discard(side)
        if not channel.closing:
            del self.channels[channel.number]
            self.take(b"".join(channel.waiting))

    # --- the broker's bytes -----------------------------------------------------------------------------

    def receive_from_broker(self, frame_type: int, number: int, payload: bytes, octets: bytes) -> None:
        """Pass a frame of the broker to the client, unless it concerns the proxy alone."""
        if self.finished or self.aborted or self.closing:
            return
        channel = self.channels.get(number)
        content = self._from_broker.get(number)
        if content is not None and frame_type == FRAME_METHOD:
            # The broker breaks it off: its frames pass as they came.
            del self._from_broker[number]
            if content.message is None:
                self.write(b"".join((*content.frames, *content.behind)))
            else:
                self._pass_frames(content)
            content = None
        if channel is not None and channel.closing and content is None:
            self._while_broker_closes(channel, frame_type, payload)
            return
        if frame_type == FRAME_METHOD:
            handler, method = _looked_up(FROM_BROKER, payload)
            if handler is not None:
                passes = handler(self, number, method)
                if isinstance(passes, bytes):
                    octets = passes
                    method = _decoded(type(method), octets[7:-1])
                elif not passes:
                    return
                if method.HAS_CONTENT:
                    self._from_broker[number] = content = self._begun(number, method)
                    content.frames.append(octets)
                    return
        elif content is not None:
            content.frames.append(octets)
            if not content.add(frame_type, payload):
                return
            del self._from_broker[number]
            self._complete(number, content)
            self._pass_frames(content)
            return
        self._pass_to_client(octets)

    def _pass_frames(self, content: Content) -> None:
        octets = b"".join(content.frames)
        content.frames.clear()
        self._pass_to_client(octets)
        self.write(b"".join(content.behind))

    def pass_parts(self) -> None:
        """Pass the contents that will not be whole."""
        for content in self._from_broker.values():
            self._pass_frames(content)
        self._from_broker.clear()

    def _begun(self, number: int, method: Any) -> Content:
        """A content of the broker. Faults act on the whole of it; without, no frame waits for input."""
        tap = self.state.tap
        if tap is not None and tap.intercepts:
            return Content(method, [])
        self.pass_waiting()
        message = self._message(method)
        if isinstance(method, m.BasicReturn):
            return Content(method, self._waiting, message)
        # The event of a delivery comes before its frames; the message is complete later.
        self._delivered(number, method, message)
        return Content(method, self._waiting, message, LONG_BODY)

    def _message(self, method: Any) -> Message:
        message = Message(method.exchange, method.routing_key, _NO_PROPERTIES, b"", "0-9-1")
        message.published_at = self.state.clock.time()
        if self.state.tap is not None:
            message.number = next(self.state.message_numbers)
        return message

    def _complete(self, number: int, content: Content) -> None:
        """The content of a delivery, the answer to a get, or a returned message is whole."""
        method = content.method
        message = content.message or self._message(method)
        message.properties_bytes = content.properties
        message.properties = self._properties(content.properties)
        message.body = content.body
        if isinstance(method, m.BasicReturn):
            books = self.state.add_virtual_host(self.virtual_host_name or "/")
            books.message_outcomes.returned(message, method.reply_code, method.reply_text, number)
        elif content.message is None:
            self._delivered(number, method, message)

    def _delivered(self, number: int, method: Any, message: Message) -> None:
        channel = self.channel(number)
        tag = method.delivery_tag
        consumer_tag = getattr(method, "consumer_tag", None)
        if consumer_tag is None:
            consumer = channel.asked.popleft()[1] if channel.asked else Consumer("", True)
        else:
            consumer = channel.consumers.get(consumer_tag, _UNKNOWN_CONSUMER)
        held = Held(consumer.queue, consumer_tag, message)
        if not consumer.no_ack:
            channel.held[tag] = held
        tap = self.state.tap
        if tap is not None:
            tap.event("delivered", self, *_delivery(held, number, tag), method.redelivered)

    def _while_broker_closes(self, channel: ProxiedChannel, frame_type: int, payload: bytes) -> None:
        """The proxy has closed a channel: until the broker has confirmed that, its frames are dropped."""
        method = payload[:4] if frame_type == FRAME_METHOD else b""
        if method == _index(m.ChannelClose):
            self.broker.write(method_frame(channel.number, m.ChannelCloseOk().encode()))
        elif method == _index(m.ChannelCloseOk):
            self._closed_at(channel, "broker")

    def broker_refused(self, why: str) -> None:
        """There is no broker: the client is told with a close of the connection, once it has said AMQP."""
        log.warning("%s: no connection to the broker: %s", self.name, why)
        self._refusal = why
        if len(self._header) == _HEADER_SIZE:
            self._tell_refusal()
        if self.ended:
            self.end()

    def _tell_refusal(self) -> None:
        """Clients take a close as an answer of the broker only after connection.start."""
        self.report("refused", self._refusal)
        if not self.unknown:
            start = m.ConnectionStart(
                version_major=VERSION_MAJOR,
                version_minor=VERSION_MINOR,
                server_properties={"product": "fakeamqp proxy"},
                mechanisms=b"PLAIN AMQPLAIN EXTERNAL",
                locales=b"en_US",
            )
            self.send(0, start)
            self.close(_CONNECTION_FORCED, f"CONNECTION_FORCED - the proxy has no broker: {self._refusal}")
        else:
            self.finish(self._refusal)

    # --- what the proxy says ----------------------------------------------------------------------------

    def _pass_to_client(self, octets: bytes) -> None:
        """Send whole frames to the client, or those that the tap returns for them."""
        if self._waiting:
            octets = b"".join((*self._waiting, octets))
            self._waiting.clear()
        tap = self.state.tap
        self.write(octets if tap is None else tap.sending(self, octets))

    def pass_waiting(self) -> None:
        """Send what need not wait any longer."""
        if self._waiting:
            self._pass_to_client(b"")

    def send(self, number: int, method: Method) -> None:
        """Send a method of the proxy to the client."""
        octets = method_frame(number, method.encode())
        tap = self.state.tap
        self.add(octets if tap is None else tap.sending(self, octets))

    def add(self, octets: bytes) -> None:
        """Send whole frames to the client that the broker has not sent just now, on one channel.

        No frame may come between those of a content.
        """
        content = self._from_broker.get(int.from_bytes(octets[1:3], "big"))
        if content is None or content.message is None:
            self.pass_waiting()
            self.write(octets)
        else:
            content.behind.append(octets)

    def confirm(self, number: int, tag: int, *, accepted: bool) -> None:
        """Send a confirm of one publish, by the client's number."""
        self.send(number, (m.BasicAck if accepted else m.BasicNack)(delivery_tag=tag, multiple=False))

    def close(self, code: int, text: str, method: int = 0) -> None:
        """Close the connection on both sides: the client gets this code and text."""
        if self.closing or self.over:
            return
        class_id, method_id = method >> 16, method & 0xFFFF
        self.send(0, m.ConnectionClose(code, short_text(text), class_id, method_id))
        self.closing = True
        self.broker.write(method_frame(0, m.ConnectionClose(_DONE, "closed by a proxy", 0, 0).encode()))
        self.broker.end()
        self.call_in(_CLOSE_TIMEOUT, lambda: self.finish("no close-ok has come"), "ends without close-ok")

    def close_channel(self, number: int, code: int, text: str, method: int = 0) -> None:
        """Close a channel on both sides: the client gets this code and text."""
        channel = self.channel(number)
        if channel.closing or channel.ending:
            return
        class_id, method_id = method >> 16, method & 0xFFFF
        self.send(number, m.ChannelClose(code, short_text(text), class_id, method_id))
        self._settle_all(channel, "requeued")
        channel.open = False
        channel.closing = {"client", "broker"}
        if number not in self._from_client:
            self._close_at_broker(number)
        if number in self._from_broker and self._from_broker[number].message is None:
            del self._from_broker[number]

    def _close_at_broker(self, number: int) -> None:
        self.broker.write(method_frame(number, m.ChannelClose(_DONE, "closed by a proxy", 0, 0).encode()))

    # --- events -----------------------------------------------------------------------------------------

    def settle(self, channel: ProxiedChannel, event: str, held: Sequence[tuple[int, Held]]) -> None:
        """Report that the client settles these deliveries, by their tags."""
        tap = self.state.tap
        if tap is not None:
            for tag, each in held:
                tap.event(event, self, *_delivery(each, channel.number, tag))

    def settle_everything(self) -> None:
        for channel in self.channels.values():
            self._settle_all(channel, "requeued")

    def _settle_all(self, channel: ProxiedChannel, event: str) -> None:
        self.settle(channel, event, list(channel.held.items()))
        channel.held.clear()

    def forget(self, channel: ProxiedChannel) -> None:
        """The channel is closed."""
        self._settle_all(channel, "requeued")
        self.channels.pop(channel.number, None)

    def __repr__(self) -> str:
        return f"<ProxiedConnection {self.name} {self.stage} channels={len(self.channels)}>"


def _decoded(kind: Any, payload: bytes) -> Any:
    try:
        return kind.decode(payload, RABBITMQ)
    except WireError:
        return None


def _looked_up(handlers: Mapping[Any, Handler], payload: bytes) -> tuple[Handler | None, Any]:
    """A method and its handler; None and None for one that has no handler, or is malformed."""
    kind = m.METHODS.get(int.from_bytes(payload[:4], "big"))
    handler = None if kind is None else handlers.get(kind)
    method = None if handler is None else _decoded(kind, payload)
    return (None, None) if method is None else (handler, method)


def _remember(known: dict[bytes, T], octets: bytes, value: T) -> T:
    if len(octets) <= _LONGEST_REMEMBERED:
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        known[octets] = value
    return value


def _index(kind: type[Method]) -> bytes:
    return kind.INDEX.to_bytes(4, "big")


def _delivery(held: Held, number: int, tag: int) -> tuple[Any, ...]:
    """The values of an event about a delivery, its message first."""
    return held.message, held.queue, held.consumer, number, tag
