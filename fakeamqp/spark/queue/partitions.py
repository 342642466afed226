"""Rows in blocks, and their way to executors: the split of a micro-batch into tasks, and what tasks carry.

A task costs Spark 10 to 20 milliseconds, so there are few; Spark warns of tasks larger than 1000 KiB, so rows
that travel inside are cut by size too. Executors unpickle this module: it needs no AMQP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.rows.columns import Column, arrow_schema

_TASK_BYTES = 900 << 10
_TASK_ROWS = 2500
_BATCH_ROWS = 5000


@dataclass(frozen=True)
class Block:
    """Rows `first` to `end`, `end` exclusive, that came together: in memory, or in a segment of the spool."""

    first: int
    end: int
    size: int  # In bytes.
    batch: pa.RecordBatch | None = None  # The rows, if they are in memory.
    path: str = ""  # The file of the segment,
    broken: str | None = None  # and why it cannot be read.

    def load(self) -> pa.RecordBatch:
        """The rows; those of a segment are mapped into memory and not read yet."""
        return read_segment(self.path) if self.batch is None else self.batch


@dataclass(frozen=True)
class Piece:
    """Some rows of a block: those from `start` to `stop` of it, `stop` exclusive."""

    block: Block
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def size(self) -> int:
        """The approximate size of the rows in bytes."""
        block = self.block
        return block.size * len(self) // max(block.end - block.first, 1)


@dataclass
class InlinePartition(InputPartition):
    """Rows inside the task, as an Arrow stream."""

    stream: bytes


@dataclass
class FilePartition(InputPartition):
    """Rows of segments: the path of each with the first row and the one behind the last."""

    pieces: tuple[tuple[str, int, int], ...]
    schema: pa.Schema
    missing_is_null: bool


def partitions_of(
    pieces: Sequence[Piece], columns: Sequence[Column], least: int, *, files: bool, missing_is_null: bool
) -> list[InputPartition]:
    """The tasks of a batch, at least `least` of them if it is not small. They carry rows, or read `files`.

    Raises:
        SpoolError: a column was not stored, and `missing_is_null` does not make it null.
    """
    schema = arrow_schema(columns)
    if not files:
        tasks = cut(pieces, least, _TASK_BYTES)
        return [InlinePartition(_stream(task, schema, missing_is_null)) for task in tasks]
    for piece in pieces:  # A missing column fails here, and not in an executor.
        pick(piece.block.load().slice(0, 0), schema, missing_is_null)
    ranges = (
        tuple((piece.block.path, piece.start, piece.stop) for piece in task)
        for task in cut(pieces, least, None)
    )
    return [FilePartition(each, schema, missing_is_null) for each in ranges]


def cut(pieces: Sequence[Piece], least: int, most_bytes: int | None) -> list[list[Piece]]:
    """The pieces, split and grouped, so that each list is a task, at least `least` if they are not few.

    A task has at most `most_bytes`, if that matters; a single row may have more.
    """
    rows = sum(map(len, pieces))
    if not rows:
        return []
    size = sum(piece.size for piece in pieces)
    count = max(1, min(least, max(rows // _TASK_ROWS, size // _TASK_BYTES)))
    if most_bytes is not None:
        count = max(count, -(-size // most_bytes))
    share = -(-rows // min(count, rows))
    tasks: list[list[Piece]] = []
    left = left_bytes = 0
    for piece in pieces:
        start = piece.start
        row_bytes = max(piece.size // max(len(piece), 1), 1)
        while start < piece.stop:
            if left <= 0 or (most_bytes is not None and left_bytes <= 0):
                tasks.append([])
                left, left_bytes = share, most_bytes or 0
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
        waiting: list[pa.RecordBatch] = []
        for path, start, stop in partition.pieces:
            try:
                batch = read_segment(path)
            except OSError as error:
                raise SpoolError(
                    f"an executor cannot read {path}: {error}; transport=file is for executors that see the "
                    "folder of the spool, the others need transport=inline"
                ) from None
            batch = pick(batch, partition.schema, partition.missing_is_null)
            waiting.append(batch.slice(start, stop - start))
            if sum(map(len, waiting)) >= _BATCH_ROWS or sum(each.nbytes for each in waiting) >= _TASK_BYTES:
                yield _joined(waiting, partition.schema)
                waiting = []
        if waiting:
            yield _joined(waiting, partition.schema)


def read_segment(path: str) -> pa.RecordBatch:
    """The rows of a segment, mapped into memory and not read yet.

    Raises:
        OSError: if the file is not there, or is none.
    """
    with pa.memory_map(path) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


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
