"""Random programs: peers of 1.0 and clients of 0-9-1 on the same queues of all types.

A program is drawn from a seed before it is played, so that both brokers get the same steps. Between two
steps everything that the first one sets going comes to rest; what it brings about is compared as a set, since
queues, sessions and connections are processes of their own in RabbitMQ.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer, plain
from compat_tests.differential.amqp_1_0.scenarios.play import Play
from compat_tests.differential.codec import Tagged
from compat_tests.differential.raw_client import RawClient
from compat_tests.scripted.amqp_1_0 import WINDOW, filters, message, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

KINDS = ("classic", "classic", "quorum", "quorum", "stream")
STATES: dict[str, Callable[[], c.Composite]] = {
    "accepted": c.Accepted,
    "rejected": c.Rejected,
    "released": c.Released,
    "modified": c.Modified,
    "failed": lambda: c.Modified(delivery_failed=True),
    "undeliverable": lambda: c.Modified(undeliverable_here=True),
    "both": lambda: c.Modified(delivery_failed=True, undeliverable_here=True),
}
"""Without annotations, whose order in messages of 0-9-1 is a listed difference."""
BEGINNING = ("send", "send_older", "attach", "send", "attach")
STEPS = 26


@dataclass
class Step:
    """One step, with all that chance decides about it."""

    name: str
    peer: int
    queue: int
    number: float
    more: float


@dataclass
class Program:
    """What is played: the queues, with arguments, and the steps."""

    seed: int
    queues: list[tuple[str, dict[str, Any]]]
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        said = "\n".join(map(str, self.steps))
        return f"seed {self.seed}: {self.queues}\n{said}"


WEIGHTS = {
    "send": 8,
    "send_older": 5,
    "attach": 5,
    "credit": 6,
    "settle": 8,
    "settle_range": 2,
    "detach": 2,
    "end": 1,
    "get": 3,
    "consume": 2,
    "ack": 4,
    "purge": 1,
    "delete": 0.4,
    "drain": 2,
    "count": 2,
    "to_nowhere": 1,
}


def drawn(seed: int) -> Program:
    """The program of a seed."""
    chance = random.Random(seed)
    queues = []
    for _ in range(2):
        kind = chance.choice(KINDS)
        arguments: dict[str, Any] = {}
        if kind != "stream" and chance.random() < 0.5:
            arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2"}
        if kind != "stream" and chance.random() < 0.25:
            arguments["x-max-length"] = chance.choice((1, 2, 4))
            if chance.random() < 0.5:
                arguments["x-overflow"] = "reject-publish"
        if kind == "quorum" and chance.random() < 0.3:
            arguments["x-delivery-limit"] = chance.choice((1, 2))
        if kind == "classic" and chance.random() < 0.15:
            arguments["x-max-priority"] = 5
        queues.append((kind, arguments))
    queues.append((chance.choice(("classic", "quorum")), {}))
    program = Program(seed, queues)
    names = list(WEIGHTS)
    for place in range(STEPS):
        [name] = chance.choices(names, list(WEIGHTS.values()))
        if place < len(BEGINNING):
            name = BEGINNING[place]
        program.steps.append(
            Step(name, chance.randrange(2), chance.randrange(3), chance.random(), chance.random())
        )
    return program


class _Receiver:
    """A link on which a peer receives."""

    def __init__(self, handle: int, queue: int, first_count: int) -> None:
        self.handle = handle
        self.queue = queue
        self.count = first_count


class Player:
    """Plays a program on one broker."""

    def __init__(self, play: Play, program: Program) -> None:
        self.play = play
        self.program = program
        self.names = [f"{play.prefix}-{number}" for number in range(3)]
        self.gone: set[int] = set()
        for number in (2, 1, 0):
            kind, arguments = program.queues[number]
            said = {name.replace("-", "_"): value for name, value in arguments.items()}
            if "x_dead_letter_routing_key" in said:
                said["x_dead_letter_routing_key"] = self.names[2]
            play.declare(kind, suffix=str(number), **said)
        self.peers: list[Peer | None] = [None, None]
        self.receivers: list[list[_Receiver]] = [[], []]
        self.held: list[dict[int, int]] = [{}, {}]
        """By peer: delivery ids that are unsettled, with the place of the queue."""
        self.sent = 0
        self.client: RawClient | None = None
        self.tags: list[int] = []
        self.consumed: set[int] = set()

    def run(self) -> None:
        for place, step in enumerate(self.program.steps):
            self.told: list[str] = []
            getattr(self, f"_{step.name}")(step)
            self._collect()
            lines = sorted(re.sub(re.escape(self.play.prefix), "d", each) for each in self.told)
            self.play.lines.append(f"{place} {step.name}: " + " | ".join(lines))
        for number in range(3):
            self._counted(number)

    # --- what comes ------------------------------------------------------------------------------------

    def _peer(self, place: int) -> Peer:
        peer = self.peers[place]
        if peer is None:
            peer = self.peers[place] = self.play.peer(str(place)).session()
            self.receivers[place], self.held[place] = [], {}
        return peer

    def _collect(self) -> None:
        for place, peer in enumerate(self.peers):
            if peer is not None:
                self._took(place, peer)
        if self.client is not None:
            for text in self.client.barrier(1, 0.12):
                self._took_older(text)

    def _took(self, place: int, peer: Peer) -> None:
        for _, body, payload in peer.frames():
            if isinstance(body, c.Transfer):
                self._delivered(place, body, payload)
            elif isinstance(body, c.Disposition) and body.role:
                count = 1 if body.last is None else body.last - body.first + 1
                self.told += [f"{place} outcome {plain(body.state)}"] * count
            elif isinstance(body, c.Disposition):
                self.told.append(f"{place} settled {plain(body.state)}")
            elif isinstance(body, c.Flow):
                if body.handle is not None and body.drain:
                    self.told.append(f"{place} drained {body.link_credit}")
                    for each in self.receivers[place]:
                        if each.handle == body.handle:
                            each.count = body.delivery_count
            elif isinstance(body, (c.End, c.Close)):
                self.told.append(f"{place} {plain(body)}")
                self.peers[place] = None
            elif isinstance(body, c.Detach):
                self.told.append(f"{place} {plain(body)}")
                self.receivers[place] = [each for each in self.receivers[place] if each.handle != body.handle]
                peer.attached.discard(body.handle)
        if peer.transport.closed:
            self.peers[place] = None

    def _delivered(self, place: int, body: c.Transfer, payload: bytes) -> None:
        link = next((each for each in self.receivers[place] if each.handle == body.handle), None)
        queue = -1 if link is None else link.queue
        if link is not None:
            link.count = (link.count + 1) & 0xFFFFFFFF
        said = sections(payload)
        kept = {
            key: value
            for key, value in (said.get("annotations") or {}).items()
            if key not in ("x-opt-deaths", "x-stream-offset")
        }
        deaths = [
            f"{plain(death[Symbol('reason')])} {death[Symbol('count')]}"
            for death in (said.get("annotations") or {}).get("x-opt-deaths", ())
        ]
        self.told.append(
            f"{place} got {queue} {said.get('data')!r} {plain(said['header'])} {plain(kept)} {deaths} "
            f"{plain(said.get('application'))} {plain(said.get('properties'))}"
        )
        if not body.settled:
            self.held[place][body.delivery_id] = queue

    def _took_older(self, text: str) -> None:
        found = re.search(r"delivery_tag=(\d+)", text)
        if found and text.startswith(("basic.deliver", "basic.get-ok")):
            self.tags.append(int(found[1]))
        if "close(" in text:
            self.client, self.tags, self.consumed = None, [], set()
        text = re.sub(r"time=T:\d+|delivery_tag=\d+, |x-stream-offset=l:\d+(, )?", "", text)
        self.told.append(f"old {text}")

    def _counted(self, number: int) -> None:
        _, said = self.play.manager.ask("GET", f"/queues/{self.names[number]}")
        stream = self.program.queues[number][0] == "stream"
        if isinstance(said, dict) and not stream:
            self.play.lines.append(f"{number} has {said['message_count']} of {said['consumer_count']}")

    # --- steps -----------------------------------------------------------------------------------------

    def _send(self, step: Step, to: str | None = None) -> None:
        peer = self._peer(step.peer)
        handle = 10 + step.queue if to is None else 20
        attached = peer.attached
        if handle not in attached:
            if step.queue in self.gone and to is None:
                return
            peer.sender(to or f"/queues/{self.names[step.queue]}", handle)
            attached.add(handle)
        self.sent += 1
        header = (
            None if step.more < 0.5 else c.Header(durable=step.number < 0.5, priority=int(step.number * 9))
        )
        said: dict[str, Any] = {} if header is None else {"header": header}
        if step.more > 0.8:
            said["annotations"] = {Symbol("x-own"): "a"}
        if step.number < 0.6:
            said["application"] = {"n": self.sent}
        peer.transfer(handle, message(b"m%d" % self.sent, **said), settled=step.more < 0.15)

    def _to_nowhere(self, step: Step) -> None:
        self._send(step, "/exchanges/amq.direct/nowhere")

    def _older(self) -> RawClient:
        if self.client is None:
            self.client = self.play.older()
            self.client.do(1, "basic.qos", prefetch_count=3)
        return self.client

    def _send_older(self, step: Step) -> None:
        self.sent += 1
        props: dict[str, Any] = {"headers": {"n": self.sent, "x-own": "o"}} if step.number < 0.6 else {}
        if step.more > 0.5:
            props |= {"delivery_mode": 2, "priority": int(step.more * 5), "message_id": f"m{self.sent}"}
        self._older().publish(1, routing_key=self.names[step.queue], props=props, body=b"o%d" % self.sent)

    def _attach(self, step: Step) -> None:
        peer = self._peer(step.peer)
        if len(self.receivers[step.peer]) >= 2 or step.queue in self.gone:
            return
        used = {each.handle for each in self.receivers[step.peer]}
        handle = next(each for each in range(3) if each not in used)
        said: dict[str, Any] = {"snd_settle_mode": 1} if step.more < 0.2 else {}
        if self.program.queues[step.queue][0] == "stream":
            said["terminus"] = {"filter": filters(offset_spec="first")}
        peer.receiver(f"/queues/{self.names[step.queue]}", handle, **said)
        self.receivers[step.peer].append(_Receiver(handle, step.queue, peer.first_count))
        self._grant(step, peer, self.receivers[step.peer][-1])

    def _grant(self, step: Step, peer: Peer, link: _Receiver, **fields: Any) -> None:
        credit = 1 + int(step.number * 4)
        peer.flow(
            link.handle, link_credit=credit, delivery_count=link.count, incoming_window=WINDOW, **fields
        )

    def _link(self, step: Step) -> tuple[Peer, _Receiver] | None:
        links = self.receivers[step.peer]
        peer = self.peers[step.peer]
        return None if not links or peer is None else (peer, links[int(step.more * len(links))])

    def _credit(self, step: Step) -> None:
        found = self._link(step)
        if found is not None:
            self._grant(step, *found)

    def _drain(self, step: Step) -> None:
        found = self._link(step)
        if found is not None:
            self._grant(step, *found, drain=True)

    def _detach(self, step: Step) -> None:
        found = self._link(step)
        if found is not None:
            peer, link = found
            peer.send(c.Detach(handle=link.handle, closed=step.number < 0.5))
            # What the link had is no longer held, but ids are not known by link to settle.
            self.held[step.peer] = {
                number: queue for number, queue in self.held[step.peer].items() if queue != link.queue
            }

    def _end(self, step: Step) -> None:
        peer = self.peers[step.peer]
        if peer is not None:
            peer.send(c.End())
            self.receivers[step.peer], self.held[step.peer] = [], {}

    def _settle(self, step: Step, last: int | None = None) -> None:
        peer, held = self.peers[step.peer], self.held[step.peer]
        if peer is None or not held:
            return
        number = sorted(held)[int(step.number * len(held))]
        name = list(STATES)[int(step.more * len(STATES))]
        self.told.append(f"{step.peer} {name} {held.pop(number)}")
        peer.settle(STATES[name](), number, settled=step.number < 0.5)

    def _settle_range(self, step: Step) -> None:
        peer, held = self.peers[step.peer], self.held[step.peer]
        if peer is None or not held:
            return
        name = list(STATES)[int(step.more * len(STATES))]
        peer.settle(STATES[name](), min(held), max(held), settled=step.number < 0.5)
        held.clear()

    def _get(self, step: Step) -> None:
        if self.program.queues[step.queue][0] == "stream" or step.queue in self.gone:
            return
        said = self._older().do(1, "basic.get", queue=self.names[step.queue], no_ack=int(step.more < 0.3))
        for text in said:
            before = len(self.tags)
            self._took_older(text)
            if step.more < 0.3:
                del self.tags[before:]

    def _consume(self, step: Step) -> None:
        if step.queue in self.consumed or step.queue in self.gone:
            return
        stream = self.program.queues[step.queue][0] == "stream"
        arguments = {"x-stream-offset": Tagged("S", "first")} if stream else {}
        said = self._older().do(
            1,
            "basic.consume",
            queue=self.names[step.queue],
            arguments=arguments,
            consumer_tag=str(step.queue),
        )
        self.consumed.add(step.queue)
        for text in said:
            self._took_older(text)

    def _ack(self, step: Step) -> None:
        if self.client is None or not self.tags:
            return
        tag = self.tags.pop(int(step.number * len(self.tags)))
        how = int(step.more * 5)
        method = ("basic.ack", "basic.nack", "basic.nack", "basic.reject", "basic.reject")[how]
        said: dict[str, Any] = {} if how == 0 else {"requeue": how % 2}
        self.client.tell(1, method, delivery_tag=tag, **said)
        self.told.append(f"{method} {said}")

    def _purge(self, step: Step) -> None:
        status, said = self.play.manager.ask("DELETE", f"/queues/{self.names[step.queue]}/messages")
        self.told.append(f"{status} {plain(said)}")

    def _delete(self, step: Step) -> None:
        if step.queue == 2:
            return
        status, said = self.play.manager.ask("DELETE", f"/queues/{self.names[step.queue]}")
        stream = self.program.queues[step.queue][0] == "stream"
        self.told.append(f"{status} {'' if stream else plain(said)}")
        self.gone.add(step.queue)

    def _count(self, step: Step) -> None:
        self._counted(step.queue)


def played(seed: int) -> Callable[[Play], None]:
    """A scenario that plays the program of a seed."""
    return lambda play: Player(play, drawn(seed)).run()


def name_of(seed: int) -> str:
    return f"program-{seed}"
