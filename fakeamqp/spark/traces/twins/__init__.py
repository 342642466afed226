"""The questions about violations once more, in plain Python: one pass over a trace, and no Spark.

>>> from fakeamqp.spark.traces import twins
>>> twins.conformance(broker.trace.events)
[]

Each takes events of a trace, or lines of a recording as `json.loads` reads them, and returns the rows that
the query of the same name returns, in the same order. They follow a trace as it went, so that they can be
trusted; the queries know sets of rows and are fast. Tests hold each against the other.
"""

from __future__ import annotations

from fakeamqp.spark.traces.twins.conformance import RULES, Rule, conformance
from fakeamqp.spark.traces.twins.fifo import fifo_violations
from fakeamqp.spark.traces.twins.high_water import unacked_high_water
from fakeamqp.spark.traces.twins.records import Record

__all__ = ["RULES", "Record", "Rule", "conformance", "fifo_violations", "unacked_high_water"]
