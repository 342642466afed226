"""Several clients do what they may, in any order, and the books must balance after every step.

The machine keeps its own books from what clients see: which messages entered a queue, who holds them,
how they left. After each step they are compared with the broker's queues (`balance` and what follows).
Every message has a number for a body; everything sent is read at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compat_tests.fuzz.checks import inconsistencies, left_behind
from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9_1 import Client, Content, QuietTap, Server
from fakeamqp.model.messages.message import Message
from fakeamqp.model.personality import personality
from fakeamqp.model.queues.queue import NOT_TAKEN_BACK
from fakeamqp.model.routing import Outcome
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame

TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
LONGEST_SHORT = 3
LONGEST_STRICT = 2
BRIEF = 0.05
QUEUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "short": {"x-max-length": LONGEST_SHORT, **TO_DEAD},
    "strict": {"x-max-length": LONGEST_STRICT, "x-overflow": "reject-publish"},
    "levels": {"x-max-priority": 2},
    "single": {"x-single-active-consumer": True, **TO_DEAD},
    "brief": {"x-message-ttl": int(BRIEF * 1000), **TO_DEAD},
    "dead": {},
}
FANNED = ("plain", "short", "levels")
NORMAL, CONFIRMS, TRANSACTS = CHANNELS = (1, 2, 3)
MOST_CONSUMERS = 6


@dataclass
class Books:
    """What has happened to one queue since it was declared."""

    name: str
    entered: list[int] = field(default_factory=list)
    left: Counter[int] = field(default_factory=Counter)
    delivered: dict[int, None] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)

    def remaining(self) -> Counter[int]:
        """The messages that must still be in the queue, ready or in somebody's hands."""
        return Counter(self.entered) - self.left


@dataclass
class Consumer:
    tag: str
    books: Books
    no_ack: bool
    prefetch: int


@dataclass
class Held:
    """A message in the hands of a client, which has not settled it, or not yet committed that."""

    books: Books
    number: int
    consumer: Consumer | None
    how: str | None = None


class Peer:
    """One client and what it knows."""

    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self.client: Client = server.client(
            channels=0, client_properties={"capabilities": {"consumer_cancel_notify": True}}
        )
        self.consumers: dict[tuple[int, str], Consumer] = {}
        self.starting: dict[tuple[int, str], Consumer] = {}
        self.held: dict[tuple[int, int], Held] = {}
        self.last_tag: dict[int, int] = {}
        self.prefetch: dict[int, int] = {}
        self.window: dict[int, int] = {}
        """Shared window by channel; 0 is the connection's."""
        self.unconfirmed: dict[int, bool] = {}
        self.published: int = 0
        self.returned: list[int] = []
        self.replies: list[Any] = []
        for channel in CHANNELS:
            self.open(channel)

    def open(self, channel: int) -> None:
        self.client.open_channel(channel)
        self.last_tag[channel] = self.prefetch[channel] = self.window[channel] = 0
        if channel == CONFIRMS:
            self.client.call(m.ConfirmSelect(), m.ConfirmSelectOk, channel)
            self.unconfirmed.clear()
            self.published = 0
        elif channel == TRANSACTS:
            self.client.call(m.TxSelect(), m.TxSelectOk, channel)

    def forget(self, channel: int) -> None:
        """The channel has closed."""
        for book in (self.consumers, self.held):
            for key in [key for key in book if key[0] == channel]:
                del book[key]  # type: ignore[attr-defined]

    def outstanding(self, channel: int | None = None, consumer: Consumer | None = None) -> int:
        """Deliveries to consumers that are not settled for good."""
        return sum(
            held.consumer is not None
            and (channel is None or key[0] == channel)
            and (consumer is None or held.consumer is consumer)
            for key, held in self.held.items()
        )


class _Tap(QuietTap):
    def __init__(self, machine: Machine) -> None:
        self.happened = machine.happened  # type: ignore[method-assign]


class Machine(RuleBasedStateMachine):
    """See the module. `personality` is set by the tests below."""

    personality = "rabbitmq-4.3"

    def __init__(self) -> None:
        super().__init__()
        # What a commit does about a deleted queue differs from version to version; here it ignores it.
        self.server = Server(replace(personality(self.personality), commit_to_deleted="ignored"))
        self.server.state.tap = _Tap(self)
        self.state = self.server.state
        self.strict = self.personality == "spec"
        self.shares = self.state.personality.deprecated_features.get("global_qos") == "permitted"
        self.books: dict[str, Books] = {}
        self.births: dict[str, int] = {}
        """The number of the last message before the queue was declared."""
        self.refused: list[int] = []
        self.number = 0
        self.tags = 0
        self.admin = self.server.client()
        for name in QUEUES:
            self.declare(name)
        self.peers = [Peer(self.server, name) for name in "ab"]

    def declare(self, name: str) -> None:
        self.admin.declare(name, arguments=QUEUES[name])
        if name in FANNED:
            self.admin.bind(name, "amq.fanout")
        self.books[name] = Books(name)
        self.births[name] = self.number

    # --- the tap: what the broker says has become of messages ---------------------------------------------

    def happened(self, event: str, **facts: Any) -> None:
        if event == "published":
            self.note_published(facts["message"], facts["outcome"])
        elif event == "refused":
            self.note_refused(facts["message"], facts["outcome"])
        if event not in ("dead-lettered", "dropped"):
            return
        message: Message = facts["message"]
        number = int(message.body)
        if event == "dropped" and self.never_entered_or_went_with_its_queue(facts):
            return
        books = self.books[facts["queue"]]
        if event == "dead-lettered":
            books.left[number] += 1
            self.books["dead"].entered.append(number)
        elif event == "dropped":
            assert facts["reason"] == "purged" or "x-dead-letter-exchange" not in QUEUES[books.name]
            books.left[number] += 1

    @staticmethod
    def never_entered_or_went_with_its_queue(facts: dict[str, Any]) -> bool:
        """Whether a drop says nothing about a queue that is there."""
        refused = facts["queue"] == "strict" and facts["reason"] == "maxlen"
        return refused or facts["reason"] in ("unroutable", "deleted") or facts["detail"] == NOT_TAKEN_BACK

    def note_published(self, message: Message, outcome: Outcome) -> None:
        number = int(message.body)
        names = {queue.name for queue in outcome.queues}
        assert len(names) == len(outcome.queues)
        wanted = set(FANNED) if message.exchange == "amq.fanout" else {message.routing_key} & set(QUEUES)
        # A publish of a transaction is routed when it is made; by the commit its queue may have gone.
        gone = {name for name in wanted if self.births[name] >= number}
        assert wanted - gone <= names <= wanted, f"{number} went to {names}, not to {wanted}"
        for queue in outcome.queues:
            books = self.books[queue.name]
            # Deliveries made while it was published are on their way, and not read yet.
            books.entered.append(number)
            books.priorities[number] = (
                min(message.priority, 2) if queue.name == "levels" else message.priority
            )

    def note_refused(self, message: Message, outcome: Outcome) -> None:
        number = int(message.body)
        for queue in outcome.refused:
            assert queue.name == "strict" and len(queue.ready) >= LONGEST_STRICT
            assert self.books["strict"].entered.pop() == number
            del self.books["strict"].priorities[number]
            self.refused.append(number)

    # --- reading ------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read everything that has come to anybody."""
        for peer in self.peers:
            while peer.client.inbox:
                self.read_one(peer)

    def read_one(self, peer: Peer) -> None:
        frame = peer.client.inbox[0]
        channel, method = frame.channel, frame.method
        if isinstance(method, m.BasicDeliver):
            self.delivered(peer, channel, peer.client.expect_content(m.BasicDeliver, channel))
        elif isinstance(method, m.BasicReturn):
            peer.returned.append(int(peer.client.expect_content(m.BasicReturn, channel).body))
        elif isinstance(method, m.BasicGetOk):
            peer.replies.append(peer.client.expect_content(m.BasicGetOk, channel))
        else:
            peer.client.take_frame()
            if isinstance(method, (m.BasicAck, m.BasicNack)):
                self.confirmed(peer, method)
            elif isinstance(method, m.BasicConsumeOk):
                key = (channel, method.consumer_tag)
                peer.consumers[key] = peer.starting.pop(key)
            elif isinstance(method, (m.BasicCancelOk, m.BasicCancel)):
                del peer.consumers[channel, method.consumer_tag]
            else:
                assert not isinstance(method, (m.ChannelClose, m.ConnectionClose)), f"{peer.name}: {method}"
                peer.replies.append(method)

    def delivered(self, peer: Peer, channel: int, content: Content) -> None:
        method = content.method
        consumer = peer.consumers.get((channel, method.consumer_tag))
        assert consumer is not None, f"a delivery to a consumer that is not there: {method}"
        self.received(peer, channel, consumer.books, content, consumer, no_ack=consumer.no_ack)
        if consumer.no_ack:
            return
        assert not self.too_much(peer, channel, consumer), f"more than the prefetch window: {method}"

    def received(
        self,
        peer: Peer,
        channel: int,
        books: Books,
        content: Content,
        consumer: Consumer | None,
        *,
        no_ack: bool,
    ) -> None:
        number = int(content.body)
        tag = content.method.delivery_tag
        assert tag == peer.last_tag[channel] + 1, "delivery tags count up by one"
        peer.last_tag[channel] = tag
        if books.name != "dead":  # The same message may die more than once.
            assert content.method.redelivered == (number in books.delivered)
        books.delivered[number] = None
        if no_ack:
            books.left[number] += 1
        else:
            peer.held[channel, tag] = Held(books, number, consumer)

    def windows(self, peer: Peer, channel: int, consumer: Consumer) -> list[tuple[int, int]]:
        """What counts against which limit when the consumer is sent something."""
        if self.strict:
            return [
                (peer.outstanding(channel), peer.window[channel]),
                (peer.outstanding(), peer.window.get(0, 0)),
            ]
        return [
            (peer.outstanding(channel, consumer), consumer.prefetch),
            (peer.outstanding(channel), peer.window[channel]),
        ]

    def too_much(self, peer: Peer, channel: int, consumer: Consumer) -> bool:
        return any(limit and count > limit for count, limit in self.windows(peer, channel, consumer))

    def confirmed(self, peer: Peer, method: m.BasicAck | m.BasicNack) -> None:
        tag = method.delivery_tag
        covered = [each for each in peer.unconfirmed if each <= tag] if method.multiple else [tag]
        assert covered
        for each in covered:
            accepted = peer.unconfirmed.pop(each)
            assert accepted == isinstance(method, m.BasicAck), f"publish {each}: {method}"

    # --- doing --------------------------------------------------------------------------------------------

    peer_indexes = st.integers(0, 1)
    channels = st.sampled_from((NORMAL, NORMAL, CONFIRMS, TRANSACTS))
    names = picks = st.integers(0, 9)

    @initialize(focus=st.lists(st.sampled_from(tuple(QUEUES)), min_size=1, max_size=3, unique=True))
    def choose(self, focus: list[str]) -> None:
        """Few queues per run, so that much happens to each."""
        self.focus = focus

    def name(self, pick: int) -> str:
        return self.focus[pick % len(self.focus)]

    def send(self, peer: Peer, channel: int, method: m.Method) -> None:
        peer.replies.clear()
        peer.client.send(method, channel)
        self.read()

    def ask(self, peer: Peer, channel: int, method: m.Method, reply: type) -> Any:
        self.send(peer, channel, method)
        assert [type(each) for each in peer.replies] == [reply], f"{method}: {peer.replies}"
        return peer.replies[0]

    publishes = rule(
        who=peer_indexes,
        channel=channels,
        name=names,
        priority=st.integers(0, 3),
        mandatory=st.booleans(),
        count=st.integers(1, 4),
    )

    def publish(self, who: int, channel: int, name: int, priority: int, mandatory: bool, count: int) -> None:
        where = {8: "amq.fanout", 9: "nowhere"}.get(name) or self.name(name)
        if channel == TRANSACTS and where == "strict":
            return  # A refusal at commit closes the channel.
        peer = self.peers[who]
        octets = []
        numbers = []
        for _ in range(count):
            self.number += 1
            numbers.append(self.number)
            octets.append(self.publish_bytes(channel, where, priority, mandatory))
        self.refused.clear()
        peer.returned.clear()
        peer.client.send_bytes(b"".join(octets))
        if channel == CONFIRMS:
            for number in numbers:
                peer.published += 1
                peer.unconfirmed[peer.published] = number not in self.refused
        self.read()
        assert not peer.unconfirmed, "every publish is confirmed when the turn ends"
        if channel != TRANSACTS:
            assert peer.returned == (numbers if mandatory and where == "nowhere" else [])

    # What everything else lives on is chosen more often when it is there more than once.
    publish_1 = publishes(publish)
    publish_2 = publishes(publish)
    publish_3 = publishes(publish)

    def publish_bytes(self, channel: int, where: str, priority: int, mandatory: bool) -> bytes:
        recorder = _Recorder()
        exchange, key = (where, "") if where == "amq.fanout" else ("", where)
        Client.publish(
            recorder,  # type: ignore[arg-type]
            str(self.number).encode(),
            exchange=exchange,
            routing_key=key,
            channel=channel,
            mandatory=mandatory,
            priority=priority,
        )
        return recorder.octets

    @rule(who=peer_indexes, channel=channels, pick=picks, no_ack=st.booleans())
    def get(self, who: int, channel: int, pick: int, no_ack: bool) -> None:
        peer = self.peers[who]
        name = self.name(pick)
        waiting = len(self.server.vhost.queues[name].ready)
        self.send(peer, channel, m.BasicGet(queue=name, no_ack=no_ack))
        (reply,) = peer.replies
        if isinstance(reply, m.BasicGetEmpty):
            assert not waiting or self.server.vhost.queues[name].selects
            return
        assert reply.method.message_count == waiting - 1
        self.received(peer, channel, self.books[name], reply, None, no_ack=no_ack)

    @precondition(lambda self: sum(len(peer.consumers) for peer in self.peers) < MOST_CONSUMERS)
    @rule(
        who=peer_indexes,
        channel=channels,
        pick=picks,
        no_ack=st.sampled_from([False, False, True]),
        prefetch=st.integers(0, 2),
        priority=st.sampled_from([0, 0, 1]),
    )
    def consume(self, who: int, channel: int, pick: int, no_ack: bool, prefetch: int, priority: int) -> None:
        peer = self.peers[who]
        name = self.name(pick)
        if prefetch != (peer.window if self.strict else peer.prefetch)[channel]:
            self.qos(who, channel, prefetch, shared=False)
        self.tags += 1
        tag = f"c{self.tags}"
        peer.starting[channel, tag] = Consumer(tag, self.books[name], no_ack, peer.prefetch[channel])
        arguments = {"x-priority": priority} if priority else {}
        method = m.BasicConsume(queue=name, consumer_tag=tag, no_ack=no_ack, arguments=arguments)
        self.send(peer, channel, method)
        assert (channel, tag) in peer.consumers

    @precondition(lambda self: any(peer.consumers for peer in self.peers))
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        running = [(peer, key) for peer in self.peers for key in peer.consumers]
        peer, (channel, tag) = running[pick % len(running)]
        self.send(peer, channel, m.BasicCancel(consumer_tag=tag))
        assert (channel, tag) not in peer.consumers

    settles = rule(
        pick=picks, multiple=st.booleans(), how=st.sampled_from(["ack", "ack", "ack", "requeue", "reject"])
    )

    def settle(self, pick: int, multiple: bool, how: str) -> None:
        keys = [(peer, key) for peer in self.peers for key in self.settleable(peer)]
        if not keys:
            return
        peer, (channel, tag) = keys[pick % len(keys)]
        chosen = [
            key
            for key in self.settleable(peer)
            if key[0] == channel and (key[1] == tag or (multiple and key[1] < tag))
        ]
        self.settled(peer, channel, chosen, how)
        if how == "ack":
            self.send(peer, channel, m.BasicAck(delivery_tag=tag, multiple=multiple))
        elif multiple:
            self.send(peer, channel, m.BasicNack(delivery_tag=tag, multiple=True, requeue=how == "requeue"))
        else:
            self.send(peer, channel, m.BasicReject(delivery_tag=tag, requeue=how == "requeue"))

    settle_1 = settles(settle)
    settle_2 = settles(settle)
    settle_3 = settles(settle)

    @rule(who=peer_indexes, channel=channels, how=st.sampled_from(["ack", "requeue", "reject"]))
    def settle_all(self, who: int, channel: int, how: str) -> None:
        peer = self.peers[who]
        self.settled(peer, channel, [key for key in self.settleable(peer) if key[0] == channel], how)
        if how == "ack":
            self.send(peer, channel, m.BasicAck(delivery_tag=0, multiple=True))
        else:
            self.send(peer, channel, m.BasicNack(delivery_tag=0, multiple=True, requeue=how == "requeue"))

    def settleable(self, peer: Peer) -> list[tuple[int, int]]:
        return [key for key, held in sorted(peer.held.items()) if held.how is None]

    def settled(self, peer: Peer, channel: int, keys: list[tuple[int, int]], how: str) -> None:
        """Enter settlements into the books before they are sent: deliveries may come back at once."""
        for key in keys:
            peer.held[key].how = how
            if channel != TRANSACTS:
                self.settled_for_good(peer, key)

    def settled_for_good(self, peer: Peer, key: tuple[int, int]) -> None:
        held = peer.held.pop(key)
        if held.how == "ack":
            held.books.left[held.number] += 1

    @rule(who=peer_indexes, commits=st.sampled_from([True, True, False]))
    def end_transaction(self, who: int, commits: bool) -> None:
        peer = self.peers[who]
        if commits:
            self.commit(peer)
        else:
            self.rollback(peer)

    def commit(self, peer: Peer) -> None:
        for key in [key for key, held in peer.held.items() if held.how is not None]:
            self.settled_for_good(peer, key)
        self.ask(peer, TRANSACTS, m.TxCommit(), m.TxCommitOk)

    def rollback(self, peer: Peer) -> None:
        self.ask(peer, TRANSACTS, m.TxRollback(), m.TxRollbackOk)
        for held in peer.held.values():
            held.how = None

    @rule(who=peer_indexes, channel=channels, count=st.integers(0, 3), shared=st.just(True))
    def qos(self, who: int, channel: int, count: int, shared: bool) -> None:
        peer = self.peers[who]
        if any(held.how for held in peer.held.values()):
            return  # Whether what waits for a commit counts in a new window is nobody's business.
        if self.strict:
            shared = count == 3  # There a window for the channel is the usual thing.
            peer.window[0 if shared else channel] = count
        elif shared and self.shares:
            peer.window[channel] = count
        else:
            peer.prefetch[channel] = count
            peer.window[channel] = 0
        self.ask(peer, channel, m.BasicQos(prefetch_count=count, global_=shared), m.BasicQosOk)

    def recover(self, peer: Peer, channel: int) -> None:
        for key in [key for key in peer.held if key[0] == channel]:
            del peer.held[key]
        self.ask(peer, channel, m.BasicRecover(requeue=True), m.BasicRecoverOk)

    def count(self, name: str) -> None:
        queue = self.server.vhost.queues[name]
        answer = self.admin.declare(name, passive=True)
        assert answer.message_count == len(queue.ready)
        assert answer.message_count == (self.books[name].remaining() - self.in_hands(name)).total()
        consumers = [
            each for peer in self.peers for each in peer.consumers.values() if each.books.name == name
        ]
        assert answer.consumer_count == len(consumers)

    # What is rare, or sweeps much away, shares one rule, lest nothing else had the time to happen.
    @rule(
        what=st.sampled_from(
            [
                *["count", "wait", "wait long", "recover"] * 2,
                "purge",
                "delete",
                "close",
                "reconnect",
                "vanish",
            ]
        ),
        who=peer_indexes,
        channel=channels,
        pick=picks,
    )
    def now_and_then(self, what: str, who: int, channel: int, pick: int) -> None:
        peer = self.peers[who]
        if what == "count":
            self.count(self.name(pick))
        elif what.startswith("wait"):
            self.server.advance(BRIEF if what == "wait long" else BRIEF / 3)
            self.read()
        elif what == "recover":
            if channel != TRANSACTS:
                self.recover(peer, channel)
        elif what == "purge":
            self.purge(peer, self.name(pick))
        elif what == "delete":
            self.delete(peer, self.name(pick))
        elif what == "close":
            self.close_channel(peer, channel)
        else:
            self.reconnect(who, politely=what == "reconnect")

    def purge(self, peer: Peer, name: str) -> None:
        waiting = len(self.server.vhost.queues[name].ready)
        reply = self.ask(peer, NORMAL, m.QueuePurge(queue=name), m.QueuePurgeOk)
        assert reply.message_count == waiting

    def delete(self, peer: Peer, name: str) -> None:
        self.ask(peer, NORMAL, m.QueueDelete(queue=name), m.QueueDeleteOk)
        assert not any(each.books.name == name for peer in self.peers for each in peer.consumers.values())
        self.declare(name)

    def close_channel(self, peer: Peer, channel: int) -> None:
        peer.forget(channel)  # From here on nothing counts, or comes, on this channel.
        self.ask(peer, channel, m.ChannelClose(reply_code=200), m.ChannelCloseOk)
        peer.open(channel)

    def reconnect(self, who: int, *, politely: bool) -> None:
        peer = self.peers[who]
        if politely:
            peer.client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
            peer.client.expect_end_after_close()
        peer.client.drop()
        assert not left_behind(self.state, peer.client.connection)
        self.peers[who] = Peer(self.server, peer.name)
        self.read()

    # --- what must hold -----------------------------------------------------------------------------------

    def in_hands(self, name: str) -> Counter[int]:
        books = self.books[name]
        return Counter(
            held.number for peer in self.peers for held in peer.held.values() if held.books is books
        )

    @invariant()
    def balance(self) -> None:
        """Whatever entered a queue is ready, in somebody's hands, or has left for a known reason."""
        for name, books in self.books.items():
            queue = self.server.vhost.queues[name]
            ready = Counter(int(queued.message.body) for queued in queue.ready)
            unacked = Counter(int(delivery.queued.message.body) for delivery in queue.unacked)
            assert unacked == self.in_hands(name), name
            assert ready + unacked == books.remaining(), name

    @invariant()
    def order(self) -> None:
        """No message was ever delivered before one that had entered earlier (at the same priority)."""
        for name, books in self.books.items():
            if name == "dead":
                continue
            ranked = self.strict or name == "levels"
            newest: dict[int, int] = {}
            entry = {number: place for place, number in enumerate(books.entered)}
            for number in books.delivered:
                level = books.priorities[number] if ranked else 0
                newest[level] = max(newest.get(level, -1), entry[number])
            for queued in self.server.vhost.queues[name].ready:
                number = int(queued.message.body)
                level = books.priorities[number] if ranked else 0
                if number not in books.delivered:
                    assert entry[number] > newest.get(level, -1), f"{name}: {number} was passed over"

    @invariant()
    def limits(self) -> None:
        """No queue is longer than it may be."""
        queues = self.server.vhost.queues
        assert len(queues["short"].ready) <= LONGEST_SHORT

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        """No message is ready while somebody could be sent it."""
        for name, books in self.books.items():
            queue = self.server.vhost.queues[name]
            if not queue.ready or queue.selects:
                continue
            consumers = [
                (peer, key[0], each)
                for peer in self.peers
                for key, each in peer.consumers.items()
                if each.books is books
            ]
            if name == "single":
                continue  # Only the one whose turn it is; the model's own view of that is checked below.
            for peer, channel, consumer in consumers:
                full = any(limit and count >= limit for count, limit in self.windows(peer, channel, consumer))
                assert full and not consumer.no_ack, f"{name} waits although {consumer.tag} could take it"

    @invariant()
    def consistent(self) -> None:
        assert not (problems := inconsistencies(self.state)), problems


class _Recorder:
    """Takes the bytes that `Client.publish` would send."""

    def __init__(self) -> None:
        self.octets = b""

    def method_frame(self, method: m.Method, channel: int) -> bytes:
        return method_frame(channel, method.encode())

    def send_bytes(self, octets: bytes) -> None:
        self.octets += octets


class SharingMachine(Machine):
    """Where consumers of a channel can share a prefetch limit."""

    personality = "rabbitmq-4.2"


class SpecMachine(Machine):
    personality = "spec"


@pytest.mark.parametrize(
    "machine", [Machine, SharingMachine, SpecMachine], ids=lambda machine: machine.personality
)
def test_the_books_balance(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=examples(120, stateful_step_count=100))
