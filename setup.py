"""Finds the packages and makes the long description; everything else is in pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree
from typing import ClassVar

from setuptools import Command, find_packages, setup
from setuptools.command.build import build

PLUGIN_FOLDER = "pytest_plugin"
PLUGIN_PACKAGE = "pytest_fakeamqp"

# Spark finds data sources by listing the folders that Python imports from.
SPARK_FOLDER = "fakeamqp/spark/registration"
SPARK_PACKAGE = "pyspark_fakeamqp"


SOURCE = "https://github.com/fakeamqp/fakeamqp/blob/main/"


def long_description() -> str:
    """README.md with absolute links: a package index shows it without the other files."""
    return re.sub(r"(?<=\]\()(?![a-z]+:|#)", SOURCE, Path("README.md").read_text("utf-8"))


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
    cmdclass={"build": Build, "build_spark_registration": BuildSparkRegistration},
)
