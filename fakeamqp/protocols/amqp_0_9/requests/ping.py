"""channel.ping and channel.pong, by which either peer finds out whether the other still listens.

A ping is answered by channel.ok, and a pong follows that the other peer answers in the same way
(channel.pong/not-a-response). Where the ping was a request, so is the pong; where it came in a method
frame, the pong does as well, and its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.requests.channel_state import Requests
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["HANDLERS"]


class Pongs:
    """How many pongs in method frames the client has not answered. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self.unanswered = 0

    def released(self) -> None:
        """The channel is over."""


def ping(channel: Amqp09Channel, method: m.ChannelPing) -> None:
    """Say that the channel is alive, and then send a pong (channel.ping/*)."""
    requests = channel.class_state(Requests)
    asked = requests.under_way is not None
    channel.send(m.ChannelOk())
    pong = m.ChannelPong()
    if asked:
        requests.request(m.ChannelPong, pong.encode())
    else:
        channel.class_state(Pongs).unanswered += 1
        channel.send(pong)


def pong(channel: Amqp09Channel, method: m.ChannelPong) -> None:
    """Say that it has come (channel.pong/ok-reply)."""
    channel.send(m.ChannelOk())


def ok(channel: Amqp09Channel, method: m.ChannelOk) -> None:
    """The answer to a pong in a method frame; those to requests come in response frames.

    Raises:
        ProtocolError: no pong is unanswered.
    """
    pongs = channel.class_state(Pongs)
    if channel.class_state(Requests).under_way is not None or not pongs.unanswered:
        raise ProtocolError("command-invalid", "channel.ok answers nothing")
    pongs.unanswered -= 1


HANDLERS = {m.ChannelPing: ping, m.ChannelPong: pong, m.ChannelOk: ok}
