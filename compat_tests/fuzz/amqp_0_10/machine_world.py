"""Clients of both protocols on one broker, and what keeps the books of them: see `test_machine`.

Whatever the broker sends is read at once, also what gets to nobody: so the books know what the broker has
done. What a client knows may be less.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from compat_tests.fuzz.amqp_0_10.machine_books import LONGEST_STRICT, QUEUES, Books, Copy, Message
from compat_tests.fuzz.amqp_0_10.machine_clients import (
    Cmd,
    Hold,
    Line,
    Old,
    Planned,
    Session,
    Sub,
    payload_of,
)
from compat_tests.scripted.amqp_0_10 import Event, Server
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

__all__ = ["World"]

_DURABLE = {"durable": True}
_NAMES = (b"one", b"two", b"three")
_TIMEOUTS = (0, 5, None)


class World:
    """A broker, its clients, and the books."""

    def __init__(self, personality: str) -> None:
        self.server = Server(personality, history=10_000)
        self.state = self.server.state
        self.strict = personality == "spec"
        self.books = Books(most_returns=5 if self.strict else 0)
        self.lines: list[Line] = []
        self.sessions = [Session(name, timeout) for name, timeout in zip(_NAMES, _TIMEOUTS, strict=True)]
        self.old = Old(self.server, 0)
        self.due: list[Planned] = []
        """Publishes that the broker is about to make known."""
        self.relaxed = False
        """Whether what is done now returns messages in several steps, so that later ones may go first."""
        self.delivered: dict[str, list[Copy]] = {}
        self.waiting: dict[str, dict[bytes, Copy]] = {}
        """What waited in each queue before anything was delivered."""
        self._set_up()

    def _set_up(self) -> None:
        admin = self.server.session(b"admin")
        admin.declare_exchange("spares", "fanout", **_DURABLE)
        admin.declare_exchange("back", "fanout", **_DURABLE)
        admin.declare_exchange("nowhere", "direct", alternate_exchange="spares", **_DURABLE)
        admin.declare_exchange("main", "direct", alternate_exchange="spares", **_DURABLE)
        admin.declare_exchange("lone", "direct", **_DURABLE)
        for name, alternate, arguments in (
            ("plain", "spares", {}),
            ("spare", "back", {}),
            ("strict", None, {"x-max-length": LONGEST_STRICT, "x-overflow": "reject-publish"}),
            ("brief", "nowhere", {"x-message-ttl": 500}),
        ):
            self.server.vhost.queues.declare(
                name, QueueDeclaration(arguments=arguments, alternate_exchange=alternate, **_DURABLE)
            )
        admin.bind("plain", "main", "plain")
        admin.bind("brief", "main", "brief")
        admin.bind("spare", "spares")
        admin.bind("plain", "back")
        admin.bind("plain", "amq.fanout")
        admin.bind("strict", "amq.fanout")
        admin.detach()
        admin.client.drop()

    @property
    def now(self) -> float:
        return self.server.clock.now()

    @property
    def time(self) -> float:
        return self.server.clock.time()

    # --- transports -------------------------------------------------------------------------------------

    def feed(self, line: Line, octets: bytes, split: int = 0) -> None:
        """Bytes get to the broker, in two pieces unless `split` is 0."""
        if split:
            line.client.send_bytes(octets[:split])
            octets = octets[split:]
        if octets:
            line.client.send_bytes(octets)

    def control(self, session: Session, control: c.Control) -> bool:
        """A client sends a control; answers with whether the broker got it."""
        line = session.line
        assert line is not None
        if line.mute:
            return False
        self.feed(line, control_frame(session.channel, control.encode(), line.size))
        return True

    def run(self, session: Session, commands: Sequence[Cmd], cut: int | None = None, split: int = 0) -> None:
        """A client sends commands; `cut` says behind which byte the broker gets nothing more."""
        for cmd in commands:
            cmd.id = session.next_id
            session.next_id += 1
            session.pending.append(cmd)
        self.transmit(session, commands, cut, split)

    def transmit(
        self,
        session: Session,
        commands: Sequence[Cmd],
        cut: int | None = None,
        split: int = 0,
        offset: int = 0,
    ) -> None:
        """Commands that have their ids go out; of the first, only what is behind the `offset`."""
        line = session.line
        assert line is not None
        if line.mute:
            return
        pieces = [
            encode_frames(session.channel, cmd.segments, line.size, 0 if number else offset)
            for number, cmd in enumerate(commands)
        ]
        octets = b"".join(pieces)
        if cut is not None:
            cut %= len(octets) + 1
            line.mute = True
            octets = octets[:cut]
        whole: list[Cmd] = []
        end = 0
        for cmd, piece in zip(commands, pieces, strict=True):
            end += len(piece)
            if end <= len(octets):
                whole.append(cmd)
            else:
                begin = 0 if whole else offset
                cmd.received = begin + payload_of(octets[end - len(piece) :])
                break
        self.execute(session, line, whole, octets, split % (len(octets) or 1))

    def execute(
        self, session: Session, line: Line, commands: Sequence[Cmd], octets: bytes, split: int
    ) -> None:
        """The broker gets commands whole, for the first time or again."""
        fresh = [cmd for cmd in commands if cmd.id >= session.executed]
        failing = any(cmd.fails() for cmd in fresh)
        for cmd in fresh:
            assert cmd.id == session.executed
            cmd.effect()
            session.executed += 1
        self.feed(line, octets, split)
        failed = session.end.state.name == "FAILED"
        if failed and not failing:
            self.collect()
        assert failed == failing, f"the session has {'' if failed else 'not '}failed: {session.log}"
        self.collect(failed=session if failed else None)
        for cmd in fresh:
            cmd.after()
        if not failed:
            done = set(range(session.executed)) - session.known
            assert session.told >= done, f"{done} is done, told is {session.told}"

    def lose(self, line: Line, arrived: int = 0) -> None:
        """A transport is lost; so much of what was under way to a deaf client arrives."""
        if line.deaf:
            for event in line.reader.read(line.lost[: arrived % (len(line.lost) + 1)]):
                session = line.sessions.get(event.channel)
                if session is not None and event.assembly is not None:
                    self.got(session, event.id, event.assembly)
        for channel, part in line.reader.parts().items():
            if channel in line.sessions:
                line.sessions[channel].part = part
        self.lines.remove(line)
        self.relaxed = self.relaxed or len(line.sessions) > 1
        line.client.drop()
        for session in list(line.sessions.values()):
            self.off(session)
        self.collect()

    def off(self, session: Session) -> None:
        """A session has no transport any more."""
        assert session.line is not None
        session.line.sessions.pop(session.channel, None)
        session.line = None
        if session.end.state.name == "FAILED" or session.timeout == 0 or session not in self.sessions:
            self.end(session)
        elif session.timeout is not None:
            session.due = self.now + session.timeout

    def end(self, session: Session) -> None:
        """A session is over: what it holds goes back, the rest is forgotten."""
        held = [*session.outstanding.values(), *session.accepts.values()]
        self.books.give_back([each.copy for each in held if each.acquired], marked=True)
        session.outstanding, session.accepts, session.subs = {}, {}, {}
        if session in self.sessions:
            index = self.sessions.index(session)
            self.sessions[index] = Session(session.name, session.timeout)

    # --- what the broker has done -----------------------------------------------------------------------

    def collect(self, failed: Session | None = None) -> None:
        """Enter in the books all that has happened; a session that has `failed` is over after its share."""
        self._read_history()
        for line in list(self.lines):
            for event in line.take():
                self._arrive(line, event)
        before = {name: self.books.ready(name) for name in QUEUES}
        self.waiting = {name: {copy.message.body: copy for copy in before[name]} for name in QUEUES}
        self.delivered = {name: [] for name in QUEUES}
        if failed is not None:
            self._account(failed)
            self.relaxed = True
            answer = failed.line is not None and failed.reachable
            channel, line = failed.channel, failed.line
            self.end(failed)
            if answer:
                assert line is not None
                line.sessions.pop(channel)
                failed.line = None
                self.feed(line, control_frame(channel, c.SessionDetached(name=failed.name, code=0).encode()))
                for event in line.take():
                    self._arrive(line, event)
            self._read_history()
        for session in self.sessions:
            self._account(session)
        self._read_old()
        for name in QUEUES:
            self._check_turns(name, before[name])
        assert not self.due, "what was published is routed"
        self.relaxed = False
        assert all(not each.answers for each in self.sessions), "publishers are answered"

    def _check_turns(self, name: str, before: list[Copy]) -> None:
        """Who waits longest goes first, and to each subscription all go in order."""
        if self.relaxed or name in self.books.picky:
            return
        positions = sorted(copy.position for copy in self.delivered[name])
        assert positions == [copy.position for copy in before[: len(positions)]], (
            f"{self.delivered[name]} were delivered while {before} waited"
        )

    def _read_history(self) -> None:
        published, ends = self.state.published, self.state.outcome_histories
        assert published is not None and ends is not None
        for publication in list(published):
            body = publication.message.body
            planned = self.due.pop(0)
            assert planned.message.body == body
            outcome = publication.outcome
            queues = tuple(queue.name for queue in outcome.queues)
            assert queues == planned.queues, f"{body[:20]!r} was routed to {queues}"
            refused = {queue.name for queue in outcome.refused}
            assert refused == self._refusing(queues), f"{body[:20]!r} was refused by {refused}"
            for name in queues:
                if name not in refused:
                    self.books.enter(name, body, self.now, self.time)
            for name in refused:
                self._expect_drop(body, name, "maxlen")
            if not queues and not planned.returned:
                self._expect_drop(body, None, "unroutable")
            if planned.returned:
                assert any(each.message.body == body for each in ends.returned)
                self.books.count("returned")
        for left in list(ends.dead_lettered):
            names = [queue.name for queue in left.outcome.queues]
            self.books.passed(left.queue, left.message.body, left.reason, names, self.now, self.time)
        for lost in list(ends.dropped):
            if lost.queue is not None and lost.reason != "maxlen":
                self.books.dropped(lost.queue, lost.message.body, lost.reason, self.now)
        published.clear()
        ends.clear()

    def _expect_drop(self, body: bytes, queue: str | None, reason: str) -> None:
        ends = self.state.outcome_histories
        assert ends is not None
        found = [(each.queue, each.reason) for each in ends.dropped if each.message.body == body]
        assert found == [(queue, reason)], f"{body[:20]!r} was not dropped: {reason}"
        self.books.count(reason)

    def _refusing(self, queues: Sequence[str]) -> set[str]:
        """The queues that are too full for one more message."""
        full = len(self.books.ready("strict")) >= LONGEST_STRICT
        return {"strict"} if full and "strict" in queues else set()

    def _arrive(self, line: Line, event: Event) -> None:
        """Something was sent to a client of 0-10."""
        control = event.control
        assert not isinstance(control, c.ConnectionClose), f"a connection is closed: {control}"
        session = line.sessions.get(event.channel)
        if session is None:
            assert not event.assembly, "nothing is sent to a channel without session"
            return
        if event.assembly is not None:
            known = session.log.get(event.id)
            if known is None:
                assert event.id == len(session.log), "commands are numbered without a gap"
                session.log[event.id] = event.assembly
            else:
                assert known == event.assembly, "what comes again is what came before"
                assert event.id not in session.done | session.confirmed, "what is done comes again"
            if not line.deaf:
                self.got(session, event.id, event.assembly)
        elif isinstance(control, c.SessionCompleted):
            said = set(control.commands or ())
            assert said <= set(range(session.executed)) - session.known, "what is told is done"
            session.told |= said
            if not line.deaf:
                pending = session.pending
                while pending and pending[0].id in said and pending[0].id < session.next_id - 3:
                    del pending[0]

    def got(self, session: Session, id_: int, assembly: Assembly) -> None:
        """A client has got a command."""
        assert session.log[id_] == assembly, "a command that came in parts is whole"
        assert id_ not in session.has or id_ in session.repeats, f"command {id_} comes twice"
        session.repeats.discard(id_)
        session.has.add(id_)

    def _account(self, session: Session) -> None:
        """Enter in the books what was sent to a session, also what waits for a transport."""
        if session.end is None:
            return
        sent = session.end.outgoing
        for id_ in range(session.accounted, max(sent.next_id, len(session.log))):
            if id_ not in session.log:
                segments = dict(sent._sent[id_].segments)
                session.log[id_] = Assembly(
                    segments[SegmentType.COMMAND],
                    segments.get(SegmentType.HEADER),
                    segments.get(SegmentType.BODY),
                    True,
                )
            self._account_command(session, id_, session.log[id_])
        session.accounted = max(sent.next_id, len(session.log))

    def _account_command(self, session: Session, id_: int, assembly: Assembly) -> None:
        command, _ = x.decode(assembly.first)
        if isinstance(command, x.MessageTransfer):
            self._account_transfer(session, id_, command, assembly)
        elif isinstance(command, (x.MessageAccept, x.MessageReject)):
            said = "accept" if isinstance(command, x.MessageAccept) else "reject"
            for each in command.transfers or ():
                assert session.answers.pop(each) == said
                self.books.count(f"answered: {said}")

    def _account_transfer(
        self, session: Session, id_: int, command: x.MessageTransfer, assembly: Assembly
    ) -> None:
        sub = session.subs[command.destination or ""]
        body = assembly.body or b""
        # What is shown may have been taken since.
        copies = self.books.queues[sub.queue] if sub.acquires else self.waiting[sub.queue]
        copy = copies.get(body)
        assert copy is not None, f"{body[:20]!r} comes from queue {sub.queue}, where it is not"
        assert (command.accept_mode or 0) == (0 if sub.explicit else 1)
        assert (command.acquire_mode or 0) == (0 if sub.acquires else 1)
        header = copy.message.header(self.time, redelivered=copy.marked)
        if not sub.acquires and assembly.header != header:
            header = copy.message.header(self.time)  # It was shown, then taken, and came back.
        assert assembly.header == header, f"{copy} comes with another header: {assembly.header!r}"
        session.receipts[id_] = sub, sub.window.take(len(header) + len(body))
        if not sub.acquires:
            assert copy.position > sub.seen, f"{copy} is shown twice"
            sub.seen = copy.position
            assert not copy.expired(self.now)
            self.books.count("shown")
            if sub.explicit or not self.strict:
                session.outstanding[id_] = Hold(copy, sub, acquired=False)
            return
        self.delivered[sub.queue].append(copy)
        self.books.hold(copy, self.now)
        if sub.explicit:
            session.outstanding[id_] = Hold(copy, sub, acquired=True)
        else:
            self.books.leave(copy, "sent for good")

    # --- 0-9-1 ------------------------------------------------------------------------------------------

    def _read_old(self) -> None:
        """Enter in the books what has come to the client of 0-9-1."""
        old = self.old
        client = old.client
        while client.inbox:
            method = client.inbox[0].method
            if isinstance(method, m.BasicDeliver):
                consumer = old.consumers[method.consumer_tag]
                assert old.room(consumer, self.strict), "no more is sent than prefetch allows"
                self._take_old(m.BasicDeliver, consumer.queue, no_ack=consumer.no_ack, consumer=consumer)
            elif isinstance(method, m.BasicReturn):
                old.returned.append(client.expect_content(m.BasicReturn).body)
            elif isinstance(method, (m.BasicAck, m.BasicNack)):
                client.take_frame()
                told = [n for n in old.unconfirmed if n <= method.delivery_tag]
                for number in told if method.multiple else [method.delivery_tag]:
                    assert old.unconfirmed.pop(number) == isinstance(method, m.BasicAck)
            else:
                raise AssertionError(f"unexpected: {client.take_frame()}")
        assert not old.unconfirmed, "what is published is confirmed"

    def _take_old(self, kind: type, queue: str, *, no_ack: bool, consumer: object = None) -> None:
        old = self.old
        content = old.client.expect_content(kind)
        copy = self.books.queues[queue][content.body]
        old.last_tag += 1
        assert content.method.delivery_tag == old.last_tag
        assert content.method.redelivered == copy.marked
        assert copy.avoid is not old, "what a channel has rejected it does not get"
        self.delivered[queue].append(copy)
        self.books.hold(copy, self.now)
        if no_ack:
            self.books.leave(copy, "sent for good")
        else:
            old.held[old.last_tag] = copy, consumer  # type: ignore[assignment]

    def lose_old(self) -> None:
        """The connection of 0-9-1 is lost, and there is another."""
        old = self.old
        old.client.drop()
        self.books.give_back([copy for copy, _ in old.held.values()], marked=True)
        self.old = Old(self.server, old.prefetch)
        self.collect()

    # --- time -------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Time moves on, from one thing that is due to the next."""
        clock, timers = self.server.clock, self.state.timers
        target = clock.now() + seconds
        while (due := timers.next_due()) is not None and due <= target:
            clock.advance(max(0.0, due - clock.now()))
            waiting = [each for each in self.sessions if each.end and each.end.outgoing._waiting]
            for session in list(self.sessions):
                if session.due is not None and session.due <= self.now + 1e-6:
                    self.relaxed = True
                    self.end(session)
                    session.due = None
            timers.run_due()
            for session in waiting:
                if not session.end.outgoing._waiting:
                    session.repeats |= set(session.log) - session.done - session.confirmed
            self.collect()
        clock.advance(target - clock.now())

    def restart(self, *, crash: bool) -> None:
        """Everybody loses the connection, then the broker is another."""
        for line in list(self.lines):
            self.lose(line)
        self.lose_old()
        self.old.client.drop()
        for session in list(self.sessions):
            self.end(session)
        for queue in self.books.queues.values():
            for copy in queue.values():
                copy.avoid = None
        self.state.restart(crash=crash)
        self._read_history()
        self.books.picky.clear()
        self.old = Old(self.server, self.old.prefetch)
        self.collect()
        self.advance(0)  # What was hidden behind others that are gone may be due.

    # --- what always holds ------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the books with the broker."""
        for name in QUEUES:
            self._check_queue(name)
        for session in self.sessions:
            if session.end is not None:
                self._check_session(session)
        alive = {session.name for session in self.sessions if session.end is not None}
        there = {key[2] for key, end in self.state.sessions.items() if end.state.name != "FAILED"}  # type: ignore[attr-defined]
        assert there == alive, f"there are the sessions {there}, and should be {alive}"

    def _check_queue(self, name: str) -> None:
        queue = self.server.vhost.queues[name]
        copies = self.books.queues[name].values()
        assert all(copy.state in ("ready", "held") for copy in copies), f"{list(copies)} should be gone"
        waiting = self.books.ready(name)
        ready = [(each.message.body, each.redelivered) for each in queue.ready]
        assert ready == [(copy.message.body, copy.marked) for copy in waiting], f"in queue {name}"
        held = sorted(copy.message.body for copy in copies if copy.state == "held")
        assert sorted(each.queued.message.body for each in queue.unacked) == held, f"held of queue {name}"
        if not waiting:
            return
        head = waiting[0]
        assert not head.expired(self.now), f"{head} is there though its time is over"
        for session in self.sessions:
            for sub in session.subs.values():
                if sub.queue == name and session.attached:
                    self._check_taker(sub, waiting)
        for consumer in self.old.consumers.values():
            able = consumer.queue == name and self.old.room(consumer, self.strict)
            assert not able or head.avoid is self.old, f"{head} waits, and {consumer} could take it"

    def _check_taker(self, sub: Sub, waiting: list[Copy]) -> None:
        if not sub.acquires:
            # What has expired behind another message is still there, and is shown to nobody.
            waiting = [copy for copy in waiting if copy.position > sub.seen and not copy.expired(self.now)]
            if waiting and waiting[0].moved:
                return  # What was away when its turn came may have been passed over.
        if waiting:
            able = sub.window.admits(waiting[0].message.cost)
            assert not able, f"{waiting[0]} waits, and {sub.destination} could take it"

    def _check_session(self, session: Session) -> None:
        end = session.end
        assert set(end.subscriptions) == set(session.subs)
        for destination, sub in session.subs.items():
            grant = end.subscriptions[destination].grant
            balances = tuple(inf if each is None else each for each in (grant.messages, grant.octets))
            expected = sub.window.messages, sub.window.octets
            assert balances == expected, f"{destination} has credit for {balances}, not for {expected}"
        there = {id_: each.acquired for id_, each in end.ledger.outstanding.items()}
        assert there == {id_: each.acquired for id_, each in session.outstanding.items()}
        if session.reachable and not end.outgoing._waiting:
            missing = set(session.log) - session.has - session.done - session.confirmed
            assert not missing, f"the client never gets {missing}"

    # --- what commands do -------------------------------------------------------------------------------

    def settle(self, session: Session, how: str, ids: Sequence[int], *, marked: bool = False) -> None:
        """What accept, release or reject do to the books."""
        outstanding = session.outstanding
        holds = {id_: outstanding.pop(id_) for id_ in ids if id_ in outstanding}
        if how == "release":
            holds |= {id_: session.accepts.pop(id_) for id_ in ids if id_ in session.accepts}
        holds = {id_: each for id_, each in holds.items() if each.acquired}
        subs = {each.sub for each in holds.values()}
        self.relaxed = len(subs) > 1
        for id_, each in holds.items():
            if how == "reject":
                each.copy.state = "rejected"
            elif how == "accept" and session.publishes is not None:
                session.accepts[id_] = each
            elif how == "accept":
                self.books.leave(each.copy, "accepted")
        if how == "release":
            self.books.give_back([each.copy for each in holds.values()], marked=marked)

    def acquire(self, session: Session, ids: Sequence[int]) -> SequenceSet:
        """What acquire does; answers with what it must say."""
        acquired = SequenceSet()
        for id_, hold in list(session.outstanding.items()):
            copy = hold.copy
            if id_ not in ids or hold.acquired or copy.state != "ready" or copy.expired(self.now):
                continue
            self.books.hold(copy, self.now)
            hold.acquired = True
            acquired.add(id_)
            if not hold.sub.explicit:
                del session.outstanding[id_]
                self.books.leave(copy, "acquired for good")
        return acquired

    def message(self, number: int, size: int, **properties: object) -> Message:
        """A new message."""
        body = b"%d|" % number
        message = Message(body.ljust(size, b"."), **properties)  # type: ignore[arg-type]
        self.books.messages[message.body] = message
        return message

    def publish(self, session: Session, planned: Planned) -> None:
        """The last transfer of a message is here."""
        planned.message.at = self.time
        if session.publishes is not None:
            session.publishes.append(planned)
        else:
            self.offer(session, planned)

    def offer(self, session: Session, planned: Planned) -> None:
        """A message gets to its queues now."""
        self.due.append(planned)
        if planned.answered:
            refused = bool(self._refusing(planned.queues))
            says = "reject" if refused or planned.returned else "accept"
            session.answers |= dict.fromkeys(planned.ids, says)

    def refuses(self, planned: Planned) -> bool:
        """Whether a full queue ends the session that publishes this."""
        return bool(self._refusing(planned.queues)) and not planned.answered
