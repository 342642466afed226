"""Makes the data source known to a session and to its threads.

Spark looks for data sources with the Python of its workers: the PYSPARK_PYTHON of the session's start, or
else the `python3` of the PATH. That may be another Python than the one that runs the program.

Spark looks for the sink of a write in the active session of the calling thread of Java. Each thread of Python
that uses Spark has one, and PySpark makes a session active only in the thread that starts it.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from fakeamqp.spark.session.errors import SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_REQUIRED = ("fakeamqp", "pyarrow")
_ADVICE = (
    "set PYSPARK_PYTHON, before the session starts, to a Python with fakeamqp[spark] that has the same path "
    "on the driver and on all executors; docs/spark-operations.md, 'On a cluster', has all ways"
)
_CAUSE = re.compile(r"Cannot run program .*|\[PYTHON_VERSION_MISMATCH\].*")

_registered: WeakSet[SparkSession] = WeakSet()


def register(session: SparkSession) -> None:
    """Make `format("amqp")` known to a running session, and make sure that its workers can import it.

    It is known in the calling thread of Python and in threads that begin to use Spark later. A thread that
    has used Spark before needs a call of its own to write; a repeated call costs next to nothing.

    With a local master, the workers run the Python of this program from now on. With another master, one task
    looks for the packages. The workers of Spark Connect belong to its server, and are not checked.
    `local_session` calls this function.

    Raises:
        SessionError: the Python of the workers does not run, or lacks a package. The text has what to set.
    """
    context: Any = getattr(
        session, "sparkContext", None
    )  # Spark Connect has none, and needs no active session.
    if context is not None:
        context._jvm.SparkSession.setActiveSession(session._jsparkSession)
    if session in _registered:
        return
    if context is not None:
        if re.match(r"local\b(?!-)", context.master):
            context.pythonExec = sys.executable
        else:
            _check_workers(context)
        _pass_on(session, context)
    from fakeamqp.spark.source import AmqpDataSource

    try:
        session.dataSource.register(AmqpDataSource)
    except Exception as error:
        # PySpark 4.0 refuses a data source that it has already found by itself.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    _registered.add(session)


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


def _pass_on(session: SparkSession, context: Any) -> None:
    """Let the threads of Java that begin later have this active session.

    A thread of Java inherits it from the thread that starts it. That is the thread of py4j that accepts the
    connection of each thread of Python. A listener of py4j runs there after a connection, and makes the
    session active. It is made of Java's own classes: a method handle with its argument is the task of a
    `Thread`, which is not started, and whose `run` is the listener.
    """
    from py4j.protocol import Py4JError

    java, server = context._jvm.java, context._gateway.java_gateway_server
    try:
        kind = session._jsparkSession.getClass()
        signature = java.lang.invoke.MethodType.methodType(java.lang.Void.TYPE, kind.getSuperclass())
        setter = java.lang.invoke.MethodHandles.publicLookup().findStatic(kind, "setActiveSession", signature)
        task = java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            java.lang.Class.forName("java.lang.Runnable"), setter.bindTo(session._jsparkSession)
        )
        listener = java.beans.EventHandler.create(
            java.lang.Class.forName("py4j.GatewayServerListener"),
            java.lang.Thread(task),
            "run",
            None,
            "connectionStarted",
        )
        server.addListener(listener)
        for _ in range(2):  # The second connection is accepted when the listener has run after the first.
            connecting = Thread(target=java.lang.System.nanoTime)
            connecting.start()
            connecting.join()
        server.removeListener(listener)
    except (Py4JError, TypeError) as error:  # A platform may forbid classes or lack them.
        log.info("threads that begin to use Spark later call register before they write: %s", error)
