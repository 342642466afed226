"""A broker without clients: sessions are mere names, and what they do is done by hand."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_9_1 import ManualClock
from fakeamqp.model.deliveries.delivery import Delivery, accept_all
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.queues import Queue, QueueDeclaration
from fakeamqp.model.state import BrokerState
from fakeamqp.model.transactions import PlannedPublish, Transaction, Xid

PERSISTENT = 2
TRANSIENT = 1

KINDS = ("classic", "quorum")
"""The queue types that give messages away."""


class Bench:
    """One virtual host, and short words for what one does with it."""

    def __init__(self, personality: Personality = PERSONALITIES["rabbitmq-4.2"]) -> None:
        self.clock = ManualClock()
        self.state = BrokerState(self.clock, personality=personality, history=10_000)
        self.host = self.state.virtual_host("/")
        self.branches = self.host.branches

    def queue(self, name: str, kind: str = "classic", *, durable: bool = True, **arguments: Any) -> Queue:
        spelled = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        return self.host.queues.declare(
            name, QueueDeclaration(durable=durable, arguments={"x-queue-type": kind, **spelled})
        )

    def publish(self, name: str, body: bytes, mode: int = PERSISTENT, *, secured: bool = True) -> None:
        message = Message("", name, PlainProperties(delivery_mode=mode), body)
        message.secured = secured
        self.host.publish(message)

    def plan(self, transaction: Transaction, name: str, body: bytes, mode: int = PERSISTENT) -> None:
        """Publish to a queue as part of a transaction."""
        message = Message("", name, PlainProperties(delivery_mode=mode), body)
        transaction.publish(PlannedPublish(self.host, *self.host.routing.plan(message)))

    def take(self, name: str, session: object = "reader") -> Delivery:
        """Acquire the next message of a queue."""
        taken = self.host.queues[name].get(session, no_ack=False)
        assert taken is not None and taken[1] is not None
        return taken[1]

    def accept(self, transaction: Transaction, *deliveries: Delivery) -> None:
        """Accept deliveries as part of a transaction."""
        transaction.settle(accept_all, deliveries)

    def work(self, session: object) -> Transaction:
        """What collects the session's work."""
        transaction = self.branches.working(session)
        assert transaction is not None
        return transaction

    def prepared(self, number: int, *, publish: str = "", accept: str = "", mode: int = PERSISTENT) -> Xid:
        """Prepare a branch that publishes "new" to a queue, accepts the next of a queue, or does both."""
        which = xid(number)
        session = f"session of {number}"
        self.branches.start(session, which)
        if publish:
            self.plan(self.work(session), publish, b"new", mode)
        if accept:
            self.accept(self.work(session), self.take(accept))
        self.branches.end(session, which)
        self.branches.prepare(which)
        return which

    def advance(self, seconds: float) -> None:
        """Move the clock, and run what is due on the way at its instant."""
        end = self.clock.now() + seconds
        while (due := self.state.timers.next_due()) is not None and due <= end:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.state.timers.run_due()
        self.clock.advance(end - self.clock.now())

    def ready(self, name: str) -> list[bytes]:
        """The bodies that wait in a queue, in order."""
        return [queued.message.body for queued in self.host.queues[name].ready]

    def unacked(self, name: str) -> list[bytes]:
        """The bodies that a queue has given away and that are not settled."""
        return [delivery.queued.message.body for delivery in self.host.queues[name].unacked]

    def dropped(self) -> list[tuple[bytes, str | None, str]]:
        """What was dropped: body, queue, reason."""
        assert self.state.outcome_histories is not None
        return [(each.message.body, each.queue, each.reason) for each in self.state.outcome_histories.dropped]


def xid(number: int) -> Xid:
    """A branch's identity, a different one for each number."""
    return Xid(0, b"global", str(number).encode())
