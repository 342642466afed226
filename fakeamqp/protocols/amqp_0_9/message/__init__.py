"""Class message: transfers in both directions by request and response, inline and by reference.

`handlers` lists the methods: `publishing` has transfers from the client, `consuming` destinations and qos,
`delivering` transfers to the client. `channel_state.Messages` is the state of the class on a channel, and
`references` has the bodies that arrive in pieces.
"""

from fakeamqp.protocols.amqp_0_9.message.handlers import HANDLERS

__all__ = ["HANDLERS"]
