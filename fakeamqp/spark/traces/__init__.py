"""Broker traces as tables: latency, redelivery, order and conformance, asked with SQL that is shipped.

>>> from fakeamqp.spark import traces
>>> t = traces.load(spark, "soak/*.jsonl")
>>> t.latency_by_queue().show()
>>> t.conformance().count()
0

`twins` asks the same of violations without Spark.
"""

from __future__ import annotations

from fakeamqp.spark.traces.analysis import Traces, load, of, report
from fakeamqp.spark.traces.columns import COLUMNS
from fakeamqp.spark.traces.sql import QUERIES

__all__ = ["COLUMNS", "QUERIES", "Traces", "load", "of", "report"]
