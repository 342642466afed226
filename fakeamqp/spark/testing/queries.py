"""Makes a query of the job that a test passes, and waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from fakeamqp.spark.options.reading import OF_SINK, OF_SOURCE, unknown
from fakeamqp.spark.testing.errors import QueryTimeout, StreamTestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from fakeamqp.spark.options.option import Option

Made: TypeAlias = Union["DataFrame", "DataStreamWriter"]
Pipeline: TypeAlias = Callable[["DataFrame"], Made] | Made


def options_of(declared: Mapping[str, Option], given: Mapping[str, object]) -> dict[str, str]:
    """Those of the given options that are declared for the source or the sink, as text.

    Raises:
        OptionError: neither the source nor the sink has such an option.
    """
    known = {**OF_SOURCE, **OF_SINK}
    for name in given:
        if name.lower() not in known:
            raise unknown(name, known)
    return {name: as_text(value) for name, value in given.items() if name.lower() in declared}


def as_text(value: object) -> str:
    """The value of an option in Spark's form: lists with commas, booleans in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(as_text, value))
    return str(value)


def writer_of(
    pipeline: Pipeline, source: DataFrame | None, make_writer: Callable[[DataFrame], DataStreamWriter]
) -> DataStreamWriter:
    """The writer of a job: its own, or that of `make_writer` for its rows.

    Raises:
        StreamTestError: it is not a valid job, or it needs a source.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    made: Any = pipeline
    if not isinstance(pipeline, (DataFrame, DataStreamWriter)):
        if not callable(pipeline):
            raise StreamTestError(
                "a pipeline is a function of the source's DataFrame, or a streaming DataFrame or its "
                f"writeStream, and not {pipeline!r}"
            )
        if source is None:
            raise StreamTestError("say what the pipeline reads: queue='...' or stream='...'")
        made = pipeline(source)
    elif source is not None:
        raise StreamTestError(
            "this pipeline has a source already; queue= and stream= are for a function of the source's "
            "DataFrame"
        )
    if isinstance(made, DataStreamWriter):
        return made
    if isinstance(made, DataFrame):
        if not made.isStreaming:
            raise StreamTestError("the pipeline has made a DataFrame that is not streaming")
        return make_writer(made)
    raise StreamTestError(
        f"the pipeline has returned {made!r}, not a DataFrame and not the writeStream of one"
        + ("; leave .start() to amqp_stream" if hasattr(made, "awaitTermination") else "")
    )


def wait_done(query: StreamingQuery, call: Callable[[], object], timeout: float) -> None:
    """Wait for `call`, which waits for the query: Spark's `processAllAvailable` has no timeout.

    Raises:
        QueryTimeout: it takes longer than `timeout` seconds. The query is stopped.
    """
    failures: list[Exception] = []

    def wait() -> None:
        try:
            call()
        except Exception as error:
            failures.append(error)

    waiting = threading.Thread(target=wait, name="amqp-stream-wait", daemon=True)
    waiting.start()
    waiting.join(timeout)
    if waiting.is_alive():
        text = _progress(query)
        query.stop()  # This ends the call, and with it the thread.
        waiting.join()
        raise QueryTimeout(f"the query was not through in {timeout:g} s; {text}")
    if failures:
        raise failures[0]


def wait_failed(query: Any, timeout: float) -> Exception:
    """Wait for the query to fail, and return its error.

    Raises:
        QueryTimeout: it has not failed within `timeout` seconds, or has ended without a failure.
    """
    try:
        ended = query.awaitTermination(timeout)
    except Exception as error:
        return error
    if ended:
        raise QueryTimeout("the query has ended, and has not failed")
    raise QueryTimeout(f"the query has not failed in {timeout:g} s; {_progress(query)}")


def worker_was_late(query: StreamingQuery, error: Exception) -> bool:
    """Whether the query failed before its first batch because a Python worker started too slowly.

    Spark 4 waits ten seconds for a worker; no setting changes that (`PythonWorkerFactory`).
    """
    return query.lastProgress is None and "Python worker failed to connect back" in str(error)


def _progress(query: StreamingQuery) -> str:
    progress: Any = query.lastProgress
    done = (
        "no batch is through" if progress is None else f"it was last heard of at batch {progress['batchId']}"
    )
    return f"{done}, and it says: {query.status['message']}"
