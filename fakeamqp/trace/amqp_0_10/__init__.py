"""What a trace knows of 0-10."""

from __future__ import annotations

from fakeamqp.trace.amqp_0_10.reader import READER

__all__ = ["READER"]
