"""Installed as the top-level package `pyspark_fakeamqp`.

Spark looks into every top-level package whose name begins with `pyspark_` for a `DefaultSource`, and knows
its format from then on without being told.
"""

from fakeamqp.spark.source import AmqpDataSource as DefaultSource

__all__ = ["DefaultSource"]
