"""What faults know of 0-9-1."""

from __future__ import annotations

from fakeamqp.faults.amqp_0_9_1.units import CONFIRMS, PUBLISH, MethodUnit
from fakeamqp.faults.amqp_0_9_x.dialect import FamilyDialect
from fakeamqp.wire.amqp_0_9_x.framing import FRAMING

__all__ = ["DIALECT"]

MethodUnit.dialect = DIALECT = FamilyDialect("0-9-1", FRAMING, MethodUnit, frozenset((PUBLISH,)), CONFIRMS)
