"""Class message: transfers in both directions, subscriptions, credit, and how a client settles deliveries.

`transfers` carries out transfers to the broker, `server_subscription` those to the client.
A command that names a subscription raises NotFound where there is none (message.cancel/destination-*,
message.set-flow-mode/unknown-destination). Accept, reject and release are final (message.accept/final and the
like): the session then forgets the transfer. For a message that was only browsed, or whose queue is deleted,
they do nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import IllegalState, NotAllowed, NotFound, ResourceLocked
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.protocols.amqp_0_10 import tx
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, AcquireMode, CreditUnit, FlowMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.replies import SessionFault
from fakeamqp.protocols.amqp_0_10.server_subscription import ServerSubscription
from fakeamqp.protocols.amqp_0_10.transfers import resume as resume, transfer as transfer

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


def subscribe(session: ServerSession, command: commands.MessageSubscribe) -> None:
    """Send the messages of a queue to a destination, as far as there is credit.

    Raises:
        SessionFault: the command names no queue (message.subscribe/empty-queue-name).
        NotFound: there is no such queue (message.subscribe/queue-not-found).
        NotAllowed: the destination is in use (message.subscribe/destination-unique-subscriber-destination).
        ResourceLocked: another session has exclusive access (message.subscribe/exclusive-*).
        NotAllowed: it expects no accepts in a transaction, where the personality refuses that.
    """
    if not command.queue:
        raise SessionFault(
            session.choices.missing_queue_name, "a subscription needs the name of a queue", "queue"
        )
    session.authorise("read", "queue", command.queue)
    queue = session.virtual_host.queues.require(command.queue, session)
    destination = command.destination or ""
    check_consumer_bound(session.broker, session.consumer_count)
    if destination in session.subscriptions:
        raise NotAllowed(f"destination '{destination}' is in use in session '{session.display_name}'")
    if queue.exclusive_subscription is not None or (command.exclusive and queue.subscriptions):
        raise ResourceLocked(
            f"queue '{queue.name}' has a subscription that shuts out others, or would be shut out"
        )
    if session.own_transaction is not None:
        tx.require_accepts(session, AcceptMode(command.accept_mode or 0))
    end = ServerSubscription(session, command, queue)
    queue.subscribe(end.subscription)
    session.subscriptions[destination] = end
    session.note_consumer(
        "consumer added",
        end.subscription,
        no_ack=end.subscription.no_ack,
        prefetch=0,
        shares_prefetch=False,
        **({} if end.acquire_mode is AcquireMode.PRE_ACQUIRED else {"acquires": False}),
    )


def cancel(session: ServerSession, command: commands.MessageCancel) -> None:
    """End a subscription; its transfers can still be settled (message.cancel/*)."""
    end = subscription(session, command.destination)
    del session.subscriptions[end.destination]
    end.end()


# --- credit -------------------------------------------------------------------------------------------------

_UNITS: dict[int, Literal["message", "byte"]] = {CreditUnit.MESSAGE: "message", CreditUnit.BYTE: "byte"}


def subscription(session: ServerSession, destination: str | None) -> ServerSubscription:
    """The subscription with this destination."""
    found = session.subscriptions.get(destination or "")
    if found is None:
        raise NotFound(f"no subscription '{destination or ''}' in session '{session.display_name}'")
    return found


def flow(session: ServerSession, command: commands.MessageFlow) -> None:
    """Add to the credit of one unit; no value, or the largest, is credit without end (message.flow/*)."""
    end = subscription(session, command.destination)
    end.grant.grant(_UNITS[command.unit or 0], command.value)
    end.go_on()


def set_flow_mode(session: ServerSession, command: commands.MessageSetFlowMode) -> None:
    """Choose whether completed transfers give their credit back (message.set-flow-mode/*)."""
    grant = subscription(session, command.destination).grant
    window = command.flow_mode == FlowMode.WINDOW
    grant.set_mode(window, strict=session.choices.set_flow_mode_needs_no_credit)


def stop(session: ServerSession, command: commands.MessageStop) -> None:
    """Stop deliveries until there is new credit (message.stop/zero-credit)."""
    subscription(session, command.destination).grant.stop()


def flush(session: ServerSession, command: commands.MessageFlush) -> None:
    """Send ready messages as far as credit goes, and drop the rest of the credit (message.flush/exhausts)."""
    subscription(session, command.destination).flush()


# --- settling -----------------------------------------------------------------------------------------------


def accept(session: ServerSession, command: commands.MessageAccept) -> None:
    """Accept messages: they leave their queues (message.accept/removes). By personality one must be held
    (message.accept/final) and acquired (message.accept/acquisition).
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
    """Reject messages: they go to their alternate exchange (message.reject/alternate-exchange); by
    personality one must be held (message.reject/final). What is not acquired stays
    (message.reject/acquisition).
    """
    deliveries = [each for each in _take(session, command.transfers) if each.acquired]
    session.note_settled("rejected", deliveries)
    reject_all(deliveries)


def release(session: ServerSession, command: commands.MessageRelease) -> None:
    """Release messages: they are available again, in their old places (message.release/*).

    A session may still release what it has accepted in a transaction: the transaction then no longer settles
    it. qpid.messaging does so before it rolls back. By personality one must be held (message.release/final).
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
    for command_id in (command.transfers or SequenceSet()).among(outstanding):
        delivery = outstanding[command_id]
        if not delivery.acquired and delivery.queue.acquire(delivery):
            acquired.add(command_id)
            if _needs_no_accept(delivery):
                del outstanding[command_id]
                _accept(session, (delivery,))
    return structs.Acquired(transfers=acquired)


def _take(session: ServerSession, transfers: SequenceSet | None) -> list[Delivery]:
    """Remove these transfers from those that the session knows; IllegalState where it does not know one."""
    outstanding = session.ledger.outstanding
    named = transfers or SequenceSet()
    known = named.among(outstanding)
    if len(known) != len(named) and session.choices.unknown_transfers_are_errors:
        raise IllegalState("a transfer is named that is not held")
    return [outstanding.pop(each) for each in known]


def _withdraw(session: ServerSession, transfers: SequenceSet) -> list[Delivery]:
    if session.transaction is None or session.choices.unknown_transfers_are_errors:
        return []
    return session.transaction.withdraw(lambda each: each.owner is session and each.tag in transfers)


def _needs_no_accept(delivery: Delivery) -> bool:
    """True where acquiring a browsed message also settles it."""
    holder = delivery.holder
    end = None if holder is None else holder.subscriber
    return isinstance(end, ServerSubscription) and end.accept_mode is AcceptMode.NONE
