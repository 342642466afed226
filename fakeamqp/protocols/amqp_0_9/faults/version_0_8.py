"""What faults know of 0-8."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.framing_0_8 import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import METHODS
from fakeamqp.protocols.amqp_0_9.faults.adapter import Adapter09
from fakeamqp.protocols.amqp_0_9.faults.frame_groups import MethodGroup09

__all__ = ["ADAPTER"]


class MethodGroup08(MethodGroup09):
    """Methods of 0-8."""

    __slots__ = ()

    METHODS = METHODS


MethodGroup08.protocol = ADAPTER = Adapter09("0-8", FRAMING, MethodGroup08)
