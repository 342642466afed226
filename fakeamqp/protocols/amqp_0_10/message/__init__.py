"""Class message: transfers in both directions, subscriptions, and credit."""

from fakeamqp.protocols.amqp_0_10.message.handlers import CONTENT_HANDLERS, HANDLERS

__all__ = ["CONTENT_HANDLERS", "HANDLERS"]
