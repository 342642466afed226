"""Batch reads of queues, which leave the messages in the queues."""

from __future__ import annotations

from fakeamqp.spark.browse.reader import BrowseReader, QueuePartition

__all__ = ["BrowseReader", "QueuePartition"]
