"""Makes the data source known to a session whose workers do not find it by themselves.

Spark looks for data sources with the Python of its workers: the PYSPARK_PYTHON of the session's start, or
else the `python3` of the PATH. That may be another Python than the one that runs the program.
"""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.session.errors import SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REQUIRED = ("fakeamqp", "pika", "pyarrow")
_ADVICE = (
    "set PYSPARK_PYTHON, before the session starts, to a Python with fakeamqp[spark] that has the same path "
    "on the driver and on all executors; docs/spark.md, 'On a cluster', has all ways"
)
_CAUSE = re.compile(r"Cannot run program .*|\[PYTHON_VERSION_MISMATCH\].*")


def register(session: SparkSession) -> None:
    """Make `format("amqp")` known to a running session, and make sure that its workers can import it.

    Sessions of `local_session` do not need it, nor do sessions whose PYSPARK_PYTHON has the package. With a
    local master, the workers run the Python of this program from now on. With another master, one task looks
    for the packages. The workers of Spark Connect belong to its server, and are not checked.

    Raises:
        SessionError: the Python of the workers does not run, or lacks a package. The text has what to set.
    """
    from fakeamqp.spark.source import AmqpDataSource

    context = getattr(session, "sparkContext", None)  # Spark Connect has none.
    if context is not None:
        if re.match(r"local\b(?!-)", context.master):
            context.pythonExec = sys.executable
        else:
            _check_workers(context)
    try:
        session.dataSource.register(AmqpDataSource)
    except Exception as error:
        # PySpark 4.0 refuses a data source that it has already found by itself.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def _check_workers(context: Any) -> None:
    required, python = _REQUIRED, context.pythonExec

    def missing(_: int) -> list[str]:
        # Spark sends this function whole, because it is defined in another one.
        from importlib.util import find_spec

        return [name for name in required if find_spec(name) is None]

    if shutil.which(python) is None:
        raise SessionError(
            f"the driver does not have Spark's Python {python!r}, with which it would plan reads and writes; "
            + _ADVICE
        )
    try:
        [lacking] = context.parallelize([0], 1).map(missing).collect()
    except Exception as error:
        cause = _CAUSE.search(str(error))
        reason = cause[0] if cause else str(error).partition("\n")[0]
        raise SessionError(f"Spark's workers cannot run {python!r}: {reason}; {_ADVICE}") from error
    if lacking:
        raise SessionError(f"Spark's workers run {python!r}, which lacks {', '.join(lacking)}; {_ADVICE}")
