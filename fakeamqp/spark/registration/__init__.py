"""Installed as the top-level package `pyspark_fakeamqp`.

Spark lists the packages of the folders that Python imports from, looks into those whose names begin with
`pyspark_` for a `DefaultSource`, and knows its format from then on. An editable installation has renamed
packages in no such folder: `register` and `local_session` make the format known there.
"""

from fakeamqp.spark.source import AmqpDataSource as DefaultSource

__all__ = ["DefaultSource"]
