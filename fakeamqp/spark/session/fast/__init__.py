"""Fast mode: a session that starts faster with the user's cache.

Java reads and verifies thousands of Spark's classes at every start. `archive` stores them once in Java's
memory format, in about 15 seconds and 170 MB. It is for one Spark home, which `home` keeps beside it.

If fast mode is not possible, `prepare` raises `FastModeUnavailable`, and the session starts without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.session.errors import FastModeUnavailable, UnknownLayout
from fakeamqp.spark.session.fast.archive import the_archive
from fakeamqp.spark.session.fast.cache import cache_folder
from fakeamqp.spark.session.fast.home import the_home

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation

__all__ = ["Fast", "FastModeUnavailable", "prepare"]


@dataclass(frozen=True)
class Fast:
    """The parts of fast mode: a Spark home, and the archive for Java."""

    home: Path
    archive: Path

    @property
    def java_options(self) -> list[str]:
        """Options for Java. Java silently ignores an archive that does not fit."""
        return [
            f"-XX:SharedArchiveFile={self.archive}",
            "-Xshare:auto",
            "-Xlog:cds=off",
            "-Xlog:cds+dynamic=off",
        ]

    def discard(self) -> None:
        """Delete the archive, because Java does not start with it. The next session creates it again."""
        self.archive.unlink(missing_ok=True)


def prepare(installation: Installation) -> Fast:
    """Find the parts of fast mode in the cache, and create missing ones.

    Raises:
        FastModeUnavailable: fast mode is not possible; the text has the reason.
    """
    if not installation.own_home:
        raise FastModeUnavailable("SPARK_HOME is set, and fast mode needs the Spark of the pyspark package")
    try:
        folder = cache_folder(installation)
        folder.mkdir(parents=True, exist_ok=True)
        home = the_home(installation, folder)
        return Fast(home, the_archive(home, folder))
    except UnknownLayout as error:
        raise FastModeUnavailable(str(error)) from error
    except OSError as error:
        raise FastModeUnavailable(f"the cache cannot be used: {error}") from error
