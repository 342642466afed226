"""The split of a micro-batch into tasks, and the transport of rows to them.

A task costs Spark 10 to 20 milliseconds, so there are few; Spark warns of tasks larger than 1000 KiB, so rows
that travel inside are cut by size too. Executors unpickle this module: it needs no AMQP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.columns import Column, arrow_schema
from fakeamqp.spark.errors import SpoolError

if TYPE_CHECKING:
    from fakeamqp.spark.spool.store import Piece

_TASK_OCTETS = 900 << 10
_TASK_ROWS = 2500
_BATCH_ROWS = 5000


@dataclass
class InlinePartition(InputPartition):
    """Rows inside the task, as an Arrow stream."""

    stream: bytes


@dataclass
class FilePartition(InputPartition):
    """Rows of segments, for executors that see the folder of the spool.

    `pieces` are paths with the first row and the one behind the last.
    """

    pieces: tuple[tuple[str, int, int], ...]
    schema: pa.Schema
    missing_is_null: bool


def inline_partitions(
    pieces: Sequence[Piece], columns: Sequence[Column], least: int, missing_is_null: bool
) -> list[InputPartition]:
    """The rows of pieces, inside tasks."""
    schema = arrow_schema(columns)
    return [
        InlinePartition(_stream(task, schema, missing_is_null)) for task in cut(pieces, least, _TASK_OCTETS)
    ]


def file_partitions(
    pieces: Sequence[Piece], columns: Sequence[Column], least: int, missing_is_null: bool
) -> list[InputPartition]:
    """The rows of pieces, as positions in the files of a spool."""
    schema = arrow_schema(columns)
    for piece in pieces:
        pick(piece.block.load().slice(0, 0), schema, missing_is_null)
    return [
        FilePartition(
            tuple((piece.block.path, piece.start, piece.stop) for piece in task), schema, missing_is_null
        )
        for task in cut(pieces, least, None)
    ]


def cut(pieces: Sequence[Piece], least: int, most_bytes: int | None) -> list[list[Piece]]:
    """The pieces, split and grouped, so that each list is a task.

    Args:
        pieces: the rows of a batch.
        least: how many tasks there are at least, if it is not a small batch.
        most_bytes: how large a task may be, if that matters; a single row may be larger.
    """
    from fakeamqp.spark.spool.store import Piece

    rows = sum(map(len, pieces))
    if not rows:
        return []
    octets = sum(piece.octets for piece in pieces)
    count = max(1, min(least, max(rows // _TASK_ROWS, octets // _TASK_OCTETS)))
    if most_bytes is not None:
        count = max(count, -(-octets // most_bytes))
    share = -(-rows // min(count, rows))
    share_bytes = max(-(-octets // count), 1)
    tasks: list[list[Piece]] = []
    left, left_bytes = 0, 0
    for piece in pieces:
        start = piece.start
        while start < piece.stop:
            if left <= 0 or (most_bytes is not None and left_bytes <= 0):
                tasks.append([])
                left, left_bytes = share, share_bytes if most_bytes is None else most_bytes
            row_bytes = max(piece.octets // len(piece), 1)
            fitting = left if most_bytes is None else min(left, max(left_bytes // row_bytes, 1))
            stop = min(piece.stop, start + fitting)
            tasks[-1].append(Piece(piece.block, start, stop))
            left -= stop - start
            left_bytes -= (stop - start) * row_bytes
            start = stop
    return tasks


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, in an executor."""
    if isinstance(partition, InlinePartition):
        yield from pa.ipc.open_stream(partition.stream)
    elif isinstance(partition, FilePartition):
        from fakeamqp.spark.spool.segments import read_segment

        waiting: list[pa.RecordBatch] = []
        for path, start, stop in partition.pieces:
            try:
                batch = read_segment(path)
            except OSError as error:
                raise SpoolError(
                    f"an executor cannot read {path}: {error}; transport=file is for executors that see the "
                    "folder of the spool, the others need transport=inline"
                ) from None
            waiting.append(
                pick(batch, partition.schema, partition.missing_is_null).slice(start, stop - start)
            )
            if sum(map(len, waiting)) >= _BATCH_ROWS or sum(each.nbytes for each in waiting) >= _TASK_OCTETS:
                yield _joined(waiting, partition.schema)
                waiting = []
        if waiting:
            yield _joined(waiting, partition.schema)


def pick(batch: pa.RecordBatch, schema: pa.Schema, missing_is_null: bool) -> pa.RecordBatch:
    """The columns of a schema, of a batch that may have been stored when others were wanted.

    Raises:
        SpoolError: if it lacks one, unless that shall be null.
    """
    there = {field.name: field for field in batch.schema}
    arrays = []
    for field in schema:
        found = there.get(field.name)
        if found is not None and found.type == field.type:
            arrays.append(batch.column(field.name))
        elif missing_is_null or (found is None and field.name == "_error"):  # Spools had no such column.
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            what = "no column" if found is None else f"{found.type}, not {field.type}, as column"
            raise SpoolError(
                f"the spool has messages that were stored with {what} {field.name!r}: they came when the "
                "query read other columns. Let it process them with those, or say failOnDataLoss=false to "
                "have null there"
            )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of batches as one: segments may be many and small, and each batch costs Spark time."""
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    return joined


def _stream(task: Sequence[Piece], schema: pa.Schema, missing_is_null: bool) -> bytes:
    batches = [
        pick(piece.block.load(), schema, missing_is_null).slice(piece.start, len(piece)) for piece in task
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(_joined(batches, schema))
    return bytes(sink.getvalue())
