"""Clients of 0-9 and 0-9-1 do what they may, in any order, and every message is accounted for.

All classes that have messages are here, with acknowledgements, transactions, windows in messages and bytes,
recovery of both kinds, stopped flows, lost and resumed connections, bodies by reference, repeated requests,
and restarts. None is lost, made up or given to two; who gets one again is told so; each consumer gets what is
new in order; every request is answered.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from compat_tests.fuzz.amqp_0_9.machine_world import CLASSES, LARGE, Channel, World
from compat_tests.fuzz.dice import Dice
from compat_tests.fuzz.machine import FramedMachine, steps
from compat_tests.fuzz.machine_books import Copy, Sent
from compat_tests.fuzz.machine_world import Consumer, Window
from compat_tests.fuzz.profile import examples
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

FOCUS = (
    ("basic", "file", "stream", "message"),
    ("basic",),
    ("message",),
    ("file",),
    ("file", "basic"),
    ("stream", "message"),
)
CONSUMES = {"basic": m.BasicConsume, "file": m.FileConsume, "stream": m.StreamConsume}
CANCELS = {"basic": m.BasicCancel, "file": m.FileCancel, "stream": m.StreamCancel}
LIMITS = {"basic": m.BasicQos, "file": m.FileQos, "stream": m.StreamQos}
PIECE = 2000


class Machine(FramedMachine):
    """See the module. `personality` and `choices`, other ones about 0-9, are set below."""

    personality = "rabbitmq-4.2"
    choices: ClassVar[dict[str, bool]] = {}
    world: World
    step = steps(
        publish=10,
        consume=4,
        settle=7,
        get=2,
        transact=2,
        recover=2,
        qos=2,
        flow=1,
        files=2,
        requests=2,
        cancel=1,
        settle_all=1,
        old_consume=1,
        old_get=1,
        old_settle=2,
        close=1,
        lose=2,
        sweep=1,
    )

    @initialize(
        kinds=st.sampled_from(FOCUS), queues=st.sampled_from([("plain",), ("short",), tuple(World.queues)])
    )
    def begin(self, kinds: tuple[str, ...], queues: tuple[str, ...]) -> None:
        self.start(World(self.personality, **self.choices), queues)
        self.kinds = kinds
        for number in range(4):
            self.consume(Dice(number * 8))

    def ask(self, channel: Channel, *methods: Any) -> None:
        """Send requests, and read the responses."""
        channel.replies.clear()
        channel.asked.update(enumerate(methods, channel.requester.asked + 1))
        channel.requester.ask(*methods)
        self.world.read()
        assert not channel.asked, "every request is answered"

    def requests(self, dice: Dice) -> None:
        """Requests without effect, and one that is repeated: it is answered as it was."""
        channel = self.channel(dice)
        pong = [m.ChannelPong()] if self.world.strict or self.choices else []  # Others do not answer it.
        self.ask(channel, dice.one(m.ChannelPing(), *pong))
        requester = channel.requester
        mark, requester.mark = requester.mark, requester.mark - 1
        requester.repeat(m.MessageTransfer(routing_key="plain", body=Body(b"never")), requester.asked)
        requester.mark = mark
        first = requester.response()
        assert first.first <= requester.asked <= first.first + first.offset

    # --- publishing -------------------------------------------------------------------------------------

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
        size = dice.one(5, LARGE, 0, 300) if kind == "message" else dice.one(0, 5, 20, 300)
        persistent = kind == "file" or (kind != "stream" and dice(3) < 2)
        more = {"immediate": immediate, "persistent": persistent, "secured": kind in ("file", "message")}
        sent = self.new(client, b"x" * size, target, CLASSES[kind], **more)
        takers = self.takers(sent) if immediate else []
        full = [each for each in sent.wanted if self.full(each, sent)]
        exchange, key = target
        fields: dict[str, Any] = {"exchange": exchange, "routing_key": key, "immediate": immediate}
        properties: dict[str, Any] = {"delivery_mode": 2} if persistent else {}
        channel.replies.clear()
        if kind == "basic":
            size = dice.one(100_000, 7)
            fields |= {"channel": channel.number, "mandatory": True, **properties}
            client.publish(sent.body, frame_size=size, **fields)
        elif kind == "stream":
            publish = m.StreamPublish(mandatory=True, **fields)
            client.send_content(publish, body=sent.body, channel=channel.number)
        elif kind == "file":
            self.publish_file(channel, sent, fields, early=dice(2) == 1)
        else:
            transfer = {"destination": fields.pop("exchange"), **fields, **properties}
            self.transfer(channel, sent.body, transfer, by_reference=size == LARGE or dice(4) == 3)
        world.read()
        if later and (kind != "message" or sent.wanted):
            assert not sent.entered and not sent.returned
            channel.planned.append(sent.number)
        elif sent.unconsumed:
            assert immediate and sent.wanted and sent.returned and not takers, sent
            world.books.fates["unconsumed"] += 1
        elif full and sent.returned:
            assert not sent.entered, sent
            world.books.fates["refused"] += 1
        else:
            self.check_sent(sent)
            if immediate and sent.wanted and sent.content_class != "file":  # A file may wait for another.
                assert takers, f"{sent} is taken by nobody"

    def publish_file(self, channel: Channel, sent: Sent, fields: dict[str, Any], *, early: bool) -> None:
        name, client = f"file {sent.number}", channel.peer.client
        opened = self.call(channel, m.FileOpen(identifier=name, content_size=len(sent.body)), "file.open-ok")
        assert opened.staged_size == 0
        publish = m.FilePublish(identifier=name, mandatory=True, **fields)
        if early:
            client.send(publish, channel.number)
        client.send_content(m.FileStage(), FileProperties(), sent.body, channel=channel.number)
        if not early:
            client.send(publish, channel.number)

    def transfer(self, channel: Channel, body: bytes, fields: dict[str, Any], *, by_reference: bool) -> None:
        if not by_reference:
            self.ask(channel, m.MessageTransfer(body=Body(body), **fields))
            return
        name = b"r%d" % (len(channel.said) + 1)
        channel.said[name] = body
        self.ask(
            channel,
            m.MessageOpen(reference=name),
            *[
                m.MessageAppend(reference=name, octets=body[at : at + PIECE])
                for at in range(0, len(body), PIECE)
            ],
            m.MessageTransfer(body=Body(name, by_reference=True), **fields),
            m.MessageClose(reference=name),
        )

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
        longest = self.world.books.longest(queue)
        waiting = len(self.world.server.vhost.queues[queue].ready)
        return longest is not None and sent.content_class == "file" and waiting >= longest

    def check_committed(self, sent: Sent) -> None:
        if sent.content_class == "file" and sent.returned and "short" in sent.wanted:
            assert not sent.entered, sent
        else:
            self.check_sent(sent)

    # --- consuming --------------------------------------------------------------------------------------

    def consume(self, dice: Dice) -> None:
        channel, kind = self.channel(dice), dice.one(*self.kinds)
        if self.crowded():
            return self.cancel(dice)
        no_ack = kind == "stream" or dice(4) == 3
        consumer = self.add_consumer(channel, kind, dice, no_ack=no_ack, no_local=dice(4) == 3)
        fields: dict[str, Any] = {"queue": consumer.queue, "no_local": consumer.no_local}
        if kind != "stream":
            fields["no_ack"] = no_ack
        if kind == "message":
            self.ask(channel, m.MessageConsume(destination=consumer.tag, **fields))
        else:
            method = CONSUMES[kind](consumer_tag=consumer.tag, **fields)
            self.call(channel, method, f"{kind}.consume-ok")

    def end_consumer(self, channel: Any, consumer: Consumer, dice: Dice) -> None:
        if consumer.kind == "message":
            self.ask(channel, m.MessageCancel(destination=consumer.tag))
            return
        opened = channel.opened
        self.call(channel, CANCELS[consumer.kind](consumer_tag=consumer.tag), f"{consumer.kind}.cancel-ok")
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
        if not any(each.method.NAME == "file.deliver" for each in frames):
            content = client.expect_content(m.FileStage, channel.number)
            self.world.files.setdefault(client, {})[opened] = (channel.staged or b"") + content.body
            channel.opened = channel.staged = None
        self.world.read()

    def gettable(self, copy: Copy, channel: Channel) -> bool:
        return copy.sent.content_class == "basic" and super().gettable(copy, channel)

    def ask_for_one(self, channel: Any, queue: str, dice: Dice, *, no_ack: bool, empty: bool) -> None:
        if channel is self.world.old or dice(3) != 2:
            super().ask_for_one(channel, queue, dice, no_ack=no_ack, empty=empty)
            return
        self.ask(channel, m.MessageGet(queue=queue, destination="got", no_ack=no_ack))
        expected = m.MessageEmpty if empty else m.MessageOk
        assert isinstance(channel.replies[0], expected), channel.replies

    # --- settling ---------------------------------------------------------------------------------------

    def settlement(
        self, kind: str, how: str, tag: int, tags: list[int], *, multiple: bool, everything: bool
    ) -> tuple[str, list[int], Any]:
        if kind == "message":
            last = tag
            while multiple and last + 1 in tags:
                last += 1
            method = m.MessageOk() if how == "ack" else m.MessageReject(code=0, text="no")
            return "ack" if how == "ack" else "reject", list(range(tag, last + 1)), method
        multiple = multiple and how == "ack"
        chosen = [each for each in tags if each == tag or (multiple and (everything or each < tag))]
        if how == "ack":
            done = m.BasicAck if kind == "basic" else m.FileAck
            tag = 0 if everything else tag
            return how, chosen, done(delivery_tag=tag, multiple=multiple)
        refusal = m.BasicReject if kind == "basic" else m.FileReject
        return how, chosen, refusal(delivery_tag=tag, requeue=how == "requeue")

    def send_settlement(self, channel: Any, tags: list[int], method: Any) -> None:
        if isinstance(method, (m.MessageOk, m.MessageReject)):
            channel.requester.answer(tags[0], method, offset=len(tags) - 1)
        else:
            super().send_settlement(channel, tags, method)

    def undo(self, channel: Any, decided: list[tuple[str, int]]) -> None:
        """Transfers come again, since a client cannot answer a request twice; on RabbitMQ all come again."""
        super().undo(channel, decided)
        again = [key for key in decided if not self.world.strict or key[0] == "message"]
        self.world.give_back(channel, again)

    def recover(self, dice: Dice) -> None:
        world = self.world
        channel = world.peers[dice(2)].channels[1]
        kind, requeue = dice.one("basic", "message"), bool(dice(2))
        keys = [key for key in channel.held if key[0] == kind]
        before = {id(channel.held[key].copy): channel.held[key] for key in keys}
        world.give_back(channel, keys)
        world.relaxed = not requeue
        if kind == "basic":
            channel.replies.clear()
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
        if self.undecided(channel):
            return
        window, together = Window(dice(4), dice.one(0, 0, 10, 50)), dice(3) == 2
        if kind != "stream":
            (channel.peer if together else channel).windows[kind] = window
            self.world.exempt |= self.world.under_way
        fields: Any = {"prefetch_count": window.count, "prefetch_size": window.size, "global_": together}
        if kind == "message":
            self.ask(channel, m.MessageQos(**fields))
        else:
            self.call(channel, LIMITS[kind](**fields), f"{kind}.qos-ok")

    def flow(self, dice: Dice) -> None:
        channel = self.channel(dice)
        channel.flows = not channel.flows
        self.call(channel, m.ChannelFlow(active=channel.flows), "channel.flow-ok")

    # --- 0-9-1 ------------------------------------------------------------------------------------------

    def old_consume(self, dice: Dice) -> None:
        old = self.world.old
        if old.consumers and dice(2):
            consumer = old.consumers.pop(dice.one(*old.consumers))
            self.call(old, shared.BasicCancel(consumer_tag=consumer.tag), "basic.cancel-ok")
            return
        consumer = self.add_consumer(old, "any", dice, no_ack=dice(3) == 2)
        method = shared.BasicConsume(queue=consumer.queue, consumer_tag=consumer.tag, no_ack=consumer.no_ack)
        self.call(old, method, "basic.consume-ok")

    def old_get(self, dice: Dice) -> None:
        """A client of 0-9-1 gets contents of all classes."""
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
        kind, tag = dice.one(*old.held)
        tags = sorted(key[1] for key in old.held)
        _, chosen, method = super().settlement(kind, how, tag, tags, multiple=True, everything=False)
        for key in sorted((key for key in old.held if key[1] in chosen), key=lambda key: key[1]):
            self.settled(old, key, how)
        self.send(old, method)
        self.nothing_is_left("rejected")

    # --- the ends of things -----------------------------------------------------------------------------

    def sweep(self, dice: Dice) -> None:
        """What is rare, lest nothing else had the time to happen."""
        if dice(3) == 2:
            self.restart(dice)
        else:
            self.purge(dice)

    def lose(self, dice: Dice) -> None:
        """A client loses its connection, comes back, and goes on with its channels or opens others."""
        world = self.world
        who = dice(2)
        lost = world.peers[who]
        undone = {
            number: bool(channel.planned or any(held.how for held in channel.held.values()))
            for number, channel in lost.channels.items()
        }
        queue = dice.one(*self.queues)
        for size in (5, 5000, 5)[: dice(4)]:
            sent = self.new(world.admin, b"x" * size, ("", queue))
            world.admin.publish(sent.body, routing_key=queue)
        world.overlook(lost)
        world.lose(lost)
        peer = world.connect(lost.name)
        world.peers.insert(who, peer)
        for number, channel in lost.channels.items():
            if undone[number] or dice(2):
                world.open(peer, number)
            else:
                world.resume(peer, channel)
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
            world.open_all(peer)
        world.old = world.connect_old()


class BatchingMachine(Machine):
    """Where every request is answered, and responses to several may be one."""

    choices: ClassVar[dict[str, bool]] = {"batches_responses": True, "answers_every_request": True}


class StrictMachine(Machine):
    personality = "spec"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("machine", [Machine, BatchingMachine, StrictMachine], ids=lambda each: each.__name__)
def test_no_message_is_lost_or_repeated(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=examples(100, stateful_step_count=50))
