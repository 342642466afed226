"""Class tunnel: blocks of data for whoever the test has registered to deal with them (tunnel/purpose).

There is no answer, and nothing is kept: where nobody deals with a request the client is told that this is not
implemented (tunnel/optional).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotImplementedHere
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.properties import TunnelProperties
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, TunnelRequest

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, Content

__all__ = ["HANDLERS"]


def request(channel: Amqp09Channel, method: m.TunnelRequest) -> None:
    """Hand the content on once it is there.

    Raises:
        NotImplementedHere: nobody deals with tunnels.
    """
    registrations = channel.connection.broker.extensions[Registrations]
    if not registrations.tunnels:
        raise NotImplementedHere("nobody handles tunnel requests")

    def complete(content: Content[TunnelProperties]) -> None:
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


HANDLERS = {m.TunnelRequest: request}
