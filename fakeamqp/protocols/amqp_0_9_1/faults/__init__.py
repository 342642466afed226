"""What faults know of 0-9-1."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.constants import REPLY_NAMES
from fakeamqp.protocols.amqp_0_9_1.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9_1.faults.adapter import Adapter091
from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import CONFIRMS, PUBLISH, MethodGroup091

__all__ = ["ADAPTER"]

MethodGroup091.protocol = ADAPTER = Adapter091(
    "0-9-1", FRAMING, MethodGroup091, frozenset((PUBLISH,)), CONFIRMS, REPLY_NAMES
)
