"""A transaction: collected publishes and settlements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import check_returns
from fakeamqp.model.errors import PreconditionFailed, ResourceError
from fakeamqp.model.operations import carry_out, in_steps
from fakeamqp.model.queues import Queue
from fakeamqp.model.queues.queue import not_persistent

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.virtual_host import VirtualHost


class PlannedPublish:
    """One publish of a transaction. The message was routed when it was received.

    `message` and `plan` are as `Router.plan` returns them, `immediate` and `mandatory` as in
    `VirtualHost.publish`. `on_outcome` is called with the outcome once it is known; not after a restart.
    """

    __slots__ = ("_immediate", "_mandatory", "_on_outcome", "_plan", "_promised", "_virtual_host", "message")

    def __init__(
        self,
        virtual_host: VirtualHost,
        message: Message,
        plan: Outcome,
        *,
        immediate: bool = False,
        mandatory: bool = False,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> None:
        virtual_host.state.memory.hold(message)
        self.message: Message = message
        self._virtual_host = virtual_host
        self._plan = plan
        self._immediate = immediate
        self._mandatory = mandatory
        self._on_outcome = on_outcome
        self._promised = False

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The queues that it goes to, without those deleted meanwhile."""
        return tuple(queue for queue in self._plan.queues if not queue.deleted)

    def __call__(self) -> bool:
        """Publish it. False if a full queue refused it."""
        self.message.secured = True
        branches = self._virtual_host.branches
        branches.promised = self.message if self._promised else None
        try:
            outcome = self._virtual_host.offer(
                self.message,
                replace(self._plan, queues=self.queues),
                immediate=self._immediate,
                mandatory=self._mandatory,
            )
        finally:
            branches.promised = None
        if self._on_outcome is not None:
            self._on_outcome(outcome)
        return not any(queue.fails_commits for queue in outcome.refused)

    def promise(self) -> None:
        """From now on no queue may refuse the message, and no crash may lose it if it is persistent."""
        self._promised = True
        self.message.secured = True

    def keep_persistent(self, *, crash: bool = False) -> bool:
        """After a restart: publish the message only to queues that would have kept it. False if none has."""
        self._on_outcome = None
        queues = self.queues
        persistent = self.message.persistent
        # Replicated queues keep transient messages as well.
        kept = tuple(each for each in queues if persistent or (isinstance(each, Queue) and each.replicated))
        for queue in queues:
            if queue not in kept:
                outcomes = self._virtual_host.message_outcomes
                outcomes.dropped(self.message, queue.name, *not_persistent(crash))
        self._plan = replace(self._plan, queues=kept)
        return bool(kept)


_STEP = 64
"""How many publishes a step of a commit covers."""


class Transaction:
    """Collects publishes and settlements until `commit` or `rollback` (tx/covers-publish-ack).

    Both start a new transaction in the same object (tx.commit/new-transaction). `prepare` may be called
    before them; `commit` cannot fail then.
    """

    __slots__ = ("_publishes", "_returned", "_settlements")

    def __init__(self) -> None:
        self._publishes: list[Callable[[], bool]] = []
        self._settlements: list[tuple[Callable[[Sequence[Delivery]], None], Sequence[Delivery]]] = []
        self._returned: list[Delivery] = []

    @property
    def publishes(self) -> int:
        return len(self._publishes)

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries that it will settle, in the order of the requests."""
        return [delivery for _, deliveries in self._settlements for delivery in deliveries]

    def publish(self, perform: Callable[[], bool]) -> None:
        """Add a publish; `perform` is called at commit and returns whether the message was accepted.

        In a transaction that is prepared it must be a `PlannedPublish`.
        """
        self._publishes.append(perform)

    def settle(
        self,
        act: Callable[[Sequence[Delivery]], None],
        deliveries: Sequence[Delivery],
        returns: bool = False,
    ) -> None:
        """Add a settlement; `act` is called at commit, possibly after the requesting session has ended.

        `returns` is for `publishing`: whether the client rejects or returns the deliveries.
        """
        self._settlements.append((act, deliveries))
        if returns:
            self._returned += deliveries

    def withdraw(self, chosen: Callable[[Delivery], bool]) -> list[Delivery]:
        """Remove the deliveries for which `chosen` returns True, and return them: the caller settles them."""
        withdrawn = [delivery for delivery in self.deliveries if chosen(delivery)]
        if withdrawn:
            self._settlements = [
                (act, [delivery for delivery in deliveries if not chosen(delivery)])
                for act, deliveries in self._settlements
            ]
        return withdrawn

    def prepare(self) -> None:
        """Make sure that `commit` will succeed, or raise ResourceError or PreconditionFailed."""
        planned = [each for each in self._publishes if isinstance(each, PlannedPublish)]
        by_queue: dict[Queue, list[Message]] = {}
        for each in planned:
            for queue in each.queues:
                by_queue.setdefault(queue, []).append(each.message)
        for queue, messages in by_queue.items():
            if isinstance(queue, Queue) and not queue.has_room(messages):
                raise ResourceError(f"queue '{queue.name}' cannot take all messages of the transaction")
        for delivery in self.deliveries:
            queue = delivery.queue
            if not queue.deleted and delivery not in queue.unacked:
                raise PreconditionFailed(f"queue '{queue.name}' has taken back a message of the transaction")
        for each in planned:
            each.promise()
        for delivery in self.deliveries:
            delivery.queued.message.secured = True

    def commit(self) -> bool:
        """Perform all publishes, then all settlements, in order. False if a queue refused a message."""
        accepted: bool = carry_out(self.committing(lambda: None))
        return accepted

    def committing(self, published: Callable[[], object]) -> Generator[None, None, bool]:
        """The steps of `commit`; the transaction is empty from the first one on, unless a publish fails.

        `published` is called between the publishes and the settlements, if all messages were accepted.
        """
        settlements, self._settlements = self._settlements, []
        try:
            accepted = yield from self.publishing()
        except BaseException:
            self._settlements += settlements
            raise
        if accepted:
            published()
        for act, deliveries in settlements:
            act(deliveries)
        return accepted

    def publishing(self) -> Generator[None, None, bool]:
        """The steps of the publishes alone; returns as `commit`. NotImplementedHere: see `check_returns`."""
        publishes, self._publishes = self._publishes, []
        returned, self._returned = self._returned, []
        accepted = True

        def perform(part: Sequence[Callable[[], bool]]) -> None:
            nonlocal accepted
            for each in part:
                accepted = each() and accepted

        yield from in_steps(publishes, perform, owned=True, step=_STEP)
        check_returns(returned)
        return accepted

    def rollback(self) -> list[Delivery]:
        """Drop everything; the returned deliveries are outstanding again (tx.rollback/undoes-acks)."""
        self._publishes.clear()
        undone = self.deliveries
        self._settlements.clear()
        self._returned.clear()
        return undone

    def keep_persistent(self, *, crash: bool = False) -> None:
        """After a restart of the broker: keep only the persistent part of a prepared transaction.

        The queues have dropped the messages that they do not keep (`Queue.keep_in_doubt`); these are not
        settled.
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
