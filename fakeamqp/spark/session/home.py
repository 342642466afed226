"""A Spark home of links, whose workers import the installed PySpark instead of a zip file.

Spark's workers find PySpark in the `pyspark.zip` of the Spark home. It has no compiled code, so every worker
that is not forked from another one compiles PySpark first: 1.6 s of a processor instead of 0.4 s (measured),
several times for each streaming query. On a busy machine a worker may need longer for it than the ten seconds
that Spark waits. The installed package has the same code, and Python keeps it compiled.
"""

from __future__ import annotations

from pathlib import Path

from fakeamqp.spark.session.errors import UnknownLayout


def link_home(installed: Path, home: Path) -> None:
    """Fill the empty folder `home` with links to the Spark home `installed`, the folder of PySpark.

    Raises:
        UnknownLayout: PySpark's folder has no zip files where they are expected.
        OSError: the links cannot be made.
    """
    import py4j

    packages = {"pyspark": installed, "py4j": Path(py4j.__file__).parent}
    _link_all(installed, home, but="python")
    python = home / "python"
    python.mkdir()
    _link_all(installed / "python", python, but="lib")
    libraries = python / "lib"
    libraries.mkdir()
    for entry in installed.joinpath("python", "lib").iterdir():
        package = packages.pop(entry.name.split("-")[0].removesuffix(".zip"), None)
        if package is None:
            libraries.joinpath(entry.name).symlink_to(entry)
        else:
            # Python treats a folder on its path as a folder, even if its name ends with .zip.
            libraries.joinpath(entry.name).mkdir()
            libraries.joinpath(entry.name, package.name).symlink_to(package)
    if packages:
        raise UnknownLayout(f"there is no zip file of {' and '.join(packages)} under {installed}")


def _link_all(folder: Path, links: Path, *, but: str) -> None:
    for entry in folder.iterdir():
        if entry.name != but:
            links.joinpath(entry.name).symlink_to(entry)
