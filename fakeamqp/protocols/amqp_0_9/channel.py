"""Class channel: open, resume, and ping and pong, with which either peer checks that the other responds.

The answer to a ping is channel.ok, and then a pong, which the other peer answers with channel.ok too
(channel.pong/not-a-response). If the ping was a request, so is the pong. If the ping was in a method frame,
so are the pong and its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9 import out_of_band, resume as resuming
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.channel import (
    close as close,
    close_ok as close_ok,
    flow as flow,
    flow_ok as flow_ok,
)
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.base.absent import refuse_if_absent

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method


def begin(connection: Amqp09Connection, number: int, method: Method) -> None:
    """Open or resume a channel, and answer."""
    if isinstance(method, m.ChannelResume):
        refuse_if_absent(method.NAME, connection.personality.not_implemented)
        channel = connection.channels[number] = connection.make_channel(number)
        resuming.resume(channel, method.channel_id)
        return
    assert isinstance(method, m.ChannelOpen)
    transport = out_of_band.agreed(connection, method.out_of_band)
    channel = connection.channels[number] = connection.make_channel(number)
    channel.channel_id = connection.broker.names.token().encode()
    if transport is not None:
        out_of_band.use(channel, transport)
    if connection.opening_request is not None:
        channel.class_state(Requests).opened_by(connection.opening_request)
    channel.send(connection.open_ok(channel.channel_id))


def ping(channel: Amqp09Channel, method: Method) -> None:
    """Send channel.ok, and then a pong (channel.ping/*)."""
    requests = channel.class_state(Requests)
    asked = requests.current is not None
    channel.send(m.ChannelOk())
    pong = m.ChannelPong()
    if asked:
        requests.request(pong)
    else:
        requests.unanswered_pongs += 1
        channel.send(pong)


def pong(channel: Amqp09Channel, method: Method) -> None:
    """Answer a pong with channel.ok (channel.pong/ok-reply)."""
    channel.send(m.ChannelOk())


def ok(channel: Amqp09Channel, method: Method) -> None:
    """Accept the answer to a pong in a method frame; pongs in requests are answered in response frames."""
    requests = channel.class_state(Requests)
    if requests.current is not None or not requests.unanswered_pongs:
        raise ProtocolError("command-invalid", "channel.ok without an unanswered channel.pong")
    requests.unanswered_pongs -= 1
