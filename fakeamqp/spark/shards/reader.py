"""The stream reader of shards, as Spark calls it.

Offsets are `{"spool": id, "next": {shard: number}}`: the number of the next segment of each shard. A batch
has at most one new segment of a shard, which the task of the shard fills; a batch that runs again reads the
segments that there are, and fills those that there are not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fakeamqp.spark.columns import Column, arrow_schema
from fakeamqp.spark.errors import DataLoss
from fakeamqp.spark.lag import report
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.query_process import exit_on_sigterm
from fakeamqp.spark.read_limits import AvailableNow, default_limit, most_rows
from fakeamqp.spark.shards.metrics import ShardMetrics
from fakeamqp.spark.shards.share import share

if TYPE_CHECKING:
    import pyarrow as pa

    from fakeamqp.spark.shards.folder import FolderContents, SharedFolder
    from fakeamqp.spark.shards.watch import Watch

log: logging.Logger = logging.getLogger("fakeamqp.spark")

# Messages of a segment, and redelivered ones among them.
_NONE = 0, 0


@dataclass
class ShardPartition(InputPartition):
    """Segments of a shard, by their numbers; new ones take at most `most` messages."""

    spool: str
    shard: str
    segments: tuple[int, ...]
    most: int


class ShardStreamReader(DataSourceStreamReader, AvailableNow):
    """Reads each queue of the options in a task of its own."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._running: _Running | None = None
        self._available_now = self._asked_without_limit = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None}

    def initialOffset(self) -> dict[str, Any]:
        """The oldest segments that are not processed."""
        life = self._life()
        return life.offset(life.committed)

    def getDefaultReadLimit(self) -> Any:
        """The option `maxMessagesPerTrigger`."""
        return default_limit(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages that are in the shards at its first other call."""
        self._available_now = True

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """The end of the next micro-batch: one more segment of each shard that has messages.

        PySpark before 4.2 gives no limit, and asks only once when the trigger is AvailableNow: so the first
        answer is then for all messages.

        Raises:
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`.
            SpoolError: another query uses the spool, or it cannot be read.
            DataLoss: the offset is none of this spool and that fails the query.
        """
        life = self._life()
        begin = life.end if start is None else life.position(start)
        if limit is None and start is None:
            most = self._options.max_messages if self._asked_without_limit else None
            self._asked_without_limit = True
        else:
            most = most_rows(limit, self._options.max_messages)
        return life.offset(life.advance(begin, most))

    def reportLatestOffset(self) -> dict[str, Any]:
        """The ends of the shards and their depths, for the progress of the query."""
        life = self._life()
        return report(life.offset(life.end), life.metrics())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task for each shard that has segments in the batch.

        Raises:
            DataLoss: segments are gone and that fails the query.
        """
        life = self._life()
        stop = life.position(end, ahead=1)  # First: only the end has shards that are new in the batch.
        return life.plan(life.position(start), stop)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a shard. Runs in executors.

        Raises:
            BrokerUnreachable, ConnectionLost, DataLoss: as `fakeamqp.spark.shards.filling.fill`.
            SpoolError: the executor does not see the spool, or it cannot be read or written.
        """
        assert isinstance(partition, ShardPartition)
        from fakeamqp.spark.shards.filling import fill
        from fakeamqp.spark.shards.folder import SharedFolder
        from fakeamqp.spark.spool.partitions import pick

        options = self._options
        folder = SharedFolder(options.spool_folder or "", sync=options.spool_sync)
        schema = arrow_schema(self._columns)
        folder.require(partition.spool)
        for number in partition.segments:
            if fill(options, folder, partition.spool, partition.shard, number, partition.most, self._columns):
                for batch in folder.read(partition.shard, number):
                    yield pick(batch, schema, not options.fail_on_data_loss)

    def commit(self, end: dict[str, Any]) -> None:
        """Note that Spark has processed all segments before `end`, and remove those that are not needed."""
        life = self._life()
        life.commit(life.position(end))

    def stop(self) -> None:
        """Close the connection."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def _life(self) -> _Running:
        if self._running is None:
            self._running = _Running(self._options)
            if self._available_now:
                self._running.prepare_available_now()
        return self._running


class _Running:
    """The resources of a running query, in the process of its source.

    A shard that the options do not name any more keeps its place in the offsets: it may come back, and a
    batch that runs again has its rows.

    Attributes:
        committed: the first segment of each shard that Spark has not processed.
        begin: the first segment of each shard in the batch that was planned last.
        end: the first segment of each shard behind that batch.
    """

    def __init__(self, options: ReadOptions) -> None:
        from fakeamqp.spark.shards.folder import SharedFolder
        from fakeamqp.spark.shards.watch import Watch

        self._options = options
        self._folder: SharedFolder = SharedFolder(options.spool_folder or "", sync=options.spool_sync)
        self._folder.make()
        self._watch: Watch = Watch(options, self._folder.state().spool)
        try:
            self._depths = self._watch.depths()
            self._state = self._folder.state()  # The query that had the lease before may have changed it.
            self.committed: dict[str, int] = {}
            self.begin: dict[str, int] = {}
            self.end: dict[str, int] = {}
            self._contents: dict[str, FolderContents] = {}
            # The ends of the segments of a batch that did not end, or that a checkpoint which is gone had.
            self._found: dict[str, int] = {}
            self._reached: dict[str, int] = {}
            for shard in options.queues:
                self._add(shard)
        except BaseException:
            self._watch.close()
            raise
        self._most: dict[str, int] = {}
        self._available: dict[str, int] | None = None
        self._metrics = ShardMetrics(options)
        self._restore_signal: Callable[[], None] = exit_on_sigterm()

    def close(self) -> None:
        self._watch.close()
        self._restore_signal()

    def _add(self, shard: str) -> None:
        """Look up the place of a shard, which the options or the checkpoint name."""
        if shard in self.committed:
            return
        self.committed[shard] = self.begin[shard] = self.end[shard] = self._state.committed.get(shard, 0)
        self._found[shard] = self._list(shard).end
        self._reached[shard] = max(self._found[shard], self.committed[shard])
        self._tidy(shard)
        if shard not in self._options.queues:
            log.warning("shard %r is no longer read; its place stays in the checkpoint", shard)

    def prepare_available_now(self) -> None:
        self._depths = self._watch.depths()
        self._available = {shard: depth["ready"] for shard, depth in self._depths.items()}

    def advance(self, begin: dict[str, int], most: int | None) -> dict[str, int]:
        self._look_at_new_segments(begin)
        self._depths = self._watch.depths()
        ready = {shard: depth["ready"] for shard, depth in self._depths.items()}
        if self._available is not None:
            ready = {shard: min(count, max(self._available[shard], 0)) for shard, count in ready.items()}
        self._most = share(ready, most)
        self.begin, self.end = dict(begin), {}
        for shard, number in begin.items():
            there = number < self._found[shard]
            self.end[shard] = number + (there or shard in self._most)
            self._reached[shard] = max(self._reached[shard], self.end[shard])
            if shard in self._depths:
                self._metrics.planned(shard, 0 if there else self._most.get(shard, 0))
        return self.end

    def plan(self, first: dict[str, int], stop: dict[str, int]) -> list[InputPartition]:
        self.end = dict(stop)  # PySpark before 4.2 names no start when it asks for the next batch.
        tasks: list[InputPartition] = []
        otherwise = -(-self._options.max_messages // len(stop))
        for shard, end in stop.items():
            there = self._list(shard) if first[shard] < end else self._contents[shard]
            segments = range(first[shard], end)
            # A segment that was complete has had its messages: to fill it again would change the batch.
            lost = [
                number
                for number in segments
                if number not in there.sizes and (number < self.committed[shard] or number in there.filled)
            ]
            if lost:
                self._lost(f"segments {lost} of shard {shard!r} are gone from {self._folder.path}")
            if wanted := tuple(number for number in segments if number not in lost):
                most = self._most.get(shard) or otherwise
                tasks.append(ShardPartition(self._state.spool, shard, wanted, most))
            self._reached[shard] = max(self._reached[shard], end)
        return tasks

    def commit(self, end: dict[str, int]) -> None:
        from fakeamqp.spark.shards.folder import State

        moved = {shard: number for shard, number in end.items() if number > self.committed[shard]}
        if not moved:
            return
        self.committed.update(moved)
        self._folder.save(State(self._state.spool, {**self._state.committed, **self.committed}))
        for shard in moved:
            self._tidy(shard)

    def offset(self, numbers: dict[str, int]) -> dict[str, Any]:
        return {"spool": self._state.spool, "next": numbers}

    def position(self, offset: dict[str, Any], *, ahead: int = 0) -> dict[str, int]:
        """The next segment of each shard; `ahead` of them may be new ones."""
        spool, numbers = offset.get("spool"), offset.get("next")
        if spool != self._state.spool or not isinstance(numbers, dict):
            self._lost(
                f"the checkpoint belongs to spool {spool}, and {self._folder.path} has spool "
                f"{self._state.spool}"
            )
            return dict(self.committed)
        for shard in numbers:
            self._add(shard)
        found = {shard: numbers.get(shard, place) for shard, place in self.committed.items()}
        for shard, number in found.items():
            end = self._reached[shard]
            if number > end + ahead:
                self._lost(
                    f"the checkpoint continues at segment {number} of shard {shard!r}, and the spool in "
                    f"{self._folder.path} ends at {end}"
                )
                found[shard] = self.committed[shard]
        return found

    def metrics(self) -> dict[str, Any]:
        octets = redelivered = 0
        for shard, end in self.end.items():
            there = self._list(shard) if end > self.begin[shard] else self._contents[shard]
            octets += sum(there.sizes.values())
            redelivered += sum(there.filled.get(number, _NONE)[1] for number in self._new(shard, end))
        return self._metrics.now(self._depths, octets, redelivered)

    def _look_at_new_segments(self, ends: dict[str, int]) -> None:
        """Count the messages of the segments that tasks have filled since the last batch was planned."""
        filled: dict[str, list[tuple[int, int] | None]] = {}
        for shard, end in ends.items():
            if end > self.begin[shard]:
                there = self._list(shard).filled
                filled[shard] = [there.get(number) for number in self._new(shard, end)]
        # A query need not run all tasks of a batch: `limit` and `show` read the first ones only. It ends all
        # the same if it runs none.
        none_ran = not any(counts for each in filled.values() for counts in each)
        for shard, each in filled.items():
            for counts in each:
                self._metrics.redelivered += (counts or _NONE)[1]
                if self._available is None or (counts is None and not none_ran):
                    continue
                taken = (counts or _NONE)[0]
                # None: other consumers have them, or are the only ones that get any.
                self._available[shard] = self._available[shard] - taken if taken else 0

    def _new(self, shard: str, end: int) -> range:
        """The segments before `end` that the last planned batch has and that were not there at the start."""
        return range(max(self.begin[shard], self._found[shard]), end)

    def _list(self, shard: str) -> FolderContents:
        self._contents[shard] = self._folder.contents(shard)
        return self._contents[shard]

    def _tidy(self, shard: str) -> None:
        from fakeamqp.spark.shards.filling import KEPT

        processed = self.committed[shard]
        there = self._contents[shard]
        self._contents[shard] = self._folder.tidy(shard, there, processed - KEPT, processed)

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(
                f"{what}; bring back the spool that belongs to the checkpoint, start with a new checkpoint, "
                "or set failOnDataLoss=false to continue with the remaining messages"
            )
        log.warning("%s; continuing with the remaining messages (failOnDataLoss=false)", what)
