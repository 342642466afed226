"""The trace's adapter for 0-10."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_10.trace.reader import READER

__all__ = ["READER"]
