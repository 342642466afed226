"""Batch read of queues: what is in them, without taking anything out."""

from __future__ import annotations

from fakeamqp.spark.browse.reader import BrowseReader, QueuePartition

__all__ = ["BrowseReader", "QueuePartition"]
