"""A broker with clients of 0-9-1, and the books: see `test_state_machine`. Clients of 0-9 are in `amqp_0_9`.

Everything that comes is read at once. What an action does to messages is entered into the books before it is
sent, since others may get them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from compat_tests.fuzz.checks import inconsistencies, left_behind
from compat_tests.fuzz.machine_books import Books, Copy, Sent, number_of
from compat_tests.scripted.amqp_0_9_1 import Client, QuietTap, Server
from fakeamqp.model.messages.message import Message
from fakeamqp.model.personality import personality
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.queues.queue import NOT_TAKEN_BACK
from fakeamqp.model.routing import Outcome
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

__all__ = ["BRIEF", "CONFIRMS", "TRANSACTS", "Channel", "Consumer", "Held", "Peer", "Window", "World"]

TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
BRIEF = 0.05
NORMAL, TRANSACTS, CONFIRMS = CHANNELS = (1, 2, 3)


@dataclass
class Window:
    """How much of one class may be outstanding; 0 is any number."""

    count: int = 0
    size: int = 0

    def holds(self, sizes: list[int]) -> bool:
        """Whether so much may be outstanding."""
        few = not self.count or len(sizes) <= self.count
        return few and (not self.size or len(sizes) <= 1 or sum(sizes) <= self.size)


@dataclass(eq=False)
class Consumer:
    """A consumer of any class; those of 0-9-1 on a broker with clients of 0-9 are "any"."""

    tag: str
    kind: str
    queue: str
    no_ack: bool
    no_local: bool = False
    window: Window = field(default_factory=Window)
    latest: dict[int, int] = field(default_factory=dict)
    """By level: the position of the newest message that it got for the first time."""


@dataclass(eq=False)
class Held:
    """A copy that a channel was sent and has not settled, or not yet committed that."""

    copy: Copy
    kind: str
    consumer: Consumer | None
    how: str | None = None


@dataclass(eq=False)
class Channel:
    """One channel."""

    peer: Any
    number: int
    transacts: bool = False
    flows: bool = True
    last_tag: int = 0
    consumers: dict[str, Consumer] = field(default_factory=dict)
    held: dict[tuple[str, int], Held] = field(default_factory=dict)
    prefetch: int = 0
    """That of consumers to come, where each has a window of its own."""
    windows: dict[str, Window] = field(default_factory=dict)
    occupied: list[int] = field(default_factory=list)
    """Room in its window that no consumer takes: that of messages it held otherwise when the window began."""
    planned: list[int] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    getting: tuple[str, bool] = ("", False)
    """The queue that was asked for one message, and whether that needs no acknowledgement."""
    published: int = 0
    unconfirmed: dict[int, Sent] = field(default_factory=dict)

    def outstanding(self, kind: str, consumer: Consumer | None = None) -> list[int]:
        """Sizes of what consumers of a class hold, or one of them."""
        return [
            held.copy.size
            for held in self.held.values()
            if held.kind == kind and held.consumer is not None and consumer in (None, held.consumer)
        ]


class Peer:
    """A client, and its channels."""

    def __init__(self, client: Any, name: str) -> None:
        self.name = name
        self.client: Client = client
        self.channels: dict[int, Any] = {}
        self.windows: dict[str, Window] = {}

    def outstanding(self, kind: str) -> list[int]:
        """Sizes of what consumers of a class hold on all channels."""
        return [size for channel in self.channels.values() for size in channel.outstanding(kind)]

    def within(self, channel: Channel, consumer: Consumer, more: int = 0) -> bool:
        """Whether the windows hold, with `more` bytes in one more message."""
        kind, extra, free = consumer.kind, [more] if more else [], Window()
        return (
            consumer.window.holds(channel.outstanding(kind, consumer) + extra)
            and channel.windows.get(kind, free).holds(channel.outstanding(kind) + channel.occupied + extra)
            and self.windows.get(kind, free).holds(self.outstanding(kind) + extra)
        )


class _Tap(QuietTap):
    def __init__(self, world: World) -> None:
        self.happened = world.happened  # type: ignore[method-assign]


class World:
    """The broker, its clients, and the books."""

    queues: ClassVar[dict[str, dict[str, Any]]] = {
        "plain": {},
        "short": {"x-max-length": 3, **TO_DEAD},
        "strict": {"x-max-length": 2, "x-overflow": "reject-publish"},
        "levels": {"x-max-priority": 2},
        "single": {"x-single-active-consumer": True, **TO_DEAD},
        "brief": {"x-message-ttl": int(BRIEF * 1000), **TO_DEAD},
        "dead": {},
    }
    fanned: tuple[str, ...] = ("plain", "short", "levels")
    numbers: tuple[int, ...] = CHANNELS
    """Those of the channels of each client."""

    def __init__(self, personality: str) -> None:
        self.server = self.make(personality)
        self.strict = personality == "spec"
        self.books = Books(self.queues, ranked=self.strict)
        self.books.counts_failures = bool(self.server.state.personality.classic_failures)
        self.relaxed = False
        """Whether what comes now goes back to whom it was sent, whatever windows say."""
        self.under_way: set[Copy] = set()
        """Files that the broker has begun to send somebody."""
        self.exempt: set[Copy] = set()
        """Those of them for which no window holds any more."""
        self.admin: Any = self.server.client()
        for name in self.queues:
            self.declare(name)
        self.server.state.tap = _Tap(self)
        self.peers = [self.connect(name) for name in "ab"]
        for peer in self.peers:
            self.open_all(peer)

    def make(self, name: str) -> Any:
        """A broker; whatever its version, a commit ignores that a queue was deleted."""
        return Server(replace(personality(name), commit_to_deleted="ignored"))

    def declare(self, name: str) -> None:
        declaration = QueueDeclaration(arguments=self.queues[name], durable=True)
        self.server.vhost.queues.declare(name, declaration)
        if name in self.fanned:
            self.admin.bind(name, "amq.fanout")

    def connect(self, name: str) -> Peer:
        """A client without channels."""
        capabilities = {"capabilities": {"consumer_cancel_notify": True}}
        return Peer(self.server.client(channels=0, client_properties=capabilities), name)

    def open(self, peer: Peer, number: int) -> None:
        """Open a channel: the second is transactional, on the third publishes are confirmed."""
        peer.client.open_channel(number)
        peer.channels[number] = Channel(peer, number, transacts=number == TRANSACTS)
        if number == TRANSACTS:
            peer.client.call(m.TxSelect(), m.TxSelectOk, number)
        elif number == CONFIRMS:
            peer.client.call(m.ConfirmSelect(), m.ConfirmSelectOk, number)

    def open_all(self, peer: Peer) -> None:
        for number in self.numbers:
            self.open(peer, number)

    @property
    def channels(self) -> list[Any]:
        """All that are open."""
        return [each for peer in self.peers for each in peer.channels.values()]

    def route(self, exchange: str, key: str) -> tuple[str, ...]:
        """The queues for what is published."""
        return self.fanned if exchange else (key,) if key in self.queues else ()

    def waiting(self, queue: str) -> list[Copy]:
        """What is ready in a queue, the next first: without files that are under way to somebody."""
        ready = {number_of(queued.message.body) for queued in self.server.vhost.queues[queue].ready}
        return [copy for copy in self.books.ready(queue) if copy.sent.number in ready]

    def consumers(self, queue: str) -> list[tuple[Any, Consumer]]:
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
        number = number_of(message.body)
        if outcome.unconsumed:
            self.books.sent[number].unconsumed = True
            return
        for queue in outcome.queues:
            self.books.sent[number].entered.append(queue.name)
            self.books.enter(queue.name, number)

    def happened(self, event: str, **facts: Any) -> None:
        """See `QuietTap`."""
        number = number_of(facts["message"].body) if facts.get("message") is not None else 0
        if event == "published":
            self.published(facts["message"], facts["outcome"])
        elif event == "refused":
            for queue in facts["outcome"].refused:
                if self.books.refuses(queue.name):
                    self.books.refused(queue.name, number)
        elif event == "dropped" and not self.never_entered_or_went_with_its_queue(facts):
            self.books.dropped(facts["queue"], number, facts["reason"])
        elif event == "dead-lettered":
            to = tuple(queue.name for queue in facts["outcome"].queues)
            self.books.dead_lettered(facts["queue"], number, facts["reason"], to)

    def never_entered_or_went_with_its_queue(self, facts: dict[str, Any]) -> bool:
        """Whether a drop says nothing about a queue that is there."""
        if facts["reason"] in ("unroutable", "deleted") or facts["detail"] == NOT_TAKEN_BACK:
            return True
        return self.books.refuses(facts["queue"]) and facts["reason"] == "maxlen"

    # --- reading ----------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read everything that has come to anybody."""
        busy = True
        while busy:
            busy = False
            for channel in self.channels:
                while channel.peer.client.inbox:
                    busy = True
                    self.read_one(channel.peer)

    def read_one(self, peer: Peer) -> None:
        """Read a method, with its content if it has one."""
        client = peer.client
        frame = client.inbox[0]
        channel = peer.channels[frame.channel]
        assert frame.method is not None, frame
        name = frame.method.NAME
        if name in ("basic.deliver", "basic.get-ok", "stream.deliver"):
            content = client.expect_content(type(frame.method), channel.number)
            self.delivered(channel, name.split(".")[0], content.method, content.body)
        elif name in ("basic.return", "file.return", "stream.return"):
            content = client.expect_content(type(frame.method), channel.number)
            sent = self.books.sent[number_of(content.body)]
            assert not sent.returned, f"{sent} comes back twice"
            assert sent.publisher is client, f"{sent} comes back to somebody else"
            sent.returned = True
        else:
            client.take_frame()
            self.told(channel, frame.method)

    def told(self, channel: Any, method: Any) -> None:
        """A method without a content."""
        assert method.NAME not in ("channel.close", "connection.close"), f"{channel.peer.name}: {method}"
        if method.NAME in ("basic.ack", "basic.nack"):
            tag = method.delivery_tag
            covered = [each for each in channel.unconfirmed if each <= tag] if method.multiple else [tag]
            assert covered
            for each in covered:
                refused = channel.unconfirmed.pop(each).refused
                assert refused == (method.NAME == "basic.nack"), f"publish {each}: {method}"
        elif method.NAME == "basic.cancel":
            del channel.consumers[method.consumer_tag]
        else:
            channel.replies.append(method)

    def got(self, channel: Any, kind: str, tag: int, body: bytes, redelivered: bool) -> None:
        """A message has come that was asked for."""
        queue, no_ack = channel.getting
        copy = self.books.delivered(queue, body, redelivered)
        self.hold(channel, kind, tag, copy, None, no_ack=no_ack)
        channel.replies.append(copy)

    def delivered(self, channel: Any, kind: str, method: Any, body: bytes) -> None:
        """A delivery, or a message that was asked for."""
        assert method.delivery_tag == channel.last_tag + 1, f"delivery tags count up by one: {method}"
        channel.last_tag += 1
        if method.NAME == "basic.get-ok":
            left = self.server.vhost.queues[channel.getting[0]].ready
            assert method.message_count == len(left), f"{method} while there are {len(left)}"
            self.got(channel, "basic", method.delivery_tag, body, method.redelivered)
            return
        consumer = channel.consumers.get(method.consumer_tag)
        assert consumer is not None, f"a delivery to a consumer that is not there: {method}"
        redelivered = None if kind == "stream" else method.redelivered
        copy = self.books.delivered(consumer.queue, body, redelivered)
        self.taken(channel, kind, method.delivery_tag, copy, consumer)

    def taken(self, channel: Any, kind: str, tag: int, copy: Copy, consumer: Consumer) -> None:
        """A consumer was sent a copy."""
        assert kind == consumer.kind or consumer.kind == "any", f"{copy} for a consumer of {consumer.kind}"
        assert self.suits(channel, consumer, copy), f"{copy} is not for {consumer}"
        assert channel.flows or kind == "file", f"{copy} comes though the flow is stopped"
        if not copy.seen and kind != "file" and consumer.kind != "any":
            latest = consumer.latest.get(copy.level, 0)
            assert copy.position > latest, f"{copy} comes too late for {consumer}"
            consumer.latest[copy.level] = copy.position
        self.hold(channel, consumer.kind, tag, copy, consumer, no_ack=consumer.no_ack)
        within = channel.peer.within(channel, consumer) or copy in self.exempt
        assert within or consumer.no_ack or self.relaxed, f"{copy} is more than the window of {consumer}"

    def hold(
        self, channel: Any, kind: str, tag: int, copy: Copy, consumer: Consumer | None, *, no_ack: bool
    ) -> None:
        """A copy is in somebody's hands, or gone where that does not matter."""
        if no_ack:
            self.books.leave(copy, "unacknowledged")
        else:
            copy.state = "held"
            channel.held[kind, tag] = Held(copy, kind, consumer)

    def suits(self, channel: Any, consumer: Consumer, copy: Copy) -> bool:
        """Whether a consumer may have a copy at all."""
        own = consumer.no_local and copy.sent.publisher is channel.peer.client
        return not own and copy.avoid is not channel

    # --- the ends of things -----------------------------------------------------------------------------

    def give_back(self, channel: Any, keys: Iterable[tuple[str, int]], *, avoid: object = None) -> None:
        """What a channel holds is for others."""
        for key in list(keys):
            self.books.give_back(channel.held.pop(key).copy, avoid=avoid)

    def let_go(self, channel: Any) -> None:
        """A channel ends."""
        self.give_back(channel, channel.held)
        channel.planned.clear()

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
            ready = [number_of(queued.message.body) for queued in queue.ready]
            unacked = [number_of(delivery.queued.message.body) for delivery in queue.unacked]
            assert sorted(ready + unacked) == sorted(copies), f"{name}: {ready} and {unacked}, not {copies}"
            if not self.books.refuses(name):  # There what comes back stays.
                assert len(ready) <= (self.books.longest(name) or len(ready)), f"{name} is too long"
            for number in unacked:
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
            self.check_order(name, waiting)

    def check_takers(self, name: str, waiting: list[Copy]) -> None:
        """Nobody could take what is next for it. Of a single active consumer the model has its own view."""
        if "x-single-active-consumer" in self.queues[name]:
            return
        for channel, consumer in self.consumers(name):
            following = next((copy for copy in waiting if self.suits(channel, consumer, copy)), None)
            if following is not None:
                assert not self.able(channel, consumer, following), f"{consumer} could take {following}"

    def check_order(self, name: str, waiting: list[Copy]) -> None:
        """No message was ever delivered before one that had entered earlier."""
        for copy in waiting:
            newest = self.books.newest.get((name, copy.level), 0)
            assert copy.seen or copy.position > newest, f"{copy} was passed over"

    def able(self, channel: Any, consumer: Consumer, copy: Copy) -> bool:
        """Whether a consumer can take a copy now. On RabbitMQ a full channel stops all its consumers."""
        if consumer.no_ack:
            shared = channel.windows.get(consumer.kind, Window())
            taken = channel.outstanding(consumer.kind) + channel.occupied
            return self.strict or shared.holds([*taken, copy.size])
        return channel.peer.within(channel, consumer, copy.size)
