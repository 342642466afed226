"""What faults know of 0-9."""

from __future__ import annotations

from fakeamqp.faults.amqp_0_9.dialect import Dialect09
from fakeamqp.faults.amqp_0_9.units import MethodUnit09
from fakeamqp.wire.amqp_0_9.framing import FRAMING

__all__ = ["DIALECT"]

MethodUnit09.dialect = DIALECT = Dialect09("0-9", FRAMING, MethodUnit09)
