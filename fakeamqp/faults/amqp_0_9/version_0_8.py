"""What faults know of 0-8."""

from __future__ import annotations

from fakeamqp.faults.amqp_0_9.dialect import Dialect09
from fakeamqp.faults.amqp_0_9.units import MethodUnit09
from fakeamqp.wire.amqp_0_9.framing_0_8 import FRAMING
from fakeamqp.wire.amqp_0_9.version_0_8 import METHODS

__all__ = ["DIALECT"]


class MethodUnit08(MethodUnit09):
    """Methods of 0-8."""

    __slots__ = ()

    METHODS = METHODS


MethodUnit08.dialect = DIALECT = Dialect09("0-8", FRAMING, MethodUnit08)
