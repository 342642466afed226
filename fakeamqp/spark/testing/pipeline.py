"""The job that a test passes, and the query that is made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from fakeamqp.spark.testing.errors import StreamTestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Made: TypeAlias = Union["DataFrame", "DataStreamWriter"]
Pipeline: TypeAlias = Callable[["DataFrame"], Made] | Made


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
