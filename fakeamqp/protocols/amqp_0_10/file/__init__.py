"""Class file: bulk messages, staged before they are sent."""

from fakeamqp.protocols.amqp_0_10.file.handlers import CONTENT_HANDLERS, HANDLERS

__all__ = ["CONTENT_HANDLERS", "HANDLERS"]
