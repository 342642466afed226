"""Class message: transfers in both directions by request and response, inline and by reference."""

from fakeamqp.protocols.amqp_0_9.message.handlers import HANDLERS

__all__ = ["HANDLERS"]
