"""AMQP 0-10 loses no message and repeats none, whatever clients do and wherever they are cut off.

The machine keeps books of where every message is, and a model of the credit of every subscription; after each
step the broker must agree with both. See `machine_world` for what happens, `machine_books` for what must be.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from compat_tests.fuzz.amqp_0_10.machine_books import QUEUES, Copy, Message, route
from compat_tests.fuzz.amqp_0_10.machine_clients import Cmd, Consumer, Line, Planned, Session, Sub
from compat_tests.fuzz.amqp_0_10.machine_world import World
from compat_tests.fuzz.dice import DICE, Dice
from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_10 import segments_of
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Struct

TARGETS = (
    ("", "plain"),
    ("main", "plain"),
    ("amq.fanout", ""),
    ("", "plain"),
    ("", "strict"),
    ("", "brief"),
    ("main", "unbound"),
    ("", "spare"),
    ("main", "plain"),
    ("lone", "unbound"),
)
SOURCES = ("plain", "plain", "strict", "spare", "brief")
DESTINATIONS = ("a", "b", "")
UNLIMITED = 0xFFFFFFFF
GRANTS = (2, 3, 1, 5, 10, UNLIMITED, None, 0xFFFFFFF0)
OCTETS = (UNLIMITED, 60, 100, UNLIMITED, 5100, 200, 40, None, 0xFFFFFFF0)
SIZES = (1, 1, 8, 30, 5000, 9000)
FRAME_SIZES = (65535, 4096, 4100)
MOST_LINES = 3
WEIGHTS = {
    "publish": 9,
    "publish_by_0_9_1": 5,
    "publish_many": 4,
    "publish_in_fragments": 2,
    "subscribe": 6,
    "flow": 7,
    "settle": 12,
    "complete": 9,
    "acquire": 4,
    "end_credit": 2,
    "set_flow_mode": 2,
    "cancel": 1,
    "transact": 5,
    "consume": 3,
    "get": 1,
    "settle_0_9_1": 4,
    "purge": 1,
    "fail": 3,
    "lose": 3,
    "attach_anew": 4,
    "detach": 1,
    "ask": 1,
    "advance": 4,
    "restart": 1,
}
STEPS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
"""One rule has all steps: where there are many, some examples leave out nearly all of them."""


WHO = st.integers(0, 2)


class Machine(RuleBasedStateMachine):
    """See the module."""

    personality = "rabbitmq-4.2"

    @initialize(dice=DICE)
    def begin(self, dice: Dice) -> None:
        self.world = World(self.personality)
        self.number = 0
        for session in list(self.world.sessions):
            self.attach(session, dice)
        for who in range(3):
            self.subscribe(who, dice)

    @property
    def strict(self) -> bool:
        return self.world.strict

    def new_message(self, dice: Dice, **properties: Any) -> Message:
        exchange, key = dice.one(*TARGETS)
        mode = dice.one(2, None, 2, 1)
        ttl = dice.one(None, None, None, 300, 2000)
        self.number += 1
        return self.world.message(
            self.number, dice.one(*SIZES), exchange=exchange, key=key, mode=mode, ttl=ttl, **properties
        )

    def open(
        self, who: int, *, settled: bool = False, able: Callable[[Session], Any] = lambda _: True
    ) -> Session | None:
        """A session that is attached, and `able`; if `settled`, one whose client knows all there is."""
        found = [
            each
            for each in self.world.sessions
            if each.attached and able(each) and (not settled or (each.reachable and not self.waits(each)))
        ]
        return found[who % len(found)] if found else None

    @staticmethod
    def waits(session: Session) -> bool:
        return bool(session.end.outgoing._waiting)

    def run(self, session: Session, dice: Dice, *commands: Cmd) -> None:
        """Send commands, which now and then are cut off."""
        if self.waits(session) and any(cmd.wide and cmd.fails() for cmd in commands):
            return  # Nobody would ever know what was sent between.
        split = dice(2**12) if dice(4) == 1 else 0
        cut = dice(2**15) if dice(16) == 15 else None
        self.world.run(session, commands, cut, split)

    # --- publishing -------------------------------------------------------------------------------------

    def publish(self, who: int, dice: Dice) -> None:
        for _ in range(1 + dice(4)):
            session = self.open(who)
            if session is not None:
                message = self.new_message(dice)
                self.run(session, dice, self.transfer(session, message, dice))

    def publish_many(self, who: int, dice: Dice) -> None:
        session = self.open(who)
        if session is None:
            return
        messages = [self.new_message(dice) for _ in range(2 + dice(3))]
        many = [each for each in messages if each.key != "strict" and each.exchange != "amq.fanout"]
        self.run(session, dice, *(self.transfer(session, each, dice) for each in many))

    def publish_in_fragments(self, who: int, dice: Dice) -> None:
        """The first fragment of a message, or the next."""
        session = self.open(who)
        if session is None or (session.pending and session.line is not None and session.line.mute):
            return
        message = self.new_message(dice)
        known = session.parts.pop(message.exchange, None)
        rest, ids = message.body, ()
        if known is not None:
            message, rest, ids = known
        size = 1 + dice(len(rest))
        last = size == len(rest) or dice(3) == 2
        if last:
            size = len(rest)
        ids = (*ids, session.next_id)
        if not last:
            session.parts[message.exchange] = message, rest[size:], ids
        fragment = structs.FragmentProperties(first=known is None, last=last, fragment_size=size)
        self.run(session, dice, self.transfer(session, message, dice, rest[:size], fragment, ids, last))

    def transfer(
        self,
        session: Session,
        message: Message,
        dice: Dice,
        body: bytes | None = None,
        fragment: structs.FragmentProperties | None = None,
        ids: tuple[int, ...] = (),
        last: bool = True,
    ) -> Cmd:
        """A command that publishes a message, or a fragment of it."""
        world = self.world
        explicit = dice(2) == 1
        delivery = structs.DeliveryProperties(
            routing_key=message.key, delivery_mode=message.mode, ttl=message.ttl
        )
        header: list[Struct] = [delivery]
        if fragment is not None:
            header.append(fragment)
        elif dice(4) == 1:
            message.named = b"c" * (1 + dice(20))
            header.insert(dice(2), structs.MessageProperties(correlation_id=message.named))
        answered = self.strict and explicit
        queues = route(message.exchange, message.key, alternates=not answered)
        planned = Planned(message, queues, ids, answered, returned=answered and not queues)
        message.stamped = self.strict
        command = x.MessageTransfer(destination=message.exchange, accept_mode=0 if explicit else 1)
        cmd = Cmd(segments_of(command, header, message.body if body is None else body))
        cmd.fragment, cmd.wide = fragment is not None, len(queues) > 1

        def effect() -> None:
            if not ids:
                planned.ids = (cmd.id,)
            if last:
                world.publish(session, planned)

        cmd.effect = effect
        cmd.fails = lambda: last and session.publishes is None and world.refuses(planned)
        return cmd

    def publish_by_0_9_1(self, who: int, dice: Dice) -> None:
        world, old = self.world, self.world.old
        message = self.new_message(dice)
        mandatory = bool(dice(2))
        expiration = None if message.ttl is None else str(message.ttl)
        if self.strict:
            message.ttl = None  # There it means nothing.
        message.old = True
        queues = route(message.exchange, message.key, alternates=True)
        method = m.BasicPublish(exchange=message.exchange, routing_key=message.key, mandatory=mandatory)
        properties = BasicProperties(delivery_mode=message.mode, expiration=expiration).encode()
        frames = content_frames(1, 60, properties, message.body, 4096)
        octets = method_frame(1, method.encode()) + b"".join(frames)
        if dice(12) == 11:
            # A part of a publish is none.
            old.client.send_bytes(octets[: dice(len(octets))])
            world.lose_old()
            return
        message.at = world.time
        planned = Planned(message, queues, returned=mandatory and not queues)
        old.published += 1
        old.unconfirmed[old.published] = not world._refusing(queues)
        world.due.append(planned)
        old.client.send_bytes(octets)
        world.collect()

    # --- subscriptions ----------------------------------------------------------------------------------

    def subscribe(self, who: int, dice: Dice) -> None:
        session = self.open(who, settled=True)
        if session is None:
            return
        queue = dice.one(*SOURCES)
        destination = dice.one(*DESTINATIONS)
        acquires = dice(4) != 3
        explicit = dice(4) != 3 or (self.strict and session.publishes is not None)
        if destination in session.subs:
            self.flow(who, dice)
            return
        command = x.MessageSubscribe(
            queue=queue,
            destination=destination,
            accept_mode=0 if explicit else 1,
            acquire_mode=0 if acquires else 1,
        )
        sub = Sub(session, destination, queue, explicit, acquires)
        self.run(session, dice, Cmd(segments_of(command), lambda: session.subs.update({destination: sub})))
        if dice(5) != 4 and session.reachable:
            self.grant(session, destination, 1, dice.one(*OCTETS), dice)
            if session.reachable:
                self.grant(session, destination, 0, dice.one(*GRANTS), dice)

    def grant(self, session: Session, destination: str, unit: int, value: int | None, dice: Dice) -> None:
        command = x.MessageFlow(destination=destination, unit=unit, value=value)
        window = session.subs[destination].window
        self.run(session, dice, Cmd(segments_of(command), lambda: window.grant(unit, value)))

    def sub(self, who: int, dice: Dice) -> tuple[Session, Sub] | None:
        """A subscription of a session that can be told something."""
        session = self.open(who, settled=True, able=lambda each: each.subs)
        if session is None:
            return None
        subs = list(session.subs.values())
        return session, dice.one(*subs)

    def flow(self, who: int, dice: Dice) -> None:
        found = self.sub(who, dice)
        if found is not None:
            unit = dice(2)
            value = dice.one(*(OCTETS if unit else GRANTS), 0)
            self.grant(found[0], found[1].destination, unit, value, dice)

    def end_credit(self, who: int, dice: Dice) -> None:
        found = self.sub(who, dice)
        if found is None:
            return
        session, sub = found
        if dice(2):
            segments = segments_of(x.MessageStop(destination=sub.destination))
            self.run(session, dice, Cmd(segments, sub.window.stop))
        else:
            segments = segments_of(x.MessageFlush(destination=sub.destination))
            self.run(session, dice, Cmd(segments, after=sub.window.stop))

    def set_flow_mode(self, who: int, dice: Dice) -> None:
        found = self.sub(who, dice)
        if found is None:
            return
        session, sub = found
        if self.strict and (sub.window.messages or sub.window.octets):
            self.run(
                session, dice, Cmd(segments_of(x.MessageStop(destination=sub.destination)), sub.window.stop)
            )
        mode = dice(2)
        command = x.MessageSetFlowMode(destination=sub.destination, flow_mode=mode)
        self.run(session, dice, Cmd(segments_of(command), lambda: sub.window.set_mode(mode == 1)))

    def cancel(self, who: int, dice: Dice) -> None:
        found = self.sub(who, dice)
        if found is None:
            return
        session, sub = found
        command = x.MessageCancel(destination=sub.destination)
        self.run(session, dice, Cmd(segments_of(command), lambda: session.subs.pop(sub.destination) and None))

    # --- what has come ----------------------------------------------------------------------------------

    def settle(self, who: int, dice: Dice) -> None:
        session = self.open(who, able=lambda each: each.settleable)
        if session is None:
            return
        world = self.world
        how = dice.one("accept", "release", "reject", "accept")
        marked = bool(dice(2))
        known = session.settleable
        if self.strict and how == "accept":
            known = [each for each in known if session.outstanding[each].acquired]
        ids = dice.some(known)
        if not self.strict and dice(4) == 3:
            ids += [each for each in session.accepts if dice(2)]
            ids += [dice(20)] if dice(2) and session.reachable else []
        if not ids:
            return
        transfers = SequenceSet.of(*ids)
        command: Any = x.MessageAccept(transfers=transfers)
        if how == "release":
            command = x.MessageRelease(transfers=transfers, set_redelivered=marked)
        elif how == "reject":
            command = x.MessageReject(transfers=transfers)
        effect = lambda: world.settle(session, how, ids, marked=marked)  # noqa: E731
        self.run(session, dice, Cmd(segments_of(command), effect, names=tuple(ids)))

    def acquire(self, who: int, dice: Dice) -> None:
        session = self.open(
            who, settled=True, able=lambda each: not all(hold.acquired for hold in each.outstanding.values())
        )
        if session is None:
            return
        ids = dice.some([each for each in session.settleable if not session.outstanding[each].acquired])
        if not ids:
            return
        expected: list[SequenceSet] = []
        cmd = Cmd(segments_of(x.MessageAcquire(transfers=SequenceSet.of(*ids))))
        cmd.effect = lambda: expected.append(self.world.acquire(session, ids))

        def check() -> None:
            found = [x.decode(each.first)[0] for each in session.log.values()]
            (result,) = [e for e in found if isinstance(e, x.ExecutionResult) and e.command_id == cmd.id]
            assert isinstance(result.value, structs.Acquired)
            assert (result.value.transfers or SequenceSet()) == expected[0]

        cmd.after = check
        self.run(session, dice, cmd)

    def complete(self, who: int, dice: Dice) -> None:
        session = self.open(who, able=lambda each: each.has - each.done)
        if session is None:
            return
        ids = dice.some(sorted(session.has))
        if dice(4) == 3:
            ids = sorted(session.has)
        if not ids:
            return
        confirms = dice(5) == 4
        commands = SequenceSet.of(*ids)
        control: Any = c.SessionConfirmed(commands=commands) if confirms else c.SessionCompleted(commands)
        if not self.world.control(session, control):
            return
        if confirms:
            session.confirmed |= set(ids)
        else:
            for id_ in ids:
                if id_ not in session.done and id_ in session.receipts:
                    sub, receipt = session.receipts[id_]
                    sub.window.give_back(receipt)
            session.done |= set(ids)
        self.world.collect()

    def transact(self, who: int, dice: Dice) -> None:
        session = self.open(who, settled=True)
        world = self.world
        if session is None:
            return
        how = "select" if session.publishes is None else dice.one("commit", "rollback", "commit", "select")
        if how == "select":
            explicit = all(sub.explicit for sub in session.subs.values())
            if self.strict and (session.publishes is not None or not explicit):
                return

            def select() -> None:
                session.publishes = session.publishes if session.publishes is not None else []

            self.run(session, dice, Cmd(segments_of(x.TxSelect()), select))
        elif session.publishes is not None:
            cmd = Cmd(segments_of(x.TxCommit() if how == "commit" else x.TxRollback()))
            planned = session.publishes
            many = sum("strict" in each.queues for each in planned)

            def fails() -> bool:
                return how == "commit" and many > 0 and len(world.books.ready("strict")) + many > 3

            def effect() -> None:
                if fails():
                    return
                session.publishes = []
                accepts, session.accepts = session.accepts, {}
                if how == "rollback":
                    session.outstanding = dict(sorted((session.outstanding | accepts).items()))
                    return
                for each in planned:
                    world.offer(session, each)
                for hold in accepts.values():
                    world.books.leave(hold.copy, "accepted")

            cmd.fails, cmd.effect = fails, effect
            self.run(session, dice, cmd)

    # --- 0-9-1 ------------------------------------------------------------------------------------------

    def consume(self, who: int, dice: Dice) -> None:
        world, old = self.world, self.world.old
        tag, queue, no_ack = dice.one("x", "y"), dice.one(*SOURCES), dice(4) == 3
        if tag in old.consumers:
            old.client.send(m.BasicCancel(consumer_tag=tag))
            old.client.expect(m.BasicCancelOk)
            del old.consumers[tag]
            world.collect()
            return
        if dice(2):
            old.prefetch = dice(4)
            if self.strict:
                for consumer in old.consumers.values():
                    consumer.prefetch = old.prefetch
            old.client.call(m.BasicQos(prefetch_count=old.prefetch), m.BasicQosOk)
            world.collect()
        old.consumers[tag] = Consumer(tag, queue, no_ack, old.prefetch)
        old.client.send(m.BasicConsume(queue=queue, consumer_tag=tag, no_ack=no_ack))
        old.client.expect(m.BasicConsumeOk)
        world.collect()

    def get(self, who: int, dice: Dice) -> None:
        world, old = self.world, self.world.old
        queue, no_ack = dice.one(*QUEUES), dice(3) == 2
        able = [copy for copy in world.books.ready(queue) if copy.avoid is not old]
        old.client.send(m.BasicGet(queue=queue, no_ack=no_ack))
        before = {name: [] for name in QUEUES}
        world.delivered = before
        if not able:
            old.client.expect(m.BasicGetEmpty)
        else:
            world._take_old(m.BasicGetOk, queue, no_ack=no_ack)
            assert world.delivered[queue] == [able[0]], "a get takes what waits longest"
        world.collect()

    def settle_0_9_1(self, who: int, dice: Dice) -> None:
        world, old = self.world, self.world.old
        tags = list(old.held)
        how = dice.one("ack", "requeue", "ack", "discard")
        if not tags:
            return
        tag = dice.one(*tags)
        multiple = bool(dice(2))
        if how == "requeue" and self.strict and dice(3):
            how = "ack"
        chosen = [each for each in tags if each <= tag] if multiple else [tag]
        holds = [old.held.pop(each) for each in chosen]
        copies = [copy for copy, _ in holds]
        if how == "ack":
            for copy in copies:
                world.books.leave(copy, "accepted")
            method: Any = m.BasicAck(delivery_tag=tag, multiple=multiple)
        else:
            requeue = how == "requeue"
            method = m.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue)
            world.relaxed = len(chosen) > 1
            if requeue:
                world.books.give_back(copies, marked=True, avoid=old if self.strict else None)
            else:
                for copy in copies:
                    copy.state = "rejected"
        old.client.send(method)
        world.collect()

    def purge(self, who: int, dice: Dice) -> None:
        queue = dice.one(*QUEUES)
        ready = self.world.books.ready(queue)
        for copy in ready:
            copy.state = "purged"
        self.world.old.client.send(m.QueuePurge(queue=queue))
        assert self.world.old.client.expect(m.QueuePurgeOk).message_count == len(ready)
        self.world.collect()

    # --- transports -------------------------------------------------------------------------------------

    def fail(self, who: int, dice: Dice) -> None:
        """What a client says is lost from now on, or what the broker says."""
        session = self.open(who)
        how = dice.one("mute", "deaf", "both")
        if session is not None and session.line is not None:
            session.line.mute = session.line.mute or how != "deaf"
            if how != "mute":
                session.line.go_deaf()

    def lose(self, who: int, dice: Dice) -> None:
        session = self.open(who)
        if session is not None and session.line is not None:
            self.world.lose(session.line, dice(2**16))

    def detach(self, who: int, dice: Dice) -> None:
        session = self.open(who, settled=True)
        if session is None or session.line is None:
            return
        line, channel = session.line, session.channel
        self.world.control(session, c.SessionDetach(name=session.name))
        self.world.off(session)
        self.world.collect()
        assert channel not in line.sessions

    def attach_anew(self, who: int, dice: Dice) -> None:
        """A session comes back; one that still has a transport, by force."""
        sessions = self.world.sessions
        away = [each for each in sessions if not each.attached] or [sessions[1 + who % 2]]
        self.attach(away[who % len(away)], dice)

    def line(self, session: Session, dice: Dice) -> Line:
        """A connection for a session: one that is there, or another."""
        world = self.world
        lines = [each for each in world.lines if not each.mute and not each.deaf and each is not session.line]
        if lines and dice(3) == 2:
            return dice.one(*lines)
        if len(world.lines) > MOST_LINES:
            spare = [each for each in world.lines if each is not session.line]
            world.lose(spare[dice(len(spare))])
        line = Line(world.server, dice.one(*FRAME_SIZES))
        world.lines.append(line)
        return line

    def attach(self, session: Session, dice: Dice) -> None:
        world = self.world
        who = world.sessions.index(session)
        line = self.line(session, dice)
        session = world.sessions[who]  # What made room for the line may have ended it.
        old = session.line
        channel = next(each for each in range(10) if each not in line.sessions)
        line.reader.resume(channel, session.name, session.part)
        session.part = None
        if old is not None:
            self.forced_off(session, old, dice)
            line.reader.resume(channel, session.name, session.part)
            session.part = None
        fresh = session.end is None
        session.line, session.channel, session.due = line, channel, None
        line.sessions[channel] = session
        # Where the client never heard that its session has failed, the broker still waits for the answer.
        names = [
            each.name for other in world.lines for each in other.sessions.values() if each is not session
        ]
        force = old is not None or session.name in names
        world.control(session, c.SessionAttach(name=session.name, force=force))
        session.end = world.state.sessions["/", "guest", session.name]
        if fresh:
            world.control(session, c.SessionRequestTimeout(timeout=session.timeout))
            world.control(session, c.SessionCommandPoint(command_id=0, command_offset=0))
            world.collect()
            return
        world.collect()
        steps: list[Callable[[Session, Dice], None]] = [self.send_again, self.say_what_came]
        if dice(2):
            steps.reverse()
        if dice(4) == 3:
            line.go_deaf()
        for step in steps:
            if session.line is line:
                step(session, dice)

    def forced_off(self, session: Session, line: Line, dice: Dice) -> None:
        """Another transport takes a session over, before the client knows what was lost of the first."""
        world = self.world
        if line.deaf:
            reader = deepcopy(line.reader)
            for event in reader.read(line.lost[: dice(len(line.lost) + 1)]):
                if event.channel == session.channel and event.assembly is not None:
                    world.got(session, event.id, event.assembly)
            session.part = reader.parts().get(session.channel)
        del line.sessions[session.channel]

    def send_again(self, session: Session, dice: Dice) -> None:
        """Send what the broker does not have, or might not."""
        world = self.world
        pending = [cmd for cmd in session.pending if cmd.id >= session.executed]
        if dice(5) == 4 and pending and not any(cmd.names or cmd.fragment for cmd in pending):
            # Rather not: nothing of it has happened.
            world.control(session, c.SessionGap(commands=SequenceSet.of(*(cmd.id for cmd in pending))))
            session.executed = session.next_id
            session.pending.clear()
            world.control(session, c.SessionCommandPoint(command_id=session.next_id, command_offset=0))
            world.collect()
            return
        if dice(2):
            pending = session.pending
        offset = 0
        if pending and pending[0].id == session.executed and dice(2):
            offset = dice(pending[0].received + 1)
        first = pending[0].id if pending else session.next_id
        world.control(session, c.SessionCommandPoint(command_id=first, command_offset=offset))
        world.collect()
        if any(cmd.id >= session.executed and cmd.fails() for cmd in pending) or len(pending) > 1:
            for number, cmd in enumerate(list(pending)):
                if session.line is not None and self.waits(session) and cmd.wide and cmd.fails():
                    session.line.mute = True  # As above.
                if session.line is not None and session in world.sessions:
                    world.transmit(session, [cmd], offset=0 if number else offset)
        elif pending:
            cut = dice(2**15) if dice(6) == 5 else None
            world.transmit(session, pending, cut, offset=offset)

    def say_what_came(self, session: Session, dice: Dice) -> None:
        """Say which commands of the broker's the client has."""
        if session not in self.world.sessions or session.line is None or dice(5) == 4:
            return
        line = session.line
        part = line.reader.parts().get(session.channel)
        missing = [each for each in session.log if each not in session.has]
        wanted: SequenceSet | None = SequenceSet.of(min(missing, default=len(session.log)))
        fragments: list[structs.CommandFragment] = []
        if dice(4) == 3:
            wanted = None
            session.repeats |= session.has - session.done - session.confirmed
        elif part is not None and part.id in missing and dice(3):
            offset = 1 + dice(part.assembler.received)
            ranges = ByteRanges.of((offset, 2**64 - 1))
            fragments.append(structs.CommandFragment(command_id=part.id, byte_ranges=ranges))
            wanted = SequenceSet.of(*(each for each in missing if each != part.id))
        control = c.SessionExpected(commands=wanted, fragments=fragments or None)
        self.world.control(session, control)
        self.world.collect()

    # --- what else there is -----------------------------------------------------------------------------

    def ask(self, who: int, dice: Dice) -> None:
        """Ask the broker what it has, and say that one knows."""
        session = self.open(who, settled=True)
        if session is None or not session.executed:
            return
        line = session.line
        assert line is not None
        self.world.control(session, c.SessionFlush(expected=True, confirmed=True, completed=True))
        events = line.take()
        done = set(range(session.executed)) - session.known
        (expected,) = [e.control for e in events if isinstance(e.control, c.SessionExpected)]
        (confirmed,) = [e.control for e in events if isinstance(e.control, c.SessionConfirmed)]
        (completed,) = [e.control for e in events if isinstance(e.control, c.SessionCompleted)]
        assert set(expected.commands) == {session.executed}
        assert set(confirmed.commands or ()) == set(completed.commands or ()) == done
        if dice(2):
            known = dice.some(sorted(done))
            self.world.control(session, c.SessionKnownCompleted(commands=SequenceSet.of(*known)))
            session.known |= set(known)

    def advance(self, who: int, dice: Dice) -> None:
        self.world.advance(dice.one(0.05, 0.2, 0.5, 1.0, 6.0))

    def restart(self, who: int, dice: Dice) -> None:
        self.world.restart(crash=bool(dice(2)))

    @rule(what=st.sampled_from(STEPS), who=WHO, dice=DICE)
    def step(self, what: str, who: int, dice: Dice) -> None:
        getattr(self, what)(who, dice)
        while sum(session.reachable for session in self.world.sessions) < 2 and dice(3):
            self.attach_anew(who, dice)

    @invariant()
    def the_books_balance(self) -> None:
        if hasattr(self, "world"):
            self.world.check()


class StrictMachine(Machine):
    personality = "spec"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("machine", [Machine, StrictMachine], ids=lambda each: each.personality)
def test_no_message_is_lost_or_repeated(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=examples(150, stateful_step_count=50))


def test_model_expects_no_delivery_of_an_expired_message() -> None:
    world = World("rabbitmq-4.2")
    sub = Sub(world.sessions[0], "a", "spare", explicit=True, acquires=False)
    sub.window.grant(0, 1)
    sub.window.grant(1, None)
    copy = Copy("spare", Message(b"1", "", "spare", ttl=300), 1, expires=world.now + 0.3)
    with pytest.raises(AssertionError, match="could take it"):
        world._check_taker(sub, [copy])
    world.server.clock.advance(0.3)
    world._check_taker(sub, [copy])
