"""What stream readers share: Spark's calls, the limits of a micro-batch, the end of the process.

Spark makes several readers: one in a process that lives as long as the query and where all calls but `read`
happen, and others that only plan, and are pickled to executors for `read`. Nothing tells them apart but the
calls, so nothing begins before the first call: no connection, no lock, no thread.
"""

from __future__ import annotations

import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.columns import Column

if TYPE_CHECKING:

    class AvailableNow:
        """Marks a reader that supports the trigger AvailableNow."""

else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:

        class AvailableNow:
            """Marks a reader that supports the trigger AvailableNow; this PySpark has no such readers."""


#: The place of a query in its source, as Spark's checkpoint has it.
Offset: TypeAlias = dict[str, Any]


class RunningQuery(Protocol):
    """What has begun with the first call of a reader. Its methods raise SparkErrors."""

    def first(self) -> Offset:
        """Where a query without a checkpoint begins."""

    def limit_to_available(self) -> None:
        """Limit the query to the messages that there are now."""

    def advance(self, start: Offset | None, most: int | None) -> Offset:
        """The end of the next micro-batch, which has at most `most` messages; None for all that there are.

        Without `start` it begins where the last one ended.
        """

    def plan(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a micro-batch; of the same rows, whenever they are asked for."""

    def commit(self, end: Offset) -> None:
        """Note that Spark has processed all micro-batches up to this end."""

    def progress(self) -> dict[str, Any] | None:
        """What the progress of the query shows as `latestOffset`: `{"offset": ..., "metrics": {...}}`.

        Spark asks no Python source for `metrics` (4.3: only JVM sources can report them). The latest offset
        is JSON for the progress and nothing else, so it carries the figures.
        """

    def close(self) -> None:
        """Close the connection, and release all else."""


class MicroBatchReader(DataSourceStreamReader, AvailableNow):
    """A reader of micro-batches, as Spark calls it. Kinds of sources add `_begin` and `read`."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._running: RunningQuery | None = None
        self._restore_signal: Callable[[], None]
        self._available_now = self._asked_without_limit = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None, "_restore_signal": None}

    @abstractmethod
    def _begin(self) -> RunningQuery:
        """Begin the query. Its modules are imported here: executors do not need them."""

    def initialOffset(self) -> Offset:
        return self._query().first()

    def getDefaultReadLimit(self) -> Any:
        """The option `maxMessagesPerTrigger`."""
        from pyspark.sql.streaming.datasource import ReadMaxRows

        return ReadMaxRows(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages that are there at its first other call.

        Spark prepares the sources of a query one after the other, and if one fails, it does not stop the ones
        before. So nothing begins here.
        """
        self._available_now = True

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """The end of the next micro-batch.

        PySpark before 4.2 gives no start and no limit, and asks only once when the trigger is AvailableNow:
        so the first answer is then everything that there is.
        """
        most = most_rows(limit, self._options.max_messages)
        if start is None and limit is None and not self._asked_without_limit:
            self._asked_without_limit, most = True, None
        return self._query().advance(start, most)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._query().progress()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._query().plan(start, end)

    def commit(self, end: Offset) -> None:
        self._query().commit(end)

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.close()
            self._restore_signal()

    def _query(self) -> RunningQuery:
        if self._running is None:
            self._running = self._begin()
            self._restore_signal = exit_on_sigterm()
            if self._available_now:
                self._running.limit_to_available()
        return self._running


def most_rows(limit: Any, otherwise: int) -> int | None:
    """The number of rows that a limit allows, None for all; `otherwise` for limits that do not count rows."""
    if type(limit).__name__ == "ReadAllAvailable":
        return None
    rows = getattr(limit, "max_rows", None)
    return otherwise if rows is None else int(rows)


def share(backlogs: Mapping[str, int], most: int | None) -> dict[str, int]:
    """How many messages of each queue or stream that has some are for the next micro-batch: `most` in all.

    They are in proportion to the backlogs; each gives at least one message, even if there are more of them
    than messages allowed: none waits for ever.
    """
    shares = {name: count for name, count in backlogs.items() if count > 0}
    left = sum(shares.values())
    if most is None or left <= most:
        return shares
    for name, count in sorted(shares.items(), key=lambda item: item[1]):
        shares[name] = min(count, max(most * count // left, 1))
        most, left = max(most - shares[name], 0), left - count
    return shares


def exit_on_sigterm() -> Callable[[], None]:
    """Let SIGTERM raise SystemExit, so that PySpark's loop calls `stop` of the reader.

    Spark ends the process of a streaming source with SIGTERM, and calls `stop` in no other way. This has no
    effect outside the main thread, or if there is another handler.

    Returns:
        a function that restores the handler.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        # A second signal follows at once, and must not interrupt the work of the first.
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    def restore() -> None:
        if signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    return restore
