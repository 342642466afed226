"""How a client settles deliveries: accept, reject, release, and acquire.

Each of the first three is final (message.accept/final and the like): the session then forgets the transfer.
For a message that was only browsed, or whose queue is deleted, they do nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import IllegalState
from fakeamqp.protocols.amqp_0_10.codec import structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.message.server_subscription import ServerSubscription

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.protocols.amqp_0_10.codec import commands
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["accept", "acquire", "reject", "release"]


def accept(session: ServerSession, command: commands.MessageAccept) -> None:
    """Accept messages: they leave their queues (message.accept/removes).

    Raises:
        IllegalState: one is not held (message.accept/final), or was never acquired
            (message.accept/acquisition), where the personality minds.
    """
    taken = _take(session, command.transfers)
    deliveries = [each for each in taken if each.acquired]
    shown = [each for each in taken if not each.acquired and not each.queue.deleted]
    if shown and session.choices.unknown_transfers_are_errors:
        raise IllegalState("a transfer is accepted that was not acquired")
    if session.transaction is not None:
        session.transaction.settle(partial(_accept, session), deliveries)
    else:
        _accept(session, deliveries)


def _accept(session: ServerSession, deliveries: Sequence[Delivery]) -> None:
    session.note_settled("acked", deliveries)
    accept_all(deliveries)


def reject(session: ServerSession, command: commands.MessageReject) -> None:
    """Reject messages: they go to the alternate exchange of their queue.

    Sources: message.reject/alternate-exchange; for what is not acquired message.reject/acquisition.

    Raises:
        IllegalState: one is not held (message.reject/final), where the personality minds.
    """
    deliveries = [each for each in _take(session, command.transfers) if each.acquired]
    session.note_settled("rejected", deliveries)
    reject_all(deliveries)


def release(session: ServerSession, command: commands.MessageRelease) -> None:
    """Release messages: they are available again, in their old places (message.release/*).

    A session may still release what it has accepted in a transaction: the transaction then no longer settles
    it. qpid.messaging does so before it rolls back.

    Raises:
        IllegalState: one is not held (message.release/final), where the personality minds.
    """
    transfers = command.transfers or SequenceSet()
    accepted = _withdraw(session, transfers)
    # Browsed messages are not affected (message.release/not-acquired).
    deliveries = [each for each in (*accepted, *_take(session, transfers)) if each.acquired]
    session.note_settled("requeued", deliveries)
    release_all(deliveries, redelivered=command.set_redelivered)


def acquire(session: ServerSession, command: commands.MessageAcquire) -> structs.Acquired:
    """Acquire browsed messages, as far as they are still available (message.acquire/*)."""
    outstanding = session.ledger.outstanding
    acquired = SequenceSet()
    for transfer in (command.transfers or SequenceSet()).among(outstanding):
        delivery = outstanding[transfer]
        if not delivery.acquired and delivery.queue.acquire(delivery):
            acquired.add(transfer)
            if _needs_no_accept(delivery):
                del outstanding[transfer]
                _accept(session, (delivery,))
    return structs.Acquired(transfers=acquired)


def _take(session: ServerSession, transfers: SequenceSet | None) -> list[Delivery]:
    """Remove these transfers from those that the session knows.

    Raises:
        IllegalState: it does not know one, and the personality minds.
    """
    outstanding = session.ledger.outstanding
    named = transfers or SequenceSet()
    known = named.among(outstanding)
    if len(known) != len(named) and session.choices.unknown_transfers_are_errors:
        raise IllegalState("a transfer is named that is not held")
    return [outstanding.pop(each) for each in known]


def _withdraw(session: ServerSession, transfers: SequenceSet) -> list[Delivery]:
    """Remove these transfers from the accepts of the session's transaction."""
    if session.transaction is None or session.choices.unknown_transfers_are_errors:
        return []
    return session.transaction.withdraw(lambda each: each.owner is session and each.tag in transfers)


def _needs_no_accept(delivery: Delivery) -> bool:
    """True where acquiring a browsed message also settles it."""
    holder = delivery.holder
    end = None if holder is None else holder.subscriber
    return isinstance(end, ServerSubscription) and end.accept_mode is AcceptMode.NONE
