"""Requests and responses: numbered frames that carry methods, and what is remembered of them."""

from fakeamqp.protocols.amqp_0_9.requests.channel_state import Requests
from fakeamqp.protocols.amqp_0_9.requests.memory import Memory
from fakeamqp.protocols.amqp_0_9.requests.receiving import receive

__all__ = ["Memory", "Requests", "receive"]
