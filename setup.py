"""Finds the packages, makes the long description, dates the files; everything else is in pyproject.toml."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from contextlib import suppress
from gzip import GzipFile
from pathlib import Path
from shutil import copytree
from typing import Any, ClassVar

from setuptools import Command, find_packages, setup
from setuptools.command.build import build
from setuptools.command.sdist import sdist

PLUGIN_FOLDER = "pytest_plugin"
PLUGIN_PACKAGE = "pytest_fakeamqp"

# Spark finds data sources by listing the folders that Python imports from.
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


class BuildSparkRegistration(Command):
    """Puts a copy of the package that Spark looks for into an editable installation.

    There, renamed packages are found by an import hook, which nobody can list.
    """

    editable_mode = False

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        if self.editable_mode:
            folder = Path(self.get_finalized_command("install").install_lib, SPARK_PACKAGE)
            copytree(SPARK_FOLDER, folder, dirs_exist_ok=True)

    def get_source_files(self) -> list[str]:
        return [str(path) for path in Path(SPARK_FOLDER).glob("*.py")]

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


class Build(build):
    """The usual build, and Spark's registration."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_spark_registration", None)]


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
    cmdclass={
        "build": Build,
        "build_spark_registration": BuildSparkRegistration,
        "sdist": SourceDistribution,
    },
)
