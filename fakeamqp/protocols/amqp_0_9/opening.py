"""channel.open, and channel.resume for an interrupted channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9 import out_of_band
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9.resume import resume
from fakeamqp.protocols.base.absent import refuse_if_absent

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["begin"]


def begin(connection: Amqp09Connection, number: int, method: Method) -> None:
    """Open or resume a channel, and answer.

    Raises:
        NotImplementedHere: the out-of-band transport does not exist, or the broker is made without
            channel.resume.
        NotFound, NotAllowed: see `resume`.
    """
    if isinstance(method, m.ChannelResume):
        refuse_if_absent(method.NAME, connection.personality.not_implemented)
        channel = connection.channels[number] = connection.CHANNEL(connection, number)
        resume(channel, method.channel_id)
        return
    assert isinstance(method, m.ChannelOpen)
    transport = out_of_band.agreed(connection, method.out_of_band)
    channel = connection.channels[number] = connection.CHANNEL(connection, number)
    channel.channel_id = connection.broker.names.token().encode()
    if transport is not None:
        out_of_band.use(channel, transport)
    if connection.opening_request is not None:
        channel.class_state(Requests).opened_by(connection.opening_request)
    channel.send(connection.vocabulary.ChannelOpenOk(channel_id=channel.channel_id))
