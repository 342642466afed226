"""One streaming job under test, with its checkpoint and its spools."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.causes import cause_of
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options.reading import OF_SINK, OF_SOURCE
from fakeamqp.spark.testing import queries
from fakeamqp.spark.testing.crashes import Crash, block_commit, kill_sources, last_committed
from fakeamqp.spark.testing.errors import CrashNotPossible, NotACrash, NotStarted, QueryTimeout
from fakeamqp.spark.testing.queries import Pipeline, as_text, options_of, writer_of
from fakeamqp.spark.testing.spools import Spools

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_FORMAT = "amqp"


class AmqpStream:
    """Runs a streaming job on a broker in a test: to its end, into crashes, and again.

    A *pipeline* is a function that takes the source's DataFrame and returns one of these: a DataFrame, which
    is published if there is an option of the sink, such as `exchange`, and collected in `rows` otherwise; or
    a `df.writeStream...`, which is started as it is. Both use the checkpoint and the spools of this object,
    so each query continues where the previous one ended.

    `stop` and `close` raise a failure of a query that the test has not handled.

    Attributes:
        checkpoint: folder of the checkpoint.
        spool: folder inside of it, with one spool for each read of other queues.
        query: the `StreamingQuery` that was started last, or None.
        error: the error of that query, if it is known; `cause` is the part of it that says why.
    """

    def __init__(
        self,
        session: SparkSession,
        url: str,
        folder: str | os.PathLike[str],
        connection: Mapping[str, object] | None = None,
    ) -> None:
        """Set up without starting a query.

        Args:
            session: the Spark session to use.
            url: of the broker.
            folder: for checkpoint and spools.
            connection: further options for every connection, such as `amqp.caFile`.
        """
        self.checkpoint: Path = Path(folder, "checkpoint")
        self.spool: Path = self.checkpoint / "spool"
        self.query: StreamingQuery | None = None
        self.error: Exception | None = None
        self._session = session
        self._spools = Spools(self.spool)
        self._connection = {"amqp.url": url, **(connection or {})}
        self._batches: dict[int, list[Row]] = {}
        self._again: Callable[[], StreamingQuery]
        self._available_now: bool
        self._crash: Crash | None = None

    def __repr__(self) -> str:
        state = "not started" if self.query is None else "running" if self._running() else "ended"
        return f"<AmqpStream {state}, {last_committed(self.checkpoint) + 1} batches in {self.checkpoint}>"

    @property
    def rows(self) -> list[Row]:
        """The rows of all batches, in order, of a pipeline without an exchange.

        A batch that runs again replaces its first attempt, so it causes no duplicates.
        """
        return [row for number in sorted(self._batches) for row in self._batches[number]]

    @property
    def cause(self) -> str:
        """The exception of Python that made the query fail, with its text; "" if there is none."""
        return "" if self.error is None else cause_of(self.error)

    def options(self, **more: object) -> dict[str, str]:
        """Options for a reader or writer of the job itself: `.format("amqp").options(**...)`.

        They include the URL of the broker and, with `queue=...`, the spool of these queues. Names are those
        of the source and the sink; `True` and lists are converted to Spark's form.
        """
        return self._options({key: as_text(value) for key, value in more.items()})

    def read(
        self,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        super_stream: str | list[str] | None = None,
        **options: object,
    ) -> DataFrame:
        """A streaming DataFrame of a queue, stream or super stream, without starting a query.

        Raises:
            OptionError: none of `queue`, `stream` and `super_stream` is given, or more than one, or an option
                is unknown.
        """
        named = {"queue": queue, "stream": stream, "superStream": super_stream}
        given = {**options, **{key: value for key, value in named.items() if value is not None}}
        if len(given) - len(options) != 1:
            raise OptionError("say what to read, one of: queue='...', stream='...', super_stream='...'")
        read = self._options(options_of(OF_SOURCE, given))
        return self._session.readStream.format(_FORMAT).options(**read).load()

    def start(
        self,
        pipeline: Pipeline,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        super_stream: str | list[str] | None = None,
        exchange: str | None = None,
        output_mode: str = "append",
        **options: object,
    ) -> StreamingQuery:
        """Start the pipeline, which runs until it is stopped, with Spark's default trigger or its own.

        Args:
            pipeline: see above. A job with its own source, made with `options`, can also be a streaming
                DataFrame or a `df.writeStream...`.
            queue: one or more queues to read.
            stream: one or more stream queues to read, instead of `queue`.
            super_stream: one or more super streams to read, instead of `queue`.
            exchange: the exchange for the rows; "" is the default exchange.
            output_mode: of a DataFrame: `append`, `update` or `complete`.
            options: of the source and the sink, by their names: `maxMessagesPerTrigger=100`,
                `routingKey="orders"`, and for names with a dot `**{"amqp.heartbeat": 5}`.

        Raises:
            NotStarted: a query of this object is running.
            OptionError: an option is unknown, or its source or sink is missing.
            StreamTestError: the pipeline is not valid.
        """
        source = {"queue": queue, "stream": stream, "super_stream": super_stream}
        return self._start(pipeline, source, exchange, output_mode, options, available_now=False)

    def run_available(
        self,
        pipeline: Pipeline,
        *,
        queue: str | list[str] | None = None,
        stream: str | list[str] | None = None,
        super_stream: str | list[str] | None = None,
        exchange: str | None = None,
        output_mode: str = "append",
        timeout: float = 120,
        **options: object,
    ) -> StreamingQuery:
        """Start the pipeline on the available messages, and wait until it has processed them.

        Arguments are those of `start`; `timeout` is in seconds.

        Raises:
            StreamingQueryException: the query fails.
            QueryTimeout: it takes longer. The query is stopped.
            NotStarted, OptionError, StreamTestError: as `start` does.
        """
        source = {"queue": queue, "stream": stream, "super_stream": super_stream}
        self._start(pipeline, source, exchange, output_mode, options, available_now=True)
        self.process_all(timeout)
        return self._started()

    def process_all(self, timeout: float = 120) -> None:
        """Wait until the query has processed all messages that were confirmed before.

        Spark gives a Python worker ten seconds to start. If a busy machine takes longer, the query fails
        before its first batch, and is started again, twice at most.

        Raises:
            StreamingQueryException: the query fails, or has failed.
            QueryTimeout: it takes longer than `timeout` seconds. The query is stopped.
            NotStarted: there is no query.
        """
        for again in (True, True, False):
            query = self._started()
            call = query.awaitTermination if self._available_now else query.processAllAvailable
            try:
                queries.wait_done(query, call, timeout)
                return
            except QueryTimeout:
                raise
            except Exception as error:
                if not (again and queries.worker_was_late(query, error)):
                    raise self._failed(error) from None
            self._again()

    def wait_failed(self, timeout: float = 60) -> Exception:
        """Wait until the query has failed, and return its error.

        Raises:
            QueryTimeout: the query has not failed within `timeout` seconds, or has ended without a failure.
            NotStarted: there is no query.
        """
        return self._failed(queries.wait_failed(self._started(), timeout))

    def restart(self) -> StreamingQuery:
        """Start the query again: the same pipeline, options and trigger on the same checkpoint and spools.

        A running query is stopped first. Call `process_all` afterwards.

        Raises:
            NotStarted: there was no query.
        """
        query = self._started()
        if query.isActive:
            query.stop()
        if (error := query.exception()) is not None:
            self._failed(error)
        return self._again()

    def crash(self, how: str = "commit") -> Crash:
        """Crash the query like `kill -9`, without ending the Java process that all tests share.

        Args:
            how: `commit` makes the query fail after the next batch is written and before Spark commits it, so
                that the batch runs again after `restart`. As a context manager it waits for the crash. It can
                be called before the query is started. `source` kills the processes that consume its queues
                at once, and waits until the query has failed.

        Raises:
            CrashNotPossible: there is nothing to crash, or the process was not found.
            NotStarted: `source` without a query.
        """
        if how == "commit":
            if self._crash is not None and self._crash.error is None:
                raise CrashNotPossible("a crash is to come already")
            self._crash = Crash(self, how, block_commit(self.checkpoint, self._running()))
            return self._crash
        if how == "source":
            if not self._started().isActive:
                raise CrashNotPossible("there is no source to kill: the query is not running")
            crash = Crash(self, how)
            kill_sources(self._session, self.spool)
            crash.error = self.wait_failed()
            return crash
        raise CrashNotPossible(f"there is no crash {how!r}; there are 'commit' and 'source'")

    def stop(self) -> None:
        """Stop the query, if it is running, and wait until its sources no longer write to the spools.

        Raises:
            StreamingQueryException: the query has failed, and the test has not handled the failure.
            SpoolError: a source has not ended after ten seconds.
        """
        if self.query is None:
            return
        if self.query.isActive:
            self.query.stop()
        self._spools.wait_for_sources()
        error = self.query.exception()
        if error is not None and self.error is None:
            raise self._failed(error)

    def close(self) -> None:
        """Stop the query, and raise failures that the test has not handled.

        Raises:
            StreamingQueryException: the query has failed, and the test has not handled the failure.
            NotACrash: an expected crash did not happen.
        """
        self.stop()
        crash, self._crash = self._crash, None
        if crash is not None and crash.error is None:
            crash.undo()
            raise NotACrash("amqp_stream.crash(): the crash never came, for no batch was finished after it")

    def _start(
        self,
        pipeline: Pipeline,
        source: Mapping[str, str | list[str] | None],
        exchange: str | None,
        output_mode: str,
        options: Mapping[str, object],
        *,
        available_now: bool,
    ) -> StreamingQuery:
        if self._running():
            raise NotStarted(
                "a query is running already: stop() it first; for one beside it, there is make_amqp_stream"
            )
        given = {key: value for key, value in source.items() if value is not None}
        source_options, sink_options = options_of(OF_SOURCE, options), options_of(OF_SINK, options)
        only_sink = set(sink_options) - set(source_options)
        unused = sorted(only_sink)
        read = self.read(**given, **source_options) if given else None

        def make_writer(rows: DataFrame) -> DataStreamWriter:
            unused.clear()
            writer = rows.writeStream.outputMode(output_mode)
            if exchange is None and not only_sink:
                return writer.foreachBatch(self._gather)
            more = {} if exchange is None else {"exchange": exchange}
            return writer.format(_FORMAT).options(**self._options({**sink_options, **more}))

        writer = writer_of(pipeline, read, make_writer)
        if unused:
            raise OptionError(
                f"{', '.join(unused)}: the job has a writer of its own, which has no such option"
            )
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        if available_now:
            writer = writer.trigger(availableNow=True)
        same = pipeline, source, exchange, output_mode, options
        self._again = partial(self._start, *same, available_now=available_now)
        self._available_now, self.error = available_now, None
        self._spools.job_begins()
        self.query = writer.start()
        return self.query

    def _options(self, given: Mapping[str, str]) -> dict[str, str]:
        said = {key.lower(): value for key, value in given.items()}
        found = {key: as_text(value) for key, value in self._connection.items()}
        if "queue" in said and said.get("ackmode", "spool") == "spool":
            found["spoolDir"] = str(self._spools.folder_for(said["queue"]))
        return {**found, **given}

    def _gather(self, rows: DataFrame, number: int) -> None:
        self._batches[number] = rows.collect()

    def _running(self) -> bool:
        return self.query is not None and self.query.isActive

    def _started(self) -> StreamingQuery:
        if self.query is None:
            raise NotStarted("there is no query yet: start() or run_available() one first")
        return self.query

    def _failed(self, error: Exception) -> Exception:
        self.error = error
        if self._crash is not None:
            self._crash.see(error)
        return error
