"""Finds the packages; everything else about the distribution is in pyproject.toml."""

from __future__ import annotations

from setuptools import find_packages, setup

PLUGIN_FOLDER = "pytest_plugin"
PLUGIN_PACKAGE = "pytest_fakeamqp"

setup(
    packages=[
        *find_packages(include=["fakeamqp", "fakeamqp.*"]),
        *(
            PLUGIN_PACKAGE + package.removeprefix(PLUGIN_FOLDER)
            for package in find_packages(include=[PLUGIN_FOLDER, f"{PLUGIN_FOLDER}.*"])
        ),
    ]
)
