"""The sink: rows of a DataFrame, published as messages and confirmed by the broker."""

from __future__ import annotations

from fakeamqp.spark.sink.writers import BatchWriter, MicroBatchWriter

__all__ = ["BatchWriter", "MicroBatchWriter"]
