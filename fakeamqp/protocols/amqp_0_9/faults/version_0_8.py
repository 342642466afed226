"""What faults know of 0-8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9.codec.framing_0_8 import FRAMING
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import METHODS
from fakeamqp.protocols.amqp_0_9.faults.adapter import Adapter09
from fakeamqp.protocols.amqp_0_9.faults.frame_groups import MethodGroup09

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["ADAPTER"]


class MethodGroup08(MethodGroup09):
    """Methods of 0-8."""

    __slots__ = ()

    METHODS: ClassVar[Mapping[int, type[Method]]] = METHODS


MethodGroup08.protocol = ADAPTER = Adapter09("0-8", FRAMING, MethodGroup08)
