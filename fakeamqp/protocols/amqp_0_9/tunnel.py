"""Class tunnel: blocks of data, passed to the handlers that a test has registered (tunnel/purpose).

A request has no answer, and is not stored. Without a handler, the client gets a not-implemented error
(tunnel/optional).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotImplementedHere
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.properties import TunnelProperties
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, TunnelRequest

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent


def request(channel: Amqp09Channel, method: m.TunnelRequest) -> None:
    """Pass the content to its handler once it is complete; refuse it without a handler."""
    registrations = channel.connection.broker.extensions[Registrations]
    if not registrations.tunnels:
        raise NotImplementedHere("no handler of tunnel requests")

    def complete(content: CompleteContent[TunnelProperties]) -> None:
        properties = content.properties
        registrations.tunnel(
            TunnelRequest(
                meta_data=method.meta_data,
                headers=properties.headers or {},
                proxy_name=properties.proxy_name or "",
                data_name=properties.data_name or "",
                durable=bool(properties.durable),
                broadcast=bool(properties.broadcast),
                body=content.body,
                connection=channel.connection.name,
                channel=channel.number,
                virtual_host=channel.virtual_host.name,
                user=channel.user.name,
            )
        )

    channel.expect_content(m.TunnelRequest, TunnelProperties, complete)
