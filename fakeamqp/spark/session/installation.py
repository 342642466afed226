"""The installed software: the version of PySpark, its Spark home, and the Java that it uses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fakeamqp.spark.session.errors import JavaMissing, SparkMissing

OLDEST_SPARK = (4, 0)
FIRST_SPARK_BEYOND = (5, 0)
OLDEST_JAVA = 17
"""The oldest version that Spark 4 supports."""

_INSTALL = "install it with: pip install 'fakeamqp[spark]'"
_JAVA_HOME = "Set JAVA_HOME to the folder of a JDK or JRE to use it instead of the java on the PATH"


@dataclass(frozen=True)
class Installation:
    """An installed PySpark and its Java. `own_home` is False if SPARK_HOME is set."""

    spark: tuple[int, ...]
    home: Path
    own_home: bool
    java: Path
    java_version: str

    @property
    def label(self) -> str:
        """The versions as text for a file name."""
        return f"spark-{'.'.join(map(str, self.spark))}-java-{self.java_version}"

    def jars(self, prefix: str) -> list[Path]:
        """Spark's own jars whose names start with `prefix`."""
        return sorted(self.home.joinpath("jars").glob(f"{prefix}*.jar"))


def find_installation() -> Installation:
    """Find the installed PySpark and Java.

    This runs `java -version` if the files of Java do not contain its version.

    Raises:
        SparkMissing: PySpark is not installed, or its version is not supported.
        JavaMissing: Java is not installed or too old.
    """
    version = _spark_version()
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home()).resolve()
    return Installation(version, home, "SPARK_HOME" not in os.environ, *find_java())


def find_java() -> tuple[Path, str]:
    """The Java that Spark uses, and its version.

    Raises:
        JavaMissing: Java is not installed or too old.
    """
    java = _java()
    return java, _checked_version(java)


def _spark_version() -> tuple[int, ...]:
    try:
        import pyspark
    except ImportError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise SparkMissing(f"PySpark is not installed; {_INSTALL}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:3])
    if not OLDEST_SPARK <= version < FIRST_SPARK_BEYOND:
        raise SparkMissing(
            f"PySpark {pyspark.__version__} is installed, but fakeamqp needs PySpark 4; " + _INSTALL
        )
    return version


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaMissing(
                f"Spark needs Java, but JAVA_HOME is {home!r}, which has no executable bin/java"
            )
        return java
    found = shutil.which("java")
    if found is None:
        raise JavaMissing(
            f"Spark needs Java {OLDEST_JAVA} or later, but there is no java on the PATH; install a JRE. "
            + _JAVA_HOME
        )
    return Path(found)


def _checked_version(java: Path) -> str:
    version = _released_version(java) or _said_version(java)
    if version is None:
        # The `java` of macOS without Java only prints how to install it.
        raise JavaMissing(f"Spark needs Java, but {java} does not run; install a JRE. {_JAVA_HOME}")
    number = int(re.findall(r"\d+", version)[1 if version.startswith("1.") else 0])
    if number < OLDEST_JAVA:
        raise JavaMissing(
            f"Spark needs Java {OLDEST_JAVA} or later, but {java} is version {version}. {_JAVA_HOME}"
        )
    return version


def _released_version(java: Path) -> str | None:
    try:
        text = java.resolve().parents[1].joinpath("release").read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(\d[\w.+-]*)"', text, re.MULTILINE)
    return found[1] if found else None


def _said_version(java: Path) -> str | None:
    try:
        said = subprocess.run(
            [java, "-version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d[\w.+-]*)"', said.stderr + said.stdout)
    return found[1] if found else None
