"""Class access, which 0-9-1 no longer has and old clients still use: everybody gets ticket 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.wire.amqp_0_9_1 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.channel_end import ChannelEnd

__all__ = ["HANDLERS"]


def request(channel: ChannelEnd, method: m.AccessRequest) -> None:
    """Grant a ticket that nothing asks for (RabbitMQ: measured behaviour)."""
    channel.send(m.AccessRequestOk(ticket=1))


HANDLERS = {m.AccessRequest: request}
