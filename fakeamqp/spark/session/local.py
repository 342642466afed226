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

from fakeamqp.spark.session import jvm
from fakeamqp.spark.session.environment import process_environment
from fakeamqp.spark.session.errors import FastModeWarning, SessionRunning, UnknownLayout
from fakeamqp.spark.session.home import link_home
from fakeamqp.spark.session.installation import find_installation
from fakeamqp.spark.session.settings import ENVIRONMENT, JAVA_OPTIONS, SETTINGS, checkpoint_file_manager

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from fakeamqp.spark.session.fast import Fast
    from fakeamqp.spark.session.installation import Installation

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_HOME = "SPARK_HOME"


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
    fitted = _fitted(installation) if fast else None
    more = {key: _as_text(value) for key, value in (config or {}).items()}
    with ExitStack() as cleanup:
        if folder is None:
            place = Path(tempfile.mkdtemp(prefix="fakeamqp-spark-"))
            cleanup.callback(shutil.rmtree, place, ignore_errors=True)
        else:
            place = Path(folder).absolute()
        for name in ("local", "tmp", "warehouse"):
            place.joinpath(name).mkdir(parents=True, exist_ok=True)
        cleanup.enter_context(process_environment(_environment()))
        home = None
        if not jvm.is_running():
            home = _linked_home(installation, cleanup)
            cleanup.callback(jvm.end)  # Before the home goes: Java loads its classes from there.
        common = {"spark.app.name": app_name, "spark.master": master, **_settings(installation, place, more)}
        session = None if fitted is None else _start_fast(common, fitted)
        if session is None:
            if home is not None:
                os.environ[_HOME] = home
            session = _start(common)
        cleanup.callback(session.stop)
        yield session


def _linked_home(installation: Installation, cleanup: ExitStack) -> str | None:
    """A Spark home whose workers start faster; None if it cannot be made, or the user has chosen a home."""
    if not installation.own_home:
        return None
    home = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="fakeamqp-spark-home-"))
    try:
        link_home(installation.home, Path(home))
    except (OSError, UnknownLayout) as error:  # Windows lets not every user make links.
        log.debug("workers import PySpark from its zip file: %s", error)
        return None
    return home


def _start(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _fitted(installation: Installation) -> Fast | None:
    from fakeamqp.spark.session.fast import FastModeUnavailable, prepare

    try:
        if jvm.is_running():
            raise FastModeUnavailable("this process already has a Java process, from an earlier session")
        return prepare(installation)
    except FastModeUnavailable as error:
        _warn(str(error))
        return None


def _start_fast(settings: Mapping[str, str], fitted: Fast) -> SparkSession | None:
    """The session, or None if it does not start in fast mode; then everything is cleaned up."""
    options = " ".join([settings[_JAVA_OPTIONS], *fitted.java_options])
    os.environ[_HOME] = str(fitted.home)
    try:
        return _start({**settings, _JAVA_OPTIONS: options})
    except Exception as error:
        jvm.end()
        fitted.discard()
        os.environ.pop(_HOME)
        _warn(f"Spark does not start with the cache: {error}")
        return None


def _warn(reason: str) -> None:
    warnings.warn(FastModeWarning(f"the session starts without fast mode: {reason}"), stacklevel=5)


def _settings(installation: Installation, place: Path, more: Mapping[str, str]) -> dict[str, str]:
    names = {"folder": place, "module": Path(__file__).parent}
    manager = checkpoint_file_manager(installation)
    table = [*SETTINGS, *([manager] if manager else [])]
    java = [
        f"{option.key}={option.value.format_map(names)}" if option.value else option.key
        for option in JAVA_OPTIONS
    ]
    if _JAVA_OPTIONS in more:
        java.append(more[_JAVA_OPTIONS])
    tuned = {setting.key: str(setting.value).format_map(names) for setting in table}
    return {**tuned, **more, _JAVA_OPTIONS: " ".join(java)}


def _environment() -> dict[str, str | None]:
    names = {"python": sys.executable}
    return {
        variable.key: None if variable.value is None else variable.value.format_map(names)
        for variable in ENVIRONMENT
    }


def _refuse_second_session() -> None:
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    if running is not None:
        raise SessionRunning(
            f"this process already has a Spark session ({running.appName!r}), and can have one at a time; "
            "stop it first, or use it"
        )


def _as_text(value: object) -> str:
    """The value in Spark's form: true and false, not True and False."""
    return str(value).lower() if isinstance(value, bool) else str(value)
