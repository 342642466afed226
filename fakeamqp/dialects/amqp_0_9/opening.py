"""How channels come to be: channel.open, and channel.resume where one was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9 import out_of_band
from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd
from fakeamqp.dialects.amqp_0_9.requests import Requests
from fakeamqp.dialects.amqp_0_9.resume import resume
from fakeamqp.wire.amqp_0_9 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["begin"]


def begin(endpoint: Endpoint, number: int, method: Method) -> None:
    """Open a channel, or resume one, and say so.

    Raises:
        NotImplementedHere: there is no such out-of-band transport.
        NotFound, NotAllowed: see `resume`.
    """
    if isinstance(method, m.ChannelResume):
        channel = endpoint.channels[number] = ChannelEnd(endpoint, number)
        resume(channel, method.channel_id)
        return
    assert isinstance(method, m.ChannelOpen)
    transport = out_of_band.agreed(endpoint, method.out_of_band)
    channel = endpoint.channels[number] = ChannelEnd(endpoint, number)
    channel.channel_id = endpoint.broker.names.token().encode()
    if transport is not None:
        out_of_band.use(channel, transport)
    if endpoint.opening_request is not None:
        channel.rooms(Requests).opened_by(endpoint.opening_request)
    channel.send(endpoint.vocabulary.ChannelOpenOk(channel_id=channel.channel_id))
