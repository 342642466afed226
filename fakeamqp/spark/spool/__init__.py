"""Streaming read of classic and quorum queues.

A consumer in the driver takes messages in continuously, gives them numbers, and keeps them until Spark is
through with them. Where it keeps them, and when it acknowledges, is the acknowledgement mode: `spool`,
`commit` or `none`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.spark.columns import Column
    from fakeamqp.spark.options import ReadOptions
    from fakeamqp.spark.spool.reader import QueueStreamReader

__all__ = ["queue_stream_reader"]


def queue_stream_reader(options: ReadOptions, columns: Sequence[Column]) -> QueueStreamReader:
    """The stream reader for the queues of these options. It does nothing before Spark's first call."""
    from fakeamqp.spark.spool.reader import QueueStreamReader

    return QueueStreamReader(options, columns)
