"""The installed software: the version of PySpark, its Spark home, and the Java that it uses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fakeamqp.spark.session.errors import JavaMissing, SparkMissing

__all__ = ["Installation", "find_installation", "find_java"]

OLDEST_SPARK = (4, 0)
FIRST_SPARK_BEYOND = (5, 0)
OLDEST_JAVA = 17
"""That Spark 4 runs on."""

_INSTALL = "install it with: pip install 'fakeamqp[spark]'"
_JAVA_HOME = "JAVA_HOME names the folder of a JDK or JRE in place of the one on the PATH"


@dataclass(frozen=True)
class Installation:
    """One PySpark and the Java under it. `own_home` is False where SPARK_HOME names another Spark."""

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
    """Look at what is installed; nothing is started but `java -version` where a Java does not say it on disk.

    Raises:
        SparkMissing: if PySpark is missing or out of range.
        JavaMissing: if there is no Java, or none that is new enough.
    """
    version = _spark_version()
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home()).resolve()
    return Installation(version, home, "SPARK_HOME" not in os.environ, *find_java())


def find_java() -> tuple[Path, str]:
    """The Java that Spark would run on, and its version.

    Raises:
        JavaMissing: if there is no Java, or none that is new enough.
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
            f"PySpark {pyspark.__version__} is installed, and fakeamqp needs one from 4.0 on, before 5; "
            + _INSTALL
        )
    return version


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaMissing(f"Spark needs Java, and JAVA_HOME is {home!r}, where there is no bin/java")
        return java
    found = shutil.which("java")
    if found is None:
        raise JavaMissing(
            f"Spark needs Java {OLDEST_JAVA} or later, and there is no java on the PATH; install a JRE. "
            + _JAVA_HOME
        )
    return Path(found)


def _checked_version(java: Path) -> str:
    version = _released_version(java) or _said_version(java)
    if version is None:
        # On macOS there is a `java` that only says where to get one.
        raise JavaMissing(f"Spark needs Java, and {java} does not run; install a JRE. {_JAVA_HOME}")
    number = int(version.split(".")[1 if version.startswith("1.") else 0])
    if number < OLDEST_JAVA:
        raise JavaMissing(
            f"Spark needs Java {OLDEST_JAVA} or later, and {java} is version {version}. {_JAVA_HOME}"
        )
    return version


def _released_version(java: Path) -> str | None:
    try:
        text = java.resolve().parents[1].joinpath("release").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(\d[\w.+-]*)"', text, re.MULTILINE)
    return found[1] if found else None


def _said_version(java: Path) -> str | None:
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d[\w.+-]*)"', said.stderr + said.stdout)
    return found[1] if found else None
