"""The names of all methods. Most rules concern 0-9-1, so its codec is loaded for them."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.faults import ADAPTER

__all__ = ["METHOD_NAMES"]

METHOD_NAMES = tuple(ADAPTER.kinds)
