"""Requests and responses: numbered frames that carry methods.

Reading order: `receiving` dispatches the frames, `channel_state.Requests` is the layer of one channel.
`request_state` is its state that can outlive the channel: `incoming` for the client's requests, `outgoing`
for the broker's. `ping` has channel.ping, pong and ok.
"""

from fakeamqp.protocols.amqp_0_9.requests.channel_state import Requests
from fakeamqp.protocols.amqp_0_9.requests.receiving import receive
from fakeamqp.protocols.amqp_0_9.requests.request_state import RequestState

__all__ = ["RequestState", "Requests", "receive"]
