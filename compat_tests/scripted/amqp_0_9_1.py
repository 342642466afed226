"""A raw client of 0-9-1 or 0-9 on a sans-I/O broker: whole frames in, whole frames out, time by hand.

The methods that both protocols have are the same bytes, so that they are those of 0-9-1 here.

Nothing here opens a socket or waits. `Server` is a broker without a runtime; `Client` is one connection
to it. Everything that arrives is kept in `Client.inbox` until a test takes it. Steps return the client, so
that a line has a cause and its effect: `assert client.ack(1).bodies() == [b"next"]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from typing_extensions import Self

from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.events import EVENTS
from fakeamqp.model.personality import Personality, personality
from fakeamqp.model.state import BrokerState
from fakeamqp.model.timers import TimeSource
from fakeamqp.protocols import registry
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER, content_frames, frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.negotiation import accept

M = TypeVar("M", bound=Method)

PROTOCOL_HEADERS = {row.name: row.headers[0] for row in registry.PROTOCOLS}
METHODS_0_9: Mapping[int, type[Method]] = {}
"""By index: the methods of 0-9. Without that package 0-9-1 is tested alone."""
if "0-9" in PROTOCOL_HEADERS:
    from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
    from fakeamqp.protocols.amqp_0_9.codec import METHODS as METHODS_0_9
METHODS = {**METHODS_0_9, **m.METHODS}
WITH_TICKET = {index for index, each in METHODS_0_9.items() if each.LAYOUT[:1] == (("ticket", "short"),)}


def checks_tickets(personality: Personality) -> bool:
    """Whether connections of 0-9 have to show access tickets."""
    return personality.extension(Amqp09Choices).checks_tickets


class ManualClock(TimeSource):
    """Time that stands still until a test moves it."""

    def __init__(self, now: float = 1_000.0, time: float = 1_700_000_000.0) -> None:
        self._now = now
        self._time = time

    def now(self) -> float:
        return self._now

    def time(self) -> float:
        return round(self._time, 6)  # In whole microseconds, as the clocks of brokers have it.

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._time += seconds


class QuietTap:
    """A tap that lets everything pass and keeps nothing. Events of the model go to `happened`, by name."""

    confirms_singly = False
    intercepts = False

    def received(self, *_: object) -> None:
        pass

    def sending(self, _connection: object, octets: bytes) -> bytes:
        return octets

    def connection(self, *_: object) -> None:
        pass

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        name = None if connection is None else connection.name
        facts = EVENTS[event].facts(name, message, values)
        for each in message if event == "dropped" else (message,):
            self.happened(event, **(facts if each is None else {**facts, "message": each}))

    def happened(self, event: str, **facts: Any) -> None:
        """An event of the model, with its facts by name; one for each message that is dropped."""


@dataclass(frozen=True)
class Frame:
    """A frame as it came. `method` is set for method frames."""

    type: int
    channel: int
    payload: bytes
    method: Method | None = None


@dataclass(frozen=True)
class Content:
    """A method with its content."""

    method: Any
    properties: BasicProperties
    body: bytes


def _check(close: Any, code: int, text: str | None, at: tuple[int, int] | None) -> None:
    """A close has this code, and this text and method unless they are None."""
    assert close.reply_code == code, f"expected {code}, got {close}"
    assert text is None or close.reply_text == text, f"expected {text!r}, got {close}"
    assert at is None or (close.class_id, close.method_id) == at, f"expected {at}, got {close}"


def _is(frame: Frame, method: type[Method], channel: int) -> bool:
    return frame.channel == channel and frame.method is not None and frame.method.INDEX == method.INDEX


class Server:
    """A broker without sockets, or a real node where tests are run on one."""

    on_node: ClassVar[type[Server] | None] = None
    """What stands for brokers where tests are run on a node."""

    protocol = "0-9-1"
    """What the clients speak."""
    asks_for_tickets = False
    """Clients get an access ticket for each channel that they open, and show it where a method has none."""
    _port = 50_000

    def __new__(cls, *arguments: Any, **settings: Any) -> Server:
        """A broker, or a node."""
        return super().__new__(cls.on_node if cls is Server and cls.on_node else cls)

    def __init__(
        self,
        name: str | Personality = "rabbitmq-4.3",
        *,
        protocol: str = "0-9-1",
        tickets: bool = True,
        **state: Any,
    ) -> None:
        self.protocol = protocol
        known = personality(name)
        self.asks_for_tickets = tickets and protocol == "0-9" and checks_tickets(known)
        self.clock = clock = ManualClock()
        self.state = BrokerState(clock, personality=known, seed=1, **state)

    def varied(self, **choices: Any) -> Server:
        """Another broker like this one, but for some choices of its personality."""
        return Server(replace(self.state.personality, **choices), protocol=self.protocol)

    @property
    def is_spec(self) -> bool:
        """The broker follows the documents to the letter."""
        return bool(self.state.personality.name == "spec")

    @property
    def vhost(self) -> Any:
        return self.state.virtual_hosts["/"]

    def advance(self, seconds: float) -> Self:
        """Move time; timers run in order, each at its own instant."""
        target = self.clock.now() + seconds
        while (due := self.state.timers.next_due()) is not None and due <= target:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.state.timers.run_due()
        self.clock.advance(target - self.clock.now())
        return self

    def restart(self, *, crash: bool = False) -> Self:
        """Lose every connection, and all that a restart or a crash does not keep."""
        for connection in list(self.state.connections):
            connection.receive_eof()  # type: ignore[attr-defined]
        self.state.restart(crash=crash)
        return self

    def wait(self, connection: Any) -> bool:
        """Let the broker send more: whether more has come. Without a socket, it has sent all."""
        return False

    def take_answer(self, connection: Any) -> None:
        """Let the answer to what was sent last come: without a socket, it has."""

    def wait_for_end(self, connection: Any) -> None:
        """Let the broker end the transport."""

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        """The broker's end of a new connection. `use` is called with each end that takes its place."""
        return accept(self.state, peer, use)

    def connect(self, **peer: Any) -> Client:
        """A client that has sent nothing yet, with a port of its own unless `peer` says otherwise."""
        self._port += 1
        return Client(self, PeerAddress(**{"port": self._port, **peer}))

    def started(self, **peer: Any) -> Client:
        """A client that has yet to log in."""
        client = self.connect(**peer)
        client.begin()
        return client

    def tuned(self, **tune_ok: int) -> Client:
        """A client that has yet to open a virtual host."""
        client = self.started()
        client.login().expect(m.ConnectionTune, 0)
        return client.send(m.ConnectionTuneOk(**tune_ok), 0)

    def client(self, *, channels: int = 1, **handshake: Any) -> Client:
        """A client with an open connection and `channels` open channels, its inbox empty."""
        client = self.connect()
        client.handshake(**handshake)
        for number in range(1, channels + 1):
            client.call(m.ChannelOpen(), m.ChannelOpenOk, channel=number)
        return client


class Transport:
    """A connection to a server, over which bytes go as they are."""

    def __init__(self, server: Any, peer: PeerAddress) -> None:
        self.server = server
        self.connection: Any = server.accept(peer, self._use)

    def _use(self, connection: Connection) -> None:
        self.connection = connection

    def send_bytes(self, octets: bytes) -> Self:
        self.connection.receive(octets)
        if self.connection.aborted:
            self.connection.pending()  # Nothing more is sent.
        return self

    def after(self, seconds: float) -> Self:
        """Move the broker's time."""
        self.server.advance(seconds)
        return self

    def take_bytes(self) -> bytes:
        """What has come since the last look, as it came."""
        octets = b"".join(self.connection.pending())
        self.connection.sent(len(octets))
        return octets

    @property
    def inbox(self) -> list[Any]:
        """All that has come and was not taken."""
        raise NotImplementedError

    def expect_nothing(self) -> None:
        """No frame has come."""
        assert not self.inbox, f"nothing is expected, got {self.inbox}"

    @property
    def closed(self) -> bool:
        """The broker has ended the transport, or will once all is sent."""
        return bool(self.connection.finished or self.connection.aborted)

    def expect_silent_end(self) -> None:
        """The transport has ended without another frame."""
        self.expect_nothing()
        self.server.wait_for_end(self.connection)
        assert self.closed

    def drop(self) -> None:
        """The transport is lost."""
        self.connection.receive_eof()


class Client(Transport):
    """One raw connection."""

    def __init__(self, server: Server, peer: PeerAddress) -> None:
        super().__init__(server, peer)
        published = server.state.personality.published_field_grammar
        self.protocol_header = PROTOCOL_HEADERS[server.protocol]
        self.methods: Mapping[int, type[Method]] = METHODS
        self.grammar = PUBLISHED.unchecked if published else RABBITMQ
        self.header = b""
        """Bytes that came before the first frame: a refused protocol header."""
        self._octets = b""
        self._inbox: list[Frame] = []
        self._tickets: dict[int, int] = {}

    # --- out ---------------------------------------------------------------------------------------

    def send_frame(self, frame_type: int, channel: int, payload: bytes) -> Self:
        payload = self.with_ticket(payload, channel) if frame_type == 1 else payload
        return self.send_bytes(frame(frame_type, channel, payload))

    def send(self, method: Method, channel: int = 1) -> Self:
        return self.send_bytes(self.method_frame(method, channel))

    def method_frame(self, method: Method, channel: int = 1) -> bytes:
        """The bytes of a method."""
        return method_frame(channel, self.with_ticket(method.encode(), channel))

    def with_ticket(self, payload: bytes, channel: int = 1) -> bytes:
        """The payload of a method frame, with the channel's access ticket where it has none."""
        ticket = self._tickets.get(channel)
        if ticket and payload[4:6] == b"\0\0" and int.from_bytes(payload[:4], "big") in WITH_TICKET:
            return payload[:4] + ticket.to_bytes(2, "big") + payload[6:]
        return payload

    def ask_for_ticket(self, channel: int) -> None:
        """Get a ticket that the channel's methods show from now on."""
        request = m.AccessRequest(realm="/data", passive=True, active=True, write=True, read=True)
        self.send(request, channel)
        [answer] = [each for each in self.inbox if _is(each, m.AccessRequestOk, channel)]
        self._inbox.remove(answer)
        self._tickets[channel] = int.from_bytes(answer.payload[4:], "big")

    def publish(
        self,
        body: bytes = b"body",
        *,
        exchange: str = "",
        routing_key: str = "",
        channel: int = 1,
        mandatory: bool = False,
        immediate: bool = False,
        frame_size: int = 100_000,
        **properties: Any,
    ) -> Self:
        """Publish in three or more frames; keyword arguments are message properties."""
        method = m.BasicPublish(
            exchange=exchange, routing_key=routing_key, mandatory=mandatory, immediate=immediate
        )
        octets = BasicProperties(**properties).encode()
        frames = content_frames(channel, 60, octets, body, frame_size)
        return self.send_bytes(self.method_frame(method, channel) + b"".join(frames))

    def publish_bytes(
        self, properties: bytes, body: bytes = b"", *, exchange: str = "", routing_key: str = ""
    ) -> Self:
        """Publish on channel 1 with property flags and values as they are."""
        self.send(m.BasicPublish(exchange=exchange, routing_key=routing_key))
        return self.send_bytes(b"".join(content_frames(1, 60, properties, body, 4000)))

    # --- in ----------------------------------------------------------------------------------------

    @property
    def inbox(self) -> list[Frame]:
        """Every frame that has come and was not taken."""
        self._collect()
        return self._inbox

    def _collect(self) -> None:
        self._octets += self.take_bytes()
        if self._octets.startswith(b"AMQP"):
            self.header, self._octets = self._octets[:8], self._octets[8:]
            return  # What follows is of the protocol that the header names.
        octets, position = self._octets, 0
        try:
            while len(octets) - position >= 8:
                frame_type, channel, size = FRAME_HEADER.unpack_from(octets, position)
                end = position + 8 + size
                if len(octets) < end:
                    break
                payload = octets[position + 7 : end - 1]
                assert octets[end - 1] == 0xCE, "a frame ends with the frame-end byte"
                position = end
                method = self.read(payload) if frame_type == 1 else None
                self._inbox.append(Frame(frame_type, channel, payload, method))
        finally:
            self._octets = octets[position:]

    def read(self, payload: bytes) -> Method:
        """The method that a frame holds."""
        return self.methods[int.from_bytes(payload[:4], "big")].decode(payload, self.grammar)

    def take_frame(self) -> Frame:
        """The next frame."""
        if not self._inbox:
            self.server.take_answer(self.connection)
        while not self.inbox and self.server.wait(self.connection):
            pass
        assert self._inbox, "a frame is expected, none has come"
        return self._inbox.pop(0)

    def expect(self, method_class: type[M], channel: int = 1) -> M:
        """The next frame, which must be this method on this channel."""
        got = self.take_frame()
        assert _is(got, method_class, got.channel), f"expected {method_class.__name__}, got {got}"
        assert got.channel == channel, f"expected channel {channel}, got {got}"
        if method_class.INDEX == m.ChannelOpenOk.INDEX and self.server.asks_for_tickets:
            self.ask_for_ticket(channel)
        if isinstance(got.method, method_class):
            return got.method
        return method_class.decode(
            got.payload, self.grammar
        )  # The other protocol's class for the same bytes.

    def call(self, method: Method, reply: type[M], channel: int = 1) -> M:
        """Send a method and take its reply."""
        self.send(method, channel)
        return self.expect(reply, channel)

    def perform(self, *methods: Method, channel: int = 1) -> Self:
        """Have methods done, each of which is answered with its ok."""
        for method in methods:
            kind = type(method)
            self.call(method, getattr(sys.modules[kind.__module__], f"{kind.__name__}Ok"), channel)
        return self

    def expect_content(self, method_class: type[Method], channel: int = 1) -> Content:
        """The next frames, which must be this method and its content."""
        method = self.expect(method_class, channel)
        header = self.take_frame()
        assert (header.type, header.channel) == (2, channel), f"expected a content header, got {header}"
        size = int.from_bytes(header.payload[4:12], "big")
        body = b""
        while len(body) < size:
            part = self.take_frame()
            assert (part.type, part.channel) == (3, channel), f"expected a content body, got {part}"
            body += part.payload
        return Content(method, BasicProperties.decode(header.payload, 12, self.grammar), body)

    def expect_channel_close(
        self, code: int, channel: int = 1, *, text: str | None = None, at: tuple[int, int] | None = None
    ) -> m.ChannelClose:
        """The channel is closed with this code; it is answered, so that the channel can be opened again.

        Args:
            code: the reply code.
            channel: which channel.
            text: the whole reply text.
            at: the class and the method that failed.
        """
        close = self.expect(m.ChannelClose, channel)
        _check(close, code, text, at)
        self.send(m.ChannelCloseOk(), channel)
        return close

    def expect_connection_close(
        self, code: int, *, text: str | None = None, at: tuple[int, int] | None = None
    ) -> m.ConnectionClose:
        """The connection is closed, see `expect_channel_close`; that is answered, and the transport ends."""
        close = self.expect(m.ConnectionClose, 0)
        _check(close, code, text, at)
        self.send(m.ConnectionCloseOk(), 0)
        self.server.wait_for_end(self.connection)
        assert self.closed
        return close

    def fails(
        self, method: Method, code: int, channel: int = 1, *, text: str | None = None, at: Any = None
    ) -> m.ChannelClose:
        """Send a method that closes the channel, see `expect_channel_close`.

        With a text the close also names the method.
        """
        if text is not None:
            at = at or (method.CLASS_ID, method.METHOD_ID)
        return self.send(method, channel).expect_channel_close(code, channel, text=text, at=at)

    def ends(
        self, method: Method, code: int, channel: int = 1, *, text: str | None = None, at: Any = None
    ) -> m.ConnectionClose:
        """Send a method that closes the connection, as `fails` has it for a channel."""
        if text is not None:
            at = at or (method.CLASS_ID, method.METHOD_ID)
        return self.send(method, channel).expect_connection_close(code, text=text, at=at)

    @property
    def explained_to(self) -> bool:
        """Malformed input is answered with an explanation, not as RabbitMQ does."""
        endpoint: Any = self.connection
        return bool(endpoint.personality.explains_malformed_input)

    def expect_end_of_frames(self) -> m.ConnectionClose:
        """The connection is closed with 501, since the next frame cannot be found.

        RabbitMQ reads no answer; it ends the transport three seconds later (measured).
        """
        if self.explained_to:
            return self.expect_connection_close(501)
        close = self.expect(m.ConnectionClose, 0)
        assert close.reply_code == 501, f"expected 501, got {close}"
        self.send(m.ConnectionCloseOk(), 0)
        self.server.advance(2.9)
        assert not self.closed
        self.server.advance(0.2)
        self.expect_silent_end()
        return close

    def expect_end_after_close(self) -> None:
        """The connection is over. Where the transport is left to the client, it has not ended; now it has."""
        self.expect_nothing()
        endpoint = self.connection
        assert endpoint not in self.server.state.connections
        assert self.closed is not self.server.state.personality.client_ends_closed_transport
        self.drop()
        assert self.connection.finished and not self.connection.aborted

    # --- shortcuts ---------------------------------------------------------------------------------

    def handshake(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str = "/",
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 0,
        client_properties: dict[str, Any] | None = None,
    ) -> None:
        """From the protocol header to open-ok."""
        self.begin()
        self.login(user, password, client_properties).expect(m.ConnectionTune, 0)
        self.send(m.ConnectionTuneOk(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat), 0)
        self.perform(m.ConnectionOpen(virtual_host=virtual_host), channel=0)

    def begin(self) -> m.ConnectionStart:
        """Send the protocol header, and take the answer to it."""
        return self.send_bytes(self.protocol_header).expect(m.ConnectionStart, 0)

    def login(
        self, user: str = "guest", password: str = "guest", client_properties: dict[str, Any] | None = None
    ) -> Self:
        """Send start-ok with PLAIN."""
        return self.send(
            m.ConnectionStartOk(
                client_properties=client_properties or {},
                mechanism="PLAIN",
                response=f"\0{user}\0{password}".encode(),
                locale="en_US",
            ),
            0,
        )

    def open_channel(self, channel: int = 1) -> Self:
        return self.perform(m.ChannelOpen(), channel=channel)

    def close_channel(self, channel: int = 1) -> Self:
        return self.perform(m.ChannelClose(reply_code=200), channel=channel)

    def declare(self, queue: str = "", *, channel: int = 1, **arguments: Any) -> Self:
        return self.perform(m.QueueDeclare(queue=queue, **arguments), channel=channel)

    def declare_exchange(
        self, exchange: str, type: str = "direct", *, channel: int = 1, **arguments: Any
    ) -> Self:
        method = m.ExchangeDeclare(exchange=exchange, type=type, **arguments)
        return self.perform(method, channel=channel)

    def declare_ok(self, queue: str = "", *, channel: int = 1, **arguments: Any) -> m.QueueDeclareOk:
        """Declare a queue; what the answer says."""
        return self.call(m.QueueDeclare(queue=queue, **arguments), m.QueueDeclareOk, channel)

    def count(self, queue: str, channel: int = 1) -> int:
        """Ready messages, by passive declare."""
        return self.declare_ok(queue, passive=True, channel=channel).message_count

    def bind(
        self, queue: str, exchange: str, routing_key: str = "", *, channel: int = 1, **arguments: Any
    ) -> Self:
        method = m.QueueBind(queue=queue, exchange=exchange, routing_key=routing_key, **arguments)
        return self.perform(method, channel=channel)

    def consume(self, queue: str, tag: str = "", *, channel: int = 1, **arguments: Any) -> Self:
        """Start a consumer; deliveries that follow stay in the inbox."""
        return self.perform(m.BasicConsume(queue=queue, consumer_tag=tag, **arguments), channel=channel)

    def consume_ok(
        self, queue: str, tag: str = "", *, channel: int = 1, **arguments: Any
    ) -> m.BasicConsumeOk:
        """Start a consumer; what the answer says."""
        method = m.BasicConsume(queue=queue, consumer_tag=tag, **arguments)
        return self.call(method, m.BasicConsumeOk, channel)

    def delivery(self, channel: int = 1) -> Content:
        return self.expect_content(m.BasicDeliver, channel)

    def get(self, queue: str, *, channel: int = 1, no_ack: bool = False) -> Content | None:
        """One message, or None when the queue is empty."""
        self.send(m.BasicGet(queue=queue, no_ack=no_ack), channel)
        if isinstance(self.inbox[0].method, m.BasicGetEmpty):
            self.take_frame()
            return None
        return self.expect_content(m.BasicGetOk, channel)

    def fetch(self, queue: str, *, channel: int = 1, no_ack: bool = False) -> Content:
        """Get one message, which must be there."""
        content = self.get(queue, channel=channel, no_ack=no_ack)
        assert content is not None, f"a message is expected in queue {queue!r}, it is empty"
        return content

    def fill(self, queue: str, *bodies: bytes, **properties: Any) -> Self:
        """Publish each body to a queue, through the default exchange."""
        for body in bodies:
            self.publish(body, routing_key=queue, **properties)
        return self

    def bodies(self, channel: int = 1) -> list[bytes]:
        """The bodies of all deliveries that have come on a channel; nothing else may have come."""
        bodies = []
        while self.inbox:
            bodies.append(self.delivery(channel).body)
        return bodies

    def empty(self, queue: str, channel: int = 1) -> list[bytes]:
        """Get all that is ready, without acknowledgement; the bodies in order."""
        bodies = []
        while (content := self.get(queue, channel=channel, no_ack=True)) is not None:
            bodies.append(content.body)
        return bodies

    def ack(self, tag: int, *, multiple: bool = False, channel: int = 1) -> Self:
        return self.send(m.BasicAck(delivery_tag=tag, multiple=multiple), channel)

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True, channel: int = 1) -> Self:
        return self.send(m.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue), channel)

    def reject(self, tag: int, *, requeue: bool = False, channel: int = 1) -> Self:
        return self.send(m.BasicReject(delivery_tag=tag, requeue=requeue), channel)

    def recover(self, *, requeue: bool = True, channel: int = 1) -> Self:
        """Have all come again that is not settled. In 0-9 that has no answer."""
        if self.server.protocol == "0-9":
            return self.send(m.BasicRecoverAsync(requeue=requeue), channel)
        return self.perform(m.BasicRecover(requeue=requeue), channel=channel)

    def qos(self, count: int, *, size: int = 0, global_: bool = False, channel: int = 1) -> Self:
        method = m.BasicQos(prefetch_count=count, prefetch_size=size, global_=global_)
        return self.perform(method, channel=channel)
