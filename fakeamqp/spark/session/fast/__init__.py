"""Fast mode: a session that starts sooner, and workers that do, out of the user's cache.

- **Class-data archive.** Java reads and checks thousands of Spark's classes at every start. `archive` has it
  write them down once, in about 15 seconds and 170 MB, the way it needs them in memory.
- **Worker imports.** Spark's workers take PySpark from `pyspark.zip`, where there is no compiled code, so
  every worker process compiles it again. `home` is a Spark home whose `pyspark.zip` is a folder that leads
  to the installed PySpark. Spark does not know of that, so it is for tests.

Whatever cannot be had is no error: `prepare` says why, and the session is the usual one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.session.fast.archive import the_archive
from fakeamqp.spark.session.fast.cache import cache_folder
from fakeamqp.spark.session.fast.errors import FastModeUnavailable
from fakeamqp.spark.session.fast.home import the_home

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation

__all__ = ["Fast", "FastModeUnavailable", "prepare"]


@dataclass(frozen=True)
class Fast:
    """What makes a session fast: its Spark home, and the archive that its Java reads."""

    home: Path
    archive: Path

    @property
    def java_options(self) -> list[str]:
        """Options for Java. It goes on without an archive that does not fit, and says nothing about it."""
        return [
            f"-XX:SharedArchiveFile={self.archive}",
            "-Xshare:auto",
            "-Xlog:cds=off",
            "-Xlog:cds+dynamic=off",
        ]

    def discard(self) -> None:
        """Delete the archive, since Java does not start with it. The next session makes it again."""
        self.archive.unlink(missing_ok=True)


def prepare(installation: Installation) -> Fast:
    """Find what fast mode needs in the cache, and make what is not there.

    Raises:
        FastModeUnavailable: if it cannot be had. The text says why.
    """
    if not installation.own_home:
        raise FastModeUnavailable("SPARK_HOME is set, and fast mode needs the Spark of the pyspark package")
    try:
        folder = cache_folder(installation)
        folder.mkdir(parents=True, exist_ok=True)
        home = the_home(installation, folder)
        return Fast(home, the_archive(home, folder))
    except OSError as error:
        raise FastModeUnavailable(f"the cache cannot be used: {error}") from error
