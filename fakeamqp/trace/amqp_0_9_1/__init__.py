"""What a trace knows of 0-9-1."""

from __future__ import annotations

from fakeamqp.trace.amqp_0_9_1.frames import decode_header, decode_method, describe, frame_name
from fakeamqp.trace.amqp_0_9_1.reader import READER

__all__ = ["READER", "decode_header", "decode_method", "describe", "frame_name"]
