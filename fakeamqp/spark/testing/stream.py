"""One streaming job under test, with its checkpoint and its spool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.testing import options as sorting
from fakeamqp.spark.testing import waiting
from fakeamqp.spark.testing.checkpoint import Checkpoint
from fakeamqp.spark.testing.crashes import Crash, block_commit, is_of_commit
from fakeamqp.spark.testing.errors import CrashNotPossible, NotACrash, NotStarted, QueryTimeout
from fakeamqp.spark.testing.pipeline import Pipeline, writer_of
from fakeamqp.spark.testing.source_process import kill_source

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["AmqpStream"]

_FORMAT = "amqp"


@dataclass(frozen=True)
class _Start:
    """All that it takes to start a query once more."""

    pipeline: Pipeline
    queue: str | list[str] | None
    stream: str | list[str] | None
    exchange: str | None
    output_mode: str
    options: dict[str, object]
    available_now: bool


class AmqpStream:
    """Runs a streaming job against a broker, the way a test wants to: to its end, into crashes, once more.

    A *pipeline* is a function that takes the source's DataFrame. What it returns is written to `exchange` if
    that is a DataFrame, and gathered in `rows` where there is no exchange; if it is a `df.writeStream...`, it
    is started as it is. In either case it gets the checkpoint of this object, and its queue is read by way of
    the spool of this object: whatever is started here goes on where the one before has ended.

    A failure of a query that nobody has seen is raised by `stop` and `close`.

    Attributes:
        checkpoint: folder of the checkpoint.
        spool: folder of the spool, inside of it.
        query: the `StreamingQuery` that was started last, or None.
        error: what that failed with, as far as it is known here.
    """

    def __init__(
        self,
        session: SparkSession,
        url: str,
        folder: str | os.PathLike[str],
        connection: Mapping[str, object] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            session: the Spark session to use.
            url: where the broker is.
            folder: where to keep checkpoint and spool.
            connection: more options for every connection, such as `amqp.caFile`.
        """
        self.checkpoint = Path(folder, "checkpoint")
        self.spool = self.checkpoint / "spool"
        self.query: StreamingQuery | None = None
        self.error: Exception | None = None
        self._session = session
        self._connection = {"amqp.url": url, **(connection or {})}
        self._notes = Checkpoint(self.checkpoint)
        self._batches: dict[int, list[Row]] = {}
        self._last: _Start | None = None
        self._crash: Crash | None = None
        self._seen = True

    def __repr__(self) -> str:
        state = "not started" if self.query is None else "running" if self._running() else "ended"
        return f"<AmqpStream {state}, {self._notes.committed + 1} batches in {self.checkpoint}>"

    @property
    def rows(self) -> list[Row]:
        """The rows of all batches, in order, of a pipeline whose DataFrame is written to no exchange.

        A batch that is run again takes the place of the first attempt, so no row is here twice for it.
        """
        return [row for number in sorted(self._batches) for row in self._batches[number]]

    def options(self, **more: object) -> dict[str, str]:
        """Options for a reader or writer that the job makes itself: `.format("amqp").options(**...)`.

        They lead to the broker. With `queue=...` among them, the spool is named as well. Names are those of
        the source and sink; `True` and lists are written as Spark wants them.
        """
        return self._options({key: sorting.as_text(value) for key, value in more.items()})

    def read(
        self,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        **options: object,
    ) -> DataFrame:
        """A streaming DataFrame of a queue or stream. Starts nothing.

        Raises:
            OptionError: if neither `queue` nor `stream` is named, or both, or an option is unknown.
        """
        named = {"queue": queue, "stream": stream}
        given = {**options, **{key: value for key, value in named.items() if value is not None}}
        if len(given) - len(options) != 1:
            raise OptionError("say what to read, one of: queue='...', stream='...'")
        return (
            self._session.readStream.format(_FORMAT).options(**self._options(sorting.of_source(given))).load()
        )

    def start(
        self,
        pipeline: Pipeline,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        exchange: str | None = None,
        output_mode: str = "append",
        **options: object,
    ) -> StreamingQuery:
        """Start the pipeline, which runs until it is stopped, with Spark's default trigger or its own.

        Args:
            pipeline: see above. A streaming DataFrame, or a `df.writeStream...`, will do as well where the
                job has a source already, made with `options`.
            queue: the queue to read, or several.
            stream: the stream queue to read, or several, in place of `queue`.
            exchange: where rows are published to; "" is the default exchange.
            output_mode: of a DataFrame: `append`, `update` or `complete`.
            options: of the source and of the sink, under their names: `maxMessagesPerTrigger=100`,
                `routingKey="orders"`; where there is a dot in one, `**{"amqp.heartbeat": 5}`.

        Raises:
            NotStarted: if a query of this object is running.
            OptionError: if an option is unknown, or source or sink is missing for it.
            StreamTestError: if the pipeline is none.
        """
        return self._start(_Start(pipeline, queue, stream, exchange, output_mode, options, False))

    def run_available(
        self,
        pipeline: Pipeline,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        exchange: str | None = None,
        output_mode: str = "append",
        timeout: float = 120,
        **options: object,
    ) -> StreamingQuery:
        """Start the pipeline on what is there now, and wait until it is through with that.

        Arguments are those of `start`; `timeout` is in seconds.

        Raises:
            StreamingQueryException: if the query fails.
            QueryTimeout: if it takes longer. It is stopped then.
            NotStarted, OptionError, StreamTestError: as `start` does.
        """
        query = self._start(_Start(pipeline, queue, stream, exchange, output_mode, options, True))
        self.process_all(timeout)
        return query

    def process_all(self, timeout: float = 120) -> None:
        """Wait until the query is through with all that was published and confirmed before.

        Raises:
            StreamingQueryException: if the query fails, or has failed.
            QueryTimeout: if it takes longer than `timeout` seconds. It is stopped then.
            NotStarted: if there is no query.
        """
        query, start = self._started()
        call = query.awaitTermination if start.available_now else query.processAllAvailable
        try:
            waiting.until_done(query, call, timeout)
        except QueryTimeout:
            raise
        except Exception as error:
            raise self._failed(error) from None

    def wait_failed(self, timeout: float = 60) -> Exception:
        """Wait until the query has failed, and return what with.

        Raises:
            QueryTimeout: if it has not within `timeout` seconds, or has ended without a failure.
            NotStarted: if there is no query.
        """
        query, _ = self._started()
        return self._failed(waiting.until_failed(query, timeout))

    def restart(self) -> StreamingQuery:
        """Start the query again: the same pipeline, options and trigger on the same checkpoint and spool.

        One that is running is stopped first. Follow it with `process_all`.

        Raises:
            NotStarted: if there was none.
        """
        query, start = self._started()
        if query.isActive:
            query.stop()
        error = query.exception()
        if error is not None:
            self._failed(error)
        return self._start(start)

    def crash(self, how: str = "commit") -> Crash:
        """Let the query crash as `kill -9` would, without an end to the Java that all tests share.

        Args:
            how: `commit`: the next batch is written, and then the query fails before Spark notes that it
                was; so it is run again after `restart`. As a context manager, it waits for that. May be said
                before the query is started. `source`: kills the process that consumes the queue, at once, and
                waits until the query has failed of it.

        Raises:
            CrashNotPossible: if there is nothing to crash, or nothing that could be found.
            NotStarted: if the source of a query shall crash, and there is no query.
        """
        if how == "commit":
            if self._crash is not None and self._crash.error is None:
                raise CrashNotPossible("a crash is to come already")
            self._crash = Crash(self, how, block_commit(self._notes, self._running()))
            return self._crash
        if how == "source":
            return self._kill_source()
        raise CrashNotPossible(f"there is no crash {how!r}; there are 'commit' and 'source'")

    def stop(self) -> None:
        """Stop the query, if it is running.

        Raises:
            StreamingQueryException: if it has failed before, and nobody has asked so far.
        """
        if self.query is None:
            return
        if self.query.isActive:
            self.query.stop()
        error = self.query.exception()
        if error is not None and not self._seen:
            raise self._failed(error)

    def close(self) -> None:
        """Stop the query; what the test has not noticed comes to light.

        Raises:
            StreamingQueryException: if it has failed, and nobody has asked.
            NotACrash: if a crash was to come and never came.
        """
        self.stop()
        crash, self._crash = self._crash, None
        if crash is not None and crash.error is None:
            crash.undo()
            raise NotACrash("amqp_stream.crash(): the crash never came, for no batch was finished after it")

    def _start(self, start: _Start) -> StreamingQuery:
        if self._running():
            raise NotStarted(
                "a query is running already: stop() it first; for one beside it, there is make_amqp_stream"
            )
        wants_source = start.queue is not None or start.stream is not None
        source_options = sorting.of_source(start.options)
        sink_options = sorting.of_sink(start.options)
        if start.exchange is None and set(sink_options) - set(source_options):
            raise OptionError(f"{', '.join(set(sink_options) - set(source_options))}: say exchange= as well")
        source = self.read(queue=start.queue, stream=start.stream, **source_options) if wants_source else None

        def make_writer(rows: DataFrame) -> DataStreamWriter:
            writer = rows.writeStream.outputMode(start.output_mode)
            if start.exchange is None:
                return writer.foreachBatch(self._gather)
            return writer.format(_FORMAT).options(
                **self._options({**sink_options, "exchange": start.exchange})
            )

        writer = writer_of(start.pipeline, source, make_writer)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        if start.available_now:
            writer = writer.trigger(availableNow=True)
        self._last, self.error, self._seen = start, None, False
        self.query = writer.start()
        return self.query

    def _options(self, given: Mapping[str, str]) -> dict[str, str]:
        said = {key.lower(): value for key, value in given.items()}
        found = {key: sorting.as_text(value) for key, value in self._connection.items()}
        if "queue" in said and said.get("ackmode", "spool") == "spool":
            found["spoolDir"] = str(self.spool)
        return {**found, **given}

    def _gather(self, rows: DataFrame, number: int) -> None:
        self._batches[number] = rows.collect()

    def _running(self) -> bool:
        return self.query is not None and self.query.isActive

    def _started(self) -> tuple[StreamingQuery, _Start]:
        if self.query is None or self._last is None:
            raise NotStarted("there is no query yet: start() or run_available() one first")
        return self.query, self._last

    def _failed(self, error: Exception) -> Exception:
        self.error, self._seen = error, True
        if self._crash is not None and self._crash.error is None and is_of_commit(error):
            self._crash.happened(error)
        return error

    def _kill_source(self) -> Crash:
        query, _ = self._started()
        if not query.isActive:
            raise CrashNotPossible("there is no source to kill: the query is not running")
        crash = Crash(self, "source")
        kill_source(self._session, self.spool)
        crash.error = self.wait_failed()
        return crash
