"""What clients of 0-9-1 and 0-9 do alike: the steps of `test_state_machine` and `amqp_0_9.test_machine`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from compat_tests.fuzz.dice import DICE, Dice
from compat_tests.fuzz.machine_books import Copy, Sent
from compat_tests.fuzz.machine_world import TRANSACTS, Channel, Consumer, World
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

__all__ = ["FramedMachine", "steps"]

MOST_CONSUMERS = 6


def steps(**weights: int) -> Any:
    """A rule for all steps: where there are many rules, some examples leave out nearly all of them."""

    def step(self: FramedMachine, what: str, dice: Dice) -> None:
        getattr(self, what)(dice)

    names = [name for name, weight in weights.items() for _ in range(weight)]
    return rule(what=st.sampled_from(names), dice=DICE)(step)


class FramedMachine(RuleBasedStateMachine):
    """Few queues and classes per example, so that much happens to each."""

    world: World
    kinds: tuple[str, ...] = ("basic",)
    queues: tuple[str, ...]

    def start(self, world: World, queues: tuple[str, ...]) -> None:
        self.world, self.queues = world, queues
        self.number = self.tags = 0

    # --- asking -----------------------------------------------------------------------------------------

    def channel(self, dice: Dice) -> Any:
        """One of a client; the first is used most."""
        return self.world.peers[dice(2)].channels[dice.one(1, *self.world.numbers)]

    def send(self, channel: Channel, method: Any) -> None:
        channel.peer.client.send(method, channel.number)
        self.world.read()

    def call(self, channel: Channel, method: Any, reply: str) -> Any:
        """Send a method, and read; its reply may come after deliveries."""
        channel.replies.clear()
        self.send(channel, method)
        assert [each.NAME for each in channel.replies] == [reply], f"{method}: {channel.replies}"
        return channel.replies[0]

    # --- publishing -------------------------------------------------------------------------------------

    def new(
        self, publisher: Any, body: bytes, target: tuple[str, str], kind: str = "basic", **more: Any
    ) -> Sent:
        """A message that is about to be published; `body` stands behind its number."""
        self.number += 1
        body = b"%d:" % self.number + body
        sent = Sent(self.number, body, kind, publisher, self.world.route(*target), **more)
        self.world.books.sent[self.number] = sent
        return sent

    def check_sent(self, sent: Sent) -> None:
        """A message that was published is where it should be, or has come back."""
        wanted = [each for each in sent.wanted if self.world.books.births[each] < sent.number]
        if sent.refused:
            wanted = [each for each in wanted if not self.world.books.refuses(each)]
        assert set(wanted) <= set(sent.entered) <= set(sent.wanted), f"{sent} went to {sent.entered}"
        assert len(sent.entered) == len(set(sent.entered)), sent
        assert sent.returned == (sent.mandatory and not sent.wanted), sent

    # --- consuming --------------------------------------------------------------------------------------

    def add_consumer(self, channel: Channel, kind: str, dice: Dice, **more: Any) -> Consumer:
        """A consumer that is about to be there."""
        self.tags += 1
        consumer = Consumer(f"c{self.tags}", kind, dice.one(*self.queues), **more)
        channel.consumers[consumer.tag] = consumer
        return consumer

    def crowded(self) -> bool:
        """Whether there are consumers enough."""
        return sum(len(each.consumers) for each in self.world.channels) >= MOST_CONSUMERS

    def cancel(self, dice: Dice) -> None:
        channels = [each for peer in self.world.peers for each in peer.channels.values() if each.consumers]
        if channels:
            channel = dice.one(*channels)
            self.end_consumer(channel, channel.consumers.pop(dice.one(*channel.consumers)), dice)

    def end_consumer(self, channel: Any, consumer: Consumer, dice: Dice) -> None:
        self.call(channel, m.BasicCancel(consumer_tag=consumer.tag), "basic.cancel-ok")

    def get(self, dice: Dice) -> None:
        channel, queue, no_ack = self.channel(dice), dice.one(*self.queues), dice(4) == 3
        self.get_from(channel, queue, dice, no_ack=no_ack)

    def get_from(self, channel: Any, queue: str, dice: Dice, *, no_ack: bool) -> None:
        able = [each for each in self.world.waiting(queue) if self.gettable(each, channel)]
        channel.replies.clear()
        channel.getting = (queue, no_ack)
        self.ask_for_one(channel, queue, dice, no_ack=no_ack, empty=not able)
        got = [each for each in channel.replies if isinstance(each, Copy)]
        assert got == able[:1], f"a get takes what waits longest: {got}, {able}"

    def gettable(self, copy: Copy, channel: Channel) -> bool:
        """Whether a get may take it."""
        return copy.avoid is not channel

    def ask_for_one(self, channel: Any, queue: str, dice: Dice, *, no_ack: bool, empty: bool) -> None:
        self.send(channel, m.BasicGet(queue=queue, no_ack=no_ack))

    # --- settling ---------------------------------------------------------------------------------------

    def settle(self, dice: Dice, *, everything: bool = False) -> None:
        channels = [each for peer in self.world.peers for each in peer.channels.values()]
        channels = [each for each in channels if any(held.how is None for held in each.held.values())]
        if not channels:
            return
        channel = dice.one(*channels)
        kind, tag = dice.one(*(key for key, held in channel.held.items() if held.how is None))
        how = dice.one("ack", "requeue", "ack", "reject")
        tags = sorted(key[1] for key, held in channel.held.items() if key[0] == kind and held.how is None)
        multiple = everything or dice(2) == 1
        how, tags, method = self.settlement(kind, how, tag, tags, multiple=multiple, everything=everything)
        for each in tags:
            self.settled(channel, (kind, each), how)
        self.send_settlement(channel, tags, method)
        self.world.read()
        self.nothing_is_left("rejected")

    def settlement(
        self, kind: str, how: str, tag: int, tags: list[int], *, multiple: bool, everything: bool
    ) -> tuple[str, list[int], Any]:
        """What becomes of which of all `tags` that a channel can settle, and by what method."""
        chosen = [each for each in tags if each == tag or (multiple and (everything or each < tag))]
        tag = 0 if everything else tag
        if how == "ack":
            return how, chosen, m.BasicAck(delivery_tag=tag, multiple=multiple)
        requeue = how == "requeue"
        if multiple:
            return how, chosen, m.BasicNack(delivery_tag=tag, multiple=True, requeue=requeue)
        return how, chosen, m.BasicReject(delivery_tag=tag, requeue=requeue)

    def send_settlement(self, channel: Any, tags: list[int], method: Any) -> None:
        channel.peer.client.send(method, channel.number)

    def settle_all(self, dice: Dice) -> None:
        self.settle(dice, everything=True)

    def settled(self, channel: Channel, key: tuple[str, int], how: str) -> None:
        channel.held[key].how = how
        if not channel.transacts:
            self.settled_for_good(channel, key)

    def settled_for_good(self, channel: Channel, key: tuple[str, int]) -> None:
        held = channel.held[key]
        if held.how == "requeue":
            avoids = self.world.strict or key[0] == "file"
            self.world.give_back(channel, [key], avoid=channel if avoids else None)
            return
        del channel.held[key]
        if held.how == "ack":
            self.world.books.leave(held.copy, "acknowledged")
        else:
            self.world.books.reject(held.copy)

    def nothing_is_left(self, state: str) -> None:
        for copies in self.world.books.queues.values():
            assert not [copy for copy in copies.values() if copy.state == state]

    def transact(self, dice: Dice) -> None:
        channel = self.world.peers[dice(2)].channels[TRANSACTS]
        decided = [key for key, held in channel.held.items() if held.how is not None]
        planned = [self.world.books.sent[number] for number in channel.planned]
        channel.planned.clear()
        if dice(3) < 2:
            for key in decided:
                self.settled_for_good(channel, key)
            self.call(channel, m.TxCommit(), "tx.commit-ok")
            self.nothing_is_left("rejected")
            for sent in planned:
                self.check_committed(sent)
            return
        self.undo(channel, decided)
        self.world.relaxed = True
        self.call(channel, m.TxRollback(), "tx.rollback-ok")
        self.world.relaxed = False
        assert not any(sent.entered for sent in planned)

    def check_committed(self, sent: Sent) -> None:
        self.check_sent(sent)

    def undo(self, channel: Channel, decided: list[tuple[str, int]]) -> None:
        """Settlements are rolled back: the client holds again what it had settled."""
        for key in decided:
            channel.held[key].how = None

    def recover(self, dice: Dice) -> None:
        """What a channel holds goes back to the queues."""
        channel = self.world.peers[dice(2)].channels[1]
        self.world.give_back(channel, list(channel.held))
        self.call(channel, m.BasicRecover(requeue=True), "basic.recover-ok")

    def undecided(self, channel: Any) -> bool:
        """Whether what waits for a commit would count in a new window, which is nobody's business."""
        return any(held.how for each in channel.peer.channels.values() for held in each.held.values())

    # --- the ends of things -----------------------------------------------------------------------------

    def purge(self, dice: Dice) -> None:
        queue = dice.one(*self.world.queues)
        waiting = self.world.waiting(queue)
        for copy in waiting:
            copy.state = "purged"
        reply = self.world.admin.call(m.QueuePurge(queue=queue), m.QueuePurgeOk)
        assert reply.message_count == len(waiting)
        self.nothing_is_left("purged")
        self.world.read()

    def close(self, dice: Dice) -> None:
        peer = self.world.peers[dice(2)]
        channel = peer.channels[dice.one(*self.world.numbers)]
        self.world.let_go(channel)  # From here on nothing counts, or comes, on this channel.
        channel.consumers.clear()
        self.call(channel, m.ChannelClose(reply_code=200), "channel.close-ok")
        self.world.open(peer, channel.number)

    @invariant()
    def the_books_balance(self) -> None:
        if hasattr(self, "world"):
            self.world.check()
