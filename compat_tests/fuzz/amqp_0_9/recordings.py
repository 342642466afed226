"""What valid clients of 0-9 and 0-8 send; see `compat_tests.fuzz.streams`, and `subjects` for whom they meet.

All ten types of frames are here. Numbers of tickets, requests and deliveries are known beforehand as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from compat_tests.fuzz import streams
from compat_tests.fuzz.streams import RICH_HEADERS, Recording
from compat_tests.scripted.amqp_0_9 import PROPERTIES, Child, content
from compat_tests.scripted.amqp_0_9_1 import WITH_TICKET
from fakeamqp.protocols.amqp_0_9.codec import (
    FileProperties,
    StreamProperties,
    TunnelProperties,
    methods as m,
    version_0_8 as old,
)
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_REQUEST,
    FRAME_RESPONSE,
    FRAME_TRACE,
    PROTOCOL_HEADER,
)
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response, encode_request, encode_response
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, HEARTBEAT_FRAME, frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties

__all__ = ["INTERRUPTED", "Client", "aside", "recordings"]

INTERRUPTED = b"interrupted"
"""The id of a channel that can be resumed."""


class Client(streams.Client):
    """Writes what a client sends; one that is `strict` gets a ticket for each channel, and shows it.

    One for `rabbitmq` leaves out the fields of 0-9-1 that RabbitMQ refuses with 540.
    """

    header = PROTOCOL_HEADER

    def __init__(self, *, strict: bool = False, reserved: bool = True, rabbitmq: bool = False) -> None:
        super().__init__(strict=strict)
        self.reserved = reserved
        self.rabbitmq = rabbitmq
        self.tickets: dict[int, int] = {}
        self.requests: dict[int, int] = defaultdict(int)
        self.responses: dict[int, int] = defaultdict(int)

    def payload(self, channel: int, method: Method) -> bytes:
        """See the base class: with the ticket of the channel."""
        octets = super().payload(channel, method)
        ticket = self.tickets.get(channel, 0)
        if ticket and method.INDEX in WITH_TICKET and octets[4:6] == b"\0\0":
            octets = octets[:4] + ticket.to_bytes(2, "big") + octets[6:]
        return octets

    def open(self, *channels: int) -> list[bytes]:
        """Open channels, and get a ticket for each."""
        pieces = []
        for channel in channels:
            pieces += [*super().open(channel), *self.ticket(channel)]
        return pieces

    def ticket(self, channel: int) -> list[bytes]:
        """Ask for the next ticket that there is."""
        if not self.strict:
            return []
        self.tickets[channel] = len(self.tickets) + 1
        request = m.AccessRequest(realm="/data", passive=True, active=True, write=True, read=True)
        return [self.frame(channel, request)]

    def content(
        self,
        method: Method,
        body: bytes = b"body",
        properties: Properties | None = None,
        *,
        children: tuple[Child, ...] = (),
        channel: int = 1,
        frame_size: int = 100_000,
    ) -> list[bytes]:
        """A method and the content of its class."""
        octets = (properties or PROPERTIES[method.CLASS_ID]()).encode()
        frames = content(Child(method.CLASS_ID, octets, body, children), channel, frame_size)
        return [self.frame(channel, method), *_cut(frames)]

    def ask(self, *methods: Method, channel: int = 1, mark: int = 0) -> list[bytes]:
        """Requests, numbered as they should be."""
        frames = []
        for method in methods:
            self.requests[channel] += 1
            octets = self.payload(channel, method)
            request = Request(self.requests[channel], mark, octets, self.reserved)
            frames.append(frame(FRAME_REQUEST, channel, encode_request(request)))
        return frames

    def answer(
        self, first: int, method: Method | None = None, *, offset: int = 0, channel: int = 1
    ) -> list[bytes]:
        """A response to requests of the broker."""
        self.responses[channel] += 1
        octets = self.payload(channel, method or m.MessageOk())
        response = Response(self.responses[channel], first, offset, octets)
        return [frame(FRAME_RESPONSE, channel, encode_response(response))]

    def bye(self) -> bytes:
        """The end of the connection."""
        return self.frame(0, m.ConnectionClose(reply_code=200, reply_text="bye"))


def _cut(octets: bytes) -> list[bytes]:
    """Cut whole frames."""
    frames = []
    while octets:
        size = 8 + int.from_bytes(octets[3:7], "big")
        frames.append(octets[:size])
        octets = octets[size:]
    return frames


def _transfer(key: str, body: bytes | Body = b"body", **fields: Any) -> m.MessageTransfer:
    if isinstance(body, bytes):
        body = Body(body)
    return m.MessageTransfer(routing_key=key, body=body, **fields)


# --- what clients do ---------------------------------------------------------------------------------


def _basics(client: Client) -> list[bytes]:
    return [
        *client.handshake(heartbeat=60),
        frame(FRAME_TRACE, 0, b"traced"),
        *client.open(1, 2),
        *client.send(
            m.ExchangeDeclare(exchange="e", type="topic", durable=True),
            m.ExchangeDeclare(exchange="e", passive=True),
            m.QueueDeclare(queue="plain", durable=True),
            m.QueueDeclare(queue="mine", exclusive=True, auto_delete=True),
            m.QueueBind(queue="plain", exchange="e", routing_key="a.#"),
            m.ExchangeBound(exchange="e", queue="plain", routing_key="a.#"),
            m.ChannelPing(),
            m.ChannelOk(),
            client.publish("e", "a.b", b"one", headers=RICH_HEADERS, expiration="60000"),
            client.publish("", "plain", b"two", delivery_mode=2, frame_size=1),
            client.publish("", "nowhere", b"back", mandatory=True),
            m.BasicGet(queue="plain"),
            m.BasicAck(delivery_tag=1),
            m.BasicGet(),
        ),
        *client.send(
            m.BasicQos(prefetch_count=2, prefetch_size=0 if client.rabbitmq else 100),
            m.BasicQos(prefetch_size=0 if client.rabbitmq else 1, global_=True),
            m.BasicConsume(queue="plain", consumer_tag="one", no_local=True),
            m.BasicConsume(queue="plain", consumer_tag="two"),
            m.ChannelFlow(active=client.rabbitmq),
            m.BasicRecover(requeue=client.rabbitmq),
            m.ChannelFlow(active=True),
            channel=2,
        ),
        *client.publish("", "plain", b"three", channel=1),
        *client.content(m.BasicPublish(routing_key="mine", immediate=not client.rabbitmq)),
        *client.send(m.BasicRecover(requeue=True), channel=2),
        *client.send(m.BasicCancel(consumer_tag="two", no_wait=True), channel=2),
        HEARTBEAT_FRAME,
        *client.send(
            m.QueueUnbind(queue="plain", exchange="e", routing_key="a.#"),
            m.QueuePurge(queue="plain"),
            m.ExchangeDelete(exchange="e", if_unused=True),
            m.ChannelClose(reply_code=200),
        ),
        client.bye(),
    ]


def _structures(client: Client) -> list[bytes]:
    leaf = Child(60, b"\0\0", b"leaf")
    children = (Child(70, b"\0\0", b"", (leaf, leaf)), Child(80, b"\0\0", b"stream"), leaf)
    publish = m.BasicPublish(routing_key="q")
    rich = streams.BasicProperties(content_type="multipart/mixed", reply_to="q")
    return [
        *client.handshake(frame_max=8192),
        *client.open(1),
        *client.send(
            m.QueueDeclare(queue="q"),
            client.content(publish, b"parent" * 20, rich, children=children, frame_size=50),
            client.content(publish, b"", children=children[:1]),
            client.content(
                m.StreamPublish(routing_key="q"), b"s", StreamProperties(priority=1), children=children
            ),
            m.FileOpen(identifier="f", content_size=4),
            client.content(m.FileStage(), b"file", FileProperties(filename="f"), children=children[1:]),
            m.FilePublish(routing_key="q", identifier="f"),
            m.BasicGet(queue="q"),
            m.BasicConsume(queue="q", consumer_tag="b"),
            m.StreamConsume(queue="q", consumer_tag="s"),
            m.FileConsume(queue="q", consumer_tag="f", no_ack=True),
            m.FileOpenOk(staged_size=1),
        ),
    ]


def _files(client: Client) -> list[bytes]:
    described = FileProperties(content_type="text/plain", filename="f", priority=2)
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.QueueDeclare(queue="q"),
            m.QueueBind(queue="q", exchange="amq.fanout"),
            m.FileQos(prefetch_count=3, prefetch_size=100),
            m.FileOpen(identifier="one", content_size=4),
            m.FileOpen(identifier="two", content_size=9),
            client.content(m.FileStage(), b"file", described),
            client.content(m.FileStage(), b"in pieces", frame_size=2),
            m.FilePublish(routing_key="q", identifier="one"),
            m.FilePublish(exchange="amq.fanout", identifier="two", immediate=True, mandatory=True),
            m.FileOpen(identifier="three", content_size=5),
            m.FilePublish(routing_key="q", identifier="three", mandatory=True),
            client.content(m.FileStage(), b"later"),
        ),
        *client.send(
            m.FileConsume(queue="q", consumer_tag="f"),
            m.FileOpenOk(staged_size=0),
            m.FileOpenOk(staged_size=2),
            m.FileReject(delivery_tag=1, requeue=True),
            m.FileAck(delivery_tag=2, multiple=True),
            m.FileCancel(consumer_tag="f"),
            m.FileConsume(queue="q", consumer_tag="g", no_ack=True, no_wait=True),
            m.FileOpen(identifier="half", content_size=100),
            channel=2,
        ),
        *client.content(m.FileStage(), b"x" * 100, channel=2, frame_size=10)[:5],
        client.bye(),
    ]


def _streams(client: Client) -> list[bytes]:
    publish = m.StreamPublish(exchange="amq.topic", routing_key="a")
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.QueueDeclare(queue="q", arguments={"x-max-length": 5}),
            m.QueueBind(queue="q", exchange="amq.topic", routing_key="#"),
            client.content(publish, b"one", StreamProperties(content_type="audio/mp3", priority=1)),
            m.StreamQos(prefetch_count=1, consume_rate=50),
            m.StreamConsume(queue="q", consumer_tag="s"),
            client.content(publish, b"two" * 9, frame_size=4),
            client.content(m.StreamPublish(routing_key="q", immediate=True), b"three"),
            client.content(m.StreamPublish(routing_key="nobody", mandatory=True), b"four"),
        ),
        *client.send(
            m.StreamQos(prefetch_size=4, global_=True),
            m.StreamConsume(queue="q", consumer_tag="t", exclusive=False, no_local=True, no_wait=True),
            m.BasicConsume(queue="q", consumer_tag="b", no_ack=True),
            m.StreamCancel(consumer_tag="t"),
            client.content(publish, b"five", channel=2),
            channel=2,
        ),
        *client.send(m.StreamCancel(consumer_tag="s", no_wait=True)),
    ]


def _requests(client: Client) -> list[bytes]:
    # RabbitMQ wants larger frames, and the references take more than one of them in either case.
    scale = 2 if client.rabbitmq else 1
    return [
        *client.handshake(frame_max=4096 * scale),
        *client.open(1),
        *client.ask(
            m.QueueDeclare(queue="q"),
            m.MessageQos(prefetch_count=3),
            m.MessageConsume(queue="q", destination="d"),
            _transfer("q", content_type="text/plain", application_headers=RICH_HEADERS, ttl=10_000),
            _transfer("q", b"x" * 3000 * scale, priority=4, delivery_mode=2),
            _transfer("nowhere"),
            m.MessageOpen(reference=b"r"),
            m.MessageAppend(reference=b"r", octets=b"piece" * 500 * scale),
            m.MessageCheckpoint(reference=b"r", identifier="check"),
            _transfer("q", Body(b"r", by_reference=True)),
            m.MessageAppend(reference=b"r", octets=b"more" * 900 * scale),
            m.MessageClose(reference=b"r"),
        ),
        *client.answer(1),
        *client.answer(2, m.MessageReject(code=0, text="not me")),
        *client.ask(
            m.ChannelPing(),
            m.MessageResume(reference=b"s", identifier="check"),
            m.MessageGet(queue="q", destination="g"),
            m.QueuePurge(queue="q"),
            m.MessageRecover(requeue=True),
            m.MessageCancel(destination="d"),
            m.MessageGet(queue="q", destination="g", no_ack=True),
            mark=2,
        ),
        *client.answer(3, offset=2),
        *client.ask(m.ChannelOpen(), channel=2),
        *client.ticket(2),
        *client.ask(
            m.MessageConsume(queue="q", destination="e", no_ack=True, no_local=True),
            m.TxSelect(),
            _transfer("q", immediate=True),
            m.TxCommit(),
            m.MessageQos(prefetch_size=1, global_=True),
            m.ChannelClose(reply_code=200),
            channel=2,
        ),
        client.bye(),
    ]


def _transactions(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1, 2, 3),
        *client.send(
            m.TxSelect(),
            m.QueueDeclare(queue="q"),
            client.publish("", "q"),
            client.publish("", "q", b"for the branch"),
            client.publish("", "nowhere", mandatory=True),
            m.FileOpen(identifier="f", content_size=4),
            m.FilePublish(routing_key="q", identifier="f"),
            client.content(m.FileStage(), b"file"),
            m.TxCommit(),
            m.BasicGet(queue="q"),
            m.BasicAck(delivery_tag=1),
            m.FileConsume(queue="q", consumer_tag="f"),
            m.FileOpenOk(),
            m.FileAck(delivery_tag=2),
            m.TxRollback(),
            m.TxCommit(),
            client.publish("", "q", b"never committed"),
        ),
        *client.send(
            m.DtxSelect(),
            m.DtxStart(dtx_identifier="x"),
            client.publish("", "q", b"in a branch", channel=2),
            m.BasicGet(queue="q"),
            m.BasicAck(delivery_tag=1),
            channel=2,
        ),
        *client.send(m.DtxSelect(), m.DtxStart(dtx_identifier="y"), channel=3),
        *client.send(m.ChannelClose(reply_code=200), channel=3),
    ]


def _extensions(client: Client) -> list[bytes]:
    """Tunnels, a channel that goes on, and one whose contents travel elsewhere (see `aside`)."""
    tunnel = m.TunnelRequest(meta_data={"kind": "test"})
    described = TunnelProperties(headers={"a": 1}, proxy_name="p", data_name="d", durable=1, broadcast=1)
    return [
        *client.handshake(),
        client.frame(3, m.ChannelResume(channel_id=INTERRUPTED)),
        *client.ticket(3),
        *client.send(
            client.content(tunnel, b"tunnelled", described, channel=3),
            m.QueueDeclare(queue="q"),
            m.QueuePurge(),
            client.publish("", "resumed", channel=3),
            channel=3,
        ),
        *client.ask(m.ChannelPing(), channel=3),
        client.frame(1, m.ChannelOpen(out_of_band="memory")),
        *client.ticket(1),
        client.frame(1, m.QueueDeclare(queue="q")),
        *[frame(kind, 1, b"") for kind in (4, 4, 5, 6, 6, 4)],
        *client.publish("", "q", b"in band"),
    ]


def aside(*, strict: bool) -> tuple[bytes, ...]:
    """Payloads that come by the out-of-band transport, in turn: those of `_extensions`."""
    client = Client(strict=strict)
    client.tickets[1] = 2
    return (
        client.payload(1, m.QueuePurge(queue="q")),
        client.payload(1, m.BasicPublish(routing_key="q")),
        CONTENT_HEADER.pack(60, 0, 11) + b"\0\0",
        b"out-of",
        b"-band",
        client.payload(1, m.BasicConsume(queue="q", consumer_tag="aside")),
    )


class OldClient(Client):
    """The same for 0-8."""

    header = old.PROTOCOL_HEADERS[0]

    def bye(self) -> bytes:
        """See the base class."""
        return self.frame(0, old.ConnectionClose(reply_code=200, reply_text="bye"))


def _old(client: Client) -> list[bytes]:
    return [
        *client.handshake(),
        *client.open(1, 2),
        *client.send(
            m.QueueDeclare(queue="q"),
            client.publish("", "q", b"old"),
            old.BasicConsume(queue="q", consumer_tag="b"),
            old.FileConsume(queue="q", consumer_tag="f"),
            old.StreamConsume(queue="q", consumer_tag="s"),
            client.content(m.StreamPublish(routing_key="q"), b"stream"),
            m.FileOpen(identifier="f", content_size=4),
            client.content(m.FileStage(), b"file"),
            m.FilePublish(routing_key="q", identifier="f"),
            m.FileOpenOk(),
            m.BasicAck(delivery_tag=1),
            m.BasicRecover(requeue=False),
            m.TxSelect(),
        ),
        frame(FRAME_TRACE, 0, b""),
        client.bye(),
    ]


_MAKERS: tuple[Callable[[Client], list[bytes]], ...] = (
    _basics,
    _structures,
    _files,
    _streams,
    _requests,
    _transactions,
    _extensions,
)


def recordings(*, strict: bool, rabbitmq: bool = False) -> tuple[Recording, ...]:
    """The streams that a client sends, one of 0-8 among them; requests are there in both their forms."""
    return (
        *(tuple(make(Client(strict=strict, rabbitmq=rabbitmq))) for make in _MAKERS),
        tuple(_requests(Client(strict=strict, reserved=False, rabbitmq=rabbitmq))),
        tuple(_old(OldClient(strict=strict))),
    )
