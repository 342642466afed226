"""Frames of 0-9 as traces and faults see them; see `fakeamqp.adapters.Framing`.

Request and response frames hold methods and count as methods. The content of out-of-band frames and trace
frames is not decoded.
"""

from __future__ import annotations

from fakeamqp.adapters import Part
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE, PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9.codec.frames import FRAME_TYPES
from fakeamqp.protocols.amqp_0_9_1.codec.framing import PARTS, Framing091

__all__ = ["FRAMING"]

_HOLDING: dict[int, Part] = {**PARTS, FRAME_REQUEST: "method", FRAME_RESPONSE: "method"}

FRAMING = Framing091(PROTOCOL_HEADER, {kind: _HOLDING.get(kind, "") for kind in sorted(FRAME_TYPES)})
