"""Class file of 0-9: bulk messages, staged before they are sent, in either direction."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.file.handlers import HANDLERS

__all__ = ["HANDLERS"]
