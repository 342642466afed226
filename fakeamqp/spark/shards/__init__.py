"""Streaming read of several queues by tasks in the executors: each queue is a shard.

A task takes messages from its shard, writes them to a file system that all executors see, and acknowledges
them. Offsets are numbers of these files, so a batch that runs again reads them again. Spark's scheduler
decides where tasks run; a lease on the broker keeps one task per shard.
"""

from __future__ import annotations

from fakeamqp.spark.shards.reader import ShardPartition, ShardStreamReader

__all__ = ["ShardPartition", "ShardStreamReader"]
