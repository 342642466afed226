"""The settings of a session for tests, with reasons. Times were measured with two processors and PySpark 4.3.

In a value, `{folder}` is the folder of the session, `{module}` the folder of this module, and `{python}` the
Python of this process.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.spark.options.reading import TRANSPORT

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation


@dataclass(frozen=True)
class Setting:
    """A setting, its value and the reason. A variable whose value is None is removed."""

    key: str
    value: str | None
    why: str

    def filled(self, **names: object) -> str | None:
        """The value with folders and programs in place of their names."""
        return None if self.value is None else self.value.format_map(names)


SETTINGS = (
    Setting(
        "spark.sql.shuffle.partitions",
        "2",
        "a stateful micro-batch keeps one store per partition: 5.9 s with the default 200, 0.34 s with two",
    ),
    Setting("spark.default.parallelism", "2", "the same for RDDs"),
    Setting(
        "spark.driver.host", "127.0.0.1", "nothing listens on the network, and no host name is looked up"
    ),
    Setting("spark.driver.bindAddress", "127.0.0.1", "the same"),
    Setting("spark.ui.enabled", "false", "no server, and no search for a free port from 4040 on"),
    Setting("spark.ui.showConsoleProgress", "false", "a progress bar would disturb the output of pytest"),
    Setting(
        "spark.sql.session.timeZone", "UTC", "the same results on every machine; TZ below sets the process"
    ),
    Setting(
        "spark.sql.catalogImplementation",
        "in-memory",
        "Hive's catalog takes seconds to open and leaves metastore_db and derby.log behind",
    ),
    Setting(
        "spark.sql.warehouse.dir", "{folder}/warehouse", "parallel sessions would share ./spark-warehouse"
    ),
    Setting("spark.local.dir", "{folder}/local", "blocks and shuffle files are deleted with the session"),
    Setting(
        "spark.driver.memory", "1g", "enough for 100 000 messages, and little enough for a session per worker"
    ),
    Setting(
        "spark.sql.streaming.forceDeleteTempCheckpointLocation",
        "true",
        "the checkpoints of the memory and console sinks are deleted with their query",
    ),
    Setting(
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled",
        "true",
        "PySpark before 4.2 ends availableNow before the batch without rows that closes windows",
    ),
    Setting(
        "spark.sql.streaming.stopTimeout",
        "30s",
        "a query that does not stop fails its test; by default Spark waits without limit",
    ),
)

JAVA_OPTIONS = (
    Setting("-XX:TieredStopAtLevel=1", "", "no compilation that would pay off only after minutes"),
    Setting("-XX:+UseSerialGC", "", "no threads of a collector on a small heap"),
    Setting("-XX:-UsePerfData", "", "no file in /tmp/hsperfdata"),
    Setting(
        "-Dlog4j2.configurationFile", "file:{module}/log4j2.properties", "errors only, without Spark's banner"
    ),
    Setting(
        "-Djava.io.tmpdir",
        "{folder}/tmp",
        "files that Java and its native libraries unpack are deleted with the session",
    ),
    Setting("-Dderby.system.home", "{folder}", "where a session with Hive's catalog keeps it"),
)

ENVIRONMENT = (
    Setting(
        "TZ",
        "UTC",
        "collect() and naive datetimes of Python sources use the time zone of the process, not that of the "
        "session: 12:00 becomes 07:00 in New York",
    ),
    Setting(
        "PYSPARK_PYTHON",
        "{python}",
        "workers would run the python3 of the PATH, without the installed packages",
    ),
    Setting("PYSPARK_DRIVER_PYTHON", "{python}", "must be the same"),
    Setting(
        TRANSPORT,
        "file",
        "tasks see the spool of the driver: a streaming read takes a quarter to a third less processor time "
        "than with messages inside tasks. Not set for a master that is not local",
    ),
    Setting("SPARK_LOCAL_IP", "127.0.0.1", "no warning about a host name that has no address"),
    Setting("SPARK_LOCAL_DIRS", None, "would override spark.local.dir"),
    Setting("SPARK_REMOTE", None, "would start a session of Spark Connect"),
    Setting(
        "SPARK_LAUNCHER_OPTS",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
        "Spark's start script runs a Java to find out how to run Java",
    ),
)

_FILE_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)


def checkpoint_file_manager(installation: Installation) -> list[Setting]:
    """The class that writes checkpoints, by its name in this Spark; nothing if no name matches."""
    for jar in installation.home.glob("jars/spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as classes:
            names = set(classes.namelist())
        for name in _FILE_MANAGERS:
            if f"{name.replace('.', '/')}.class" in names:
                why = (
                    "the default runs readlink and chmod for every file where Hadoop has no native library: "
                    "100 ms per micro-batch against 21 ms. For tests: the default is the safer one"
                )
                return [Setting("spark.sql.streaming.checkpointFileManagerClass", name, why)]
    return []
