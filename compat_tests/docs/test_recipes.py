"""The code blocks of the recipes run, each page in a pytest of its own with the library that it is about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from compat_tests.docs.recipes import Recipe, is_test, recipes

SECONDS = 240
RECIPES = recipes()
NAMES = [recipe.path.name for recipe in RECIPES]

#: What a page needs beside pytest, pika and aio-pika: modules, or programs with a slash in front.
NEEDS = {
    "aiormq.md": ("aiormq",),
    "amqpstorm.md": ("amqpstorm",),
    "celery.md": ("celery", "time_machine"),
    "django.md": ("django",),
    "dramatiq.md": ("dramatiq",),
    "fastapi.md": ("fastapi", "httpx"),
    "faststream.md": ("faststream",),
    "kombu.md": ("kombu",),
    "taskiq.md": ("taskiq_aio_pika",),
}
#: Languages whose blocks are files that run, or that files that run need.
RUN = ("python", "ini", "js", "php")


@pytest.mark.parametrize(
    "recipe", [each for each in RECIPES if each.stages()], ids=lambda each: each.path.name
)
def test_recipe(recipe: Recipe, tmp_path: Path) -> None:
    for need in NEEDS.get(recipe.path.name, ()):
        if need.startswith("/"):
            if shutil.which(need[1:]) is None:
                pytest.skip(f"needs the program {need[1:]}")
        elif find_spec(need) is None:
            pytest.skip(f"needs {need}: pip install 'fakeamqp[recipes]'")
    for number, files in enumerate(recipe.stages()):
        folder = tmp_path / str(number)
        for name, code in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        tests = {name for name in files if is_test(name)}
        assert tests, f"no tests among {list(files)}"
        passed = run_pytest(folder)
        assert passed == tests


def run_pytest(folder: Path) -> set[str]:
    """The test files in which a test has passed, where no other has not."""
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:benchmark",
            "--timeout=120",
        ],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outcomes = re.findall(r"^(\S+\.py)::.* (PASSED|SKIPPED|XFAIL)", ran.stdout, re.MULTILINE)
    assert outcomes and {outcome for _, outcome in outcomes} == {"PASSED"}, ran.stdout
    return {name for name, _ in outcomes}


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_every_block_of_code_is_a_file_that_runs(recipe: Recipe) -> None:
    nameless = [code for language, code, name in recipe.blocks if language in RUN and name is None]
    assert nameless == []


def test_the_needs_are_those_of_pages() -> None:
    assert set(NEEDS) <= set(NAMES)
