"""Frames of 0-8 as traces and faults see them: the frames of 0-9 with another protocol header."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.frames import FRAME_TYPES_0_8
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import PROTOCOL_HEADERS
from fakeamqp.protocols.amqp_0_9_1.codec.framing import PARTS, Framing091

__all__ = ["FRAMING"]

FRAMING = Framing091(PROTOCOL_HEADERS[0], {kind: PARTS.get(kind, "") for kind in sorted(FRAME_TYPES_0_8)})
