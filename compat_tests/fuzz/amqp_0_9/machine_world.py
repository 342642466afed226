"""A broker with clients of 0-9 and one of 0-9-1, and the books: see `test_machine`.

Everything that comes is read at once. What an action does to messages is entered into the books before it is
sent, since others may get them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat_tests.fuzz.amqp_0_9.machine_books import QUEUES, Books, Copy
from compat_tests.fuzz.amqp_0_9.machine_clients import CLASSES, Channel, Consumer, Held, Peer
from compat_tests.fuzz.checks import inconsistencies, left_behind
from compat_tests.fuzz.subjects import speaking_0_9_1
from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from fakeamqp.model.messages.message import Message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.routing import Outcome
from fakeamqp.protocols.amqp_0_9.choices import letter_of
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE

__all__ = ["World"]

_DELIVERS = {"basic.deliver": m.BasicDeliver, "basic.get-ok": m.BasicGetOk, "stream.deliver": m.StreamDeliver}
_RETURNS = {"basic.return": m.BasicReturn, "file.return": m.FileReturn, "stream.return": m.StreamReturn}


class _Tap(QuietTap):
    def __init__(self, world: World) -> None:
        self.happened = world.happened  # type: ignore[method-assign]


class World:
    """The broker, its clients, and the books."""

    def __init__(self, personality: str) -> None:
        self.server = Server(letter_of(personality), tickets=True)
        self.strict = personality == "spec"
        self.books = Books()
        self.relaxed = False
        """Whether what comes now goes back to whom it was sent, whatever windows say."""
        self.under_way: set[Copy] = set()
        """Files that the broker has begun to send somebody."""
        self.exempt: set[Copy] = set()
        """Those of them for which no window holds any more."""
        self.admin = self.server.client()
        for name, arguments in QUEUES.items():
            self.server.vhost.queues.declare(name, QueueDeclaration(arguments=arguments, durable=True))
        for name in ("plain", "short"):
            self.admin.bind(name, "amq.fanout")
        self.server.state.tap = _Tap(self)
        self.peers = [self.connect(name) for name in "ab"]
        for peer in self.peers:
            for number in (1, 2):
                peer.open(number)
        self.old = self.connect_old()

    def connect_old(self) -> Channel:
        """A client of 0-9-1, whose only channel is like those of the others."""
        client = speaking_0_9_1(self.server).client()
        assert isinstance(client, Client)
        peer = Peer(client, "old")
        channel = peer.channels[1] = Channel(peer, 1)
        return channel

    def connect(self, name: str) -> Peer:
        """A client of 0-9 without channels."""
        return Peer(self.server.client(channels=0), name)

    @property
    def channels(self) -> list[Channel]:
        """All that are open."""
        return [each for peer in self.peers for each in peer.channels.values()] + [self.old]

    def waiting(self, queue: str) -> list[Copy]:
        """What is ready in a queue, the oldest first: without files that are under way to somebody."""
        ready = {_number(queued.message.body) for queued in self.server.vhost.queues[queue].ready}
        return [copy for copy in self.books.ready(queue) if copy.sent.number in ready]

    def consumers(self, queue: str) -> list[tuple[Channel, Consumer]]:
        """All of one queue."""
        return [
            (channel, each)
            for channel in self.channels
            for each in channel.consumers.values()
            if each.queue == queue
        ]

    # --- what the broker says it does -------------------------------------------------------------------

    def published(self, message: Message, outcome: Outcome) -> None:
        """A message was published."""
        number = _number(message.body)
        if outcome.unconsumed:
            self.books.sent[number].unconsumed = True
            return
        for queue in outcome.queues:
            self.books.sent[number].entered.append(queue.name)
            self.books.enter(queue.name, number)

    def happened(self, event: str, **facts: Any) -> None:
        """See `QuietTap`."""
        if event == "published":
            self.published(facts["message"], facts["outcome"])
        elif event == "dropped" and facts["reason"] != "unroutable":
            self.books.dropped(facts["queue"], _number(facts["message"].body), facts["reason"])
        elif event == "dead-lettered":
            to = tuple(queue.name for queue in facts["outcome"].queues)
            number = _number(facts["message"].body)
            self.books.dead_lettered(facts["queue"], number, facts["reason"], to)

    # --- reading ----------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read everything that has come to anybody."""
        busy = True
        while busy:
            busy = False
            for channel in self.channels:
                peer = channel.peer
                while peer.client.inbox:
                    busy = True
                    self.read_one(peer)

    def read_one(self, peer: Peer) -> None:
        """Read a frame, or a method with its content."""
        client = peer.client
        frame = client.inbox[0]
        channel = peer.channels[frame.channel]
        if frame.type == FRAME_RESPONSE:
            told = channel.requester.response()
            channel.requester.mark = told.number
            for number in range(told.first, told.first + told.offset + 1):
                method = channel.asked.pop(number)
                channel.replies.append(told.method)
                if isinstance(told.method, m.MessageReject):
                    self.books.sent[_number(method.body.octets)].returned = True
            return
        if frame.type == FRAME_REQUEST:
            asked = channel.requester.request()
            if not isinstance(asked.method, m.ChannelPong):
                self.transferred(channel, asked)
            return
        assert frame.method is not None, frame
        name = frame.method.NAME
        if name in _DELIVERS:
            content = client.expect_content(_DELIVERS[name], channel.number)
            self.delivered(channel, name.split(".")[0], content.method, content.body)
        elif name in _RETURNS:
            content = client.expect_content(_RETURNS[name], channel.number)
            sent = self.books.sent[_number(content.body)]
            assert not sent.returned, f"{sent} comes back twice"
            assert sent.publisher is client, f"{sent} comes back to somebody else"
            sent.returned = True
        elif name == "file.stage":
            content = client.expect_content(m.FileStage, channel.number)
            assert channel.opened is not None and channel.staged is not None
            channel.staged += content.body
            peer.files[channel.opened] = channel.staged
        else:
            client.take_frame()
            self.told(channel, name, frame.payload)

    def told(self, channel: Channel, name: str, payload: bytes) -> None:
        """A method without a content."""
        method: Any = m.METHODS[int.from_bytes(payload[:4], "big")].decode(
            payload, channel.peer.client.grammar
        )
        if name == "file.open":
            assert channel.opened is None, "one file after the other"
            channel.opened = method.identifier
            if not channel.lazy:
                self.answer_open(channel, 1)
        elif name == "file.deliver":
            assert channel.staged is not None and method.identifier == channel.opened
            body, channel.staged, channel.opened = channel.staged, None, None
            self.delivered(channel, "file", method, body)
        else:
            assert name not in ("channel.close", "connection.close"), f"{channel.peer.name}: {method}"
            channel.replies.append(method)

    def answer_open(self, channel: Channel, pick: int) -> None:
        """Have a file staged, or the rest of it, where some of it is there from before."""
        known = channel.peer.files.get(channel.opened, b"")
        size = pick % (len(known) + 1)
        channel.staged = known[:size]
        channel.peer.client.send(m.FileOpenOk(staged_size=size), channel.number)

    def transferred(self, channel: Channel, asked: Any) -> None:
        """A message.transfer."""
        method = asked.method
        assert isinstance(method, m.MessageTransfer) and not method.body.by_reference
        if method.destination == "got":
            self.got(channel, "message", asked.number, method.body.octets, method.redelivered)
            return
        consumer = channel.consumers.get(method.destination)
        assert consumer is not None, f"a transfer to a destination that is not there: {method}"
        copy = self.books.delivered(consumer.queue, method.body.octets, method.redelivered)
        self.taken(channel, "message", asked.number, copy, consumer)

    def got(self, channel: Channel, kind: str, tag: int, body: bytes, redelivered: bool) -> None:
        """A message has come that was asked for."""
        queue, no_ack = channel.getting
        copy = self.books.delivered(queue, body, redelivered)
        self.hold(channel, kind, tag, copy, None, no_ack=no_ack)
        channel.replies.append(copy)

    def delivered(self, channel: Channel, kind: str, method: Any, body: bytes) -> None:
        """A delivery, or a message that was asked for."""
        assert method.delivery_tag == channel.last_tag + 1, f"delivery tags count up by one: {method}"
        channel.last_tag += 1
        if isinstance(method, m.BasicGetOk):
            self.got(channel, "basic", method.delivery_tag, body, method.redelivered)
            return
        consumer = channel.consumers.get(method.consumer_tag)
        assert consumer is not None, f"a delivery to a consumer that is not there: {method}"
        redelivered = None if kind == "stream" else method.redelivered
        copy = self.books.delivered(consumer.queue, body, redelivered)
        self.taken(channel, kind, method.delivery_tag, copy, consumer)

    def taken(self, channel: Channel, kind: str, tag: int, copy: Copy, consumer: Consumer) -> None:
        """A consumer was sent a copy."""
        assert kind == consumer.kind or consumer.kind == "any", f"{copy} for a consumer of {consumer.kind}"
        assert self.suits(channel, consumer, copy), f"{copy} is not for {consumer}"
        assert channel.flows or kind == "file", f"{copy} comes though the flow is stopped"
        if not copy.seen and kind != "file" and consumer.kind != "any":
            assert copy.position > consumer.latest, f"{copy} comes too late for {consumer}"
            consumer.latest = copy.position
        self.hold(channel, consumer.kind, tag, copy, consumer, no_ack=consumer.no_ack)
        within = channel.peer.within(channel, consumer.kind) or copy in self.exempt
        assert within or consumer.no_ack or self.relaxed, f"{copy} is more than the window of {consumer}"

    def hold(
        self, channel: Channel, kind: str, tag: int, copy: Copy, consumer: Consumer | None, *, no_ack: bool
    ) -> None:
        """A copy is in somebody's hands, or gone where that does not matter."""
        if no_ack:
            self.books.leave(copy, "unacknowledged")
        else:
            copy.state = "held"
            channel.held[kind, tag] = Held(copy, kind, consumer)

    @staticmethod
    def suits(channel: Channel, consumer: Consumer, copy: Copy) -> bool:
        """Whether a consumer may have a copy at all."""
        fits = consumer.kind == "any" or CLASSES[consumer.kind] == copy.sent.content_class
        own = consumer.no_local and copy.sent.publisher is channel.peer.client
        return fits and not own and copy.avoid is not channel

    # --- the ends of things -----------------------------------------------------------------------------

    def give_back(self, channel: Channel, keys: Iterable[tuple[str, int]], *, avoid: object = None) -> None:
        """What a channel holds is for others."""
        for key in list(keys):
            self.books.give_back(channel.held.pop(key).copy, avoid=avoid)

    def let_go(self, channel: Channel) -> None:
        """A channel ends."""
        self.give_back(channel, channel.held)
        channel.planned.clear()
        channel.opened = channel.staged = None

    def lose(self, peer: Peer) -> None:
        """The transport of a client is lost."""
        for channel in peer.channels.values():
            self.let_go(channel)
        peer.client.drop()
        assert not (found := left_behind(self.server.state, peer.client.connection)), found
        self.peers.remove(peer)
        self.read()

    # --- what must hold ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Every message is where it should be, and nobody waits in vain."""
        assert not (problems := inconsistencies(self.server.state)), problems
        held = {id(each.copy) for channel in self.channels for each in channel.held.values()}
        self.under_way.clear()
        for name, copies in self.books.queues.items():
            queue = self.server.vhost.queues[name]
            ready = [_number(queued.message.body) for queued in queue.ready]
            unacked = [_number(delivery.queued.message.body) for delivery in queue.unacked]
            assert sorted(ready + unacked) == sorted(copies), f"{name}: {ready} and {unacked}, not {copies}"
            for delivery in queue.unacked:
                number = _number(delivery.queued.message.body)
                copy = copies[number]
                if id(copy) not in held:
                    assert copy.sent.content_class == "file" and copy.state == "ready", copy
                    self.under_way.add(copy)
                    copy.avoid = None  # Somebody has it, even if it comes back as if it had never been sent.
            for number in ready:
                assert copies[number].state == "ready", f"{copies[number]} is ready at the broker"
            waiting = [copy for copy in self.books.ready(name) if copy not in self.under_way]
            assert [copy.sent.number for copy in waiting] == ready, f"{name} is out of order"
            self.check_takers(name, waiting)

    def check_takers(self, name: str, waiting: list[Copy]) -> None:
        """Nobody could take what is next for it."""
        for channel, consumer in self.consumers(name):
            following = next((copy for copy in waiting if self.suits(channel, consumer, copy)), None)
            if following is not None:
                assert not self.able(channel, consumer, following), f"{consumer} could take {following}"

    def able(self, channel: Channel, consumer: Consumer, copy: Copy) -> bool:
        """Whether a consumer can take a copy now."""
        if not channel.flows:
            return False
        if consumer.no_ack or consumer.kind in ("any", "stream"):
            return True
        if consumer.kind == "file" and self.busy(channel):
            return False  # Whatever the windows say of it, it is busy.
        return bool(channel.peer.within(channel, consumer.kind, copy.size))

    @staticmethod
    def busy(channel: Channel) -> bool:
        """Whether files are under way to anybody on the connection."""
        return any(each.opened is not None for each in channel.peer.channels.values())


def _number(body: bytes) -> int:
    return int(body.split(b":")[0])
