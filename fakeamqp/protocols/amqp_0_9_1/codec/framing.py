"""The frames of 0-9-1, for faults and traces; see `fakeamqp.adapters.Framing`."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.framed.codec.framing import FamilyFraming

__all__ = ["FRAMING"]

FRAMING = FamilyFraming(PROTOCOL_HEADER)
