"""A broker whose clients and network go wrong in every way there is, with books about all messages.

`World.do` carries out one step, named and with numbers that say which of what there is; the same steps give
the same history. The clients here put up with everything: what never comes they do not wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat_tests.fuzz.chaos_books import REPLACED, Books, Publish
from compat_tests.fuzz.checks import active_timers, inconsistencies, serves_others
from compat_tests.fuzz.fault_server import FaultServer
from compat_tests.scripted.amqp_0_9_1 import Client, Frame
from fakeamqp.faults import FaultError
from fakeamqp.faults.chaos import PROFILES
from fakeamqp.faults.rule import Rule
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["OPERATIONS", "World"]

BRIEF = 0.05
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
TO_WORK = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
TO_RETRY = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "retry"}
QUEUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "fleeting": {},
    "brief": {"x-message-ttl": int(BRIEF * 1000), **DEAD},
    "short": {"x-max-length": 3, **DEAD},
    "tiny": {"x-max-length": 1},
    "strict": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "passing": {"x-max-length": 2, "x-overflow": "reject-publish-dlx", **DEAD},
    "work": TO_RETRY,
    "retry": {"x-message-ttl": int(BRIEF * 500), **TO_WORK},
    "levels": {"x-max-priority": 2},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 2, **DEAD},
    "keeping": {
        "x-queue-type": "quorum",
        "x-delivery-limit": 1,
        "x-max-length": 5,
        "x-overflow": "reject-publish",
        "x-dead-letter-strategy": "at-least-once",
        **DEAD,
    },
    "stream": {"x-queue-type": "stream"},
    "dead": {},
}
TARGETS: tuple[tuple[str, str, int], ...] = (
    *(("", name, 0) for name in QUEUES),
    ("amq.fanout", "", 0),
    ("alternate", "nobody", 0),
    ("later", "plain", 40),
    ("later", "strict", 40),
    ("later", "nobody", 40),
    ("", "nowhere", 0),
)
"""Exchange, routing key and milliseconds of delay."""
ORDERS, WORK, FREE = CHANNELS = (1, 2, 3)
"""Publishes are confirmed on the first, consumers are on the second, and nothing is acked on the third."""
MOST_CONSUMERS = 4


@dataclass
class Channel:
    """What a client knows of one life of a channel."""

    number: int
    open: bool = False
    confirming: bool = False
    sequence: int = 0
    unconfirmed: dict[int, int] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    """Tags of publishes that have been confirmed."""
    consumers: dict[str, str] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    given: dict[int, int] = field(default_factory=dict)
    """By tag: what the broker says it has given the client."""
    said: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    """By what becomes of deliveries: delivery tags, and whether all below are meant."""


class Peer:
    """One client: it publishes, consumes, and comes back when its connection is lost."""

    def __init__(self, world: World, name: str, *, tries_again: bool) -> None:
        self.world = world
        self.name = name
        self.tries_again = tries_again
        """Whether it publishes again what was not confirmed."""
        self.client: Client | None = None
        self.ready = False
        self.links: list[str] = []
        self.channels: dict[int, Channel] = {}
        self.again: list[int] = []
        """Orders to be published once more."""
        self.done: set[int] = set()
        """Orders that were confirmed."""
        self.came_back: set[int] = set()
        self.wants: dict[str, int] = {}
        """The queues it consumes from, each with its channel; again when it comes back."""
        self._content: list[Any] | None = None

    # --- connection -----------------------------------------------------------------------------------

    def connect(self) -> None:
        self.leave()
        self.client = self.world.server.dial(Client)
        if self.client is None:
            return
        self.links.append(self.link.connection.name)
        self.world.by_name[self.link.connection.name] = self
        self._content = None
        self.client.send_bytes(self.client.protocol_header)

    @property
    def link(self) -> Any:
        """The transport of the connection."""
        return None if self.client is None else self.client.connection

    def leave(self) -> None:
        """The connection is gone, or is to be."""
        client, self.client = self.client, None
        self.ready = False
        if client is not None:
            client.drop()
        for channel in list(self.channels.values()):
            self._lost(channel)

    def _lost(self, channel: Channel) -> None:
        """What is open on a channel will never be heard of again."""
        channel.open = False
        self._publish_again(channel.unconfirmed.values())
        channel.unconfirmed.clear()
        channel.consumers.clear()
        channel.held.clear()

    def _publish_again(self, numbers: Any) -> None:
        orders = [self.world.books.sent[number].order for number in numbers]
        self.again += [order for order in orders if order not in self.done and order not in self.again]

    @property
    def flags(self) -> set[str]:
        """The faults that have happened to its connection."""
        return self.world.books.flags.get(self.link.connection.name, set())

    def check_that_all_has_come(self) -> None:
        """Without faults nothing is on its way, but for what a fault has swallowed."""
        if self.link is None or self.flags & {"drop", "silent", "malform"}:
            return
        for channel in self.channels.values():
            if self.ready and channel.open:
                assert not channel.unconfirmed, f"{self.name} waits for {channel.unconfirmed}"
                missing = channel.given.keys() - channel.seen
                assert not missing, f"{self.name} was never sent {missing}"

    def channel(self, number: int) -> Channel | None:
        """An open channel, or None."""
        found = self.channels.get(number) if self.ready else None
        return found if found is not None and found.open else None

    def open(self, number: int) -> None:
        self.channels[number] = Channel(number)
        self.send(m.ChannelOpen(), number)

    def send(self, method: m.Method, channel: int) -> None:
        if self.client is not None:
            self.client.send(method, channel)

    # --- reading --------------------------------------------------------------------------------------

    def read(self) -> None:
        """Deal with all that has come; what cannot be read ends the connection."""
        client = self.client
        if client is None:
            return
        why = ""
        try:
            inbox = client.inbox
        except (AssertionError, KeyError) as unreadable:
            why, inbox = repr(unreadable), client._inbox
        while inbox and self.client is client:
            self._frame(inbox.pop(0))
        if self.client is client and (why or client.header):
            self._broken(why or "a protocol header")
        elif self.client is client and client.closed:
            self.leave()

    def _broken(self, why: str) -> None:
        assert "malform" in self.flags, f"{self.name} was sent {why}"
        self.leave()

    def _frame(self, frame: Frame) -> None:
        kind, number, payload = frame.type, frame.channel, frame.payload
        if kind == 1:
            if self._content is not None:
                self._broken("a method that does not belong here")
            elif frame.method is not None and frame.method.HAS_CONTENT:
                self._content = [number, frame.method, None, b""]
            else:
                self._method(number, frame.method)
        elif kind in (2, 3) and self._content is not None and self._content[0] == number:
            content = self._content
            if kind == 2:
                content[2] = int.from_bytes(payload[4:12], "big")
            else:
                content[3] += payload
            if len(content[3]) >= content[2]:
                self._content = None
                self._message(number, content[1], content[3])
        elif kind != 8:
            self._broken(f"a frame of type {kind}")

    def _method(self, number: int, method: Any) -> None:
        channel = self.channels.get(number)
        if isinstance(method, m.ConnectionStart):
            properties = {
                **({} if self.name == "c" else {"connection_name": self.name}),
                "capabilities": {"consumer_cancel_notify": True, "authentication_failure_close": True},
            }
            self.send(
                m.ConnectionStartOk(
                    client_properties=properties,
                    mechanism="PLAIN",
                    response=b"\0guest\0guest",
                    locale="en_US",
                ),
                0,
            )
        elif isinstance(method, m.ConnectionTune):
            self.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0), 0)
            self.send(m.ConnectionOpen(virtual_host="/"), 0)
        elif isinstance(method, m.ConnectionOpenOk):
            self.ready = True
            for each in CHANNELS:
                self.open(each)
        elif isinstance(method, m.ConnectionClose):
            assert method.reply_code == 320 or "close" in self.flags, f"{self.name} was sent {method}"
            self.send(m.ConnectionCloseOk(), 0)
            self.leave()
        elif isinstance(method, m.ConnectionCloseOk):
            self.leave()
        elif channel is None:
            return
        elif isinstance(method, m.ChannelOpenOk):
            channel.open = True
            if number == ORDERS:
                self.send(m.ConfirmSelect(), number)
            elif number == WORK:
                self.send(m.BasicQos(prefetch_count=3), number)
            for queue in [queue for queue, channel in self.wants.items() if channel == number]:
                self.consume(queue, number)
        elif isinstance(method, m.ConfirmSelectOk):
            channel.confirming = True
        elif isinstance(method, (m.ChannelClose, m.ChannelCloseOk)):
            if isinstance(method, m.ChannelClose):
                # Without its queues, or after it has settled something twice.
                explained = {"close", "duplicate", "drop", "silent", "late"} & self.flags
                explained = explained or method.reply_code == 404
                assert explained, f"{self.name} was sent {method}"
                self.send(m.ChannelCloseOk(), number)
            self._lost(channel)
            self.open(number)
        elif isinstance(method, (m.BasicCancel, m.BasicCancelOk)):
            channel.consumers.pop(method.consumer_tag, None)
        elif isinstance(method, m.ChannelFlow) and channel.open:
            self.send(m.ChannelFlowOk(active=method.active), number)
        elif isinstance(method, (m.BasicAck, m.BasicNack)):
            self._confirmed(channel, method)

    def _confirmed(self, channel: Channel, method: m.BasicAck | m.BasicNack) -> None:
        books = self.world.books
        tag = method.delivery_tag
        assert channel.confirming and 0 < tag <= channel.sequence, (
            f"{self.name}: nobody sent what {method} is for"
        )
        if not channel.open:
            return  # It was closed meanwhile, and nobody waits any more.
        flags = self.flags
        if not method.multiple and tag in channel.settled:
            assert "duplicate" in flags, f"{self.name}: the second confirm for {tag}"
            return
        tags = [each for each in channel.unconfirmed if each <= tag] if method.multiple else [tag]
        for each in tags:
            number = channel.unconfirmed.pop(each)
            channel.settled.add(each)
            order = books.sent[number].order
            if isinstance(method, m.BasicAck):
                taken = books.arrived[number] or number in self.came_back
                assert taken, f"{self.name}: {number} is confirmed, and the broker does not have it"
                full = books.refused_by[number] and "duplicate" not in books.flags_of(number)
                assert not full, f"{self.name}: {number} is confirmed, and a queue has refused it"
                books.confirmed.add(number)
                self.done.add(order)
            else:
                refused = books.refused_by[number] or "nack" in flags
                assert refused, f"{self.name}: {number} is nacked for no reason"
                if not books.refused_by[number] and not flags & {"false nack", "duplicate"}:
                    assert not books.arrived[number], f"{self.name}: {number} was nacked, and is there"
                self._publish_again([number])

    def _message(self, number: int, method: Any, body: bytes) -> None:
        known = self.world.books.check_body(body)
        if isinstance(method, m.BasicReturn):
            self.came_back.add(known)
            return
        channel = self.channels[number]
        tag = method.delivery_tag
        assert tag not in channel.seen, f"{self.name}: delivery tag {tag} again"
        channel.seen.add(tag)
        given = channel.given.get(tag)
        if given is None:
            assert "duplicate" in self.flags, f"{self.name}: {known} comes from nowhere, as {tag}"
        else:
            assert given == known, f"{self.name}: {tag} was to be {given}, and is {known}"
        if number == WORK and channel.open:
            channel.held[tag] = known

    # --- what it does ---------------------------------------------------------------------------------

    def publish(
        self, target: int, count: int, *, persistent: bool, mandatory: bool, keep: int | None
    ) -> None:
        """Publish orders, older ones first if it does that. `keep`: only so many bytes, then the end."""
        channel = self.channel(ORDERS)
        if channel is None or not channel.confirming:
            return
        again = []
        if self.tries_again:
            again, self.again = self.again[:count], self.again[count:]
        octets = b""
        for _ in range(count):
            octets += self._one(channel, target, again.pop(0) if again else None, persistent, mandatory)
        if keep is not None:
            octets = octets[: keep % len(octets)]
        assert self.client is not None
        self.client.send_bytes(octets)
        if keep is not None:
            self.leave()

    def _one(
        self, channel: Channel, target: int, order: int | None, persistent: bool, mandatory: bool
    ) -> bytes:
        world = self.world
        number = len(world.books.sent) + 1
        exchange, key, delay = TARGETS[target % len(TARGETS)]
        body = b"%d." % number + b"x" * (number * 7 % 40)
        world.books.sent[number] = Publish(number, order or number, body, self.name)
        channel.sequence += 1
        channel.unconfirmed[channel.sequence] = number
        properties = BasicProperties(
            delivery_mode=2 if persistent else 1,
            priority=number % 3,
            headers={"x-delay": 128 + delay} if delay else None,
        )
        method = m.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
        frames = content_frames(ORDERS, 60, properties.encode(), body, 4096)
        assert self.client is not None
        return self.client.method_frame(method, ORDERS) + b"".join(frames)

    def consume(self, queue: str, number: int) -> None:
        channel = self.channel(number)
        if channel is None or sum(len(each.consumers) for each in self.channels.values()) >= MOST_CONSUMERS:
            return
        self.world.tags += 1
        tag = f"t{self.world.tags}"
        free = number == FREE and QUEUES[queue].get("x-queue-type") != "stream"
        if number == FREE and not free:
            return
        channel.consumers[tag] = queue
        self.wants[queue] = number
        arguments = {"x-stream-offset": "first"} if queue == "stream" else {}
        method = m.BasicConsume(queue=queue, consumer_tag=tag, no_ack=free, arguments=arguments)
        self.send(method, number)

    def get(self, queue: str, number: int) -> None:
        channel = self.channel(number)
        if channel is not None and queue != "stream":
            self.send(m.BasicGet(queue=queue, no_ack=number == FREE), number)

    def settle(self, pick: int, how: str, *, multiple: bool) -> None:
        channel = self.channel(WORK)
        if channel is None or not channel.held:
            return
        tag = sorted(channel.held)[pick % len(channel.held)]
        for each in [each for each in channel.held if each == tag or (multiple and each < tag)]:
            del channel.held[each]
        channel.said.setdefault(how, []).append((tag, multiple))
        if how == "acked":
            self.send(m.BasicAck(delivery_tag=tag, multiple=multiple), WORK)
        else:
            self.send(m.BasicNack(delivery_tag=tag, multiple=multiple, requeue=how == "requeued"), WORK)

    def cancel(self, pick: int) -> None:
        running = [(number, tag) for number, each in self.channels.items() for tag in each.consumers]
        if running and self.ready:
            number, tag = running[pick % len(running)]
            self.wants.pop(self.channels[number].consumers[tag], None)
            self.send(m.BasicCancel(consumer_tag=tag), number)

    def close_channel(self, number: int) -> None:
        channel = self.channel(number)
        if channel is not None:
            self._lost(channel)
            self.send(m.ChannelClose(reply_code=200), number)

    def hang_up(self) -> None:
        if self.ready:
            self.send(m.ConnectionClose(reply_code=200), 0)
            self.ready = False


Install = Callable[[Any], Any]
RULES: tuple[Install, ...] = (
    lambda f: f.on("basic.publish").times(2).drop(),
    lambda f: f.on("basic.publish").times(2).nack(),
    lambda f: f.on("basic.publish").times(2).return_message(),
    lambda f: f.on("basic.publish").once().duplicate(),
    lambda f: f.on("basic.publish").once().replace(body=lambda old: old + REPLACED),
    lambda f: f.on("basic.publish").times(3).delay(0.02, 0.02),
    lambda f: f.on("basic.publish").times(3).hold(),
    lambda f: f.on("basic.publish", part="header").once().disconnect("reset"),
    lambda f: f.on("confirm").times(2).drop(),
    lambda f: f.on("confirm").times(2).nack(),
    lambda f: f.on("confirm").once().duplicate(),
    lambda f: f.on("confirm").times(4).delay(0.02, 0.02),
    lambda f: f.on("confirm").times(4).hold(),
    lambda f: f.on("basic.deliver", "basic.get-ok").times(2).drop(),
    lambda f: f.on("basic.deliver", "basic.get-ok").times(2).duplicate(2),
    lambda f: f.on("basic.deliver", "basic.get-ok").once().replace(body=lambda old: old + REPLACED),
    lambda f: f.on("basic.deliver").times(3).hold(),
    lambda f: f.on("basic.deliver").times(3).delay(0.01),
    lambda f: f.on("basic.deliver").once().cut("method"),
    lambda f: f.on("basic.deliver").once().cut("header", "reset"),
    lambda f: f.on("basic.deliver").once().cut(30),
    lambda f: f.on("basic.deliver").once().malform("bad-frame-end"),
    lambda f: f.on("basic.deliver").once().malform("unknown-method"),
    lambda f: f.on("basic.ack", "basic.nack", direction="received").times(2).drop(),
    lambda f: f.on("basic.ack", "basic.nack", direction="received").once().duplicate(),
    lambda f: f.on("basic.ack", "basic.nack", direction="received").times(2).hold(),
    lambda f: f.on("basic.ack", "basic.nack", direction="received").times(2).delay(0.03),
    lambda f: f.on("queue.*", "basic.consume", "basic.get").once().drop(),
    lambda f: f.on("*", direction="received").after(2).times(2).delay(0.01),
    lambda f: f.on("*", direction="sent").after(2).times(2).delay(0.01),
    lambda f: f.on("connection.start-ok").once().refuse_login(),
    lambda f: f.on("connection.open").once().drop(),
    lambda f: f.on("channel.open").once().close_channel(404),
    lambda f: (
        f.on("basic.publish").with_probability(0.3).times(2).delay(0.01).call(lambda group: None).nack()
    ),
)
"""Rules of every action."""
MOMENTS = ("instead", "before", "after")
WHERE = (
    "basic.publish",
    "basic.ack",
    "basic.consume",
    "basic.get",
    "basic.deliver",
    "confirm",
    "channel.close",
)
ENDINGS: tuple[Callable[[Any, str], Any], ...] = (
    lambda rule, when: rule.close_channel(406, when=when),
    lambda rule, when: rule.close_connection(541, when=when),
    lambda rule, when: rule.disconnect("fin", when=when),
    lambda rule, when: rule.disconnect("reset", when=when),
    lambda rule, when: rule.disconnect("silence", when=when),
    lambda rule, when: rule.crash(when=when),
    lambda rule, when: rule.crash(when=when, durable=False),
)
NETWORK: tuple[Install, ...] = (
    lambda n: n.latency(0.01, 0.005),
    lambda n: n.latency(0.03, direction="sent"),
    lambda n: n.bandwidth(20_000),
    lambda n: n.slice(50),
    lambda n: n.slice(7, pause=0.0005, direction="received"),
    lambda n: n.cut_after(bytes=100),
    lambda n: n.cut_after(bytes=333, direction="received", how="reset"),
    lambda n: n.cut_after(frames=5),
    lambda n: n.cut_after(frames=5, how="silence"),
    lambda n: n.reset(),
    lambda n: n.disconnect(),
    lambda n: n.silence(),
    lambda n: n.hang(),
    lambda n: n.refuse(),
    lambda n: n.refuse("reset"),
)
AT_ONCE: tuple[Install, ...] = (
    lambda f: f.memory_alarm(),
    lambda f: f.disk_alarm(),
    lambda f: f.channel_flow(),
    lambda f: f.cancel_consumers("plain"),
    lambda f: f.cancel_consumers("work"),
    lambda f: f.silence("a"),
)


class World:
    """See the module.

    Args:
        targets: of `TARGETS`, those that steps are about; fewer have more happen to each.
        personality: of the broker.
    """

    FREE = FREE

    def __init__(self, targets: tuple[int, ...] = (), personality: str = "rabbitmq-4.3") -> None:
        self.targets = targets or tuple(range(len(TARGETS)))
        names = dict.fromkeys(TARGETS[each][1] for each in self.targets)
        self.queues = [name for name in (*names, "dead") if name in QUEUES]
        self.by_name: dict[str, Peer] = {}
        self.tags = 0
        self.books = Books(self)
        self.server = FaultServer(personality, self.books)
        self.faults = self.server.faults
        self.chaos: Any = None
        self.peers = [Peer(self, name, tries_again=name != "c") for name in "abc"]
        self.declare()

    @property
    def virtual_host(self) -> Any:
        return self.server.vhost

    def declare(self) -> None:
        """What clients live on; again after the broker has forgotten it."""
        host = self.virtual_host
        if "alternate" not in host.exchanges:
            arguments = {"alternate-exchange": "amq.fanout"}
            host.exchanges.declare("alternate", "direct", durable=True, arguments=arguments)
            arguments = {"x-delayed-type": "direct"}
            host.exchanges.declare("later", "x-delayed-message", durable=True, arguments=arguments)
        for name, arguments in QUEUES.items():
            if name not in host.queues:
                queue = host.queues.declare(
                    name, QueueDeclaration(durable=self.is_durable(name), arguments=arguments)
                )
                host.bindings.bind("later", queue, name)
                if name in ("plain", "short", "levels"):
                    host.bindings.bind("amq.fanout", queue, "")

    # --- what the books ask ---------------------------------------------------------------------------

    @staticmethod
    def is_durable(queue: str) -> bool:
        return queue != "fleeting"

    @staticmethod
    def keeps_delivered(queue: str) -> bool:
        return QUEUES.get(queue, {}).get("x-queue-type") == "stream"

    @staticmethod
    def refuses(queue: str | None) -> bool:
        return queue is not None and QUEUES[queue].get("x-overflow") == "reject-publish"

    def names_of(self, peer: str) -> list[str]:
        return [name for each in self.peers if each.name == peer for name in each.links]

    def delivered(self, connection: str, channel: int, tag: int, number: int) -> None:
        """The broker gives a message to a client."""
        found = self.by_name[connection].channels[channel]
        assert tag not in found.given
        found.given[tag] = number

    def check_settled(self, event: str, connection: str, channel: int, tag: int) -> None:
        """What the broker says a client has done, it has done."""
        if event == "requeued":
            return
        said = self.by_name[connection].channels[channel].said.get(event, ())
        done = any(each == tag or (multiple and each >= tag) for each, multiple in said)
        assert done, f"{connection} never said of {tag} that it is {event}"

    # --- steps ----------------------------------------------------------------------------------------

    def do(self, what: str, who: int = 0, pick: int = 0, more: int = 0) -> None:
        """One step, and all that comes of it at once."""
        peer = self.peers[who % len(self.peers)]
        if peer.link is None or not peer.ready:
            self.bring_back(peer)
        OPERATIONS[what](self, peer, pick, more)
        self.settle()

    def settle(self) -> None:
        """Let all happen that comes of it, and check the books."""
        self.server.pump(self.read)
        self.declare()
        self.check()

    def read(self) -> None:
        self.declare()
        for peer in self.peers:
            peer.read()

    def bring_back(self, peer: Peer) -> None:
        """Connect a client that has no connection, or has waited for one in vain."""
        if peer.link is not None:
            self.server.advance(0.1, self.read)
        if not peer.ready:
            peer.connect()
            self.server.pump(self.read)

    def queue(self, pick: int) -> str:
        return self.queues[pick % len(self.queues)]

    def publish(self, peer: Peer, pick: int, more: int) -> None:
        target = self.targets[pick % len(self.targets)]
        keep = more if more % 11 == 10 else None
        peer.publish(target, 1 + more % 3, persistent=more % 5 != 0, mandatory=more % 7 == 0, keep=keep)

    def consume(self, peer: Peer, pick: int, more: int) -> None:
        peer.consume(self.queue(pick), FREE if more % 4 == 0 else WORK)

    def get(self, peer: Peer, pick: int, more: int) -> None:
        peer.get(self.queue(pick), FREE if more % 4 == 0 else WORK)

    def settle_one(self, peer: Peer, pick: int, more: int) -> None:
        how = ("acked", "acked", "requeued", "rejected")[more % 4]
        if not any(each.held for each in peer.channels.values()):
            peer = next((each for each in self.peers if (at := each.channel(WORK)) and at.held), peer)
        peer.settle(pick, how, multiple=more % 3 == 0)

    def wait(self, peer: Peer, pick: int, more: int) -> None:
        self.server.advance((0.01, BRIEF / 2, BRIEF, 0.3)[more % 4], self.read)

    def rarely(self, peer: Peer, pick: int, more: int) -> None:
        """What sweeps much away."""
        match more % 8:
            case 0:
                self.virtual_host.queues[self.queue(pick)].purge() if self.queue(pick) != "stream" else None
            case 1:
                self.server.restart()
            case 2:
                self.server.restart(crash=True)
            case 3:
                self.forget_all()
            case 4:
                peer.hang_up()
            case 5:
                peer.leave()
            case _:
                peer.close_channel(CHANNELS[pick % 3])

    def forget_all(self) -> None:
        """A crash takes the disk as well."""
        self.server.restart(crash=True, durable=False)

    def cancel(self, peer: Peer, pick: int, more: int) -> None:
        peer.cancel(pick)

    def rule(self, peer: Peer, pick: int, more: int) -> None:
        RULES[pick % len(RULES)](self.faults).optional()

    def ending(self, peer: Peer, pick: int, more: int) -> None:
        name = WHERE[pick % len(WHERE)]
        rule = self.faults.on(name, optional=True).once()
        if more % 2:
            rule.delay(0.005)
        ENDINGS[more % len(ENDINGS)](rule, MOMENTS[pick % 3])

    def network(self, peer: Peer, pick: int, more: int) -> None:
        network = self.faults.network
        if more % 2 and pick % len(NETWORK) < len(NETWORK) - 2:
            network = network.on(peer.name)
        handle = NETWORK[pick % len(NETWORK)](network)
        handle.optional()

    def at_once(self, peer: Peer, pick: int, more: int) -> None:
        try:
            AT_ONCE[pick % len(AT_ONCE)](self.faults)
        except FaultError as error:
            assert any(each in str(error) for each in ("no open channel", "has no consumer"))

    def heal(self, peer: Peer, pick: int, more: int) -> None:
        """Let go of what is held, or remove a fault, or all."""
        handles = self.faults.rules
        if more % 4 == 0:
            self.faults.clear()
        elif handles:
            handle = handles[pick % len(handles)]
            if more % 4 == 1 and isinstance(handle, Rule) and handle.held:
                multiple = handle._subject.confirms and pick % 3 == 0
                handle.release(
                    1 if pick % 2 else None, reverse=more % 8 > 3 and not multiple, multiple=multiple
                )
            else:
                handle.remove()

    def begin_chaos(self, peer: Peer, pick: int, more: int) -> None:
        if self.chaos is not None and not self.chaos.removed:
            self.chaos.remove()
        profiles = tuple(PROFILES)
        self.chaos = self.faults.chaos(
            seed=more, profile=profiles[pick % len(profiles)], intensity=(1, 3, 8)[more % 3]
        )

    # --- what must be so ------------------------------------------------------------------------------

    def check(self) -> None:
        """After every step: the books balance."""
        host = self.virtual_host
        self.books.balance(host.queues, sum(host.delays.count(name) for name in host.exchanges))
        problems = inconsistencies(self.server.state)
        assert not problems, problems

    def tear_down(self) -> None:
        """All faults end: what is held flows, every order gets through, every message has its end."""
        self.faults.clear()
        self.settle()
        self.check_faults_are_gone()
        self.server.advance(1.0, self.read)
        self.settle()
        for peer in self.peers:
            peer.check_that_all_has_come()
        for peer in self.peers:
            peer.leave()
            peer.wants.clear()
        self.settle()
        for peer in self.peers:
            self.try_again(peer)
        self.empty_everything()
        self.check_faults_are_gone()
        assert not self.server.state.connections
        self.server.state.tap = None  # What others publish is not in the books.
        serves_others(self.server)
        self.server.pump()
        assert not self.server.state.connections
        # A queue's timer for unsettled deliveries is left running when the last one is settled.
        lasting = ("retention", "times out unsettled deliveries")
        chores = [
            label
            for label in active_timers(self.server.state)
            if not any(words in label for words in lasting)
        ]
        assert not chores, chores

    def check_faults_are_gone(self) -> None:
        assert self.server.state.tap is self.books, "the faults are still in the way"
        executor = self.faults._executor
        assert not executor.waiting, executor.waiting
        assert not executor._states, [vars(state) for state in executor._states.values()]
        assert not executor.rules, executor.rules
        assert self.server.wrap is None
        wrapped = [link.wrapping for link in self.server.links if link.wrapping is not None]
        assert not wrapped, wrapped

    def try_again(self, peer: Peer) -> None:
        """Without faults whatever has not been confirmed gets through at once."""
        self.bring_back(peer)
        assert peer.ready and peer.channel(ORDERS) is not None
        dead = TARGETS.index(("", "dead", 0))
        while peer.tries_again and peer.again:
            before = len(peer.again)
            peer.publish(dead, min(3, before), persistent=True, mandatory=False, keep=None)
            self.settle()
            assert len(peer.again) < before, f"{peer.name} does not get {peer.again} through"
        orders = {publish.order for publish in self.books.sent.values() if publish.who == peer.name}
        if peer.tries_again:
            assert orders == peer.done, f"{peer.name} never got {orders - peer.done} through"
        peer.leave()

    def empty_everything(self) -> None:
        """Take all there is; then every message that was confirmed has an end that is told somewhere."""
        reader = self.peers[0]
        for _ in range(4):
            self.bring_back(reader)
            for name, queue in self.virtual_host.queues.items():
                while name != "stream" and len(queue.ready):
                    before = len(queue.ready)
                    reader.get(name, FREE)
                    self.server.pump(self.read)
                    assert len(queue.ready) < before, f"{name} keeps {list(queue.ready)}"
            self.settle()
            self.server.advance(0.3, self.read)
        reader.leave()
        self.settle()
        left = {name: queue for name, queue in self.virtual_host.queues.items() if name != "stream"}
        assert not any(len(queue.ready) or queue.unacked or queue.parked_count for queue in left.values())
        stream = {int(each.message.body.split(b".")[0]) for each in self.virtual_host.queues["stream"].ready}
        came_back = {number for peer in self.peers for number in peer.came_back}
        lost = [
            number for number in self.books.confirmed if not self.books.accounted(number, stream | came_back)
        ]
        assert not lost, f"confirmed, and nobody knows what has become of them: {lost}"

    def report(self) -> str:
        """For a failure: the faults, the plan of the chaos, the latest history."""
        plan = "" if self.chaos is None else f"\nchaos plan:\n{self.chaos.plan}"
        return "\n".join(["faults in force:", str(self.faults), plan, "latest:", *self.books.history[-40:]])


OPERATIONS: dict[str, Callable[[World, Peer, int, int], None]] = {
    "publish": World.publish,
    "consume": World.consume,
    "get": World.get,
    "settle": World.settle_one,
    "wait": World.wait,
    "cancel": World.cancel,
    "rarely": World.rarely,
    "rule": World.rule,
    "ending": World.ending,
    "network": World.network,
    "at once": World.at_once,
    "heal": World.heal,
    "chaos": World.begin_chaos,
}
WEIGHTS = Counter(publish=8, consume=3, get=1, settle=8, wait=3, cancel=1, rarely=1)
