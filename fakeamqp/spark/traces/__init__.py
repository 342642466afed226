"""Broker traces as tables, with SQL queries for latency, redelivery, order and conformance.

>>> from fakeamqp.spark import traces
>>> t = traces.load(spark, "soak/*.jsonl")
>>> t.latency_by_queue().show()
>>> t.conformance().count()
0

`fakeamqp.trace.checks` finds the same violations without Spark.
"""

from __future__ import annotations

from fakeamqp.spark.traces.analysis import Traces, load, of, report
from fakeamqp.spark.traces.reading import COLUMNS
from fakeamqp.trace.report import QUERIES

__all__ = ["COLUMNS", "QUERIES", "Traces", "load", "of", "report"]
