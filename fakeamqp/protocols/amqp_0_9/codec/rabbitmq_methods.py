"""The methods of 0-9, and those that 0-9-1 and RabbitMQ add: spec/amqp-0-9.toml and spec/amqp-0-9-1.toml.

A method that both protocols have has the same bytes in both; a test holds that. Method 100 of class basic
has two names, `recover` in 0-9 and `recover-async` in 0-9-1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.codec.methods import (
    BasicGetOk,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionRedirect,
    ConnectionSecure,
    ConnectionStart,
    ConnectionTune,
)
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m091

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = [
    "ADDED",
    "METHODS",
    "BasicGetOk",
    "BasicReturn",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpenOk",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionRedirect",
    "ConnectionSecure",
    "ConnectionStart",
    "ConnectionTune",
]

ADDED: Final[dict[int, type[Method]]] = {
    index: each for index, each in m091.METHODS.items() if index not in m09.METHODS
}
"""What 0-9-1 and RabbitMQ add to the methods of 0-9, by index."""

METHODS: Final[dict[int, type[Method]]] = {**m09.METHODS, **ADDED}
"""class id << 16 | method id -> class"""
