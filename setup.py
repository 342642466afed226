"""Finds the packages, makes the long description, dates the files; everything else is in pyproject.toml."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from contextlib import suppress
from gzip import GzipFile
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

PLUGIN_FOLDER = "pytest_plugin"
PLUGIN_PACKAGE = "pytest_fakeamqp"

SPARK_FOLDER = "fakeamqp/spark/registration"
SPARK_PACKAGE = "pyspark_fakeamqp"


SOURCE = "https://github.com/fakeamqp/fakeamqp/blob/main/"


def long_description() -> str:
    """README.md with absolute links: a package index shows it without the other files."""
    return re.sub(r"(?<=\]\()(?![a-z]+:|#)", SOURCE, Path("README.md").read_text("utf-8"))


def set_date() -> None:
    """Date files by the commit, or by the source distribution, so that each build has the same bytes.

    Wheels take the date from SOURCE_DATE_EPOCH, in seconds since 1970.
    """
    if Path("PKG-INFO").exists():
        seconds = str(int(Path("PKG-INFO").stat().st_mtime))
    else:
        seconds = ""
        with suppress(OSError):
            git = ["git", "log", "-1", "--format=%ct"]
            seconds = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    if seconds:
        os.environ.setdefault("SOURCE_DATE_EPOCH", seconds)


class SourceDistribution(sdist):
    """The usual source distribution, with the date of SOURCE_DATE_EPOCH and without an owner."""

    def make_archive(self, base_name: str, format: str, *args: Any, base_dir: str, **options: Any) -> str:
        date = os.environ.get("SOURCE_DATE_EPOCH")
        if date is None or format != "gztar":
            return super().make_archive(base_name, format, *args, base_dir=base_dir, **options)

        def dated(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime = int(date)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        path = f"{base_name}.tar.gz"
        with (
            GzipFile(path, "wb", mtime=int(date)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=dated)
        return path


set_date()
setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(
            include=["fakeamqp", "fakeamqp.*"],
            exclude=[SPARK_FOLDER.replace("/", ".")],
        ),
        SPARK_PACKAGE,
        *(
            PLUGIN_PACKAGE + package.removeprefix(PLUGIN_FOLDER)
            for package in find_packages(include=[PLUGIN_FOLDER, f"{PLUGIN_FOLDER}.*"])
        ),
    ],
    cmdclass={"sdist": SourceDistribution},
)
