"""Races: late messages, confirms and settlements, as in RabbitMQ, whose channels and queues are processes.

Theory of operation. Without races, a publish reaches its queues and is confirmed before anything else
happens. With them, a draw decides for each message and queue how late the message arrives, for each ack
how late it arrives, and for each confirm how late it is sent. Nothing else deviates, so clients see orders
that RabbitMQ was seen to produce:

- The messages of one channel arrive at one queue in their order. Those of several channels, or at several
  queues, arrive in any order (measured).
- A confirm is sent after the message has arrived in all of its queues. Confirms of messages of one queue keep
  their order; those of other queues overtake them (measured).
- A call of a channel to a classic queue follows what this channel has published; the counts of queue.declare
  do not wait for that. Quorum queues, and calls of other channels, do not either (measured).
- A message that cannot be routed is returned and confirmed at once (measured).
- The acks and requeues of one channel reach one queue in their order, and several queues in any order
  (measured).
- A nack of a full queue does not wait for the ack of an earlier message (measured).
- The messages of a transaction are in their queues before commit-ok, but those that a consumer waits for may
  be delivered later (measured).
- Messages that clients reject are dead-lettered later, in the order of their queue (measured).
- A quorum queue learns later that a channel has ended; a classic queue with a consumer of the channel learns
  it at once (measured). An exclusive queue may stay for a while when its connection has ended (measured).
- The notice that a classic queue is deleted may come after delete-ok (measured).

Late outcomes happen when their timers on the time of clients run out, or when a test enters the engine: a
test never sees a message on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from fakeamqp.errors import printable
from fakeamqp.model.deliveries.delivery import accept_all
from fakeamqp.model.queues import Queue

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.state import ClientConnection
    from fakeamqp.model.timers import Timer, Timers
    from fakeamqp.model.virtual_host import VirtualHost

RaceKind: TypeAlias = Literal["enqueue", "confirm", "settle", "requeue", "dead-letter", "release", "cancel"]
"""What is late: a message, an ack, a requeue, or the end of a channel or connection (release) on its way to a
queue; a dead letter on its way to its exchange; a confirm; or the notice that a consumer's queue is deleted.
"""

Draw: TypeAlias = Callable[[RaceKind, str, int], float]
"""Draws a delay in seconds, from the kind of the outcome, its channel and queue, and its number from 1 on."""

_DELAYS = (0.001, 0.003, 0.01)
"""Seconds, outside of simulations: 10 ms after a publish, RabbitMQ counted all but 2 of 1 200 messages
(measured)."""

_RATE = 0.3
_MOST_REMEMBERED = 1000


class Late(NamedTuple):
    """Something that was late."""

    kind: RaceKind
    what: str
    nth: int
    """Its number, from 1 on, among those of the same `kind` and `what`."""
    seconds: float

    def __str__(self) -> str:
        when = f"{self.seconds * 1000:g} ms late" if self.seconds else "at once"
        return _TEXTS[self.kind].format(self.nth, self.what, when)


_TEXTS: dict[RaceKind, str] = {
    "enqueue": "message {} from {} arrives {}",
    "confirm": "confirm {} on {} is sent {}",
    "settle": "ack {} from {} arrives {}",
    "requeue": "requeue {} from {} arrives {}",
    "dead-letter": "dead letter {} from {} arrives {}",
    "release": "release {} from {} arrives {}",
    "cancel": "cancel {} on {} is sent {}",
}


def seeded(seed: int) -> Draw:
    """Draws from a seed. Each is independent of the others: threads do not change each other's draws."""

    def draw(kind: RaceKind, what: str, nth: int) -> float:
        random = Random(f"{seed}:{kind}:{what}:{nth}")
        return random.choice(_DELAYS) if random.random() < _RATE else 0.0

    return draw


class Races:
    """The late outcomes of one broker.

    Args:
        timers: on the time of clients, which passes also while the broker's clock stands still.
        draw: draws each delay.
        seed: repeats the draws; None if a schedule draws.
        alias: returns the short name of a connection.
    """

    def __init__(
        self,
        timers: Timers,
        draw: Draw,
        *,
        seed: int | None = None,
        alias: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.seed = seed
        self.occurred: deque[Late] = deque(maxlen=_MOST_REMEMBERED)
        """The latest late outcomes."""
        self._timers = timers
        self._draw = draw
        self._alias = alias
        self._counts: dict[tuple[RaceKind, str], int] = {}
        self._names: dict[str, None] = {}
        self._dead_letters: dict[Queue, Timer] = {}
        """The latest late dead letter of each queue."""
        self._pending: dict[Timer, Callable[[], object]] = {}

    @property
    def pending(self) -> bool:
        return bool(self._pending)

    def of(self, channel: PublishingChannel) -> ChannelRaces:
        return ChannelRaces(self, channel, f"channel {channel.number} of {self._name(channel.connection)}")

    def _name(self, connection: ClientConnection) -> str:
        self._names.setdefault(connection.name)
        alias = self._alias(connection.name) or f"c{list(self._names).index(connection.name) + 1}"
        return named(alias, connection.client_properties)

    def release(self, connection: ClientConnection, queue: Queue, release: Callable[[], object]) -> None:
        """Release a queue that is exclusive to a connection which has ended: now, or later."""
        what = f"{self._name(connection)} to queue {printable(queue.name)}"
        seconds = self.draw("release", what)
        if seconds:
            self.later(seconds, None, release, f"the end of {what} arrives")
        else:
            release()

    def settle(self) -> None:
        while self._pending:
            self.hurry(sorted(self._pending, key=lambda each: each.due))

    def forget(self) -> None:
        """Drop all late outcomes and begin the draws again: the broker was reset, or crashed."""
        for timer in self._pending:
            timer.cancel()
        self._pending.clear()
        self._counts.clear()
        self._names.clear()
        self._dead_letters.clear()
        self.occurred.clear()

    def draw(self, kind: RaceKind, what: str) -> float:
        nth = self._counts[kind, what] = self._counts.get((kind, what), 0) + 1
        seconds = self._draw(kind, what, nth)
        if seconds:
            self.occurred.append(Late(kind, what, nth, seconds))
        return seconds

    def later(self, seconds: float, after: Timer | None, act: Callable[[], object], what: str) -> Timer:
        """Carry out an outcome in so many seconds, and not before `after`."""
        due = self._timers.clock.now() + seconds
        if after is not None and after.active:
            due = max(due, after.due)
        timer = self._timers.call_at(due, lambda: self._happen(timer), what)
        self._pending[timer] = act
        return timer

    def dead_letter(self, queue: Queue, arrive: Callable[[], object]) -> None:
        """Let a dead letter leave its queue now, or later."""
        what = f"queue {printable(queue.name)}"
        seconds = self.draw("dead-letter", what)
        before = self._dead_letters.get(queue)
        if not seconds and before is None:
            arrive()
            return

        def leave() -> None:
            if self._dead_letters.get(queue) is timer:
                del self._dead_letters[queue]
            arrive()

        timer = self.later(seconds, before, leave, f"a dead letter from {what} arrives")
        self._dead_letters[queue] = timer

    def hurry(self, timers: Iterable[Timer]) -> None:
        """Carry out the outcomes of these timers now, unless that was done before."""
        for timer in timers:
            self._happen(timer)

    def _happen(self, timer: Timer) -> None:
        act = self._pending.pop(timer, None)
        timer.cancel()
        if act is not None:
            act()


class PublishingChannel(Protocol):
    """A channel whose publishes may be late."""

    @property
    def connection(self) -> ClientConnection:
        """The connection of the channel."""

    number: int
    virtual_host: VirtualHost
    unconfirmed: list[tuple[int, bool]]
    """Tags to confirm; each with True for ack, False for nack."""

    def confirm_now(self) -> None:
        """Send the confirms in `unconfirmed`."""


def named(alias: str, client_properties: Mapping[str, Any]) -> str:
    """The name of a connection in texts: its alias, and the client's `connection_name` if there is one."""
    given = client_properties.get("connection_name")
    return f"{alias} ({printable(given)})" if given and isinstance(given, str) else alias


class _Arrivals:
    """The queues that a message of a channel has not reached yet, and its confirm, which waits for them."""

    __slots__ = ("accepted", "confirm", "missing")

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.accepted = True
        self.confirm: Callable[[bool], object] | None = None


class ChannelRaces:
    """The late outcomes of the publishes of one channel; `name` names it, such as "channel 1 of c2"."""

    def __init__(self, races: Races, channel: PublishingChannel, name: str) -> None:
        self.unconfirmed: int = 0
        """How many confirms are late."""
        self._races = races
        self._channel = channel
        self._virtual_host = channel.virtual_host
        self._name = name
        self._on_the_way: dict[Queue, deque[Timer]] = {}
        """The messages that a queue has not received yet."""
        self._confirms: dict[Queue, Timer] = {}
        """The latest late ack of a message of each queue."""
        self._nacks: dict[Queue, Timer] = {}
        """The latest late nack of a message of each queue."""
        self._settlements: dict[Queue, deque[Timer]] = {}
        """The acks and requeues that a queue has not received yet."""
        self._arrivals: _Arrivals | None = None
        """The arrivals of the latest publish, if it is late."""

    def publish(
        self, message: Message, immediate: bool = False, mandatory: bool = False, sliced: bool = False
    ) -> Outcome:
        """Publish a message as `VirtualHost.publish` does, but let it reach some queues later."""
        message, outcome = self._virtual_host.routing.plan(message, True)
        late = {} if immediate else self._draw(outcome)
        return self._offer(message, outcome, late, immediate, mandatory, sliced)

    def offer(
        self, message: Message, outcome: Outcome, immediate: bool = False, mandatory: bool = False
    ) -> Outcome:
        """Offer a message of a transaction as `VirtualHost.offer` does, but let consumers get it later.

        It is in the queues that have none for it before commit-ok (measured).
        """
        late = self._draw(outcome, message)
        return self._offer(message, outcome, {} if immediate else late, immediate, mandatory)

    def _offer(
        self,
        message: Message,
        outcome: Outcome,
        late: dict[Queue, float],
        immediate: bool,
        mandatory: bool,
        sliced: bool = False,
    ) -> Outcome:
        if late:
            outcome = replace(outcome, late=tuple(late))
        outcome = self._virtual_host.offer(message, outcome, immediate, mandatory, sliced)
        self._arrivals = _Arrivals(len(late)) if late else None
        if self._arrivals is not None:
            self._virtual_host.state.memory.hold(message)
            for queue, seconds in late.items():
                self._send(message, queue, seconds, self._arrivals)
        return outcome

    def _draw(self, outcome: Outcome, consumed: Message | None = None) -> dict[Queue, float]:
        """The queues at which a message arrives late, and how late: of those that can deliver `consumed`."""
        late: dict[Queue, float] = {}
        for queue in outcome.queues:
            # Queues that refuse messages get them at once, so that the outcome of the publish is known.
            if (
                isinstance(queue, Queue)
                and queue.options.overflow == "drop-head"
                and (consumed is None or queue in self._on_the_way or queue.could_take(consumed))
            ):
                seconds = self._races.draw("enqueue", f"{self._name} to queue {printable(queue.name)}")
                if seconds or queue in self._on_the_way:
                    late[queue] = seconds
        return late

    def _send(self, message: Message, queue: Queue, seconds: float, arrivals: _Arrivals) -> None:

        def arrive() -> None:
            if not self._virtual_host.arrive(message, queue):
                arrivals.accepted = False
            arrivals.missing -= 1
            if not arrivals.missing and arrivals.confirm is not None:
                arrivals.confirm(arrivals.accepted)

        what = f"a message from {self._name} arrives in queue {printable(queue.name)}"
        self._follow(self._on_the_way, queue, seconds, arrive, what)

    def _follow(
        self,
        ways: dict[Queue, deque[Timer]],
        queue: Queue,
        seconds: float,
        arrive: Callable[[], object],
        what: str,
    ) -> None:
        """Let something reach a queue in some seconds, and after what goes the same way."""
        way = ways.setdefault(queue, deque())

        def act() -> None:
            way.popleft()
            if not way:
                del ways[queue]
            arrive()

        way.append(self._races.later(seconds, way[-1] if way else None, act, what))

    def precede(self, name: str) -> None:
        """Let what the channel has sent to a queue arrive before a call; no messages to a quorum queue."""
        queue = self._virtual_host.queues.get(name)
        if queue is None:
            return
        if not queue.replicated:
            self._races.hurry(tuple(self._on_the_way.get(queue, ())))
        self._races.hurry(tuple(self._settlements.get(queue, ())))

    def accept(self, deliveries: Sequence[Delivery]) -> None:
        """Settle acknowledged deliveries in their queues, now or later."""
        self._settle("settle", "an ack", accept_all, deliveries)

    def requeue(self, act: Callable[[Sequence[Delivery]], None], deliveries: Sequence[Delivery]) -> None:
        """Return deliveries to their queues by `act`, now or later."""
        self._settle("requeue", "a requeue", act, deliveries)

    def _settle(
        self,
        kind: RaceKind,
        subject: str,
        act: Callable[[Sequence[Delivery]], None],
        deliveries: Sequence[Delivery],
    ) -> None:
        of_queues: dict[Queue, list[Delivery]] = {}
        for delivery in deliveries:
            of_queues.setdefault(delivery.queue, []).append(delivery)
        at_once: list[Delivery] = []
        for queue, part in of_queues.items():
            seconds = self._races.draw(kind, f"{self._name} to queue {printable(queue.name)}")
            if seconds or queue in self._settlements:
                what = f"{subject} from {self._name} arrives in queue {printable(queue.name)}"
                self._follow(self._settlements, queue, seconds, partial(act, part), what)
            else:
                at_once += part
        act(at_once)

    def cancel(self, subscription: Subscription, notify: Callable[[], object]) -> None:
        """Tell the client now or later that the queue of a consumer was deleted; of quorum queues now."""
        seconds = 0.0 if subscription.queue.replicated else self._races.draw("cancel", self._name)
        if seconds:
            self._races.later(seconds, None, notify, f"a cancel on {self._name} is sent")
        else:
            notify()

    def release(
        self,
        deliveries: Sequence[Delivery],
        consumers: list[Subscription],
        release: Callable[[list[Delivery], list[Subscription]], object],
    ) -> tuple[Sequence[Delivery], list[Subscription]]:
        """Let the end of the channel reach some queues later, by `release`; return the rest.

        A classic queue knows at once that a consumer has ended (measured).
        """
        consumed = {each.queue: each for each in consumers}
        late: set[Queue] = set()
        for queue in dict.fromkeys((*(each.queue for each in deliveries), *consumed)):
            if queue.keeps_delivered or (queue in consumed and not queue.replicated):
                continue
            seconds = self._races.draw("release", f"{self._name} to queue {printable(queue.name)}")
            way = self._settlements.get(queue)
            if not seconds and not way:
                continue
            late.add(queue)
            part = [each for each in deliveries if each.queue is queue]
            ended = [each for each in consumers if each.queue is queue]
            what = f"the end of {self._name} arrives in queue {printable(queue.name)}"
            self._races.later(seconds, way[-1] if way else None, partial(release, part, ended), what)
        if not late:
            return deliveries, consumers
        return (
            [each for each in deliveries if each.queue not in late],
            [each for each in consumers if each.queue not in late],
        )

    def arrive(self) -> None:
        """Let all messages, acks and requeues of the channel arrive now."""
        for way in (*self._on_the_way.values(), *self._settlements.values()):
            self._races.hurry(tuple(way))

    def confirm(self, tag: int, outcome: Outcome) -> None:
        """Confirm the latest publish of the channel, which reached a queue: now, or later."""
        arrivals = self._arrivals
        queue = next((each for each in outcome.queues if isinstance(each, Queue)), None)
        if queue is None:  # A reply address or a service.
            self._channel.unconfirmed.append((tag, outcome.accepted))
            return
        seconds = self._races.draw("confirm", self._name)
        if arrivals is None:
            self._confirm_after(seconds, queue, tag, outcome.accepted)
            return
        self.unconfirmed += 1

        def arrived(accepted: bool) -> None:
            self.unconfirmed -= 1
            self._confirm_after(seconds, queue, tag, accepted and outcome.accepted)
            self._channel.confirm_now()

        arrivals.confirm = arrived

    def _confirm_after(self, seconds: float, queue: Queue, tag: int, accepted: bool) -> None:
        """Confirm after some seconds, behind earlier ones to the queue; nacks pass late acks (measured)."""
        before = self._nacks.get(queue)
        if queue in self._confirms:
            if accepted:
                before = self._confirms[queue]
            else:
                seconds = 0.0
        if not seconds and before is None:
            self._channel.unconfirmed.append((tag, accepted))
            return
        self.unconfirmed += 1
        late = self._confirms if accepted else self._nacks

        def confirm() -> None:
            self.unconfirmed -= 1
            if late.get(queue) is timer:
                del late[queue]
            self._channel.unconfirmed.append((tag, accepted))
            self._channel.confirm_now()

        timer = self._races.later(seconds, before, confirm, f"a confirm on {self._name} is sent")
        late[queue] = timer
