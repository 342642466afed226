"""A message on its way to one client, until it is settled: accepted, rejected or released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.model.acknowledgement_timeout import AcknowledgementTimeouts
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.queues import Queue, QueuedMessage
    from fakeamqp.model.subscription import Subscription

__all__ = [
    "Delivery",
    "Ending",
    "Ledger",
    "accept_all",
    "by_consumer",
    "reject_all",
    "release_all",
    "resume_credits",
]

Ending: TypeAlias = Literal["accepted", "rejected", "refused", "released", "failed", "lost"]
"""How a delivery ends. The client has dealt with the message, or does not want anybody to get it: because it
failed to deal with it (rejected), or not (refused). It gives it back: because it did not deal with it
(released), or failed to (failed). Or the client has gone (lost). Most queues make no difference between the
two of each kind."""


class Delivery:
    """One message that a client was sent. It ends once: accepted, rejected or released.

    `holder` is the subscription it went to, or None for a get; `credits` are those it was taken from;
    `tag` is what a `Ledger` knows it by; `ending` is None as long as the client holds the message.

    `acquired` is False where the client has only seen the message, and where the queue has gone and passed
    on what clients held: whatever ends such a delivery does nothing to the message.
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
        self.acquired = acquired
        self.queue = queue
        self.queued = queued
        self.holder = holder
        self.owner = owner
        self.credits = credits
        self.delivered_at = delivered_at
        self.ending: Ending | None = None
        self.tag = 0

    @property
    def settled(self) -> bool:
        """Whether the delivery has ended."""
        return self.ending is not None

    def accept(self) -> None:
        """The client has dealt with the message: it is gone for good (basic.ack/removes-message)."""
        self.settle("accepted")
        if self.acquired:
            self.queue.forget(self)

    def reject(self, ending: Ending = "rejected") -> None:
        """The client refuses the message: it is dead-lettered or discarded (basic.reject/requeue-false)."""
        self.settle(ending)
        if self.acquired:
            self.queue.refuse(self)

    def settle(self, ending: Ending = "released") -> None:
        """The client holds the message no longer: its credit is refilled."""
        self.ending = ending
        for credit in self.credits:
            credit.refill(self.queued.message)

    def __repr__(self) -> str:
        return f"<Delivery of {self.queued.message!r} from queue {self.queue.name!r}>"


def accept_all(deliveries: Sequence[Delivery]) -> None:
    """Accept each, then let whoever waited for the credit go on."""
    for delivery in deliveries:
        delivery.accept()
    resume_credits(deliveries)


def reject_all(deliveries: Sequence[Delivery], *, ending: Ending = "rejected") -> None:
    """Reject each, and let whoever waited for the credit go on; dead letters follow (RabbitMQ: measured)."""
    if not deliveries:
        return
    dead_letters = deliveries[0].queue.virtual_host.dead_letters
    holds = dead_letters.hold()
    try:
        for group in _groups(deliveries):
            for delivery in group:
                delivery.settle(ending)
            for delivery in group:
                if delivery.acquired:
                    delivery.queue.refuse(delivery)
            resume_credits(group)
    finally:
        if holds:
            dead_letters.release()


def release_all(
    deliveries: Sequence[Delivery],
    *,
    avoid: object = None,
    ending: Ending = "released",
    redelivered: bool | None = True,
) -> None:
    """Return many deliveries to their queues, to their old places, and let the queues dispatch.

    What dies of that is passed on when all this is done. `avoid` names a group (a channel) that must not be
    sent these messages again (basic.reject/requeue-01). `redelivered` says whether they are marked as such;
    the mark of one that has it already stays (message.release/set-redelivered).
    """
    if not deliveries:
        return
    dead_letters = deliveries[0].queue.virtual_host.dead_letters
    holds = dead_letters.hold()
    try:
        # What the client has gone with returns all at once.
        for group in [deliveries] if ending == "lost" else _groups(deliveries):
            _release_group(group, avoid, ending, bool(redelivered))
    finally:
        if holds:
            dead_letters.release()


def _release_group(deliveries: Sequence[Delivery], avoid: object, ending: Ending, redelivered: bool) -> None:
    by_queue: dict[Queue, list[Delivery]] = {}
    for delivery in deliveries:
        delivery.settle(ending)
        if delivery.acquired:
            by_queue.setdefault(delivery.queue, []).append(delivery)
    for queue, returned in by_queue.items():
        queue.take_back(returned, avoid=avoid, redelivered=redelivered)
    for queue in by_queue:
        queue.dispatch()
    resume_credits(deliveries)


def _groups(deliveries: Sequence[Delivery]) -> Sequence[Sequence[Delivery]]:
    """What is dealt with together of all that a client settles at once (RabbitMQ: measured).

    That is what one consumer got from one queue. What was fetched with a get stands for itself.
    """
    if len(deliveries) == 1:
        return [deliveries]
    ordered = sorted(deliveries, key=_queue_and_consumer)
    return [list(group) for _, group in groupby(ordered, key=_queue_and_consumer)]


def _queue_and_consumer(delivery: Delivery) -> tuple[str, tuple[int, Any]]:
    return delivery.queue.name, by_consumer(delivery)


def by_consumer(delivery: Delivery) -> tuple[int, Any]:
    """Sorts deliveries by consumer tag; each that was got stands for itself, before all others."""
    holder = delivery.holder
    return (0, delivery.tag) if holder is None else (1, holder.tag.encode("utf-8", "surrogateescape"))


def resume_credits(deliveries: Sequence[Delivery]) -> None:
    """Let whoever waited for what these deliveries took go on."""
    for credit in dict.fromkeys(credit for delivery in deliveries for credit in delivery.credits):
        if credit.open:
            credit.resume()


class Ledger:
    """The unsettled deliveries of one channel, by ascending delivery tag.

    Tags are handed out from 1 upwards (domain.delivery-tag/non-zero), so insertion order is tag order
    and settling everything up to a tag costs only what is settled.
    """

    __slots__ = ("last_tag", "outstanding", "spares", "timeouts")

    def __init__(self) -> None:
        self.last_tag = 0
        self.outstanding: dict[int, Delivery] = {}
        self.timeouts: AcknowledgementTimeouts | None = None
        """Who watches that nothing is held too long, where that is not allowed."""
        self.spares: set[int] = set()
        """Tags of copies that a fault has sent: settling one changes nothing."""

    def add(self, delivery: Delivery) -> int:
        """Enter a delivery under the next tag."""
        self.last_tag = delivery.tag = tag = self.last_tag + 1
        self.outstanding[tag] = delivery
        if self.timeouts is not None:
            timeout = delivery.queue.acknowledgement_timeout
            if timeout is not None and timeout not in self.timeouts.running:
                self.timeouts.start(timeout, delivery)
        return tag

    def enter(self, tag: int, delivery: Delivery) -> None:
        """Enter a delivery under a tag of the caller's (0-10: the id of the transfer)."""
        delivery.tag = tag
        self.outstanding[tag] = delivery

    def next_tag(self) -> int:
        """Use up a tag for a delivery that nobody will settle."""
        self.last_tag = tag = self.last_tag + 1
        return tag

    def spare_tag(self) -> int:
        """Use up a tag for a copy of a delivery, which can be settled like one."""
        tag = self.next_tag()
        self.spares.add(tag)
        return tag

    def reuse_tag(self) -> None:
        """Have the next delivery get the latest tag again: nobody will settle the one that has it."""
        self.last_tag -= 1

    def take(self, tag: int, multiple: bool) -> list[Delivery] | None:
        """Take out one delivery, or all up to and including `tag`; None where the tag is not outstanding.

        With `multiple`, tag 0 means all there are (basic.ack/multiple-zero), none included.
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
        taken = []
        for each in outstanding:
            if each > tag:
                break
            taken.append(each)
        return [outstanding.pop(each) for each in taken]

    def _spared(self, tag: int) -> list[Delivery] | None:
        """No delivery at all where the tag is a spare one, else None."""
        if tag not in self.spares:
            return None
        self.spares.remove(tag)
        return []

    def take_all(self) -> list[Delivery]:
        """Take out everything, oldest first."""
        taken = list(self.outstanding.values())
        self.outstanding.clear()
        return taken

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Enter deliveries again under their old tags (tx.rollback/undoes-acks)."""
        merged = {**self.outstanding, **{delivery.tag: delivery for delivery in deliveries}}
        self.outstanding = dict(sorted(merged.items()))
