"""The driver's side of a query on shards: what each batch has of which shard, and the lease of the spool.

Offsets are `{"spool": id, "next": {shard: number}}`: the number of the next segment of each shard. A batch
has at most one new segment of a shard, which the task of the shard fills; a batch that runs again reads the
segments that there are, and fills those that there are not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec.methods import ExchangeDeclare, QueueBind, QueueDeclare
from fakeamqp.spark.errors import ChannelClosed, ConnectionLost, QueueNotFound, QueueRefused, SpoolError
from fakeamqp.spark.lag import FallingBehind, LagClock, totals
from fakeamqp.spark.micro_batches import Offset, share
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.shards.filling import KEPT
from fakeamqp.spark.shards.folder import FolderContents, SharedFolder, State
from fakeamqp.spark.shards.reader import ShardPartition
from fakeamqp.spark.spools import data_loss
from fakeamqp.spark.wire.attended import AttendedConnection, with_heartbeat
from fakeamqp.spark.wire.channel import WireChannel
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.lease import LeaseTaken, lease_name, take_lease
from fakeamqp.spark.wire.queue_types import check_is_no_stream
from fakeamqp.spark.wire.refusals import refused

log: logging.Logger = logging.getLogger("fakeamqp.spark")

# Seconds. If the machine of the driver vanishes, the broker releases the lease after two or three heartbeats,
# and the query that starts elsewhere waits for that.
_HEARTBEAT = 5
_BEATS = 4


@dataclass
class _Shard:
    """The place of a shard, in numbers of segments."""

    files: FolderContents  # As they were listed last.
    committed: int  # The first segment that Spark has not processed.
    end: int  # The first segment behind the batch that was planned last.
    uncounted: set[int] = field(default_factory=set)  # Segments of the batch that tasks fill.
    allowed: tuple[int, int] = -1, 0  # The last new segment, and how many messages it may take.
    in_batch: int = 0  # How many of the ready messages the last batch has,
    planned: int = 0  # and how many all batches have.
    clock: LagClock = field(default_factory=LagClock)

    @property
    def known_end(self) -> int:
        """The number behind the last segment that there may be."""
        return max(self.files.end, self.committed, self.end)


class ShardQuery:
    """A running query. `close` releases its spool.

    A shard that the options do not name any more keeps its place in the offsets: it may come back, and a
    batch that runs again has its rows.

    Raises:
        SpoolError: another query uses the spool, or it cannot be read; also from all methods.
        OptionError: a shard is a stream.
        QueueRefused, BrokerUnreachable, ConnectionLost: the shards cannot be read.
        DataLoss: an offset is none of this spool, or segments are gone, and that fails the query.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._folder = SharedFolder(options.spool_folder or "", sync=options.spool_sync)
        self._watch = Watch(options, self._folder.state().spool)
        try:
            self._depths = self._watch.depths()
            self._state = self._folder.state()  # The query that had the lease before may have changed it.
            self._shards: dict[str, _Shard] = {}
            for shard in options.queues:
                self._add(shard)
            self._most: dict[str, int] = {}
            self._available: dict[str, int] | None = None
            self._redelivered = self._dropped = 0
            self._has_run = False  # A task of the batch.
            self._behind = FallingBehind(
                "shards " + ", ".join(options.queues),
                "More shards with as many processors, or a larger maxMessagesPerTrigger help",
                options.max_messages,
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, which releases the lease of the spool."""
        self._watch.close()

    def limit_to_available(self) -> None:
        self._available = self._ready()

    def first(self) -> Offset:
        return self._offset({shard: place.committed for shard, place in self._shards.items()})

    def last(self) -> Offset:
        """The offset behind the batch that was planned last."""
        return self._offset({shard: place.end for shard, place in self._shards.items()})

    def advance(self, start: Offset | None, most: int | None) -> Offset:
        """The end of the next batch: one more segment of each shard that has messages.

        The new segments have at most `most` messages together, but at least one message each. Segments that
        are there already, of a batch that did not end or of a checkpoint that is gone, come before a new one:
        each in a batch of its own, or all of them at once if `most` is None.
        """
        numbers = self._numbers(self.last() if start is None else start)
        self._end_batch()
        self._depths = self._watch.depths()
        ready = self._ready()
        if self._available is not None:
            ready = {shard: min(count, max(self._available[shard], 0)) for shard, count in ready.items()}
        self._most = share(ready, most)
        for shard, number in numbers.items():
            place = self._shards[shard]
            there = max(place.files.end - number, 0)
            adds = shard in self._most and (most is None or not there)
            place.end = number + (there if most is None else min(there, 1)) + adds
            if adds:
                if place.allowed[0] == number + there:  # PySpark 4.0 asks again, for the progress alone.
                    self._most[shard] = max(self._most[shard], place.allowed[1])
                place.allowed = number + there, self._most[shard]
            place.in_batch = self._most[shard] if adds else 0
            place.planned += place.in_batch
        return self.last()

    def plan(self, start: Offset, end: Offset) -> list[ShardPartition]:
        """The tasks of a batch, one for each shard that has segments in it."""
        stops = self._numbers(end, ahead=1)  # First: only the end has shards that are new in the batch.
        # PySpark before 4.2 begins with the end of an unfinished batch as both, and none of its rows.
        starts = stops if start == end else self._numbers(start)
        tasks: list[ShardPartition] = []
        otherwise = -(-self._options.max_messages // len(stops))
        for shard, stop in stops.items():
            place = self._shards[shard]
            place.end = stop  # PySpark before 4.2 names no start when it asks for the next batch.
            segments = range(starts[shard], stop)
            missing = {*segments} - self._list(shard).sizes.keys() if segments else set()
            # A segment that was complete has had its messages: to fill it again would change the batch.
            lost = {each for each in missing if each < place.committed or each in place.files.filled}
            if lost:
                what = f"segments {sorted(lost)} of shard {shard!r} are gone from {self._folder.path}"
                data_loss(self._options, what)
            place.uncounted |= missing - lost
            if wanted := tuple(number for number in segments if number not in lost):
                most = self._most.get(shard) or otherwise
                tasks.append(ShardPartition(self._state.spool, shard, wanted, most))
        return tasks

    def commit(self, end: Offset) -> None:
        """Note that Spark has processed all segments before `end`, and remove those that are not needed."""
        numbers = self._numbers(end)
        moved = [shard for shard, number in numbers.items() if number > self._shards[shard].committed]
        if not moved:
            return
        for shard in moved:
            self._shards[shard].committed = numbers[shard]
        committed = {shard: place.committed for shard, place in self._shards.items()}
        self._folder.save(State(self._state.spool, {**self._state.committed, **committed}))
        for shard in moved:
            self._tidy(shard)

    def progress(self) -> dict[str, Any]:
        """The end and the figures of the query; their names are public, and documented.

        The depths are those of the planning of the batch, when no task consumed.
        """
        self._count_filled()
        lag, seconds = 0, 0.0
        for shard, ready in self._ready().items():
            place = self._shards[shard]
            left = max(ready - place.in_batch, 0)
            lag, seconds = lag + left, max(seconds, place.clock.age(place.planned, place.planned + left))
        metrics = {
            **self._behind.look(lag, seconds),
            **totals(self._depths),
            "redelivered": self._redelivered,
            "dropped": self._dropped,
            "spoolBytes": sum(sum(place.files.sizes.values()) for place in self._shards.values()),
        }
        return {"offset": self.last(), "metrics": metrics}

    def _add(self, shard: str) -> None:
        """Look up the place of a shard, which the options or the checkpoint name."""
        if shard in self._shards:
            return
        committed = self._state.committed.get(shard, 0)
        self._shards[shard] = _Shard(self._folder.contents(shard), committed, committed)
        self._tidy(shard)
        if shard not in self._options.queues:
            log.warning("shard %r is no longer read; its place stays in the checkpoint", shard)

    def _offset(self, numbers: dict[str, int]) -> dict[str, Any]:
        return {"spool": self._state.spool, "next": numbers}

    def _numbers(self, offset: dict[str, Any], *, ahead: int = 0) -> dict[str, int]:
        """The next segment of each shard, of which `ahead` may be new ones."""
        spool, numbers = offset.get("spool"), offset.get("next")
        if spool != self._state.spool or not isinstance(numbers, dict):
            data_loss(
                self._options,
                f"the checkpoint belongs to spool {spool}, and {self._folder.path} has spool "
                f"{self._state.spool}",
            )
            numbers = {}
        for shard in numbers:
            self._add(shard)
        found = {shard: numbers.get(shard, place.committed) for shard, place in self._shards.items()}
        for shard, number in found.items():
            place = self._shards[shard]
            if number > place.known_end + ahead:
                data_loss(
                    self._options,
                    f"the checkpoint continues at segment {number} of shard {shard!r}, and the spool in "
                    f"{self._folder.path} ends at {place.known_end}",
                )
                found[shard] = place.committed
        return found

    def _ready(self) -> dict[str, int]:
        return {shard: depth["ready"] for shard, depth in self._depths.items()}

    def _count_filled(self) -> None:
        """Count the messages of the segments that tasks have filled since the last call."""
        for shard, place in self._shards.items():
            filled = self._list(shard).filled if place.uncounted else {}
            for number in place.uncounted & filled.keys():
                self._has_run = True
                taken, redelivered, dropped = filled[number]
                self._redelivered += redelivered
                self._dropped += dropped
                if self._available is not None:
                    # None: other consumers have them, or are the only ones that get any.
                    self._available[shard] = self._available.get(shard, 0) - taken if taken else 0
            place.uncounted -= filled.keys()

    def _end_batch(self) -> None:
        """Count the messages of the last batch."""
        self._count_filled()
        for shard, place in self._shards.items():
            # A query need not run all tasks of a batch: `limit` and `show` read the first ones only. It ends
            # all the same if it runs none.
            if self._available is not None and place.uncounted and not self._has_run:
                self._available[shard] = 0
            place.uncounted.clear()
        self._has_run = False

    def _list(self, shard: str) -> FolderContents:
        files = self._shards[shard].files = self._folder.contents(shard)
        return files

    def _tidy(self, shard: str) -> None:
        place = self._shards[shard]
        place.files = self._folder.tidy(shard, place.files, place.committed - KEPT, place.committed)


class Watch:
    """The connection of a query: asks for the depths of all shards, and holds the lease of the spool."""

    def __init__(self, options: ReadOptions, spool: str) -> None:
        self._options = with_heartbeat(options, _HEARTBEAT)
        self._patience = _BEATS * max(self._options.connection.heartbeat or 0, _HEARTBEAT)
        self._spool = spool
        self._channel: WireChannel
        self._checked = False
        self._attended = AttendedConnection(self._options, "watch of shards", self._prepare)

    def depths(self) -> dict[str, dict[str, int]]:
        """The ready messages and consumers of each shard."""
        return self._attended.call(self._ask)

    def close(self) -> None:
        """Close the connection, which releases the lease."""
        self._attended.stop()

    # --- in the thread of the connection --------------------------------------------------------------

    def _prepare(self, connection: WireConnection) -> None:
        try:
            take_lease(connection, lease_name(self._spool), self._patience)
        except LeaseTaken as error:
            raise SpoolError(
                f"spoolDir is in use by another query, or by another source of this one: {error}. Stop that "
                "query, or give this source its own"
            ) from None
        self._channel = connection.channel()
        if not self._checked:
            self._check(connection, self._channel, self._options.shard_exchange)
            self._checked = True

    def _check(self, connection: WireConnection, channel: WireChannel, exchange: str | None) -> None:
        """Check that the shards are no streams; bind them to the exchange, and declare what is missing."""
        try:
            if exchange is not None:
                channel.call(ExchangeDeclare(exchange=exchange, type="x-consistent-hash", durable=True))
            for shard in self._options.queues:
                try:
                    check_is_no_stream(connection, shard)
                except QueueNotFound:
                    if exchange is None:
                        raise
                    channel.call(QueueDeclare(queue=shard, durable=True))
                if exchange is not None:
                    channel.call(QueueBind(queue=shard, exchange=exchange, routing_key="1"))
        except ChannelClosed as refusal:
            raise QueueRefused(
                f"cannot bind shards to {exchange!r} as a durable x-consistent-hash exchange: {refusal}"
            ) from None

    def _ask(self, _connection: WireConnection) -> dict[str, dict[str, int]]:
        questions = [QueueDeclare(queue=shard, passive=True) for shard in self._options.queues]
        try:
            answers = self._channel.call_all(questions)
        except ConnectionLost as error:
            raise refused("cannot count the messages of the shards", error) from None
        return {
            each.queue: {"ready": each.message_count, "consumers": each.consumer_count} for each in answers
        }
