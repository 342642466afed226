"""Stream queues: read by offset in batches and micro-batches, any number of times."""

from __future__ import annotations

from fakeamqp.spark.stream_queue.batch import StreamBatchReader
from fakeamqp.spark.stream_queue.micro_batch import StreamMicroBatchReader

__all__ = ["StreamBatchReader", "StreamMicroBatchReader"]
