"""The commands of class message.

`transfers` and `fragments` (to the broker), `subscription_end` and `delivering` (to the client), `settling`
and `flow` carry them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import NotAllowed, ResourceLocked
from fakeamqp.model.limits.limits import check_consumer_bound
from fakeamqp.protocols.amqp_0_10 import tx
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, AcquireMode
from fakeamqp.protocols.amqp_0_10.message import flow, fragments, settling, transfers
from fakeamqp.protocols.amqp_0_10.message.server_subscription import ServerSubscription
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Struct
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["CONTENT_HANDLERS", "HANDLERS"]


def bare_transfer(session: ServerSession, command: commands.MessageTransfer) -> None:
    """Publish a message that has neither properties nor a body (assembly/empty-body)."""
    transfers.transfer(session, command, None, None)


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
    _check_exclusive(queue, exclusive=command.exclusive)
    tx.check_accept_mode(session, AcceptMode(command.accept_mode or 0))
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


def _check_exclusive(queue: Queue, *, exclusive: bool) -> None:
    if queue.exclusive_subscription is not None or (exclusive and queue.subscriptions):
        raise ResourceLocked(
            f"queue '{queue.name}' has a subscription that shuts out others, or would be shut out"
        )


def cancel(session: ServerSession, command: commands.MessageCancel) -> None:
    """End a subscription; its transfers can still be settled (message.cancel/*).

    Raises:
        NotFound: there is none with that destination (message.cancel/destination-subscription-not-found).
    """
    end = flow.subscription(session, command.destination)
    del session.subscriptions[end.destination]
    end.end()


HANDLERS: dict[type[Command], Callable[[ServerSession, Any], Struct | None]] = {
    commands.MessageTransfer: bare_transfer,
    commands.MessageAccept: settling.accept,
    commands.MessageReject: settling.reject,
    commands.MessageRelease: settling.release,
    commands.MessageAcquire: settling.acquire,
    commands.MessageResume: fragments.resume,
    commands.MessageSubscribe: subscribe,
    commands.MessageCancel: cancel,
    commands.MessageSetFlowMode: flow.set_flow_mode,
    commands.MessageFlow: flow.flow,
    commands.MessageFlush: flow.flush,
    commands.MessageStop: flow.stop,
}

CONTENT_HANDLERS: dict[type[Command], Callable[[ServerSession, Any, bytes | None, bytes | None], None]] = {
    commands.MessageTransfer: transfers.transfer,
}
