"""A message on its way to one client, until it is settled: accepted, rejected or released.

A client that exceeds the acknowledgement timeout loses its channel (RabbitMQ: documented), or a quorum queue
takes the message back. Each queue has its timeout (`Queue.acknowledgement_timeout`); most queues have the
default of half an hour. So there is one timer for each timeout in use, set for the oldest delivery that has
it. Settling a delivery does not touch a timer: a timer that runs after its delivery was settled is set for
the oldest remaining one. The list of pending timers shows it for the oldest remaining one before that
(`revise` of `Timers.call_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.model.errors import NotImplementedHere
from fakeamqp.model.operations import STEP, Values, freeing, in_steps
from fakeamqp.model.timers import MARGIN

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Credit, Subscription
    from fakeamqp.model.messages.message import ReadableProperties
    from fakeamqp.model.operations import Operations
    from fakeamqp.model.queues import Queue, QueuedMessage
    from fakeamqp.model.timers import Timer, Timers


class DeliveryTimeouts:
    """Watches the deliveries of one channel or queue. `running` has the timer of each timeout.

    `held` returns the unsettled deliveries with a timeout, oldest first; `expired` gets those whose timeout
    has passed, and the timeout in seconds.
    """

    __slots__ = ("_expired", "_held", "_label", "_timers", "running")

    def __init__(
        self,
        timers: Timers,
        held: Callable[[float], Iterator[Delivery]],
        expired: Callable[[list[Delivery], float], None],
        label: Callable[[float], str],
    ) -> None:
        self.running: dict[float, Timer] = {}
        self._timers = timers
        self._held = held
        self._expired = expired
        self._label = label

    def start(self, timeout: float, delivery: Delivery) -> None:
        """Watch this delivery, and later ones with the same timeout."""
        self.running[timeout] = self._timers.call_at(
            delivery.delivered_at + timeout,
            lambda: self._check(timeout),
            lambda: self._label(timeout),
            revise=lambda: self._due(timeout),
        )

    def stop(self) -> None:
        for timer in self.running.values():
            timer.cancel()
        self.running.clear()

    def _due(self, timeout: float) -> float | None:
        oldest = next(self._held(timeout), None)
        return None if oldest is None else oldest.delivered_at + timeout

    def _check(self, timeout: float) -> None:
        del self.running[timeout]
        now = self._timers.clock.now() + MARGIN
        held = list(self._held(timeout))
        late = [each for each in held if each.delivered_at + timeout <= now]
        if len(late) < len(held):
            self.start(timeout, held[len(late)])
        if late:
            self._expired(late, timeout)


Ending: TypeAlias = Literal["accepted", "rejected", "refused", "released", "failed", "lost"]
"""The outcome of a delivery. Accepted: the client has processed the message. Rejected and refused: no client
is to get it, because processing failed, or for another reason. Released and failed: the message is requeued,
because it was not processed, or because processing failed. Lost: the client is gone. Most queues do not
distinguish rejected from refused, and released from failed."""

_tag = attrgetter("tag")

_LONG = 16 * STEP
"""Deliveries that take less than a millisecond to list."""


class Delivery:
    """One message that was sent to a client. It ends once: accepted, rejected or released.

    `holder` is the subscription, or None for a get; `credits` are those that it takes from; `tag` is its key
    in a `Ledger`; `ending` is its outcome, None as long as the client holds the message.

    `acquired` is False if the client only browsed the message, or if the queue was deleted and routed the
    messages of clients elsewhere: settling such a delivery has no effect on the message.
    """

    __slots__ = ("acquired", "credits", "delivered_at", "ending", "holder", "owner", "queue", "queued", "tag")

    def __init__(
        self,
        queue: Queue,
        queued: QueuedMessage,
        holder: Subscription | None,
        owner: object,
        credits: tuple[Credit, ...],
        delivered_at: float,
        acquired: bool = True,
    ) -> None:
        self.acquired: bool = acquired
        self.queue: Queue = queue
        self.queued: QueuedMessage = queued
        self.holder: Subscription | None = holder
        self.owner: object = owner
        self.credits: tuple[Credit, ...] = credits
        self.delivered_at: float = delivered_at
        self.ending: Ending | None = None
        self.tag: int = 0

    @property
    def settled(self) -> bool:
        return self.ending is not None

    def accept(self) -> None:
        """The client has processed the message, which leaves the queue (basic.ack/removes-message)."""
        self.settle("accepted")
        if self.acquired:
            self.queue.forget(self)

    def reject(self, ending: Ending = "rejected") -> None:
        """The client refuses the message: it is dead-lettered or discarded (basic.reject/requeue-false)."""
        self.settle(ending)
        if self.acquired:
            self.queue.reject(self)

    def rewrite(self, properties: ReadableProperties) -> None:
        """Give the message in the queue other properties, before it returns (AMQP 1.0, modified)."""
        self.queued.message = self.queued.message.with_properties(properties)

    def settle(self, ending: Ending = "released") -> None:
        self.ending = ending
        for credit in self.credits:
            credit.refill(self.queued.message)

    def __repr__(self) -> str:
        return f"<Delivery of {self.queued.message!r} from queue {self.queue.name!r}>"


def check_returns(deliveries: Iterable[Delivery]) -> None:
    """NotImplementedHere if a client rejects or returns deliveries of a queue that takes none back."""
    for delivery in deliveries:
        queue = delivery.queue
        if queue.refuses_returns:
            raise NotImplementedHere(
                f"basic.nack and basic.reject not supported by stream queues queue '{queue.name}' in vhost "
                f"'{queue.virtual_host.name}'"
            )


def accept_all(deliveries: Sequence[Delivery]) -> None:
    """Accept each, then resume the credits."""
    if len(deliveries) > STEP:
        _operations(deliveries).run(_accepting(deliveries))
        return
    for delivery in deliveries:
        delivery.accept()
    resume_credits(deliveries)


def _operations(deliveries: Sequence[Delivery]) -> Operations:
    return deliveries[0].queue.virtual_host.state.operations


def _accepting(deliveries: Sequence[Delivery]) -> Iterator[None]:
    credits: dict[Credit, None] = {}

    def accept(part: Sequence[Delivery]) -> None:
        for delivery in part:
            delivery.accept()
            for credit in delivery.credits:
                credits[credit] = None

    steps = in_steps(deliveries, accept)
    del deliveries  # They are freed step by step as well.
    yield from steps
    _resume(credits)


def reject_all(deliveries: Sequence[Delivery], *, ending: Ending = "rejected") -> None:
    """Reject each, and resume the credits; dead letters follow (RabbitMQ: measured)."""
    if deliveries:
        dead_letters = deliveries[0].queue.virtual_host.dead_letters
        _operations(deliveries).run(dead_letters.holding(_rejecting(deliveries, ending)))


def _rejecting(deliveries: Sequence[Delivery], ending: Ending) -> Iterator[None]:
    credits: dict[Credit, None] = {}

    def reject(part: Sequence[Delivery]) -> None:
        for delivery in part:
            delivery.settle(ending)
            for credit in delivery.credits:
                credits[credit] = None
        for delivery in part:
            if delivery.acquired:
                delivery.queue.reject(delivery)

    groups = yield from grouped(deliveries)
    del deliveries
    while groups:
        group = groups.pop()
        steps = in_steps(group[0].queue.in_order_of_rejection(group), reject, owned=True)
        del group
        yield from steps
        _resume(credits)
        credits.clear()


def release_all(
    deliveries: Sequence[Delivery],
    *,
    avoid: object = None,
    ending: Ending = "released",
    redelivered: bool | None = True,
) -> None:
    """Return many deliveries to their queues, to their old places, and dispatch the queues.

    Dead letters that result are routed at the end. `avoid` is a group (a channel) that must not get these
    messages again (basic.reject/requeue-01). `redelivered` says whether they are marked as redelivered; an
    existing mark stays (message.release/set-redelivered).
    """
    if deliveries:
        _operations(deliveries).run(releasing(deliveries, avoid, ending, bool(redelivered)))


def releasing(
    deliveries: Sequence[Delivery],
    avoid: object = None,
    ending: Ending = "released",
    redelivered: bool = True,
) -> Iterator[None]:
    """The steps of `release_all`, for an operation of the caller's."""
    if not deliveries:
        return iter(())
    dead_letters = deliveries[0].queue.virtual_host.dead_letters
    return dead_letters.holding(_releasing(deliveries, avoid, ending, redelivered))


def _releasing(
    deliveries: Sequence[Delivery], avoid: object, ending: Ending, redelivered: bool
) -> Iterator[None]:
    # The deliveries of a lost client return together.
    groups = [deliveries] if ending == "lost" else (yield from grouped(deliveries))
    del deliveries
    while groups:
        yield from _releasing_group(groups.pop(), avoid, ending, redelivered)


def _releasing_group(
    deliveries: Sequence[Delivery], avoid: object, ending: Ending, redelivered: bool
) -> Iterator[None]:
    by_queue: dict[Queue, list[Delivery]] = {}
    credits: dict[Credit, None] = {}

    def settle(part: Sequence[Delivery]) -> None:
        for delivery in part:
            delivery.settle(ending)
            for credit in delivery.credits:
                credits[credit] = None
            if delivery.acquired:
                by_queue.setdefault(delivery.queue, []).append(delivery)

    steps = in_steps(deliveries, settle, owned=True)
    del deliveries
    yield from steps
    for queue, returned in by_queue.items():
        yield from queue.taking_back(returned, avoid=avoid, redelivered=redelivered)
    for queue, returned in by_queue.items():
        queue.dispatch()
        yield from freeing(returned)
    _resume(credits)


def grouped(deliveries: Sequence[Delivery]) -> Generator[None, None, list[Sequence[Delivery]]]:
    """Group deliveries that a client settles at once into those that are processed together (measured).

    Grouping takes steps as well. A group holds the deliveries of one queue to one consumer, or a single one
    of a get. The first is the last of the list.
    """
    if len(deliveries) == 1:
        return [deliveries]
    found: dict[tuple[Queue, str | None], list[Delivery]] = {}

    def enter(part: Sequence[Delivery]) -> None:
        for delivery in part:
            holder = delivery.holder
            key = delivery.queue, None if holder is None else holder.tag
            group = found.get(key)
            if group is None:
                group = found[key] = []
            group.append(delivery)

    yield from in_steps(deliveries, enter)
    groups: list[Sequence[Delivery]] = []

    def order(group: list[Delivery]) -> tuple[str, tuple[int, Any]]:
        return group[0].queue.name, by_consumer(group[0])

    for group in sorted(found.values(), key=order, reverse=True):
        if group[0].holder is None:
            group.sort(key=_tag, reverse=True)
            groups += [(delivery,) for delivery in group]
        else:
            groups.append(group)
    return groups


def _all_of(by_tag: dict[int, Delivery]) -> Sequence[Delivery]:
    """The deliveries of a dict that is needed no more; a short list is faster to work with."""
    return Values(by_tag) if len(by_tag) > _LONG else list(by_tag.values())


def by_consumer(delivery: Delivery) -> tuple[int, Any]:
    """The key that sorts deliveries by consumer tag; those of a get come first, each by itself."""
    holder = delivery.holder
    return (0, delivery.tag) if holder is None else (1, holder.tag.encode("utf-8", "surrogateescape"))


def resume_credits(deliveries: Sequence[Delivery]) -> None:
    """Resume the credits that these deliveries took from."""
    _resume(dict.fromkeys(credit for delivery in deliveries for credit in delivery.credits))


def _resume(credits: Iterable[Credit]) -> None:
    for credit in credits:
        if credit.open:
            credit.resume()


class Ledger:
    """The unsettled deliveries of one channel, by ascending delivery tag.

    Tags count from 1 upwards (domain.delivery-tag/non-zero), so insertion order is tag order, and the cost of
    settling all deliveries up to a tag depends only on their number.
    """

    __slots__ = ("last_tag", "outstanding", "spares", "timeouts")

    def __init__(self) -> None:
        self.last_tag: int = 0
        self.outstanding: dict[int, Delivery] = {}
        self.timeouts: DeliveryTimeouts | None = None
        """The timeouts of unsettled deliveries, in personalities that have them."""
        self.spares: set[int] = set()
        """Tags of copies that a fault has sent: settling one has no effect."""

    def watch(self, timers: Timers, expired: Callable[[list[Delivery], float], None], name: str) -> None:
        """Watch acknowledgement timeouts from now on; see `DeliveryTimeouts`. `name` is the channel's."""

        def held(timeout: float) -> Iterator[Delivery]:
            every = self.outstanding.values()
            return (each for each in every if each.queue.acknowledgement_timeout == timeout)

        def label(timeout: float) -> str:
            oldest = next(held(timeout), None)
            what = "a delivery" if oldest is None else f"a delivery from q '{oldest.queue.name}'"
            return f"{name} has held {what} too long"

        self.timeouts = DeliveryTimeouts(timers, held, expired, label)

    def add(self, delivery: Delivery) -> int:
        self.last_tag = delivery.tag = tag = self.last_tag + 1
        self.outstanding[tag] = delivery
        if self.timeouts is not None:
            timeout = delivery.queue.acknowledgement_timeout
            if timeout is not None and timeout not in self.timeouts.running:
                self.timeouts.start(timeout, delivery)
        return tag

    def enter(self, tag: int, delivery: Delivery) -> None:
        """Add a delivery under a given tag (0-10: the id of the transfer)."""
        delivery.tag = tag
        self.outstanding[tag] = delivery

    def held_for(self, queue: Queue, tag: str) -> list[Delivery]:
        """The deliveries of a queue to consumers with this tag, oldest first."""
        return [
            delivery
            for delivery in self.outstanding.values()
            if delivery.queue is queue and delivery.holder is not None and delivery.holder.tag == tag
        ]

    def next_tag(self) -> int:
        """Consume a tag for a delivery that needs no settlement."""
        self.last_tag = tag = self.last_tag + 1
        return tag

    def spare_tag(self) -> int:
        """Consume a tag for a copy of a delivery, which can be settled like one."""
        tag = self.next_tag()
        self.spares.add(tag)
        return tag

    def reuse_tag(self) -> None:
        """Give the latest tag to the next delivery again; the current one needs no settlement."""
        self.last_tag -= 1

    def take(self, tag: int, multiple: bool) -> Sequence[Delivery] | None:
        """Take out one delivery, or all up to and including `tag`; None where the tag is not outstanding.

        With `multiple`, tag 0 means all deliveries (basic.ack/multiple-zero), even if there are none.
        """
        outstanding = self.outstanding
        if not multiple:
            delivery = outstanding.pop(tag, None)
            return self._spared(tag) if delivery is None else [delivery]
        if tag == 0:
            self.spares.clear()
            return self.take_all()
        if tag not in outstanding and self._spared(tag) is None:
            return None
        if self.spares:
            self.spares = {spare for spare in self.spares if spare > tag}
        last = next(reversed(outstanding), 0)
        if tag >= last:
            return self.take_all()
        # From the end that is nearer, so that the cost is that of what is taken, or less.
        if 2 * tag < next(iter(outstanding)) + last:
            return [outstanding.pop(each) for each in list(takewhile(tag.__ge__, outstanding))]
        rest = list(takewhile(tag.__lt__, reversed(outstanding)))
        self.outstanding = {each: outstanding.pop(each) for each in reversed(rest)}
        return _all_of(outstanding)

    def _spared(self, tag: int) -> list[Delivery] | None:
        """An empty list if the tag is a spare one, else None."""
        if tag not in self.spares:
            return None
        self.spares.remove(tag)
        return []

    def take_all(self) -> Sequence[Delivery]:
        taken, self.outstanding = self.outstanding, {}
        return _all_of(taken)

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Add deliveries again under their old tags (tx.rollback/undoes-acks)."""
        merged = {**self.outstanding, **{delivery.tag: delivery for delivery in deliveries}}
        self.outstanding = dict(sorted(merged.items()))
