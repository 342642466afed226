"""A protocol is one package and its registry rows: without them everything else works.

The whole check, with all tests of the protocols that stay, is
`test_remaining_protocols_pass_their_tests_without_deleted_protocol`; it takes minutes and runs in
`make test-all`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    "0-9-1": "compat_tests/protocol",
    "0-9": "compat_tests/protocol/amqp_0_9",
    "0-10": "compat_tests/protocol/amqp_0_10",
}
BOTH = "compat_tests/protocol/files_and_streams"
"""Speaks 0-9 and 0-10 in every test."""

PACKAGES = {"0-9": "amqp_0_9", "0-10": "amqp_0_10"}
"""0-9-1 is what RabbitMQ speaks, and stays."""

IMPORT_ALL = """
import importlib, pkgutil, sys
import fakeamqp
names = [module.name for module in pkgutil.walk_packages(fakeamqp.__path__, "fakeamqp.")]
for name in names:
    if not name.startswith("fakeamqp.spark") and not name.endswith("__main__"):
        importlib.import_module(name)
from fakeamqp import Broker
with Broker() as broker:
    broker.publish(b"x", routing_key="nowhere")
    print(broker.trace.timeline())
"""


@pytest.fixture(params=PACKAGES)
def deleted(request: pytest.FixtureRequest) -> str:
    """The protocol that is taken out."""
    name: str = request.param
    return name


@pytest.fixture
def copy(deleted: str, tmp_path: Path) -> Path:
    """A copy of the project without a protocol's package and rows."""
    for folder in ("fakeamqp", "pytest_plugin", "compat_tests", "spec"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(tmp_path / "pytest_plugin", tmp_path / "pytest_fakeamqp")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = PACKAGES[deleted]
    shutil.rmtree(tmp_path / "fakeamqp" / "protocols" / package)
    registry = tmp_path / "fakeamqp" / "protocols" / "registry.py"
    registry.write_text(without_rows(registry.read_text(), package))
    return tmp_path


def without_rows(source: str, package: str) -> str:
    """The registry without the rows of a package."""
    lines = source.splitlines(keepends=True)
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    rows = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Row"]
    for row in sorted(rows, key=lambda row: row.lineno, reverse=True):
        if ast.literal_eval(row.args[2]) == package:
            del lines[row.lineno - 1 : row.end_lineno]
    return "".join(lines)


def run(folder: Path, *arguments: str) -> None:
    """Run Python in a copy of the project; fails with what it has said."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": ""}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_package_without_deleted_protocol_imports_and_runs(copy: Path) -> None:
    run(copy, "-c", IMPORT_ALL)


def test_import_contracts_hold_without_deleted_protocol(copy: Path) -> None:
    run(copy, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_remaining_protocols_pass_their_tests_without_deleted_protocol(copy: Path, deleted: str) -> None:
    folders = [folder for name, folder in TESTS.items() if name != deleted]
    ignored = [f"--ignore={path}" for path in (TESTS[deleted], BOTH, *_tests_across(copy, PACKAGES[deleted]))]
    run(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *folders, *ignored)


def _tests_across(copy: Path, package: str) -> list[str]:
    """The test files of other protocols that also speak this one, directly or by another test file."""
    texts = {path: path.read_text() for path in (copy / "compat_tests/protocol").rglob("test_*.py")}
    needed = {rf"fakeamqp.protocols.{package}", rf"compat_tests.protocol.{package}"}
    while True:
        found = [
            path for path, text in texts.items() if any(re.search(rf"{name}\b", text) for name in needed)
        ]
        modules = {".".join(path.relative_to(copy).with_suffix("").parts) for path in found}
        if modules <= needed:
            return [str(path.relative_to(copy)) for path in found]
        needed |= modules


def test_import_check_fails_for_module_that_needs_deleted_package(copy: Path) -> None:
    """The check can fail: a module that imports what is deleted does not load."""
    package = next(name for name in PACKAGES.values() if not (copy / "fakeamqp/protocols" / name).exists())
    (copy / "fakeamqp" / "needy.py").write_text(f"import fakeamqp.protocols.{package}\n")
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        run(copy, "-c", IMPORT_ALL)
