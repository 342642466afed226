"""Waits for a query with a timeout, which Spark's `processAllAvailable` does not have."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.testing.errors import QueryTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery


def until_done(query: StreamingQuery, call: Callable[[], object], timeout: float) -> None:
    """Wait for `call`, which waits for the query.

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


def until_failed(query: Any, timeout: float) -> Exception:
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
