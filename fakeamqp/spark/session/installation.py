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

    def link_home(self, home: Path) -> None:
        """Fill the empty folder `home` with links to the Spark home, and to the installed packages.

        Spark's workers find PySpark in the `pyspark.zip` of the Spark home. It has no compiled code, so every
        worker that is not forked from another one compiles PySpark first: 1.6 s of a processor instead of
        0.4 s (measured), several times for each streaming query. On a busy machine a worker may need longer
        for it than the ten seconds that Spark waits. The installed package has the same code, and Python
        keeps it compiled.

        Raises:
            OSError: the links cannot be made, or PySpark has no zip files where they are expected.
        """
        import py4j

        packages = {"pyspark": self.home, "py4j": Path(py4j.__file__).parent}
        _link_all(self.home, home, but="python")
        (home / "python").mkdir()
        _link_all(self.home / "python", home / "python", but="lib")
        libraries = home / "python" / "lib"
        libraries.mkdir()
        for entry in self.home.joinpath("python", "lib").iterdir():
            package = packages.pop(entry.name.split("-")[0].removesuffix(".zip"), None)
            if package is None:
                libraries.joinpath(entry.name).symlink_to(entry)
            else:
                # Python treats a folder on its path as a folder, even if its name ends with .zip.
                libraries.joinpath(entry.name).mkdir()
                libraries.joinpath(entry.name, package.name).symlink_to(package)
        if packages:
            raise FileNotFoundError(f"there is no zip file of {' and '.join(packages)} under {self.home}")


def _link_all(folder: Path, links: Path, *, but: str) -> None:
    for entry in folder.iterdir():
        if entry.name != but:
            links.joinpath(entry.name).symlink_to(entry)


def find_installation() -> Installation:
    """Find the installed PySpark and Java.

    Raises:
        SparkMissing: PySpark is not installed, or its version is not supported.
        JavaMissing: Java is not installed or too old.
    """
    version = _spark_version()
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home()).resolve()
    return Installation(version, home, "SPARK_HOME" not in os.environ, *find_java())


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


def find_java() -> tuple[Path, str]:
    """The Java that Spark uses, and its version.

    Raises:
        JavaMissing: Java is not installed or too old.
    """
    needed = f"Spark needs Java {OLDEST_JAVA} or later, but"
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=Path(home, "bin")) if home else shutil.which("java")
    if found is None and home:
        raise JavaMissing(f"{needed} JAVA_HOME is {home!r}, which has no executable bin/java")
    if found is None:
        raise JavaMissing(f"{needed} there is no java on the PATH; install a JRE. {_JAVA_HOME}")
    version = _version(found)
    if version is None:
        # The `java` of macOS without Java only prints how to install it.
        raise JavaMissing(f"{needed} {found} does not run; install a JRE. {_JAVA_HOME}")
    number = int(re.findall(r"\d+", version)[1 if version.startswith("1.") else 0])
    if number < OLDEST_JAVA:
        raise JavaMissing(f"{needed} {found} is version {version}. {_JAVA_HOME}")
    return Path(found), version


def _version(java: str) -> str | None:
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, encoding="utf-8", errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d[\w.+-]*)"', said.stderr + said.stdout)
    return found[1] if found else None
