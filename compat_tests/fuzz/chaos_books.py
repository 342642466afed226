"""Books about every message: where the broker says it is, and whether that can be.

They are kept from what the tap is told, and compared with what queues hold and with what clients see. A
message is known by its body, `<number>.<padding>`, of which no two publishes have the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from fakeamqp.model.events import EVENTS
from fakeamqp.model.messages.message import Message
from fakeamqp.model.routing import Outcome

__all__ = ["Books", "Publish", "number_of"]

FLAGS: dict[str, tuple[str, ...]] = {
    "duplicate": ("duplicate it", "let it pass"),
    "nack": ("nack it",),
    "drop": ("drop it",),
    "late": ("delay it", "hold it"),
    "silent": ("silence its connection", "silenced", "no bytes pass"),
    "close": ("close its", "refuse the login"),
    "return": ("return it",),
    "replace": ("replace ",),
    "malform": ("malform",),
    "cut": ("bytes of it",),
}
"""By word: what a note about a fault says that does this."""

REPLACED = b"!"
"""What a fault that replaces bodies adds."""


@dataclass
class Publish:
    """One publish that a client has begun to send."""

    number: int
    order: int
    body: bytes
    who: str


def number_of(body: bytes) -> int:
    """Which publish a body belongs to."""
    return int(bytes(body).split(b".", 1)[0])


class Books:
    """A `NextTap`: stands behind the faults on the tap.

    Args:
        world: knows the clients.
    """

    confirms_singly = False
    intercepts = False

    def __init__(self, world: Any) -> None:
        self.world = world
        self.history: list[str] = []
        """Everything that has happened, in words that are the same in every run."""
        self.sent: dict[int, Publish] = {}
        self.arrived: Counter[int] = Counter()
        """How often the broker has taken each publish."""
        self.refused_by: Counter[int] = Counter()
        self.homeless: Counter[int] = Counter()
        self.kept: Counter[int] = Counter()
        self.confirmed: set[int] = set()
        self.entered: Counter[tuple[str, int]] = Counter()
        self.left: Counter[tuple[str, int]] = Counter()
        self.handed: Counter[tuple[str, int]] = Counter()
        self.returned: Counter[tuple[str, int]] = Counter()
        self.acked: Counter[int] = Counter()
        self.gone: dict[int, list[str]] = {}
        self.sent_back: set[int] = set()
        self.flags: dict[str, set[str]] = {}
        """By connection: the faults that have happened to it, by what they do."""
        self._over: Message | None = None
        self._barred: dict[int, tuple[str, int]] = {}

    # --- what the tap is told -------------------------------------------------------------------------

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> None:
        pass

    def sending(self, connection: Any, octets: bytes) -> bytes:
        return octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        if event == "fault":
            self.history.append(f"{connection}: {detail}")
            flags = self.flags.setdefault(connection, set())
            if "nack it" in detail and not detail.rsplit(": ", 1)[-1].startswith("basic.publish"):
                flags.add("false nack")
            flags |= {word for word, said in FLAGS.items() if any(each in detail for each in said)}

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        facts = EVENTS[event].facts(None if connection is None else connection.name, message, values)
        happened = getattr(self, "_" + event.replace(" ", "_").replace("-", "_"), None)
        if happened is None:
            return
        for each in message if event == "dropped" else (message,):
            happened(**(facts if each is None else {**facts, "message": each}))

    def _refused(self, message: Message, outcome: Outcome, **_: Any) -> None:
        number = self.known(message)
        for queue in outcome.refused:
            self.refused_by[number] += 1
            if queue.options.overflow != "reject-publish-dlx":  # There it has left as a dead letter.
                self.entered[queue.name, number] -= 1

    def _delivered(
        self, message: Message, queue: str, connection: str, channel: int, delivery_tag: int, **_: Any
    ) -> None:
        number = self.known(message)
        self.history.append(f"{queue} gives {number} to {connection} {channel}/{delivery_tag}")
        self.handed[queue, number] += 1
        no_ack = channel == self.world.FREE
        self.world.delivered(connection, channel, delivery_tag, number)
        if no_ack:
            self.acked[number] += 1
            self.left[queue, number] += 1

    def _acked(self, **facts: Any) -> None:
        number = self._settled("acked", **facts)
        if not self.world.keeps_delivered(facts["queue"]):
            self.acked[number] += 1
            self.left[facts["queue"], number] += 1

    def _rejected(self, **facts: Any) -> None:
        self._settled("rejected", **facts)

    def _requeued(self, **facts: Any) -> None:
        number = self._settled("requeued", **facts)
        if "channel" in facts and not self.world.keeps_delivered(facts["queue"]):
            self.returned[facts["queue"], number] += 1

    def _settled(self, event: str, **facts: Any) -> int:
        number = self.known(facts["message"])
        if "channel" in facts:
            connection, channel, tag = facts["connection"], facts["channel"], facts["delivery_tag"]
            self.history.append(f"{connection} {channel}/{tag} {event} {number}")
            self.world.check_settled(event, connection, channel, tag)
        return number

    def _dropped(self, message: Message, queue: str | None, reason: str, detail: str, **_: Any) -> None:
        number = self.known(message)
        self.history.append(f"{queue} drops {number}: {reason}")
        assert reason and detail
        if reason in ("crash", "restart"):
            self._check_loss(message, number, queue, reason)
        never = reason == "cycle"
        if reason == "maxlen" and self.world.refuses(queue):
            never = message is not self._over
        if never:
            if message.history is not None:
                # Where nobody else takes the dead letter, this is the end of it.
                self._barred[id(message)] = (message.history.deaths[0].queue, number)
                self.gone.setdefault(number, []).append(reason)
            return
        self.gone.setdefault(number, []).append(reason)
        if queue is None:
            if reason == "unroutable":
                self.homeless[number] -= 1
            else:
                self.kept[number] -= 1
        else:
            self.left[queue, number] += 1

    def _check_loss(self, message: Message, number: int, queue: str | None, reason: str) -> None:
        if self.world.server.forgetting or (queue is not None and not self.world.is_durable(queue)):
            return
        may_be_lost = queue is not None and not message.persistent
        if reason == "crash":
            copied = self.arrived[number] > 1  # A fault has made copies, which nobody was promised.
            may_be_lost |= number not in self.confirmed or copied
        assert may_be_lost, f"{number} was confirmed, and {queue} lost it in a {reason}"

    def _dead_lettered(self, message: Message, queue: str, reason: str, outcome: Outcome, **_: Any) -> None:
        number = self.known(message)
        self.history.append(f"{queue} buries {number} ({reason}): {sorted(q.name for q in outcome.queues)}")
        for key, origin in reversed(self._barred.items()):
            if origin == (queue, number):
                del self._barred[key]
                break
        self.left[queue, number] += 1
        self._enter(number, outcome)

    def _enter(self, number: int, outcome: Outcome) -> None:
        for queue in outcome.queues:
            self.entered[queue.name, number] += 1
        self.kept[number] += len(outcome.delays)

    def _returned(self, message: Message, **_: Any) -> None:
        self.homeless[self.known(message)] -= 1
        self.sent_back.add(number_of(message.body))

    def _delay_over(self, message: Message, outcome: Outcome, **_: Any) -> None:
        number = self.known(message)
        self._over = message
        self.kept[number] -= 1
        self._enter(number, outcome)
        if not outcome.queues:
            self.homeless[number] += 1

    def _published(self, message: Message, outcome: Outcome, **_: Any) -> None:
        number = self.known(message)
        self.history.append(f"published {number}: {outcome}")
        self.arrived[number] += 1
        if self.arrived[number] > 1:
            assert "duplicate" in self.flags_of(number), f"{number} came twice"
        self._enter(number, outcome)
        if not outcome.queues and not outcome.delays:
            self.homeless[number] += 1

    # --- what must be so ------------------------------------------------------------------------------

    def known(self, message: Message) -> int:
        """The number of a message, which somebody has published just so."""
        return self.check_body(message.body)

    def check_body(self, body: bytes) -> int:
        """The number of a body, which somebody has published just so."""
        number = number_of(body)
        assert number in self.sent, f"nobody has published {body!r}"
        publish = self.sent[number]
        if body != publish.body:
            assert body.rstrip(REPLACED) == publish.body, f"{publish.body!r} has become {body!r}"
            assert any("replace" in flags for flags in self.flags.values())
        return number

    def flags_of(self, number: int) -> set[str]:
        """What faults have done to any connection of who published this."""
        names = self.world.names_of(self.sent[number].who)
        return set().union(*(self.flags.get(name, set()) for name in names))

    def balance(self, queues: dict[str, Any], delayed: int) -> None:
        """Whatever the broker has taken is where the books say."""
        for origin in self._barred.values():
            self.left[origin] += 1
        self._barred.clear()
        homeless = [number for number, count in self.homeless.items() if count > 0]
        assert not homeless, f"published, in no queue, and not accounted for: {homeless}"
        there: Counter[tuple[str, int]] = Counter()
        for name, queue in queues.items():
            bodies = [queued.message.body for queued in queue.ready]
            if not queue.keeps_delivered:
                bodies += [delivery.queued.message.body for delivery in queue.unacked]
            bodies += [message.body for message in queue.parked_messages()]
            there.update((name, self.check_body(body)) for body in bodies)
        wanted = Counter(self.entered)
        wanted.subtract(self.left)
        wrong = {
            key: (count, there[key]) for key in {*wanted, *there} if (count := wanted[key]) != there[key]
        }
        assert not wrong, f"in the books and in the queues: {wrong}"
        for (name, number), count in self.handed.items():
            if name in queues and not queues[name].keeps_delivered:
                may = self.entered[name, number] + self.returned[name, number]
                assert count <= may, f"{name} has given {number} away {count} times, not {may}"
        kept = sum(self.kept.values())
        assert kept == delayed, f"exchanges keep {delayed}, and by the books {kept}"
        assert min(self.kept.values(), default=0) >= 0

    def accounted(self, number: int, streams: set[int]) -> bool:
        """Whether there is an end of a message that is in no queue any more."""
        ended = number in self.acked or number in self.gone or number in self.sent_back
        return ended or number in streams
