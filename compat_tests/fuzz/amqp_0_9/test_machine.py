"""Clients of 0-9 and 0-9-1 do what they may, in any order, and every message is accounted for.

All classes that have messages are here, with acknowledgements, transactions, windows in messages and bytes,
recovery of both kinds, stopped flows, lost and resumed connections, and restarts. None is lost, made up or
given to two; who gets one again is told so; each consumer gets what is new in order. More of class message
is in `test_message_machine`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from compat_tests.fuzz.amqp_0_9.machine_books import LONGEST, QUEUES, Copy, Sent, route
from compat_tests.fuzz.amqp_0_9.machine_clients import CLASSES, Channel, Consumer, Window
from compat_tests.fuzz.amqp_0_9.machine_world import World
from compat_tests.fuzz.dice import DICE, Dice
from compat_tests.fuzz.profile import examples
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

FOCUS = (
    ("basic", "file", "stream", "message"),
    ("basic",),
    ("file",),
    ("file", "basic"),
    ("stream", "message"),
)
STEPS = (
    *("publish",) * 10,
    *("consume",) * 4,
    *("settle",) * 6,
    *("get", "get", "transact", "transact", "recover", "recover", "qos", "qos", "flow", "files", "files"),
    *("cancel", "settle_all", "old_consume", "old_get", "old_settle", "old_settle"),
    *("close", "lose", "lose", "sweep"),
)
CONSUMES = {"basic": m.BasicConsume, "file": m.FileConsume, "stream": m.StreamConsume}
CANCELS = {"basic": m.BasicCancel, "file": m.FileCancel, "stream": m.StreamCancel}
MOST_CONSUMERS = 6


class Machine(RuleBasedStateMachine):
    """See the module. `personality` is set below."""

    personality = "rabbitmq-4.2"

    @initialize(kinds=st.sampled_from(FOCUS), queues=st.sampled_from([("plain",), ("short",), tuple(QUEUES)]))
    def begin(self, kinds: tuple[str, ...], queues: tuple[str, ...]) -> None:
        """In most examples there are few classes and queues, so that much happens to each."""
        self.world = World(self.personality)
        self.kinds, self.queues = kinds, queues
        self.number = self.tags = 0
        for number in range(4):
            self.consume(Dice(number * 8))

    # --- asking -----------------------------------------------------------------------------------------

    def channel(self, dice: Dice) -> Channel:
        return self.world.peers[dice(2)].channels[dice.one(1, 1, 2)]

    def send(self, channel: Channel, method: Any) -> None:
        channel.peer.client.send(method, channel.number)
        self.world.read()

    def call(self, channel: Channel, method: Any, reply: str) -> Any:
        """Send a method, and read; its reply may come after deliveries."""
        channel.replies.clear()
        self.send(channel, method)
        assert [each.NAME for each in channel.replies] == [reply], f"{method}: {channel.replies}"
        return channel.replies[0]

    def ask(self, channel: Channel, method: Any) -> Any:
        """The same by a request; the reply to a blank one is no copy."""
        channel.asked[channel.requester.asked + 1] = method
        channel.requester.ask(method)
        self.world.read()
        assert not channel.asked, "every request is answered"
        return channel.replies

    # --- publishing -------------------------------------------------------------------------------------

    def new(self, dice: Dice, publisher: Any, kind: str, target: tuple[str, str], **more: Any) -> Sent:
        self.number += 1
        body = b"%d:" % self.number + b"x" * dice.one(0, 5, 20, 300)
        persistent = kind == "file" or (kind != "stream" and dice(3) < 2)
        sent = Sent(self.number, body, CLASSES[kind], persistent, publisher, route(*target), **more)
        sent.secured = kind in ("file", "message")
        self.world.books.sent[self.number] = sent
        return sent

    def publish(self, dice: Dice) -> None:
        for _ in range(1 + dice(3)):
            self.publish_one(dice)

    def publish_one(self, dice: Dice) -> None:
        if dice(8) == 7:
            channel, kind = self.world.old, "basic"
        else:
            channel, kind = self.channel(dice), dice.one(*self.kinds)
        world, client = self.world, channel.peer.client
        queue = dice.one(*self.queues)
        target = dice.one(("", queue), ("", queue), ("amq.fanout", ""), ("", queue), ("", "nowhere"))
        later = channel.transacts and kind != "stream"
        immediate = channel is not world.old and not later and target[0] == "" and dice(4) == 3
        sent = self.new(dice, client, kind, target, immediate=immediate)
        takers = self.takers(sent) if immediate else []
        full = [each for each in sent.wanted if self.full(each, sent)]
        exchange, key = target
        fields = {"exchange": exchange, "routing_key": key, "mandatory": True, "immediate": immediate}
        properties = {"delivery_mode": 2} if sent.persistent else {}
        channel.replies.clear()
        if kind == "basic":
            size = dice.one(100_000, 7)
            client.publish(sent.body, channel=channel.number, frame_size=size, **fields, **properties)
        elif kind == "stream":
            client.send_content(m.StreamPublish(**fields), body=sent.body, channel=channel.number)
        elif kind == "file":
            name = f"file {sent.number}"
            opened = self.call(
                channel, m.FileOpen(identifier=name, content_size=len(sent.body)), "file.open-ok"
            )
            assert opened.staged_size == 0
            publish = m.FilePublish(identifier=name, **fields)
            if early := dice(2):
                client.send(publish, channel.number)
            client.send_content(m.FileStage(), FileProperties(), sent.body, channel=channel.number)
            if not early:
                client.send(publish, channel.number)
        else:
            transfer = m.MessageTransfer(
                destination=exchange, routing_key=key, immediate=immediate, body=Body(sent.body), **properties
            )
            self.ask(channel, transfer)
        world.read()
        if later and (kind != "message" or sent.wanted):
            assert not sent.entered and not sent.returned
            channel.planned.append(sent.number)
            return
        self.check_sent(sent, full, takers)

    def takers(self, sent: Sent) -> list[Consumer]:
        """Who could take an immediate message at once."""
        world = self.world
        found = []
        for queue in sent.wanted:
            copy = Copy(queue, sent, 0)
            for channel, consumer in world.consumers(queue):
                waits = any(world.suits(channel, consumer, each) for each in world.waiting(queue))
                if world.suits(channel, consumer, copy) and world.able(channel, consumer, copy) and not waits:
                    found.append(consumer)
        return found

    def full(self, queue: str, sent: Sent) -> bool:
        """Whether a file has no place there."""
        waiting = len(self.world.server.vhost.queues[queue].ready)
        return queue == "short" and sent.content_class == "file" and waiting >= LONGEST

    def check_sent(self, sent: Sent, full: list[str], takers: list[Consumer]) -> None:
        """A message that was published is where it should be, or has come back."""
        if sent.unconsumed:
            assert sent.immediate and sent.wanted and sent.returned and not takers, sent
            self.world.books.fates["unconsumed"] += 1
        elif not sent.wanted:
            assert sent.returned and not sent.entered, sent
        elif full and sent.returned:
            assert not sent.entered, sent
            self.world.books.fates["refused"] += 1
        else:
            assert tuple(sorted(sent.entered)) == tuple(sorted(sent.wanted)) and not sent.returned, sent
            if sent.immediate and sent.content_class != "file":  # A file may wait for one before it.
                assert takers, f"{sent} is taken by nobody"

    # --- consuming --------------------------------------------------------------------------------------

    def consume(self, dice: Dice) -> None:
        channel, kind = self.channel(dice), dice.one(*self.kinds)
        if sum(len(each.consumers) for each in self.world.channels) >= MOST_CONSUMERS:
            return self.cancel(dice)
        self.tags += 1
        consumer = Consumer(
            f"c{self.tags}", kind, dice.one(*self.queues), kind == "stream" or dice(4) == 3, dice(4) == 3
        )
        channel.consumers[consumer.tag] = consumer
        fields: dict[str, Any] = {"queue": consumer.queue, "no_local": consumer.no_local}
        if kind != "stream":
            fields["no_ack"] = consumer.no_ack
        if kind == "message":
            channel.replies.clear()
            self.ask(channel, m.MessageConsume(destination=consumer.tag, **fields))
        else:
            method = CONSUMES[kind](consumer_tag=consumer.tag, **fields)
            self.call(channel, method, f"{kind}.consume-ok")

    def cancel(self, dice: Dice) -> None:
        channels = [each for peer in self.world.peers for each in peer.channels.values() if each.consumers]
        if not channels:
            return
        channel = dice.one(*channels)
        consumer = channel.consumers.pop(dice.one(*channel.consumers))
        channel.replies.clear()
        if consumer.kind == "message":
            self.ask(channel, m.MessageCancel(destination=consumer.tag))
            return
        opened = channel.opened
        self.send(channel, CANCELS[consumer.kind](consumer_tag=consumer.tag))
        assert [each.NAME for each in channel.replies] == [f"{consumer.kind}.cancel-ok"], channel.replies
        if opened is not None and consumer.kind == "file":
            self.answer(channel, dice)

    def files(self, dice: Dice) -> None:
        """Have files wait from now on, or have one that waits."""
        channel = self.channel(dice)
        if channel.opened is None:
            channel.lazy = not channel.lazy
        else:
            self.answer(channel, dice)

    def answer(self, channel: Channel, dice: Dice) -> None:
        """Have the file that waits. One for a consumer that has gone is staged, and not delivered."""
        opened = channel.opened
        if opened is None:
            return
        self.world.answer_open(channel, dice(400))
        client = channel.peer.client
        frames = [each for each in client.inbox if each.channel == channel.number and each.method]
        delivered = any(each.method.NAME == "file.deliver" for each in frames if each.method)
        if not delivered:
            content = client.expect_content(m.FileStage, channel.number)
            channel.peer.files[opened] = channel.staged + content.body
            channel.opened = channel.staged = None
        self.world.read()

    def get(self, dice: Dice) -> None:
        channel, queue, no_ack = self.channel(dice), dice.one(*self.queues), dice(4) == 3
        world = self.world
        waiting = world.waiting(queue)
        able = [each for each in waiting if each.sent.content_class == "basic" and each.avoid is not channel]
        channel.replies.clear()
        channel.getting = (queue, no_ack)
        if dice(3) == 2:
            self.ask(channel, m.MessageGet(queue=queue, destination="got", no_ack=no_ack))
            expected = m.MessageOk if able else m.MessageEmpty
            assert isinstance(channel.replies[0], expected), channel.replies
        else:
            self.send(channel, m.BasicGet(queue=queue, no_ack=no_ack))
        if able:
            got = [each for each in channel.replies if isinstance(each, Copy)]
            assert got == [able[0]], f"a get takes what waits longest: {got}, {able}"
        else:
            assert not any(isinstance(each, Copy) for each in channel.replies)

    # --- settling ---------------------------------------------------------------------------------------

    def settle(self, dice: Dice, *, everything: bool = False) -> None:
        channels = [each for peer in self.world.peers for each in peer.channels.values()]
        channels = [each for each in channels if any(held.how is None for held in each.held.values())]
        if not channels:
            return
        channel = dice.one(*channels)
        kind, tag = dice.one(*(key for key, held in channel.held.items() if held.how is None))
        how = dice.one("ack", "requeue", "ack", "reject")
        multiple = how == "ack" and kind != "message" and (everything or dice(2) == 1)
        open_tags = [key[1] for key, held in channel.held.items() if key[0] == kind and held.how is None]
        chosen = [each for each in open_tags if each == tag or (multiple and (everything or each < tag))]
        if kind == "message" and how == "requeue":
            how = "reject"
        for each in sorted(chosen):
            self.settled(channel, (kind, each), how)
        client, number = channel.peer.client, channel.number
        if kind == "message":
            answer = m.MessageOk() if how == "ack" else m.MessageReject(code=0, text="no")
            channel.requester.answer(tag, answer)
        elif how == "ack":
            method = m.BasicAck if kind == "basic" else m.FileAck
            client.send(method(delivery_tag=0 if everything and multiple else tag, multiple=multiple), number)
        else:
            refusal = m.BasicReject if kind == "basic" else m.FileReject
            client.send(refusal(delivery_tag=tag, requeue=how == "requeue"), number)
        self.world.read()
        self.nothing_is_left("rejected")

    def settle_all(self, dice: Dice) -> None:
        self.settle(dice, everything=True)

    def settled(self, channel: Channel, key: tuple[str, int], how: str) -> None:
        held = channel.held[key]
        held.how = how
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
            held.copy.state = "rejected"

    def nothing_is_left(self, state: str) -> None:
        for copies in self.world.books.queues.values():
            assert not [copy for copy in copies.values() if copy.state == state]

    def transact(self, dice: Dice) -> None:
        channel = self.world.peers[dice(2)].channels[2]
        decided = [key for key, held in channel.held.items() if held.how is not None]
        planned = [self.world.books.sent[number] for number in channel.planned]
        channel.planned.clear()
        if dice(3) < 2:
            for key in decided:
                self.settled_for_good(channel, key)
            self.call(channel, m.TxCommit(), "tx.commit-ok")
            self.nothing_is_left("rejected")
            for sent in planned:
                if not sent.wanted:
                    assert sent.returned and not sent.entered, sent
                elif sent.content_class == "file" and sent.returned:
                    assert not sent.entered and "short" in sent.wanted, sent
                else:
                    assert sorted(sent.entered) == sorted(sent.wanted) and not sent.returned, sent
            return
        again = [key for key in decided if not self.world.strict or key[0] == "message"]
        for key in decided:
            channel.held[key].how = None
        self.world.give_back(channel, again)
        self.world.relaxed = True
        self.call(channel, m.TxRollback(), "tx.rollback-ok")
        self.world.relaxed = False
        assert not any(sent.entered for sent in planned)

    def recover(self, dice: Dice) -> None:
        world = self.world
        channel = world.peers[dice(2)].channels[1]
        kind, requeue = dice.one("basic", "message"), bool(dice(2))
        keys = [key for key in channel.held if key[0] == kind]
        before = {id(channel.held[key].copy): channel.held[key] for key in keys}
        world.give_back(channel, keys)
        world.relaxed = not requeue
        channel.replies.clear()
        if kind == "basic":
            self.send(channel, m.BasicRecover(requeue=requeue))
        else:
            self.ask(channel, m.MessageRecover(requeue=requeue))
        world.relaxed = False
        if requeue or not channel.flows:
            return  # During a pause nothing comes, and what was held is anybody's.
        after = {id(held.copy): held.consumer for held in channel.held.values()}
        for each, held in before.items():
            consumer = held.consumer
            if consumer is not None and consumer.tag in channel.consumers and held.copy.state != "gone":
                assert after.get(each) is consumer, f"{held.copy} does not go back to {consumer}"

    # --- windows ----------------------------------------------------------------------------------------

    def qos(self, dice: Dice) -> None:
        channel, kind = self.channel(dice), dice.one(*self.kinds)
        peer = channel.peer
        if any(held.how for each in peer.channels.values() for held in each.held.values()):
            return  # Whether what waits for a commit counts in a new window is nobody's business.
        window, shared = Window(dice(4), dice.one(0, 0, 10, 50)), dice(3) == 2
        if kind == "stream":
            method = m.StreamQos(prefetch_count=window.count, prefetch_size=window.size, global_=shared)
            self.call(channel, method, "stream.qos-ok")
            return
        (peer.windows if shared else channel.windows)[kind] = window
        self.world.exempt |= self.world.under_way
        fields = {"prefetch_count": window.count, "prefetch_size": window.size, "global_": shared}
        if kind == "message":
            channel.replies.clear()
            self.ask(channel, m.MessageQos(**fields))
        else:
            known = {"basic": m.BasicQos, "file": m.FileQos}
            self.call(channel, known[kind](**fields), f"{kind}.qos-ok")

    def flow(self, dice: Dice) -> None:
        channel = self.channel(dice)
        channel.flows = not channel.flows
        self.call(channel, m.ChannelFlow(active=channel.flows), "channel.flow-ok")

    # --- 0-9-1 ------------------------------------------------------------------------------------------

    def old_consume(self, dice: Dice) -> None:
        old = self.world.old
        if old.consumers and dice(2):
            tag = dice.one(*old.consumers)
            del old.consumers[tag]
            self.call(old, shared.BasicCancel(consumer_tag=tag), "basic.cancel-ok")
            return
        self.tags += 1
        consumer = Consumer(f"c{self.tags}", "any", dice.one(*self.queues), dice(3) == 2, False)
        old.consumers[consumer.tag] = consumer
        method = shared.BasicConsume(queue=consumer.queue, consumer_tag=consumer.tag, no_ack=consumer.no_ack)
        self.call(old, method, "basic.consume-ok")

    def old_get(self, dice: Dice) -> None:
        old, queue = self.world.old, dice.one(*self.queues)
        able = [copy for copy in self.world.waiting(queue) if copy.avoid is not old]
        old.replies.clear()
        old.getting = (queue, False)
        self.send(old, shared.BasicGet(queue=queue))
        assert [each for each in old.replies if isinstance(each, Copy)] == able[:1]

    def old_settle(self, dice: Dice) -> None:
        old = self.world.old
        if not old.held:
            return
        how = dice.one("ack", "requeue", "reject")
        _, tag = dice.one(*old.held)
        for each in sorted((key for key in old.held if key[1] <= tag), key=lambda key: key[1]):
            held = old.held[each]
            held.how = how
            if how == "requeue":
                self.world.give_back(old, [each], avoid=old if self.world.strict else None)
            else:
                self.settled_for_good(old, each)
        if how == "ack":
            old.peer.client.ack(tag, multiple=True)
        else:
            old.peer.client.nack(tag, multiple=True, requeue=how == "requeue")
        self.world.read()
        self.nothing_is_left("rejected")

    # --- the ends of things -----------------------------------------------------------------------------

    def sweep(self, dice: Dice) -> None:
        """What is rare, lest nothing else had the time to happen."""
        if dice(3) == 2:
            self.restart(dice)
        else:
            self.purge(dice)

    def purge(self, dice: Dice) -> None:
        queue = dice.one(*QUEUES)
        waiting = self.world.waiting(queue)
        for copy in waiting:
            copy.state = "purged"
        reply = self.world.admin.call(m.QueuePurge(queue=queue), shared.QueuePurgeOk)
        assert reply.message_count == len(waiting)
        self.nothing_is_left("purged")
        self.world.read()

    def close(self, dice: Dice) -> None:
        peer, number = self.world.peers[dice(2)], dice.one(1, 2)
        channel = peer.channels[number]
        self.world.let_go(channel)
        channel.consumers.clear()
        self.call(channel, m.ChannelClose(reply_code=200), "channel.close-ok")
        peer.open(number)

    def lose(self, dice: Dice) -> None:
        """A client loses its connection, comes back, and goes on with its channels or opens others."""
        world = self.world
        who = dice(2)
        lost = world.peers[who]
        undone = {
            number: bool(channel.planned or any(held.how for held in channel.held.values()))
            for number, channel in lost.channels.items()
        }
        world.lose(lost)
        peer = world.connect(lost.name)
        world.peers.insert(who, peer)
        for number, channel in lost.channels.items():
            if undone[number] or dice(2):
                peer.open(number)
            else:
                peer.resume(channel)
            world.read()

    def restart(self, dice: Dice) -> None:
        """Everybody loses the connection, and the broker what is not there to last."""
        world = self.world
        peers, names = world.peers, [peer.name for peer in world.peers]
        for peer in [*peers, world.old.peer]:
            for channel in peer.channels.values():
                world.let_go(channel)
            peer.client.drop()
            world.peers = [each for each in world.peers if each is not peer]
            if peer is not world.old.peer:
                world.read()
        world.server.restart(crash=bool(dice(2)))
        world.admin = world.server.client()
        world.peers = [world.connect(name) for name in names]
        for peer in world.peers:
            for number in (1, 2):
                peer.open(number)
        world.old = world.connect_old()

    # --- the machine ------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(STEPS), dice=DICE)
    def step(self, what: str, dice: Dice) -> None:
        getattr(self, what)(dice)

    @invariant()
    def the_books_balance(self) -> None:
        if hasattr(self, "world"):
            self.world.check()


class StrictMachine(Machine):
    personality = "spec"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("machine", [Machine, StrictMachine], ids=lambda each: each.personality)
def test_no_message_is_lost_or_repeated(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=examples(100, stateful_step_count=50))
