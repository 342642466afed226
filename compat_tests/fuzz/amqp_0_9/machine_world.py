"""A broker with clients of 0-9 and one of 0-9-1, and the books: see `test_machine`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from compat_tests.fuzz import machine_world
from compat_tests.fuzz.machine_books import Copy, number_of
from compat_tests.fuzz.machine_world import TRANSACTS, Consumer, Peer
from compat_tests.fuzz.subjects import speaking_0_9_1
from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.requesting import Asked, Requester
from fakeamqp.protocols.amqp_0_9.choices import letter_of
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE

__all__ = ["CLASSES", "LARGE", "Channel", "World"]

CLASSES = {"basic": "basic", "message": "basic", "file": "file", "stream": "stream"}
"""By class, which contents its consumers get."""
FRAME_MAX = 8192
LARGE = 18_000
"""More bytes than a request has room for."""


@dataclass(eq=False)
class Channel(machine_world.Channel):
    """One channel. `lazy` says that files the broker opens are left waiting."""

    id: bytes = b""
    lazy: bool = False
    opened: str | None = None
    """The file that the broker waits with."""
    staged: bytes | None = None
    requester: Any = None
    asked: dict[int, Any] = field(default_factory=dict)
    last_request: int = 0
    """That of the broker."""
    said: dict[bytes, bytes] = field(default_factory=dict)
    """Bodies that the client sends piece by piece, by reference."""
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    """Bodies that come piece by piece."""


class World(machine_world.World):
    """The broker, its clients, and the books. Some files are under way to a client."""

    queues: ClassVar[dict[str, dict[str, Any]]] = {
        "plain": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"},
        "other": {},
        "short": {"x-max-length": 3},
    }
    fanned = ("plain", "short")
    numbers = (1, TRANSACTS)

    def __init__(self, personality: str, **choices: bool) -> None:
        self.choices = choices
        super().__init__(personality)
        self.files: dict[Any, dict[str, bytes]] = {}
        """Contents that were staged, by client and identifier."""
        self.old = self.connect_old()

    def make(self, name: str) -> Server:
        server = Server(letter_of(name), tickets=True)
        return server.varied(**self.choices) if self.choices else server

    def connect_old(self) -> Channel:
        """A client of 0-9-1, whose only channel is like those of the others."""
        peer = Peer(speaking_0_9_1(self.server).client(), "old")
        channel = peer.channels[1] = Channel(peer, 1)
        return channel

    def connect(self, name: str) -> Peer:
        return Peer(self.server.client(channels=0, frame_max=FRAME_MAX), name)

    def open(self, peer: Peer, number: int) -> None:
        channel = peer.channels[number] = Channel(peer, number, transacts=number == TRANSACTS)
        channel.id = peer.client.call(m.ChannelOpen(), m.ChannelOpenOk, number).channel_id
        channel.requester = Requester(peer.client, number)  # type: ignore[arg-type]
        if channel.transacts:
            peer.client.call(m.TxSelect(), m.TxSelectOk, number)

    def resume(self, peer: Peer, lost: Channel) -> None:
        """Go on with a channel of another connection; what is in it from there is in the inbox then."""
        channel = Channel(peer, lost.number, lost.transacts, lost.flows, id=lost.id, lazy=lost.lazy)
        channel.consumers, channel.windows = lost.consumers, lost.windows
        channel.last_request = lost.last_request
        for consumer in channel.consumers.values():
            consumer.latest = {}
        channel.requester = Requester(peer.client, lost.number)  # type: ignore[arg-type]
        for counter in ("asked", "answered", "mark"):
            setattr(channel.requester, counter, getattr(lost.requester, counter))
        peer.channels[lost.number] = channel
        peer.client.send(m.ChannelResume(channel_id=lost.id), lost.number)
        peer.client.expect(m.ChannelOk, lost.number)
        if self.server.asks_for_tickets:
            peer.client.ask_for_ticket(lost.number)

    @property
    def channels(self) -> list[Any]:
        return [*super().channels, self.old]

    # --- reading ----------------------------------------------------------------------------------------

    def read_one(self, peer: Peer) -> None:
        frame = peer.client.inbox[0]
        channel = peer.channels[frame.channel]
        if frame.type == FRAME_RESPONSE:
            told = channel.requester.response()
            channel.requester.mark = told.number
            for number in range(told.first, told.first + told.offset + 1):
                method = channel.asked.pop(number)
                assert type(told.method).NAME in method.RESPONSES or isinstance(told.method, m.MessageOk)
                channel.replies.append(told.method)
                if isinstance(told.method, m.MessageReject):
                    octets = method.body.octets
                    self.books.sent[number_of(channel.said.get(octets, octets))].returned = True
        elif frame.type == FRAME_REQUEST:
            self.asked(channel, channel.requester.request())
        elif frame.method is not None and frame.method.NAME == "file.stage":
            content = peer.client.expect_content(m.FileStage, channel.number)
            assert channel.opened is not None and channel.staged is not None
            channel.staged += content.body
            self.files.setdefault(peer.client, {})[channel.opened] = channel.staged
        else:
            super().read_one(peer)

    def told(self, channel: Any, method: Any) -> None:
        if method.NAME == "file.open":
            assert channel.opened is None, "one file after the other"
            channel.opened = method.identifier
            if not channel.lazy:
                self.answer_open(channel, 1)
        elif method.NAME == "file.deliver":
            assert channel.staged is not None and method.identifier == channel.opened
            body, channel.staged, channel.opened = channel.staged, None, None
            self.delivered(channel, "file", method, body)
        else:
            super().told(channel, method)

    def answer_open(self, channel: Channel, pick: int) -> None:
        """Have a file staged, or the rest of it, where some of it is there from before."""
        known = self.files.get(channel.peer.client, {}).get(channel.opened or "", b"")
        size = pick % (len(known) + 1)
        channel.staged = known[:size]
        channel.peer.client.send(m.FileOpenOk(staged_size=size), channel.number)

    def asked(self, channel: Channel, asked: Asked) -> None:
        """A request: a transfer, or a part of its body."""
        assert asked.number <= channel.last_request + 1, "no number is missing"
        channel.last_request = max(channel.last_request, asked.number)
        method = asked.method
        if isinstance(method, m.MessageOpen):
            channel.bodies[method.reference] = b""
        elif isinstance(method, m.MessageAppend):
            channel.bodies[method.reference] += method.octets
        elif isinstance(method, m.MessageClose):
            del channel.bodies[method.reference]
        elif isinstance(method, m.MessageTransfer):
            octets = method.body.octets
            body = channel.bodies[octets] if method.body.by_reference else octets
            if method.destination == "got":
                self.got(channel, "message", asked.number, body, method.redelivered)
                return
            consumer = channel.consumers.get(method.destination)
            assert consumer is not None, f"a transfer to a destination that is not there: {method}"
            copy = self.books.delivered(consumer.queue, body, method.redelivered)
            self.taken(channel, "message", asked.number, copy, consumer)
        else:
            assert isinstance(method, m.ChannelPong), method

    def suits(self, channel: Any, consumer: Consumer, copy: Copy) -> bool:
        fits = consumer.kind == "any" or CLASSES[consumer.kind] == copy.sent.content_class
        return fits and super().suits(channel, consumer, copy)

    # --- the ends of things -----------------------------------------------------------------------------

    def let_go(self, channel: Any) -> None:
        super().let_go(channel)
        channel.opened = channel.staged = None

    def overlook(self, lost: Peer) -> None:
        """A client reads no more: what has come to it since is known to the broker alone."""
        self.peers.remove(lost)
        self.read()
        self.peers.append(lost)
        for name, copies in self.books.queues.items():
            queue = self.server.vhost.queues[name]
            ready = {number_of(queued.message.body) for queued in queue.ready}
            unacked = {number_of(delivery.queued.message.body) for delivery in queue.unacked}
            for number, copy in list(copies.items()):
                if copy.state == "ready" and number in unacked:
                    copy.seen |= copy.sent.content_class != "file"
                elif copy.state == "ready" and number not in ready:
                    self.books.leave(copy, "never read")

    # --- what must hold ---------------------------------------------------------------------------------

    def check_order(self, name: str, waiting: list[Copy]) -> None:
        """Consumers of different classes pass messages over; `taken` checks the order of each."""

    def able(self, channel: Any, consumer: Consumer, copy: Copy) -> bool:
        if not channel.flows:
            return False
        if consumer.no_ack or consumer.kind in ("any", "stream"):
            return True
        if consumer.kind == "file" and self.busy(channel):
            return False  # Whatever the windows say of it, it is busy.
        return super().able(channel, consumer, copy)

    @staticmethod
    def busy(channel: Channel) -> bool:
        """Whether files are under way to anybody on the connection."""
        return any(each.opened is not None for each in channel.peer.channels.values())
