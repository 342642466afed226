"""Stream queues: read by offset in batches and micro-batches, any number of times."""

from __future__ import annotations

from fakeamqp.spark.stream.readers import StreamMicroBatchReader, batch_reader

__all__ = ["StreamMicroBatchReader", "batch_reader"]
