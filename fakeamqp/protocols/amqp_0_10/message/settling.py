"""What a client does with what it was sent: accept, reject, release, and acquire.

Each of the first three is the last word about a transfer (message.accept/final and its kin): whatever it
does, the session knows the transfer no longer. What was only shown, and what belongs to a queue that has
gone, is forgotten and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import IllegalState
from fakeamqp.protocols.amqp_0_10.codec import structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.message.server_subscription import ServerSubscription

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.protocols.amqp_0_10.codec import commands
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["accept", "acquire", "reject", "release"]


def accept(session: ServerSession, command: commands.MessageAccept) -> None:
    """The messages have been dealt with: they leave their queues (message.accept/removes).

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
    """The messages cannot be dealt with: they go to the alternate exchange of their queue.

    Sources: message.reject/alternate-exchange; for what is not acquired message.reject/acquisition.

    Raises:
        IllegalState: one is not held (message.reject/final), where the personality minds.
    """
    deliveries = [each for each in _take(session, command.transfers) if each.acquired]
    session.note_settled("rejected", deliveries)
    reject_all(deliveries)


def release(session: ServerSession, command: commands.MessageRelease) -> None:
    """The messages are available again, in their old places (message.release/*).

    What the session has accepted in a transaction it may still release: the transaction then settles it no
    more. So does a client that is about to roll back (qpid.messaging).

    Raises:
        IllegalState: one is not held (message.release/final), where the personality minds.
    """
    transfers = command.transfers or SequenceSet()
    accepted = _withdraw(session, transfers)
    # What was only shown is not affected (message.release/not-acquired).
    deliveries = [each for each in (*accepted, *_take(session, transfers)) if each.acquired]
    session.note_settled("requeued", deliveries)
    release_all(deliveries, redelivered=command.set_redelivered)


def acquire(session: ServerSession, command: commands.MessageAcquire) -> structs.Acquired:
    """Take what was only shown, as far as it is still there (message.acquire/*)."""
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
    """Take these out of what the session knows of, as far as it does.

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
    """Take these out of what the transaction of the session would accept."""
    if session.transaction is None or session.choices.unknown_transfers_are_errors:
        return []
    return session.transaction.withdraw(lambda each: each.owner is session and each.tag in transfers)


def _needs_no_accept(delivery: Delivery) -> bool:
    """Whether the message belongs to whom it was shown to for good, once that has acquired it."""
    holder = delivery.holder
    end = None if holder is None else holder.subscriber
    return isinstance(end, ServerSubscription) and end.accept_mode is AcceptMode.NONE
