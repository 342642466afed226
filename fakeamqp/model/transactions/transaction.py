"""The collector of what a transaction will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fakeamqp.model.errors import PreconditionFailed, ResourceError
from fakeamqp.model.queues import Queue
from fakeamqp.model.transactions.planned import PlannedPublish

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message

__all__ = ["Transaction"]


class Transaction:
    """Collects publishes and settlements until `commit` or `rollback` (tx/covers-publish-ack).

    After either a new transaction has begun in the same object (tx.commit/new-transaction). Between them may
    come `prepare`, after which `commit` cannot fail.
    """

    __slots__ = ("_publishes", "_settlements")

    def __init__(self) -> None:
        self._publishes: list[Callable[[], bool]] = []
        self._settlements: list[tuple[Callable[[Sequence[Delivery]], None], Sequence[Delivery]]] = []

    @property
    def publishes(self) -> int:
        """How many publishes it has collected."""
        return len(self._publishes)

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries that it will settle, in the order they were named."""
        return [delivery for _, deliveries in self._settlements for delivery in deliveries]

    def publish(self, perform: Callable[[], bool]) -> None:
        """Keep one publish; `perform` does it at commit and tells whether it was accepted.

        One that is to be prepared has to be a `PlannedPublish`.
        """
        self._publishes.append(perform)

    def settle(self, act: Callable[[Sequence[Delivery]], None], deliveries: Sequence[Delivery]) -> None:
        """Keep one settlement; `act` does it at commit, which may be after whoever asked for it has gone."""
        self._settlements.append((act, deliveries))

    def withdraw(self, chosen: Callable[[Delivery], bool]) -> list[Delivery]:
        """Take out the deliveries that were chosen: they are not settled, whatever becomes of the rest.

        Returns:
            Them; the caller sees to what becomes of them.
        """
        withdrawn = [delivery for delivery in self.deliveries if chosen(delivery)]
        if withdrawn:
            self._settlements = [
                (act, [delivery for delivery in deliveries if not chosen(delivery)])
                for act, deliveries in self._settlements
            ]
        return withdrawn

    def prepare(self) -> None:
        """Hold everything ready, so that `commit` can only succeed.

        Raises:
            ResourceError: a queue has no room for what it would get.
            PreconditionFailed: a queue has taken a message back that was to be settled.
        """
        planned = [each for each in self._publishes if isinstance(each, PlannedPublish)]
        by_queue: dict[Queue, list[Message]] = {}
        for each in planned:
            for queue in each.queues:
                by_queue.setdefault(queue, []).append(each.message)
        for queue, messages in by_queue.items():
            if isinstance(queue, Queue) and not queue.has_room(messages):
                raise ResourceError(f"queue '{queue.name}' has no room for what the transaction publishes")
        for delivery in self.deliveries:
            queue = delivery.queue
            if not queue.deleted and delivery not in queue.unacked:
                raise PreconditionFailed(f"queue '{queue.name}' has taken back a message of the transaction")
        for each in planned:
            each.promise()
        for delivery in self.deliveries:
            delivery.queued.message.secured = True

    def commit(self) -> bool:
        """Do everything in the order it was asked for, but publishes before settlements.

        Returns:
            False where a queue refused one of the messages.
        """
        accepted = self.commit_publishes()
        settlements, self._settlements = self._settlements, []
        for act, deliveries in settlements:
            act(deliveries)
        return accepted

    def commit_publishes(self) -> bool:
        """Do only the publishes; what is to be settled is kept. Returns as `commit`."""
        publishes, self._publishes = self._publishes, []
        accepted = [perform() for perform in publishes]
        return all(accepted)

    def rollback(self) -> list[Delivery]:
        """Drop everything; the deliveries are outstanding again (tx.rollback/undoes-acks).

        Returns:
            Them, for the caller to give back to whoever held them, or to their queues.
        """
        self._publishes.clear()
        undone = self.deliveries
        self._settlements.clear()
        return undone

    def keep_persistent(self, *, crash: bool = False) -> None:
        """After a restart of the broker: of what was prepared, only what is persistent is left.

        The queues have dropped what they do not keep (`Queue.keep_in_doubt`): it is not settled any more.
        """
        self._publishes = [
            each
            for each in self._publishes
            if isinstance(each, PlannedPublish) and each.keep_persistent(crash=crash)
        ]
        self._settlements = [
            (act, [delivery for delivery in deliveries if not delivery.settled])
            for act, deliveries in self._settlements
        ]
