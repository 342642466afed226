"""A Spark home of links, whose workers import the installed PySpark instead of a zip file."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.session.errors import FastModeUnavailable

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation

__all__ = ["the_home"]


def the_home(installation: Installation, folder: Path) -> Path:
    """The Spark home in the cache, created if it is missing.

    Raises:
        FastModeUnavailable: the folder of PySpark has an unknown layout.
        OSError: the cache cannot be written.
    """
    home = folder / "home"
    if home.is_dir():
        return home
    making = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
    try:
        _fill(making, installation.home)
        making.chmod(0o755)
        os.rename(making, home)
    except OSError:
        if not home.is_dir():  # Otherwise another process has created it meanwhile.
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return home


def _fill(home: Path, installed: Path) -> None:
    import py4j

    zips = {"pyspark": installed, "py4j": Path(py4j.__file__).parent}
    for entry in installed.iterdir():
        if entry.name in ("bin", "jars", "sbin"):
            home.joinpath(entry.name).symlink_to(entry)
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in installed.joinpath("python", "lib").iterdir():
        package = zips.pop(entry.name.split("-")[0].removesuffix(".zip"), None)
        if package is None:
            libraries.joinpath(entry.name).symlink_to(entry)
        else:
            # Python treats a folder on its path as a folder, even if its name ends with .zip.
            libraries.joinpath(entry.name).mkdir()
            libraries.joinpath(entry.name, package.name).symlink_to(package)
    if zips:
        raise FastModeUnavailable(f"there is no zip file of {' and '.join(zips)} under {installed}")
