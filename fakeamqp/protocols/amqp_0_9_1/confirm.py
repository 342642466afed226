"""Class confirm: publisher confirms (RabbitMQ: documented extension)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel


def select(channel: Amqp091Channel, method: m.ConfirmSelect) -> None:
    """Switch the channel to confirm mode; repeating this is not an error."""
    if channel.mode not in (None, "confirm"):
        raise PreconditionFailed(f"cannot switch from {channel.mode} to confirm mode")
    channel.mode = "confirm"
    if not method.no_wait:
        channel.send(m.ConfirmSelectOk())
