"""Stream queues: read by offset, in batch and micro-batch by micro-batch, as often as one likes."""

from __future__ import annotations

from fakeamqp.spark.stream_queue.batch import StreamBatchReader
from fakeamqp.spark.stream_queue.micro_batch import StreamMicroBatchReader

__all__ = ["StreamBatchReader", "StreamMicroBatchReader"]
