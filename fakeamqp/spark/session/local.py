"""The local session."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.options.reading import TRANSPORT
from fakeamqp.spark.session.errors import FastModeUnavailable, FastModeWarning, SessionRunning
from fakeamqp.spark.session.installation import find_installation
from fakeamqp.spark.session.process import end_java, java_is_running, process_environment
from fakeamqp.spark.session.registering import register
from fakeamqp.spark.session.settings import ENVIRONMENT, JAVA_OPTIONS, SETTINGS, checkpoint_file_manager

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from fakeamqp.spark.session.fast import Fast
    from fakeamqp.spark.session.installation import Installation

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@contextmanager
def local_session(
    *,
    app_name: str = "tests",
    master: str = "local[2]",
    fast: bool = False,
    config: Mapping[str, object] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Iterator[SparkSession]:
    """Start a session for tests, which ends with the block.

    `with local_session() as spark: ...`

    The session has two shuffle partitions and no UI, and uses the loopback interface only. Spark, its workers
    and this process use UTC. Java is tuned for short runs. The log contains errors only. Tables and temporary
    files have their own folder. `fakeamqp.spark.session.settings` has all settings with reasons. At the end
    of the block, the session and its Java process end, the folder is deleted, and time zone and environment
    are restored. The working directory stays unchanged.

    The start takes about three seconds, the end one second. With its workers a session uses about 1 GB of
    memory.

    Args:
        app_name: the name of the session.
        master: Spark's master. Tasks are retried only if it allows it: `local[2,4]` tries four times.
        fast: use the cache of `fakeamqp.spark.session.fast`, and create it if necessary, which takes about
            15 seconds once. If that is not possible, there is a warning, and the session starts without it.
        config: further settings of Spark. They override the tuned ones; Java options are added to them.
        folder: for tables and temporary files, instead of a temporary folder. It is not deleted.

    Raises:
        SessionRunning: this process already has a session.
        SparkMissing: PySpark is not installed, or its version is not supported.
        JavaMissing: Java is not installed, or older than 17.
    """
    installation = find_installation()
    _refuse_second_session()
    parts = _fast_parts(installation) if fast else None
    with ExitStack() as cleanup:
        if folder is None:
            place = Path(tempfile.mkdtemp(prefix="fakeamqp-spark-"))
            cleanup.callback(shutil.rmtree, place, ignore_errors=True)
        else:
            place = Path(folder).absolute()
        for name in ("local", "tmp", "warehouse"):
            place.joinpath(name).mkdir(parents=True, exist_ok=True)
        environment = {each.key: each.filled(python=sys.executable) for each in ENVIRONMENT}
        if not str((config or {}).get("spark.master", master)).startswith("local"):
            environment[TRANSPORT] = None
        cleanup.enter_context(process_environment(environment))
        home = None
        if not java_is_running():
            home = _linked_home(installation, cleanup)
            cleanup.callback(end_java)  # Before the home goes: Java loads its classes from there.
        settings = {
            "spark.app.name": app_name,
            "spark.master": master,
            **_settings(installation, place, config or {}),
        }
        session = None if parts is None else _start_fast(settings, parts)
        if session is None:
            session = _start(settings, home)
        cleanup.callback(session.stop)
        register(session)
        yield session


def _refuse_second_session() -> None:
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    if running is not None:
        raise SessionRunning(
            f"this process already has a Spark session ({running.appName!r}), and can have one at a time; "
            "stop it first, or use it"
        )


def _fast_parts(installation: Installation) -> Fast | None:
    from fakeamqp.spark.session.fast import prepare

    try:
        if java_is_running():
            raise FastModeUnavailable("this process already has a Java process, from an earlier session")
        return prepare(installation)
    except FastModeUnavailable as error:
        _warn(str(error))
        return None


def _warn(reason: str) -> None:
    warnings.warn(FastModeWarning(f"the session starts without fast mode: {reason}"), stacklevel=5)


def _linked_home(installation: Installation, cleanup: ExitStack) -> Path | None:
    """A Spark home whose workers start faster; None if it cannot be made, or the user has chosen a home."""
    if not installation.own_home:
        return None
    home = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="fakeamqp-spark-home-")))
    try:
        installation.link_home(home)
    except OSError as error:
        log.debug("workers import PySpark from its zip file: %s", error)
        return None
    return home


def _settings(installation: Installation, place: Path, more: Mapping[str, object]) -> dict[str, object]:
    names = {"folder": place, "module": Path(__file__).parent}
    tuned = {
        each.key: str(each.filled(**names)) for each in (*SETTINGS, *checkpoint_file_manager(installation))
    }
    java = [f"{each.key}={each.filled(**names)}" if each.value else each.key for each in JAVA_OPTIONS]
    if _JAVA_OPTIONS in more:
        java.append(str(more[_JAVA_OPTIONS]))
    return {**tuned, **more, _JAVA_OPTIONS: " ".join(java)}


def _start(settings: Mapping[str, object], home: Path | None) -> SparkSession:
    from pyspark.sql import SparkSession

    if home is not None:
        os.environ["SPARK_HOME"] = str(home)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_fast(settings: Mapping[str, object], parts: Fast) -> SparkSession | None:
    """The session, or None if it does not start in fast mode; then everything is cleaned up."""
    options = f"{settings[_JAVA_OPTIONS]} {parts.java_options}"
    try:
        return _start({**settings, _JAVA_OPTIONS: options}, parts.home)
    except Exception as error:
        end_java()
        os.environ.pop("SPARK_HOME")
        parts.archive.unlink(missing_ok=True)  # The next session creates it again.
        _warn(f"Spark does not start with the cache: {error}")
        return None
