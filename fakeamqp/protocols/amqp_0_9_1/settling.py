"""Settlement of deliveries: acknowledge, reject, requeue, recover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.deliveries.delivery import check_returns, reject_all, release_all
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.tap import report_settled

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery, Ending
    from fakeamqp.model.tap import Settlement
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel

    Act: TypeAlias = Callable[[Sequence[Delivery]], None]

__all__ = ["refusal", "release_kept", "send_again", "settle"]


def refusal(channel: BaseChannel, ending: Ending) -> tuple[Act, Settlement]:
    """Return the settlement for a rejected delivery, and its event name; see `model.delivery.Ending`."""
    if ending in ("rejected", "refused"):
        return partial(reject_all, ending=ending), "rejected"
    if channel.personality.rejected_avoids_same_channel:
        return partial(release_all, ending=ending, avoid=channel), "requeued"
    return partial(release_all, ending=ending), "requeued"


def settle(channel: BaseChannel, act: Act, event: Settlement, tag: int, multiple: bool) -> None:
    """Settle the delivery with this tag, or with `multiple` all up to it.

    Raises:
        PreconditionFailed: no unacknowledged delivery has the tag.
        NotImplementedHere: a queue does not take deliveries back.
    """
    deliveries = channel.ledger.take(tag, multiple)
    if deliveries is None:
        raise PreconditionFailed(f"unknown delivery tag {tag}")
    returns = event != "acked"
    if channel.transaction is not None:
        channel.transaction.settle(partial(_carry_out, channel, act, event), deliveries, returns)
        return
    tap = channel.connection.broker.tap
    if tap is not None:
        report_settled(tap, event, deliveries, channel.connection, channel.number)
    if returns:
        check_returns(deliveries)
    act(deliveries)


def _carry_out(channel: BaseChannel, act: Act, event: Settlement, deliveries: Sequence[Delivery]) -> None:
    """Carry out a settlement of a transaction, at commit."""
    channel.note_settled(event, deliveries)
    act(deliveries)


def release_kept(channel: BaseChannel) -> list[Delivery]:
    """Release the deliveries whose queue keeps delivered messages, and return the others.

    Messages that this makes deliverable go out before the answer to the client (RabbitMQ).
    """
    deliveries = channel.ledger.take_all()
    channel.note_settled("requeued", deliveries)
    release_all([delivery for delivery in deliveries if delivery.queue.keeps_delivered])
    return [delivery for delivery in deliveries if not delivery.queue.keeps_delivered]


def send_again(outstanding: Sequence[Delivery], requeue: bool) -> None:
    """Requeue deliveries, or redeliver them to the same consumer (basic.recover/requeue-false)."""
    if requeue:
        release_all(outstanding)
    else:
        release_all([delivery for delivery in outstanding if not _redelivered(delivery)])


def _redelivered(delivery: Delivery) -> bool:
    """Redeliver to the same consumer; False if that is impossible (basic.recover/requeue-false)."""
    return delivery.queue.redeliver(delivery)
