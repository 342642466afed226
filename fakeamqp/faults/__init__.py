"""Everything that can be made to go wrong: rules that bend one method, one frame, one connection.

`Faults` is what a test sees, as `Broker.faults`. Rules look at methods with their contents (`rule`,
`matching`, `actions`), as they pass the tap (`tap`); below them the network bends streams of bytes
(`network`, `cable`); `chaos` draws what goes wrong. The room knows the wire. What it needs of broker and
connections is handed in (`line`).
"""

from __future__ import annotations

from fakeamqp.faults.alarms import Alarm, Flow, Starvation
from fakeamqp.faults.errors import FaultError, FaultNotSeen, UnusedFault
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.malformed import MALFORMATIONS
from fakeamqp.faults.room import Faults
from fakeamqp.faults.rule import Rule
from fakeamqp.faults.units import Unit

__all__ = [
    "MALFORMATIONS",
    "Alarm",
    "FaultError",
    "FaultNotSeen",
    "Faults",
    "Flow",
    "Handle",
    "Rule",
    "Starvation",
    "Unit",
    "UnusedFault",
]
