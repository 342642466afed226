"""Checks of a trace: one pass in plain Python that finds violations of the protocol.

>>> broker.trace.findings()
()

`check` runs them on events. The functions `conformance`, `fifo_violations` and `unacked_high_water` take
events of a trace, or lines of a recording as `json.loads` returns them, and return the rows of the Spark
queries with these names in the same order (see `fakeamqp.spark.traces`). Both run the classes `Conformance`,
`FifoCheck` and `HighWater`, which see the rows of a run one by one.
"""

from __future__ import annotations

from fakeamqp.trace.checks.checked import AT_ANY_MOMENT, CHECKS, check
from fakeamqp.trace.checks.conformance import RULES, Conformance, conformance
from fakeamqp.trace.checks.deliveries import FifoCheck, HighWater, fifo_violations, unacked_high_water
from fakeamqp.trace.checks.finding import Allow, Finding, Findings, UnknownCheck, UnknownRule
from fakeamqp.trace.checks.invariants import Invariants

__all__ = [
    "AT_ANY_MOMENT",
    "CHECKS",
    "RULES",
    "Allow",
    "Conformance",
    "FifoCheck",
    "Finding",
    "Findings",
    "HighWater",
    "Invariants",
    "UnknownCheck",
    "UnknownRule",
    "check",
    "conformance",
    "fifo_violations",
    "unacked_high_water",
]
