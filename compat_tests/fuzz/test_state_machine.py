"""Several clients of 0-9-1 do what they may, in any order, and the books must balance after every step.

The machine keeps its own books from what clients see: which messages entered a queue, who holds them,
how they left. After each step they are compared with the broker's queues (`World.check`).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from compat_tests.fuzz.dice import Dice
from compat_tests.fuzz.machine import FramedMachine, steps
from compat_tests.fuzz.machine_world import BRIEF, CONFIRMS, Window, World
from compat_tests.fuzz.profile import examples
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties


class Machine(FramedMachine):
    """See the module. `personality` is set by the tests below."""

    personality = "rabbitmq-4.3"
    step = steps(
        publish=9, get=4, consume=3, cancel=2, settle=12, settle_all=3, transact=3, qos=2, now_and_then=4
    )

    @initialize(queues=st.lists(st.sampled_from(tuple(World.queues)), min_size=1, max_size=3, unique=True))
    def begin(self, queues: list[str]) -> None:
        self.start(World(self.personality), tuple(queues))
        known = self.world.server.state.personality
        self.shares = known.deprecated_features.get("global_qos") == "permitted"

    def publish(self, dice: Dice) -> None:
        """Some messages at once."""
        channel, world = self.channel(dice), self.world
        queue = dice.one(*self.queues)
        target = dice.one(*[("", queue)] * 8, ("amq.fanout", ""), ("", "nowhere"))
        if channel.transacts and target[1] == "strict":
            return  # A refusal at commit closes the channel.
        mandatory, priority = bool(dice(2)), dice(4)
        client = channel.peer.client
        octets = b""
        sents = []
        for _ in range(1 + dice(4)):
            sent = self.new(client, b"", target, mandatory=mandatory, priority=priority)
            sents.append(sent)
            method = m.BasicPublish(exchange=target[0], routing_key=target[1], mandatory=mandatory)
            properties = BasicProperties(priority=priority).encode()
            octets += client.method_frame(method, channel.number)
            octets += b"".join(content_frames(channel.number, 60, properties, sent.body, 4096))
            if channel.number == CONFIRMS:
                channel.published += 1
                channel.unconfirmed[channel.published] = sent
        client.send_bytes(octets)
        world.read()
        assert not channel.unconfirmed, "every publish is confirmed when the turn ends"
        if channel.transacts:
            assert not any(sent.entered or sent.returned for sent in sents)
            channel.planned += [sent.number for sent in sents]
            return
        for sent in sents:
            self.check_sent(sent)

    def consume(self, dice: Dice) -> None:
        if self.crowded():
            return
        channel, prefetch = self.channel(dice), dice(3)
        known = channel.windows.get("basic", Window()).count if self.world.strict else channel.prefetch
        if prefetch != known:
            self.limit(channel, prefetch, shared=False)
        window = Window() if self.world.strict else Window(channel.prefetch)
        consumer = self.add_consumer(channel, "basic", dice, no_ack=dice(3) == 2, window=window)
        method = m.BasicConsume(
            queue=consumer.queue,
            consumer_tag=consumer.tag,
            no_ack=consumer.no_ack,
            arguments={"x-priority": 1} if dice(3) == 2 else {},
        )
        self.call(channel, method, "basic.consume-ok")

    def qos(self, dice: Dice) -> None:
        count = dice(4)
        # In "spec" a window for the channel is the usual thing.
        self.limit(self.channel(dice), count, shared=count == 3 if self.world.strict else True)

    def limit(self, channel: Any, count: int, *, shared: bool) -> None:
        """Set a window: that of consumers to come, of the channel, or of the connection."""
        if self.undecided(channel):
            return
        if self.world.strict:
            (channel.peer if shared else channel).windows["basic"] = Window(count)
        else:
            both = shared and self.shares
            if both and not channel.windows.get("basic", Window()).count:
                channel.occupied = [0 for held in channel.held.values() if held.consumer is None]
            channel.windows["basic"] = Window(count if both else 0)
            channel.prefetch = channel.prefetch if both else count
        self.call(channel, m.BasicQos(prefetch_count=count, global_=shared), "basic.qos-ok")

    def settle_all(self, dice: Dice) -> None:
        """On a channel that may hold nothing as well."""
        channel = self.channel(dice)
        keys = [key for key, held in channel.held.items() if held.how is None]
        how = dice.one("ack", "requeue", "reject")
        for key in sorted(keys):
            self.settled(channel, key, how)
        _, _, method = self.settlement("basic", how, 0, [], multiple=True, everything=True)
        self.send(channel, method)
        self.nothing_is_left("rejected")

    # --- what is rare, lest nothing else had the time to happen ---------------------------------------------

    def now_and_then(self, dice: Dice) -> None:
        often = (self.count, self.wait, self.recover) * 2
        dice.one(*often, self.purge, self.delete, self.close, self.reconnect)(dice)

    def count(self, dice: Dice) -> None:
        name = dice.one(*self.queues)
        answer = self.world.admin.declare_ok(name, passive=True)
        assert answer.message_count == len(self.world.books.ready(name))
        assert answer.consumer_count == len(self.world.consumers(name))

    def wait(self, dice: Dice) -> None:
        self.world.server.advance(dice.one(BRIEF / 3, BRIEF))
        self.world.read()

    def delete(self, dice: Dice) -> None:
        name, channel = dice.one(*self.queues), self.channel(dice)
        self.world.books.declared_again(name)
        self.call(channel, m.QueueDelete(queue=name), "queue.delete-ok")
        assert not self.world.consumers(name)
        self.world.declare(name)

    def reconnect(self, dice: Dice) -> None:
        """A client goes, politely or not, and comes back."""
        world = self.world
        who = dice(2)
        lost = world.peers[who]
        if dice(2):
            for channel in lost.channels.values():
                world.let_go(channel)
            lost.client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
            lost.client.expect_end_after_close()
        world.lose(lost)
        peer = world.connect(lost.name)
        world.peers.insert(who, peer)
        world.open_all(peer)


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
