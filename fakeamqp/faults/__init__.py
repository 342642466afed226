"""Faults: rules about methods, the network, alarms and chaos.

`Faults` is the API, as `Broker.faults`. A `rule` is a condition (`matching`), a trigger and `actions`. The
`executor` owns the tap, the rules in force and the frame groups held back. Below the frames, network proxies
shape the bytes of connections (`network`). `chaos` draws faults at random. This package imports no protocol:
a protocol hands in its dialect and fault ports, the broker its context (`port`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.dialects import default_protocol
from fakeamqp.faults.api import Faults
from fakeamqp.faults.errors import FaultError, FaultNotSeen, UnusedFault
from fakeamqp.faults.frame_group import FrameGroup
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.lasting import Alarm, Flow, Starvation
from fakeamqp.faults.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.dialects import Malformation

    MALFORMATIONS: Mapping[str, Malformation]

__all__ = [
    "MALFORMATIONS",
    "Alarm",
    "FaultError",
    "FaultNotSeen",
    "Faults",
    "Flow",
    "FrameGroup",
    "Handle",
    "Rule",
    "Starvation",
    "UnusedFault",
]


if not TYPE_CHECKING:  # Type checkers would accept any name.

    def __getattr__(name: str) -> Any:
        """`MALFORMATIONS`, which loads the codec of the most common protocol."""
        if name == "MALFORMATIONS":
            return default_protocol().dialect.malformations
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
