"""Class access, which 0-9-1 dropped but old clients still use: every request gets ticket 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel


def request(channel: Amqp091Channel, method: m.AccessRequest) -> None:
    """Grant a ticket, which no method checks (RabbitMQ: measured behaviour)."""
    channel.send(m.AccessRequestOk(ticket=1))
